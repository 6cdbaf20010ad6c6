//! Turns a polynomial of the import into nodes of the graph.
//!
//! Of the forms that mean the same, the first that fits is taken: the source itself; a constant added, a factor, a batch
//! normalization (degree one); a polynomial; for two sources a sum of two such, a polynomial of their sum, a product, and
//! only then a bivariate polynomial.

use std::collections::HashMap;

use fhec_ir::op::monomials;
use fhec_ir::{Graph, NodeId, Op, ShapeError, Tensor, TensorId};

use super::coefficient::Coefficient;
use super::polynomial::Polynomial;
use super::reason::Reason;

/// Makes nodes, and remembers sums so that two readers of x + y share one.
#[derive(Debug, Default)]
pub(super) struct Emitter {
    /// The graph so far.
    pub(super) graph: Graph,
    sums: HashMap<(NodeId, NodeId), NodeId>,
}

impl Emitter {
    /// A node with the value of the polynomial.
    pub(super) fn emit(&mut self, polynomial: &Polynomial, origin: &str) -> Result<NodeId, Reason> {
        if !polynomial.is_finite() {
            return Err(Reason::Attribute("its coefficients are not finite".into()));
        }
        match polynomial.sources() {
            [x] => self.univariate(*x, polynomial, origin),
            [x, y] => self.bivariate(*x, *y, polynomial, origin),
            _ => unreachable!("a polynomial has one or two sources"),
        }
    }

    /// Adds a node whose operands were checked to fit.
    pub(super) fn add(&mut self, op: Op, operands: &[NodeId], origin: &str) -> Result<NodeId, Reason> {
        self.graph.add(op, operands, origin).map_err(|e: ShapeError| Reason::Attribute(e.to_string()))
    }

    /// Adds a vector constant.
    pub(super) fn vector(&mut self, values: &[f64]) -> TensorId {
        self.graph.add_tensor(Tensor::vector(values))
    }

    fn univariate(&mut self, x: NodeId, polynomial: &Polynomial, origin: &str) -> Result<NodeId, Reason> {
        let coefficients: Vec<_> =
            (0..=polynomial.degree()).map(|i| polynomial.coefficient([i, 0])).collect();
        self.polynomial_of(x, coefficients, polynomial, origin)
    }

    fn polynomial_of(
        &mut self,
        x: NodeId,
        mut coefficients: Vec<Coefficient>,
        polynomial: &Polynomial,
        origin: &str,
    ) -> Result<NodeId, Reason> {
        let shape = polynomial.shape();
        if coefficients[1..].iter().any(|c| matches!(c, Coefficient::Full(_))) {
            return Err(Reason::PositionalFactor);
        }
        // A constant that depends on the position is added by a node of its own.
        let positional = match &coefficients[0] {
            Coefficient::Full(_) => std::mem::replace(&mut coefficients[0], Coefficient::ZERO),
            _ => Coefficient::ZERO,
        };
        if coefficients.len() == 1 {
            coefficients.push(Coefficient::ZERO);
        }
        let node = match &coefficients[..] {
            [c0, c1] if c1.is_all(1.0) => self.add_constant(x, c0, shape.dims(), origin)?,
            [c0, c1] => {
                let scale = self.vector(c1.values());
                if c0.is_all(0.0) {
                    self.add(Op::Scale { factor: scale }, &[x], origin)?
                } else {
                    let shift = self.vector(c0.values());
                    self.add(Op::BatchNorm { scale, shift }, &[x], origin)?
                }
            }
            _ => {
                let coeffs = self.table(&coefficients, shape.c);
                self.add(Op::Poly { coeffs }, &[x], origin)?
            }
        };
        self.add_constant(node, &positional, shape.dims(), origin)
    }

    fn add_constant(
        &mut self,
        x: NodeId,
        constant: &Coefficient,
        dims: [usize; 3],
        origin: &str,
    ) -> Result<NodeId, Reason> {
        if constant.is_all(0.0) {
            return Ok(x);
        }
        let value = match constant {
            Coefficient::Scalar(_) | Coefficient::Channel(_) => self.vector(constant.values()),
            Coefficient::Full(values) => {
                let tensor = Tensor::from_f64(dims.to_vec(), values.clone());
                self.graph.add_tensor(tensor.map_err(|e| Reason::Attribute(e.to_string()))?)
            }
        };
        self.add(Op::AddConst { value }, &[x], origin)
    }

    fn bivariate(
        &mut self,
        x: NodeId,
        y: NodeId,
        polynomial: &Polynomial,
        origin: &str,
    ) -> Result<NodeId, Reason> {
        if let Some(coefficients) = polynomial.of_sum() {
            let sum = self.sum(x, y, origin)?;
            return self.polynomial_of(sum, coefficients, polynomial, origin);
        }
        let constant = polynomial.coefficient([0, 0]);
        if polynomial.is_separable() {
            let left = self.univariate(x, &polynomial.part(0).shifted(&constant), origin)?;
            let right = self.univariate(y, &polynomial.part(1), origin)?;
            return self.sum(left, right, origin);
        }
        let degree = polynomial.degree() as usize;
        let rows: Vec<_> =
            monomials(degree).map(|(i, j)| polynomial.coefficient([i as u32, j as u32])).collect();
        if rows.iter().any(|c| matches!(c, Coefficient::Full(_))) {
            return Err(Reason::PositionalFactor);
        }
        let is_product = degree == 2
            && monomials(2).zip(&rows).all(|(m, c)| c.is_all(if m == (1, 1) { 1.0 } else { 0.0 }));
        if is_product {
            return self.add(Op::Mul, &[x, y], origin);
        }
        let coeffs = self.table(&rows, polynomial.shape().c);
        self.add(Op::Bivar { coeffs }, &[x, y], origin)
    }

    fn sum(&mut self, x: NodeId, y: NodeId, origin: &str) -> Result<NodeId, Reason> {
        let key = (x.min(y), x.max(y));
        if let Some(&node) = self.sums.get(&key) {
            return Ok(node);
        }
        let node = self.add(Op::Add, &[x, y], origin)?;
        self.sums.insert(key, node);
        Ok(node)
    }

    /// A coefficient table with a column per channel, or one column if all coefficients are scalar.
    fn table(&mut self, rows: &[Coefficient], channels: usize) -> TensorId {
        let columns = if rows.iter().all(|c| matches!(c, Coefficient::Scalar(_))) { 1 } else { channels };
        let values: Vec<f64> = rows
            .iter()
            .flat_map(|row| match row {
                Coefficient::Scalar(v) => vec![*v; columns],
                Coefficient::Channel(v) | Coefficient::Full(v) => v.clone(),
            })
            .collect();
        let tensor = Tensor::from_f64(vec![rows.len(), columns], values);
        self.graph.add_tensor(tensor.expect("every row has one number per column"))
    }
}
