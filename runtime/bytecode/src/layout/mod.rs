//! Layouts: where each coordinate of a tensor lives.
//!
//! One parametric family maps (member, channel, y, x) to (ciphertext, slot). A channel splits, most
//! significant part first, into (ciphertext, block, phase y, phase x), and
//!
//! ```text
//! slot = member·member_stride + block·block_stride + (y·gap_y + phase_y)·row_stride + x·gap_x + phase_x
//! ```
//!
//! The pattern repeats every `period` slots (a power of two): the rest of the ciphertext holds replicas, so
//! rotations wrap around inside a period and diagonals are periodic. Two members of the family matter:
//! `hw` (paper §5.1) has one channel per ciphertext and leaves the gaps of strides empty; `packed` puts
//! several channels into one ciphertext, in blocks and in the gaps.
//!
//! A [`Layout`] is checked: the map is injective, stays within a period, and its sizes are bounded.

mod build;
mod tensor;

use serde::{Deserialize, Serialize};

pub use build::{Derived, Packing};

/// More coordinates than any tensor of a program may have.
const MAX_ELEMENTS: u64 = 1 << 28;
/// More slots than any ring has.
pub const MAX_SLOTS: u32 = 1 << 16;

/// Channels, height and width of a tensor. A vector is `[C, 1, 1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// Channels.
    pub channels: u32,
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
}

impl Shape {
    /// A shape of channels, rows and columns.
    pub fn new(channels: u32, height: u32, width: u32) -> Self {
        Self { channels, height, width }
    }

    /// Number of coordinates.
    pub fn len(self) -> usize {
        self.channels as usize * self.height as usize * self.width as usize
    }

    /// Whether there is no coordinate at all.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{},{},{}]", self.channels, self.height, self.width)
    }
}

/// A layout as written in a file; not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutSpec {
    /// Shape of one member's tensor.
    pub shape: Shape,
    /// Members of the ensemble that share the ciphertexts.
    pub members: u32,
    /// Slots of a ciphertext.
    pub slots: u32,
    /// Distance between neighbouring rows and columns, in rows and columns of the slot grid.
    pub gap: [u32; 2],
    /// Channels multiplexed into the gap, per axis.
    pub phases: [u32; 2],
    /// Channel blocks per member and ciphertext.
    pub blocks: u32,
    /// Slots between rows of the slot grid.
    pub row_stride: u32,
    /// Slots between channel blocks.
    pub block_stride: u32,
    /// Slots between members.
    pub member_stride: u32,
    /// Slots after which the pattern repeats.
    pub period: u32,
}

impl LayoutSpec {
    /// Whether members alternate within a channel block. Then blocks are as far apart as if there were one member in a
    /// smaller ring, and a rotation from the last block to the first wraps around the period for all members at once.
    fn is_interleaved(&self) -> bool {
        self.members > 1 && self.blocks > 1 && self.member_stride < self.block_stride
    }

    /// Slots that one channel block of one member takes.
    fn block_slots(&self) -> u32 {
        if self.is_interleaved() { self.member_stride } else { self.block_stride }
    }
}

/// Why a [`LayoutSpec`] was refused or could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A field is zero, or a product of fields is out of range.
    #[error("layout field {field} is zero or too large")]
    Field {
        /// Name of the field.
        field: &'static str,
    },
    /// Two coordinates would share a slot, or one would leave its stride.
    #[error("layout {inner} needs {needed} slots but {outer} leaves {available}")]
    Overlap {
        /// What does not fit.
        inner: &'static str,
        /// Into what.
        outer: &'static str,
        /// Slots needed.
        needed: u64,
        /// Slots there are.
        available: u64,
    },
    /// The tensor does not fit a ciphertext of this many slots.
    #[error("{members} member(s) of {shape} need {needed} slots in one ciphertext of {slots}: {fit} fit")]
    TooLarge {
        /// Shape of the tensor.
        shape: Shape,
        /// Members of the ensemble.
        members: u32,
        /// Slots needed.
        needed: u64,
        /// Slots there are.
        slots: u32,
        /// Members that fit.
        fit: u32,
    },
}

/// A checked layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    spec: LayoutSpec,
}

impl Layout {
    /// Checks a specification.
    ///
    /// # Errors
    /// When a field is zero or out of range, or when two coordinates would share a slot.
    pub fn new(spec: LayoutSpec) -> Result<Self, LayoutError> {
        let wide = u64::from;
        let s = &spec;
        let field =
            |ok: bool, field: &'static str| if ok { Ok(()) } else { Err(LayoutError::Field { field }) };
        let bounded = |v: u32| (1..=MAX_SLOTS).contains(&v);
        field(s.slots.is_power_of_two() && s.slots <= MAX_SLOTS, "slots")?;
        field(s.period.is_power_of_two() && s.period <= s.slots, "period")?;
        field(s.gap.iter().all(|&g| bounded(g)), "gap")?;
        field((0..2).all(|a| (1..=s.gap[a]).contains(&s.phases[a])), "phases")?;
        field([s.row_stride, s.block_stride, s.member_stride].into_iter().all(bounded), "stride")?;
        field(bounded(s.blocks), "blocks")?;
        field(bounded(s.members), "members")?;
        field(bounded(s.shape.height) && bounded(s.shape.width), "shape")?;
        field((1..=1 << 20).contains(&s.shape.channels), "shape")?;
        let elements = [s.shape.channels, s.shape.height, s.shape.width, s.members]
            .into_iter()
            .try_fold(1u64, |acc, v| acc.checked_mul(wide(v)))
            .filter(|&n| n <= MAX_ELEMENTS);
        field(elements.is_some(), "shape")?;

        let fits = |inner, needed: u64, outer, available: u64| {
            let overlap = LayoutError::Overlap { inner, outer, needed, available };
            if needed <= available { Ok(()) } else { Err(overlap) }
        };
        let columns = (wide(s.shape.width) - 1) * wide(s.gap[1]) + wide(s.phases[1]);
        let rows = (wide(s.shape.height) - 1) * wide(s.gap[0]) + wide(s.phases[0]);
        if rows > 1 {
            fits("row", columns, "row_stride", wide(s.row_stride))?;
        }
        // Blocks lie within members or members within blocks: the smaller stride is that of what is inside.
        let block = ("block", wide(s.blocks), "block_stride", wide(s.block_stride));
        let member = ("member", wide(s.members), "member_stride", wide(s.member_stride));
        let nested = if spec.is_interleaved() { [member, block] } else { [block, member] };
        let mut extent = (rows - 1) * wide(s.row_stride) + columns;
        for (name, count, field, stride) in nested {
            if count > 1 {
                fits(name, extent, field, stride)?;
            }
            extent += (count - 1) * stride;
        }
        fits("tensor", extent, "period", wide(s.period))?;
        Ok(Self { spec })
    }

    /// The specification of this layout.
    pub fn spec(&self) -> &LayoutSpec {
        &self.spec
    }

    /// Shape of one member's tensor.
    pub fn shape(&self) -> Shape {
        self.spec.shape
    }

    /// Members of the ensemble.
    pub fn members(&self) -> usize {
        self.spec.members as usize
    }

    /// Slots of a ciphertext.
    pub fn slots(&self) -> usize {
        self.spec.slots as usize
    }

    /// Slots after which the content repeats.
    pub fn period(&self) -> usize {
        self.spec.period as usize
    }

    /// Channels per ciphertext.
    pub fn channels_per_ct(&self) -> usize {
        self.spec.blocks as usize * self.spec.phases[0] as usize * self.spec.phases[1] as usize
    }

    /// Ciphertexts of the tensor.
    pub fn n_cts(&self) -> usize {
        (self.spec.shape.channels as usize).div_ceil(self.channels_per_ct())
    }

    /// Slots from one row of the tensor to the next.
    pub fn y_step(&self) -> usize {
        self.spec.gap[0] as usize * self.spec.row_stride as usize
    }

    /// Slots from one column of the tensor to the next.
    pub fn x_step(&self) -> usize {
        self.spec.gap[1] as usize
    }

    /// Slots from one member to the next.
    pub fn member_step(&self) -> usize {
        self.spec.member_stride as usize
    }

    /// Ciphertext and slot of coordinate (0, 0) of a channel of the first member.
    pub fn channel_origin(&self, channel: usize) -> (usize, usize) {
        let [phases_y, phases_x] = self.spec.phases.map(|p| p as usize);
        let (rest, phase_x) = (channel / phases_x, channel % phases_x);
        let (rest, phase_y) = (rest / phases_y, rest % phases_y);
        let (ct, block) = (rest / self.spec.blocks as usize, rest % self.spec.blocks as usize);
        let row = phase_y * self.spec.row_stride as usize;
        (ct, block * self.spec.block_stride as usize + row + phase_x)
    }

    /// Ciphertext and slot of a coordinate, in the first replica.
    pub fn slot(&self, member: usize, channel: usize, y: usize, x: usize) -> (usize, usize) {
        let (ct, origin) = self.channel_origin(channel);
        (ct, origin + member * self.member_step() + y * self.y_step() + x * self.x_step())
    }

    /// Slots over all ciphertexts that hold no coordinate, or a further copy of one.
    pub fn spare_slots(&self) -> usize {
        self.n_cts() * self.slots() - self.members() * self.spec.shape.len()
    }
}

impl TryFrom<LayoutSpec> for Layout {
    type Error = LayoutError;

    fn try_from(spec: LayoutSpec) -> Result<Self, LayoutError> {
        Self::new(spec)
    }
}

#[cfg(test)]
mod tests;
