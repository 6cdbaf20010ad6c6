//! The language of the e-graph: tensor operations over values, and functions that compute their constants.
//!
//! Every constant is a child, so a rule is a pattern: `(conv ?a ?w ?b (scale ?v ?x))` becomes
//! `(conv ?a (in ?w ?v) ?b ?x)`. E-nodes hold ids only; numbers live in the [facts](super::facts) of their class.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use egg::{Id, define_language};

define_language! {
    /// One operation, constant function or leaf.
    pub(crate) enum Lang {
        // Leaves.
        "one" = One,
        "zero" = Zero,
        "none" = Absent,
        Constant(ConstantId),
        Attribute(AttributeId),
        Input(InputId),

        // Values: (conv attr weight bias x), (linear attr weight bias x), (bn scale shift x), (pool attr factor x), ...
        "conv" = Conv([Id; 4]),
        "linear" = Linear([Id; 4]),
        "bn" = Bn([Id; 3]),
        "pool" = Pool([Id; 3]),
        "poly" = Poly([Id; 2]),
        "bivar" = Bivar([Id; 3]),
        "scale" = Scale([Id; 2]),
        "shift" = Shift([Id; 2]),
        "add" = Add([Id; 3]),
        "prod" = Prod([Id; 2]),
        "concat" = Concat([Id; 2]),
        "slice" = Slice([Id; 2]),
        "pad" = Pad([Id; 2]),
        "flatten" = Flatten([Id; 1]),
        // (op attr x …): an operation that has no constants which rules compute with; its attributes say what it is.
        "op" = Other(Vec<Id>),
        "outputs" = Outputs(Vec<Id>),

        // Functions of vectors.
        "inv" = Inv([Id; 1]),
        "mul" = Mul([Id; 2]),
        "bias" = Bias([Id; 3]),
        "bias-times" = BiasTimes([Id; 2]),
        "expand" = Expand([Id; 2]),
        "slice-of" = SliceOf([Id; 2]),
        "pad-of" = PadOf([Id; 2]),
        "unpad-of" = UnpadOf([Id; 2]),
        "cat" = Cat([Id; 4]),
        "take" = Take([Id; 2]),
        "skip" = Skip([Id; 2]),
        // Functions of weights.
        "out" = Out([Id; 2]),
        "in" = In([Id; 2]),
        // Functions of coefficient tables.
        "lead" = Lead([Id; 1]),
        "monic" = Monic([Id; 1]),
        "root" = Root([Id; 1]),
        "unroot" = Unroot([Id; 1]),
        "subst" = Subst([Id; 2]),
        "times" = Times([Id; 2]),
        "affine" = Affine([Id; 3]),
        "join" = Join([Id; 5]),
        "bi-lead" = BiLead([Id; 1]),
        "bi-monic" = BiMonic([Id; 1]),
        "bi-root" = BiRoot([Id; 1]),
        "bi-unroot" = BiUnroot([Id; 1]),
        "subst-x" = SubstX([Id; 2]),
        "subst-y" = SubstY([Id; 2]),
    }
}

/// The pattern of all that is no value: leaves that hold constants or attributes, and functions of them. Who matches values has
/// an arm for these, and no `_`.
macro_rules! constant {
    () => {
        Lang::One
            | Lang::Zero
            | Lang::Absent
            | Lang::Constant(_)
            | Lang::Attribute(_)
            | Lang::Inv(_)
            | Lang::Mul(_)
            | Lang::Bias(_)
            | Lang::BiasTimes(_)
            | Lang::Expand(_)
            | Lang::SliceOf(_)
            | Lang::PadOf(_)
            | Lang::UnpadOf(_)
            | Lang::Cat(_)
            | Lang::Take(_)
            | Lang::Skip(_)
            | Lang::Out(_)
            | Lang::In(_)
            | Lang::Lead(_)
            | Lang::Monic(_)
            | Lang::Root(_)
            | Lang::Unroot(_)
            | Lang::Subst(_)
            | Lang::Times(_)
            | Lang::Affine(_)
            | Lang::Join(_)
            | Lang::BiLead(_)
            | Lang::BiMonic(_)
            | Lang::BiRoot(_)
            | Lang::BiUnroot(_)
            | Lang::SubstX(_)
            | Lang::SubstY(_)
    };
}
pub(crate) use constant;

impl Lang {
    /// The tensor of the weight table that this is, if it is one.
    pub(crate) fn constant(&self) -> Option<ConstantId> {
        if let Self::Constant(id) = self { Some(*id) } else { None }
    }
}

/// Declares a leaf id with one printed prefix.
macro_rules! leaf_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(pub(crate) u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, ParseIntError> {
                text.strip_prefix($prefix).unwrap_or_default().parse().map(Self)
            }
        }
    };
}

leaf_id!(
    /// A tensor of the graph's weight table.
    ConstantId,
    "w"
);
leaf_id!(
    /// Attributes of an original node, by node number.
    AttributeId,
    "a"
);
leaf_id!(
    /// An input of the graph, by node number.
    InputId,
    "%"
);
