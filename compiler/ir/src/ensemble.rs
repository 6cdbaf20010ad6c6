//! One graph for several models of one architecture: one structure, one value of every constant per member.

use crate::{Graph, MemberIdx, Op, Tensor, ValueRange};

/// Why models do not form an ensemble.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnsembleError {
    /// No model was given.
    #[error("an ensemble needs at least one model")]
    Empty,
    /// Different numbers of nodes.
    #[error("{member} has {actual} nodes, the first member has {expected}")]
    Size {
        /// The member that differs.
        member: MemberIdx,
        /// Nodes of the first member.
        expected: usize,
        /// Nodes of this member.
        actual: usize,
    },
    /// A node differs in more than the values of its constants.
    #[error("{member} has a different {op} at node {position}: {difference}")]
    Node {
        /// The member that differs.
        member: MemberIdx,
        /// Operation of the first member.
        op: &'static str,
        /// Position in topological order.
        position: usize,
        /// What is different.
        difference: String,
    },
    /// A member is an ensemble itself.
    #[error("{0} has several members itself")]
    Nested(MemberIdx),
}

/// The graph of all models; ranges are the union over the members.
///
/// # Errors
/// When the models differ in more than the values of their constants.
pub fn ensemble(models: &[Graph]) -> Result<Graph, EnsembleError> {
    let first = models.first().ok_or(EnsembleError::Empty)?;
    let orders: Vec<_> = models.iter().map(Graph::topo_order).collect();
    for (m, (model, order)) in models.iter().zip(&orders).enumerate() {
        check(first, &orders[0], model, order, MemberIdx(m as u32))?;
    }
    let mut graph = Graph::with_members(models.len());
    let mut ids = vec![None; first.bound()];
    for (position, &id) in orders[0].iter().enumerate() {
        let mut constants = first.op(id).tensors().into_iter().enumerate().map(|(slot, _)| {
            let member = |(model, order): (&Graph, &Vec<_>)| -> Tensor {
                model.tensor(model.op(order[position]).tensors()[slot]).clone()
            };
            graph.add_member_tensors(models.iter().zip(&orders).map(member).collect())
        });
        let op = first.op(id).map_tensors(|_| constants.next().expect("one constant per slot"));
        drop(constants);
        let operands: Vec<_> =
            first.operands(id).iter().map(|o| ids[o.index()].expect("operands come first")).collect();
        let node = first.node(id);
        let new = graph
            .add_node(op, &operands, node.origins.clone(), node.history.clone())
            .expect("the first member fits, and the others have its extents");
        let ranges: Option<Vec<_>> =
            models.iter().zip(&orders).map(|(m, order)| m.node(order[position]).range.as_ref()).collect();
        graph.node_mut(new).range = ranges.map(|ranges| union(&ranges));
        ids[id.index()] = Some(new);
    }
    Ok(graph)
}

fn check(
    first: &Graph,
    first_order: &[crate::NodeId],
    model: &Graph,
    order: &[crate::NodeId],
    member: MemberIdx,
) -> Result<(), EnsembleError> {
    if model.n_members() != 1 {
        return Err(EnsembleError::Nested(member));
    }
    if order.len() != first_order.len() {
        return Err(EnsembleError::Size { member, expected: first_order.len(), actual: order.len() });
    }
    let position = |order: &[crate::NodeId], id| order.iter().position(|&o| o == id);
    for (i, (&a, &b)) in first_order.iter().zip(order).enumerate() {
        let blank = |op: &Op, graph: &Graph| {
            let dims: Vec<Vec<usize>> =
                op.tensors().into_iter().map(|t| graph.tensor(t).dims().to_vec()).collect();
            (op.map_tensors(|_| crate::TensorId(0)), dims)
        };
        let places = |graph: &Graph, order: &[crate::NodeId], id| -> Vec<_> {
            graph.operands(id).into_iter().map(|o| position(order, o)).collect()
        };
        let ((op_a, dims_a), (op_b, dims_b)) = (blank(first.op(a), first), blank(model.op(b), model));
        let op = op_a.mnemonic();
        let difference = if op != op_b.mnemonic() {
            format!("a {}", op_b.mnemonic())
        } else if dims_a != dims_b {
            format!("constants of extents {dims_b:?} instead of {dims_a:?}")
        } else if op_a != op_b {
            format!("other attributes, or a value of extent {} instead of {}", model.shape(b), first.shape(a))
        } else if places(first, first_order, a) != places(model, order, b) {
            "other operands".to_owned()
        } else {
            continue;
        };
        return Err(EnsembleError::Node { member, op, position: i, difference });
    }
    Ok(())
}

fn union(ranges: &[&ValueRange]) -> ValueRange {
    let extreme = |pick: fn(f64, f64) -> f64, side: fn(&ValueRange) -> &Vec<f64>| {
        let n = side(ranges[0]).len();
        (0..n).map(|c| ranges.iter().map(|r| side(r)[c]).reduce(pick).unwrap_or(0.0)).collect()
    };
    ValueRange { lo: extreme(f64::min, |r| &r.lo), hi: extreme(f64::max, |r| &r.hi) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shape, Tensor, evaluate};

    fn model(factor: f64, width: usize) -> Graph {
        let mut graph = Graph::new();
        let x = graph.add(Op::Input { shape: Shape::vector(width) }, &[], "x").unwrap();
        let factor = graph.add_tensor(Tensor::scalar(factor));
        let y = graph.add(Op::Scale { factor }, &[x], "scale").unwrap();
        graph.add(Op::Output, &[y], "y").unwrap();
        graph
    }

    #[test]
    fn every_member_computes_what_its_model_does() {
        let models = [model(2.0, 1), model(3.0, 1)];
        let graph = ensemble(&models).unwrap();
        crate::verify(&graph).unwrap();
        for (member, expected) in graph.members().zip([10.0, 15.0]) {
            assert_eq!(evaluate(&graph, &[&[5.0]], member).unwrap()[0].data, [expected]);
        }
    }

    #[test]
    fn models_of_different_structure_are_refused() {
        let error = ensemble(&[model(2.0, 1), model(2.0, 3)]).unwrap_err();
        let expected = "m1 has a different input at node 0: other attributes, or a value of extent [3,1,1] instead of [1,1,1]";
        assert_eq!(error.to_string(), expected);
        assert_eq!(ensemble(&[]).unwrap_err(), EnsembleError::Empty);
    }
}
