//! Constructors: the `hw` and `packed` layouts of a tensor, and the layout of a result derived from its input.

use super::{Layout, LayoutError, LayoutSpec, Shape};
use serde::{Deserialize, Serialize};

/// How channels share ciphertexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Packing {
    /// One channel per ciphertext, gaps left empty (paper §5.1).
    Hw,
    /// Several channels per ciphertext, in blocks and multiplexed into the gaps.
    Packed,
}

/// What a derived layout keeps of its input's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Derived {
    /// The slot grid stays: rows and columns keep their place and a stride widens the gap (lazy mapping).
    SameGrid,
    /// A new dense grid.
    Fresh,
}

/// The slot grid that channels are laid on.
struct Grid {
    gap: [u32; 2],
    row_stride: u32,
    block_stride: u32,
}

impl Layout {
    /// The layout of a fresh tensor with dense rows. `packed` pads rows and blocks to powers of two.
    ///
    /// # Errors
    /// When one channel of every member does not fit one ciphertext.
    pub fn fresh(packing: Packing, shape: Shape, members: u32, slots: u32) -> Result<Self, LayoutError> {
        let row_stride = match packing {
            Packing::Hw => shape.width,
            Packing::Packed => padded(shape.width),
        };
        let block_stride = padded(shape.height.saturating_mul(row_stride));
        on_grid(packing, shape, members, slots, &Grid { gap: [1, 1], row_stride, block_stride })
    }

    /// The `hw` layout of a fresh tensor with free rows behind every member, so that kernel rows that reach over the border
    /// read zeros; without them where they do not fit.
    ///
    /// # Errors
    /// When one channel of every member does not fit one ciphertext.
    pub fn guarded(shape: Shape, members: u32, slots: u32) -> Result<Self, LayoutError> {
        let row_stride = shape.width;
        let block_stride = padded(shape.height.saturating_mul(row_stride).saturating_add(1));
        on_grid(Packing::Hw, shape, members, slots, &Grid { gap: [1, 1], row_stride, block_stride })
            .or_else(|_| Self::fresh(Packing::Hw, shape, members, slots))
    }

    /// The layout of a vector of `channels`, densely packed; `hw` keeps one channel per ciphertext.
    ///
    /// # Errors
    /// When one channel of every member does not fit one ciphertext.
    pub fn vector(packing: Packing, channels: u32, members: u32, slots: u32) -> Result<Self, LayoutError> {
        Self::fresh(packing, Shape::new(channels, 1, 1), members, slots)
    }

    /// The layout of a result of shape `shape` computed from this tensor with a stride: on the same slot
    /// grid where it fits, else fresh.
    ///
    /// # Errors
    /// When one channel of every member does not fit one ciphertext.
    pub fn after(
        &self,
        packing: Packing,
        shape: Shape,
        stride: [u32; 2],
    ) -> Result<(Self, Derived), LayoutError> {
        self.after_with(packing, shape, stride, self.spec().members)
    }

    /// As [`Layout::after`], for a result with another number of members.
    ///
    /// # Errors
    /// When one channel of every member does not fit one ciphertext.
    pub fn after_with(
        &self,
        packing: Packing,
        shape: Shape,
        stride: [u32; 2],
        members: u32,
    ) -> Result<(Self, Derived), LayoutError> {
        let s = self.spec();
        let block_stride = s.block_slots();
        let gap = [0, 1].map(|axis| s.gap[axis].saturating_mul(stride[axis]));
        let extent = |n: u32, gap: u32| u64::from(n) * u64::from(gap);
        let fits = extent(shape.width, gap[1]) <= u64::from(s.row_stride)
            && extent(shape.height, gap[0]) * u64::from(s.row_stride) <= u64::from(block_stride);
        if fits && gap[0] <= super::MAX_SLOTS && gap[1] <= super::MAX_SLOTS {
            let grid = Grid { gap, row_stride: s.row_stride, block_stride };
            return Ok((on_grid(packing, shape, members, s.slots, &grid)?, Derived::SameGrid));
        }
        Ok((Self::fresh(packing, shape, members, s.slots)?, Derived::Fresh))
    }

    /// The same with members that alternate within every channel block, where there are several of both.
    ///
    /// # Errors
    /// Never for a checked layout; the constructor checks again.
    pub fn interleaved(&self) -> Result<Self, LayoutError> {
        let spec = self.spec();
        if spec.members == 1 || spec.blocks == 1 || spec.is_interleaved() {
            return Ok(self.clone());
        }
        let block_stride = spec.block_stride.saturating_mul(spec.members.next_power_of_two());
        Self::new(LayoutSpec { member_stride: spec.block_stride, block_stride, ..spec.clone() })
    }

    /// The same placement with one member only: what is left once the members are averaged.
    ///
    /// # Errors
    /// Never for a checked layout; the constructor checks again.
    pub fn single_member(&self) -> Result<Self, LayoutError> {
        let spec = self.spec();
        let period = match spec.is_interleaved() {
            true => spec.period,
            false => (spec.period / spec.members.next_power_of_two()).max(spec.member_stride),
        };
        Self::new(LayoutSpec { members: 1, period: padded(period), ..spec.clone() })
    }
}

fn on_grid(
    packing: Packing,
    shape: Shape,
    members: u32,
    slots: u32,
    grid: &Grid,
) -> Result<Layout, LayoutError> {
    let needed = u64::from(grid.block_stride) * u64::from(members.max(1).next_power_of_two());
    if needed > u64::from(slots) {
        let fit = slots / grid.block_stride.max(1);
        return Err(LayoutError::TooLarge { shape, members, needed, slots, fit });
    }
    let most_blocks = slots / needed as u32;
    let phases = match packing {
        Packing::Hw => [1, 1],
        Packing::Packed => multiplexed(shape.channels, grid.gap),
    };
    let blocks = match packing {
        Packing::Hw => 1,
        Packing::Packed => {
            shape.channels.div_ceil(phases[0] * phases[1]).max(1).next_power_of_two().min(most_blocks)
        }
    };
    let member_stride = blocks * grid.block_stride;
    Layout::new(LayoutSpec {
        shape,
        members,
        slots,
        gap: grid.gap,
        phases,
        blocks,
        row_stride: grid.row_stride,
        block_stride: grid.block_stride,
        member_stride,
        period: member_stride * members.max(1).next_power_of_two(),
    })
}

/// Channels to put into the gap: columns first, no more than there are channels.
fn multiplexed(channels: u32, gap: [u32; 2]) -> [u32; 2] {
    let columns = gap[1].min(channels.max(1));
    [gap[0].min(channels.max(1).div_ceil(columns)), columns]
}

fn padded(n: u32) -> u32 {
    n.max(1).checked_next_power_of_two().unwrap_or(u32::MAX)
}
