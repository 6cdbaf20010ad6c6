//! Typed indices into the tables of a program, each with one printed prefix.

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// Position in the table this id points into.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

ids! {
    /// A weight or bias tensor.
    TensorId "w"
    /// The distinct weight values of clustered tensors.
    CodebookId "k"
    /// A layout.
    LayoutId "l"
    /// A linear map with its plan.
    MapId "m"
    /// A ciphertext register.
    CtId "c"
    /// A layer, for progress and profiles.
    LayerId "y"
    /// A position in one ciphertext.
    SlotIdx "s"
    /// One model of an ensemble.
    MemberIdx "e"
}

/// A run of consecutive ciphertext registers that hold one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CtRange {
    /// First register.
    pub first: CtId,
    /// Number of registers.
    pub len: u32,
}

impl CtRange {
    /// The run of `len` registers from `first`.
    pub fn new(first: u32, len: u32) -> Self {
        Self { first: CtId(first), len }
    }

    /// The registers in order; a run beyond the last possible register ends there.
    pub fn iter(self) -> impl ExactSizeIterator<Item = CtId> + Clone {
        (self.first.0..self.first.0.saturating_add(self.len)).map(CtId)
    }

    /// Number of registers.
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether the run is empty.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

impl std::fmt::Display for CtRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.len {
            1 => write!(f, "{}", self.first),
            n => write!(f, "{}..{}", self.first, self.first.0.saturating_add(n)),
        }
    }
}
