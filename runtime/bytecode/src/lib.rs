//! The contract between the compiler and the runtime.
//!
//! Everything that both sides must agree on lives here and nowhere else: checked parameters and prime
//! search, scales and the noise estimates, layouts, linear maps and their rotation plans, instructions,
//! the file codec, the checker that every program passes before it runs, and a clear interpreter.
//! This crate knows neither networks nor ring arithmetic.
#![forbid(unsafe_code)]

pub mod check;
pub mod clear;
pub mod codec;
pub mod constants;
pub mod ids;
pub mod interface;
pub mod layout;
pub mod linear;
pub mod memory;
pub mod noise;
pub mod params;
pub mod plan;
pub mod program;
pub mod rotation;
pub mod scale;
#[cfg(test)]
mod testing;
pub mod text;

pub use check::{
    CheckError, CheckErrors, CheckedMap, CheckedProgram, Expectation, Fact, Keys, Step, required_keys,
};
pub use clear::ClearProgram;
pub use codec::{DecodeError, decode, encode};
pub use constants::{Codebook, ConstantError, Constants, Tensor, TensorData, Values};
pub use ids::{CodebookId, CtId, CtRange, LayerId, LayoutId, MapId, MemberIdx, SlotIdx, TensorId};
pub use interface::{Interface, InterfaceSpec};
pub use layout::{Derived, Layout, LayoutError, LayoutSpec, Packing, Shape};
pub use linear::{
    Diagonal, DiagonalId, Diagonals, LinearError, LinearOp, LinearTerm, Operand, Pairing, PlaintextKey,
};
pub use memory::Memory;
pub use params::{
    Fingerprint, KeyPlace, Level, Lower, Params, ParamsError, ParamsSpec, Pool, SegmentSpec, TowerIdx,
};
pub use plan::{
    CostModel, Cpu, ExpandedPlan, Gait, Hop, Plan, PlanCounts, PlanGroup, PlanTerm, Split, StepCosts,
};
pub use program::{
    Classes, InputSpec, Instruction, Interval, Kind, LayerSpec, LinearMap, Numbers, Op, Origin, OutputSpec,
    Pair, Port, Prediction, Preprocessing, ProgramSpec, Raw, RotationKey, SegmentKeys, Tail, TailStep,
    batch_ports,
};
pub use rotation::Rotation;
pub use scale::Scale;
