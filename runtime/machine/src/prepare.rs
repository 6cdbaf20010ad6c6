//! Everything about a program that does not depend on the input: steps, plaintext demands, memory.

use fhe_bytecode::{CheckedProgram, Fact, Kind, Level, Memory, Scale, TensorId};

use super::cache::Demand;
use super::error::VmError;
use super::linear::LinearStep;
use fhe_ckks::Context;

/// The constant of a plaintext addition or product: one vector per ciphertext.
#[derive(Debug)]
pub(crate) struct PlainStep {
    pub vectors: Vec<Vec<f64>>,
    pub level: Level,
    pub scale: Scale,
}

/// What an instruction needs besides its operands.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing: the instruction says it all.
    Bare,
    /// A linear map at a level.
    Linear(LinearStep, Level),
    /// A constant.
    Plain(PlainStep),
}

impl Step {
    /// What its plaintexts take, if it has any.
    pub(crate) fn demand(&self, context: &Context) -> Demand {
        match self {
            Self::Bare => Demand { n_plaintexts: 0, n_uses: 0, coeff_bytes: 0, residue_bytes: 0 },
            Self::Linear(step, _) => step.demand(),
            Self::Plain(plain) => {
                let coeff_bytes = plain.vectors.first().map_or(0, |v| 2 * 8 * v.len() as u64);
                let n = plain.vectors.len();
                let residue_bytes = coeff_bytes * context.basis(plain.level).n_q() as u64;
                Demand { n_plaintexts: n, n_uses: n, coeff_bytes, residue_bytes }
            }
        }
    }
}

/// Refuses a memory budget that does not hold keys and ciphertexts, before any key is made or read and anything is prepared.
///
/// # Errors
/// If it does not.
pub fn check_memory(program: &CheckedProgram, budget: u64) -> Result<(), VmError> {
    spare_memory(Memory::of(program), budget).map(drop)
}

// What the account of memory says of dropped buffers is what the pool does.
const _: () = assert!(fhe_ring::buffer::POOL_BYTES as u64 == fhe_bytecode::memory::POOL_BYTES);

/// Bytes that keys and ciphertexts leave for plaintexts.
pub(crate) fn spare_memory(memory: Memory, budget: u64) -> Result<u64, VmError> {
    let Memory { keys, working } = memory;
    let needed = memory.needed();
    memory.spare(budget).ok_or(VmError::TooLittleMemory { needed, keys, working, budget })
}

/// What the instructions of a program need besides their operands.
pub(crate) fn prepare(context: &Context, program: &CheckedProgram) -> Result<Vec<Step>, VmError> {
    program.steps().map(|step| prepared(context, program, &step)).collect()
}

fn prepared(
    context: &Context,
    program: &CheckedProgram,
    step: &fhe_bytecode::Step<'_>,
) -> Result<Step, VmError> {
    let bug = || VmError::Bug(format!("no facts for instruction {}", step.index));
    let source = || step.sources.first().ok_or_else(bug);
    let result = || step.result.ok_or_else(bug);
    match step.op().kind() {
        Kind::Map(map) => {
            let (map, level, scale) = (program.map(map), step.level(), result()?.scale);
            let weight_scale = |source: &Fact| map.diagonals.weight_scale(scale, source.scale);
            let scales: Vec<Scale> = step.sources.iter().map(weight_scale).collect();
            Ok(Step::Linear(LinearStep::new(context.at(level), map, level, &scales), level))
        }
        Kind::PlainSum(tensor) => plain(program, tensor, source()?, source()?.scale),
        Kind::PlainProduct(tensor) => {
            plain(program, tensor, source()?, result()?.scale.over(source()?.scale))
        }
        Kind::Input
        | Kind::Product
        | Kind::ScalarProduct
        | Kind::Rescale
        | Kind::Drop
        | Kind::Exact
        | Kind::End => Ok(Step::Bare),
    }
}

fn plain(program: &CheckedProgram, tensor: TensorId, source: &Fact, scale: Scale) -> Result<Step, VmError> {
    let mut vectors = program.plain(tensor, source.layout).map_err(VmError::Bug)?;
    let period = program.layout(source.layout).period();
    vectors.iter_mut().for_each(|vector| vector.truncate(period));
    Ok(Step::Plain(PlainStep { vectors, level: source.level, scale }))
}
