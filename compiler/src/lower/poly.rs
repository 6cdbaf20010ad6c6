//! Polynomials as products, with the fewest multiplications on the longest path: ⌈log2 d⌉ for a monic polynomial whose
//! degree d is a power of two, ⌈log2 (d + 1)⌉ for any other.
//!
//! In one variable, p = low + x^m·high with m the largest power of two up to d, and so on in both halves: powers are squares
//! of powers, and degree 7 takes five products. In two variables every monomial is a balanced tree of factors joined
//! shallowest first, its coefficient on one of the leaves; equal products are computed once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use fhec_ir::NodeId;

use super::build::{Builder, diagonal};
use super::circuit::{Affine, CircuitOp, Map, Term, ValueId};
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
        if x == y {
            return self.in_one_variable(x, monomials, node);
        }
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
        self.sum(x, Affine { terms, bias }, node)
    }

    fn in_one_variable(&mut self, x: ValueId, monomials: Vec<Monomial>, node: NodeId) -> ValueId {
        let shape = self.shape(x);
        let mut coeffs: Vec<Option<Constant>> = Vec::new();
        for Monomial { powers: [i, j], coeff } in monomials.into_iter().filter(|m| !m.coeff.is_all(0.0)) {
            if coeffs.len() <= i + j {
                coeffs.resize(i + j + 1, None);
            }
            let of_power = &mut coeffs[i + j];
            *of_power = Some(match of_power.take() {
                None => coeff,
                Some(other) => other.plus(&coeff, shape),
            });
        }
        let mut powers = vec![x];
        let sum = self.half(&coeffs, &mut powers, node);
        self.sum(x, sum, node)
    }

    /// The polynomial of some coefficients; `powers` has the powers x, x², x⁴, … that were needed so far.
    fn half(&mut self, coeffs: &[Option<Constant>], powers: &mut Vec<ValueId>, node: NodeId) -> Affine {
        let Some(degree) = coeffs.iter().rposition(Option::is_some) else { return Affine::default() };
        if degree == 0 {
            return Affine { terms: Vec::new(), bias: coeffs[0].clone() };
        }
        let log2 = degree.ilog2() as usize;
        while powers.len() <= log2 {
            let last = powers[powers.len() - 1];
            let shape = self.shape(last);
            powers.push(self.push(CircuitOp::Product([last, last]), shape, node));
        }
        let (power, shape) = (powers[log2], self.shape(powers[log2]));
        let (low, high) = coeffs.split_at(1 << log2);
        let mut sum = self.half(low, powers, node);
        let high = self.half(high, powers, node);
        sum.terms.push(match high {
            Affine { terms, bias: Some(factor) } if terms.is_empty() => {
                Term { source: power, map: diagonal(&factor, shape) }
            }
            Affine { terms, bias } => {
                let factor = self.affine(terms, bias, shape, node);
                let pair = [power.min(factor), power.max(factor)];
                let source = self.push(CircuitOp::Product(pair), shape, node);
                Term { source, map: Map::Identity }
            }
        });
        sum
    }

    /// A sum as a value; a constant still depends on its operand in form.
    fn sum(&mut self, x: ValueId, Affine { mut terms, bias }: Affine, node: NodeId) -> ValueId {
        let shape = self.shape(x);
        if terms.is_empty() {
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
