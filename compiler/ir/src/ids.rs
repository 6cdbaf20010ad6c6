//! Typed ids of the graph and its side tables, each with one printed prefix.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node of a [`Graph`](crate::Graph); printed `%3`. Ids stay valid while other nodes come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub(crate) u32);

/// A tensor in the weight table of a [`Graph`](crate::Graph); printed `w2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TensorId(pub(crate) u32);

/// One model of an ensemble; printed `m0`. A graph of a single model has only [`MemberIdx::FIRST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemberIdx(pub u32);

impl NodeId {
    /// The number behind the id, for tables indexed by node.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl TensorId {
    /// The number behind the id, for tables indexed by tensor.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl MemberIdx {
    /// The member every graph has.
    pub const FIRST: Self = Self(0);

    /// The number behind the id, for tables indexed by member.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Display for TensorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}", self.0)
    }
}

impl fmt::Display for MemberIdx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0)
    }
}
