//! The weight table of a graph: one tensor per member for every [`TensorId`].
//!
//! An ensemble of models of one architecture is one graph whose tensors have one value per member, so that every rewrite
//! decides once and computes for all of them.

use crate::{MemberIdx, Tensor, TensorId};

/// Constants of a graph, indexed by [`TensorId`] and [`MemberIdx`].
#[derive(Clone, Debug, Default)]
pub struct Weights {
    tensors: Vec<Vec<Tensor>>,
}

impl Weights {
    /// Adds a constant with one value per member.
    ///
    /// # Panics
    /// When `members` is empty or its extents differ; callers compute them from tensors of equal extents.
    pub fn add(&mut self, members: Vec<Tensor>) -> TensorId {
        assert!(!members.is_empty(), "a constant has at least one member");
        assert!(
            members.iter().all(|t| t.dims() == members[0].dims()),
            "members of a constant share their extents"
        );
        let id = TensorId(u32::try_from(self.tensors.len()).expect("fewer than 2^32 tensors"));
        self.tensors.push(members);
        id
    }

    /// The constant of the first member.
    #[must_use]
    pub fn get(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.index()][0]
    }

    /// The constant of one member. A constant with a single value is shared by all members.
    #[must_use]
    pub fn member(&self, id: TensorId, member: MemberIdx) -> &Tensor {
        let members = &self.tensors[id.index()];
        members.get(member.index()).unwrap_or(&members[0])
    }

    /// The values of all members; one value if they share it.
    #[must_use]
    pub fn members(&self, id: TensorId) -> &[Tensor] {
        &self.tensors[id.index()]
    }

    /// The id with that number, if there is one.
    #[must_use]
    pub fn id_at(&self, index: usize) -> Option<TensorId> {
        (index < self.tensors.len()).then_some(TensorId(index as u32))
    }

    /// Whether the id belongs to this table.
    #[must_use]
    pub fn contains(&self, id: TensorId) -> bool {
        id.index() < self.tensors.len()
    }

    /// Drops the values of constants for which `keep` is false, so that their memory is returned; ids do not move.
    pub(crate) fn retain(&mut self, keep: impl Fn(TensorId) -> bool) {
        for (i, members) in self.tensors.iter_mut().enumerate() {
            if !keep(TensorId(i as u32)) {
                *members = vec![Tensor::vector([])];
            }
        }
    }
}
