//! Shapes of the values that flow along edges: channels, height and width, without a batch dimension.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Extent of one value. A vector of n numbers is `[n,1,1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// Channels.
    pub c: usize,
    /// Rows.
    pub h: usize,
    /// Columns.
    pub w: usize,
}

impl Shape {
    /// An image of `c` channels with `h` rows and `w` columns.
    #[must_use]
    pub const fn new(c: usize, h: usize, w: usize) -> Self {
        Self { c, h, w }
    }

    /// A vector of `n` numbers.
    #[must_use]
    pub const fn vector(n: usize) -> Self {
        Self::new(n, 1, 1)
    }

    /// Numbers per channel.
    #[must_use]
    pub const fn area(&self) -> usize {
        self.h * self.w
    }

    /// Numbers in all.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.c * self.h * self.w
    }

    /// Whether the value holds nothing; the verifier refuses such values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the value is a vector.
    #[must_use]
    pub const fn is_vector(&self) -> bool {
        self.area() == 1
    }

    /// The extents as channels, rows, columns.
    #[must_use]
    pub const fn dims(&self) -> [usize; 3] {
        [self.c, self.h, self.w]
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{},{},{}]", self.c, self.h, self.w)
    }
}
