//! A graph to be drawn: boxes and arrows, without places.

use super::html::Tip;

/// Boxes in topological order, and arrows between them.
#[derive(Clone, Debug, Default)]
pub(super) struct Drawing {
    pub(super) nodes: Vec<DrawnNode>,
    /// From an earlier node to a later one, each pair once.
    pub(super) edges: Vec<(usize, usize)>,
}

/// A box.
#[derive(Clone, Debug)]
pub(super) struct DrawnNode {
    /// What it does.
    pub(super) label: String,
    /// A smaller line below.
    pub(super) detail: String,
    /// A number in the corner.
    pub(super) mark: String,
    pub(super) family: Family,
    /// Whether the pass of this drawing made or changed it.
    pub(super) changed: bool,
    pub(super) tip: Tip,
}

/// What sort of operation a box is; decides its color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Convolutions, dense layers, pooling: products with constants and sums over coordinates.
    Linear,
    /// Polynomials and products of encrypted values.
    Product,
    /// Factors and summands per channel.
    Channel,
    /// Sums of values and re-arrangements, which cost no multiplication.
    Free,
    /// Inputs and outputs.
    Port,
}

impl Family {
    /// All with their names for the key below a drawing.
    pub(super) const ALL: [(Self, &'static str); 5] = [
        (Self::Linear, "linear"),
        (Self::Product, "polynomial or product"),
        (Self::Channel, "per channel"),
        (Self::Free, "no multiplication"),
        (Self::Port, "input, output"),
    ];

    /// Name in style sheets.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Linear => "f-linear",
            Self::Product => "f-product",
            Self::Channel => "f-channel",
            Self::Free => "f-free",
            Self::Port => "f-port",
        }
    }
}
