//! Instructions of all versions: lines are added at the end and never changed.
//!
//! Which operations a version has is a matter of its number: a file with a new one is written as a version that no released
//! reader takes for an older one.

use super::frozen::{enums, structs};
use crate::ids::{CtId, LayerId, MapId, TensorId};
use crate::params::Level;
use crate::scale::Scale;
use crate::{ids, program};

structs! {
    Instruction for program::Instruction { layer: LayerId, op: Op }
    CtRange for ids::CtRange { first: CtId, len: u32 }
}

enums! {
    Op for program::Op {
        0 Input { dst: CtRange }
        1 Linear { dst: CtRange, src: Vec<CtRange>, map: MapId, scale: Scale }
        2 Square { dst: CtRange, src: CtRange }
        3 Mul { dst: CtRange, a: CtRange, b: CtRange }
        4 Add { dst: CtRange, a: CtRange, b: CtRange }
        5 Sub { dst: CtRange, a: CtRange, b: CtRange }
        6 AddPlain { dst: CtRange, src: CtRange, tensor: TensorId }
        7 MulPlain { dst: CtRange, src: CtRange, tensor: TensorId, scale: Scale }
        8 MulScalar { dst: CtRange, src: CtRange, value: f64, scale: Scale }
        9 Rescale { dst: CtRange, src: CtRange }
        10 Drop { dst: CtRange, src: CtRange, level: Level }
        11 Free { src: CtRange }
        12 Output { src: CtRange }
    }
}
