//! 'What if the activation had another degree': levels depend on degrees, not on values.

use fhec_ir::op::{bivar_degree, monomials};
use fhec_ir::{Graph, NodeId, Op, ShapeError, Tensor};

/// New leading coefficients relative to the old one, so that values do not explode.
const DAMPING: f64 = 1e-6;

/// The graph with every polynomial of degree two or more given degree `degree`.
///
/// Coefficients up to the smaller degree stay; new leading ones are a small part of the old. The result computes nothing
/// useful: it has the structure of the network trained with that degree, which is what levels depend on.
///
/// # Errors
/// Never for a verified graph.
pub fn with_degree(graph: &Graph, degree: usize) -> Result<Graph, ShapeError> {
    let mut changed = graph.clone();
    for id in graph.topo_order() {
        let Some((old, rows)) = activation(graph, id) else { continue };
        let (Op::Poly { coeffs } | Op::Bivar { coeffs }) = *graph.op(id) else { continue };
        let table = graph.tensor(coeffs);
        let columns = table.dims()[1];
        let is_bivariate = matches!(graph.op(id), Op::Bivar { .. });
        let exponents: Vec<(usize, usize)> =
            if is_bivariate { monomials(degree).collect() } else { (0..=degree).map(|i| (i, 0)).collect() };
        let find = |wanted: (usize, usize)| rows.iter().position(|m| *m == wanted);
        let value = |m: (usize, usize), c: usize| {
            let total = m.0 + m.1;
            // The leading coefficient moves to the new highest powers.
            let from = if total == degree && total != old { scaled_to(m, old) } else { m };
            let damping = if from == m { 1.0 } else { DAMPING };
            find(from).map_or(0.0, |row| damping * table.get(row * columns + c))
        };
        let values: Vec<f64> = exponents
            .iter()
            .flat_map(|&m| (0..columns).map(move |c| (m, c)))
            .map(|(m, c)| value(m, c))
            .collect();
        let tensor = Tensor::from_f64(vec![exponents.len(), columns], values);
        let coeffs = changed.add_tensor(tensor.expect("one row per monomial"));
        let op = if is_bivariate { Op::Bivar { coeffs } } else { Op::Poly { coeffs } };
        changed.set_op(id, op, "degree")?;
    }
    Ok(changed)
}

/// The highest degree of a polynomial.
pub(super) fn highest(graph: &Graph) -> usize {
    graph.ids().filter_map(|id| activation(graph, id)).map(|(degree, _)| degree).max().unwrap_or(1)
}

/// Degree (two or more) and monomials of a polynomial node.
fn activation(graph: &Graph, id: NodeId) -> Option<(usize, Vec<(usize, usize)>)> {
    let (degree, rows) = match graph.op(id) {
        Op::Poly { coeffs } => {
            let degree = graph.tensor(*coeffs).dims()[0] - 1;
            (degree, (0..=degree).map(|i| (i, 0)).collect())
        }
        Op::Bivar { coeffs } => {
            let degree = bivar_degree(graph.tensor(*coeffs).dims()[0])?;
            (degree, monomials(degree).collect())
        }
        _ => return None,
    };
    (degree >= 2).then_some((degree, rows))
}

/// The pure power of the old degree for a pure power, nothing for a mixed one.
fn scaled_to((i, j): (usize, usize), old: usize) -> (usize, usize) {
    match (i, j) {
        (_, 0) => (old, 0),
        (0, _) => (0, old),
        _ => (usize::MAX, usize::MAX),
    }
}
