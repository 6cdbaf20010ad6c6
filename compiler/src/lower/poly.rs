//! Polynomials as products: every monomial is a balanced tree of factors, its coefficient on one of the leaves.
//!
//! With leaves joined shallowest first, a monic polynomial of degree d needs ⌈log2 d⌉ products on its longest path and any
//! other one more, which is what the depth analysis of the graph counts. Equal products are computed once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use fhec_ir::NodeId;

use super::build::{Builder, diagonal};
use super::circuit::{CircuitOp, Map, Term, ValueId};
use super::constant::Constant;

/// A monomial c·x^i·y^j.
pub(super) struct Monomial {
    /// The powers of x and y.
    pub(super) powers: [usize; 2],
    /// The coefficient per channel or element.
    pub(super) coeff: Constant,
}

impl Builder<'_> {
    /// The polynomial of two values (give one twice for a polynomial of one).
    pub(super) fn polynomial(
        &mut self,
        [x, y]: [ValueId; 2],
        monomials: Vec<Monomial>,
        node: NodeId,
    ) -> ValueId {
        let shape = self.shape(x);
        let mut products = BTreeMap::new();
        let mut terms = Vec::new();
        let mut bias = None;
        for Monomial { powers: [i, j], coeff } in monomials.into_iter().filter(|m| !m.coeff.is_all(0.0)) {
            match i + j {
                0 => bias = Some(coeff),
                1 => {
                    let map = diagonal(&coeff, shape);
                    terms.push(Term { source: if i == 1 { x } else { y }, map });
                }
                _ => {
                    let mut leaves: Vec<ValueId> =
                        std::iter::repeat_n(x, i).chain(std::iter::repeat_n(y, j)).collect();
                    if !coeff.is_all(1.0) {
                        // The coefficient goes to the factor that is ready first.
                        leaves.sort_by_key(|&leaf| Reverse((self.depth(leaf), leaf)));
                        let leaf = leaves.pop().expect("a monomial of degree two has leaves");
                        let term = Term { source: leaf, map: diagonal(&coeff, shape) };
                        leaves.push(self.affine(vec![term], None, shape, node));
                    }
                    let source = self.product(leaves, &mut products, node);
                    terms.push(Term { source, map: Map::Identity });
                }
            }
        }
        if terms.is_empty() {
            // A constant polynomial still depends on its operand in form.
            let zero = Map::Diagonal(Constant::new(vec![fhec_ir::Tensor::scalar(0.0)]).spread(shape));
            terms.push(Term { source: x, map: zero });
        }
        self.affine(terms, bias, shape, node)
    }

    /// The product of factors, shallowest first.
    fn product(
        &mut self,
        leaves: Vec<ValueId>,
        known: &mut BTreeMap<[ValueId; 2], ValueId>,
        node: NodeId,
    ) -> ValueId {
        let mut heap: BinaryHeap<_> =
            leaves.into_iter().map(|leaf| Reverse((self.depth(leaf), leaf))).collect();
        loop {
            let Some(Reverse((_, first))) = heap.pop() else { unreachable!("a product has factors") };
            let Some(Reverse((_, second))) = heap.pop() else { return first };
            let pair = [first.min(second), first.max(second)];
            let shape = self.shape(first);
            let product = match known.get(&pair) {
                Some(&product) => product,
                None => self.push(CircuitOp::Product(pair), shape, node),
            };
            known.insert(pair, product);
            heap.push(Reverse((self.depth(product), product)));
        }
    }
}
