//! Everything about a program that does not depend on the input: steps, plaintext demands, memory.

use fhe_bytecode::{CheckedProgram, CtRange, Level, Op, Scale, TensorId};

use super::cache::Demand;
use super::error::VmError;
use super::linear::LinearStep;
use fhe_ckks::{Context, key_request};

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
                let residue_bytes = coeff_bytes * context.basis(plain.level).len() as u64;
                Demand { n_plaintexts: n, n_uses: n, coeff_bytes, residue_bytes }
            }
        }
    }
}

/// Refuses a memory budget that does not hold keys and ciphertexts, before any key is made or read.
///
/// # Errors
/// If it does not.
pub fn check_memory(context: &Context, program: &CheckedProgram, budget: u64) -> Result<(), VmError> {
    let keys = key_request(context, program).bytes(context);
    spare_memory(keys, prepare(context, program)?.1, budget).map(drop)
}

/// Part of the budget that stays free of plaintexts, for tables and the program itself.
const RESERVE: u64 = 16;

/// What dropped buffers may hold while they wait for their next use.
fn waiting_bytes(working: u64) -> u64 {
    (2 * working).min(fhe_ring::buffer::POOL_BYTES as u64)
}

/// Bytes that keys and ciphertexts leave for plaintexts.
pub(crate) fn spare_memory(keys: u64, working: u64, budget: u64) -> Result<u64, VmError> {
    let needed = keys + working;
    match budget.checked_sub(needed) {
        Some(spare) => Ok(spare.saturating_sub(budget / RESERVE + waiting_bytes(working))),
        None => Err(VmError::TooLittleMemory { needed, keys, working, budget }),
    }
}

/// The steps of a program, one per instruction, and the most bytes of ciphertexts and sums alive at one time.
pub(crate) fn prepare(context: &Context, program: &CheckedProgram) -> Result<(Vec<Step>, u64), VmError> {
    let mut steps = Vec::new();
    let mut registers = Registers::default();
    let mut peak = 0;
    for (index, instruction) in program.spec().instructions.iter().enumerate() {
        let step = step(context, program, &registers, index, &instruction.op)?;
        let fact = program.fact(index);
        if let (Some(dst), Some(fact)) = (instruction.op.dst(), fact) {
            registers.define(dst, fact.level, fact.scale);
        }
        let working = match &step {
            Step::Linear(linear, level) => linear.working_bytes(context, *level),
            Step::Bare | Step::Plain(_) => 0,
        };
        peak = peak.max(registers.bytes(context) + working);
        if let Op::Free { src } | Op::Output { src } = instruction.op {
            registers.free(src);
        }
        steps.push(step);
    }
    Ok((steps, peak))
}

fn step(
    context: &Context,
    program: &CheckedProgram,
    registers: &Registers,
    index: usize,
    op: &Op,
) -> Result<Step, VmError> {
    let fact =
        || program.fact(index).ok_or_else(|| VmError::Bug(format!("no facts for instruction {index}")));
    match op {
        Op::Linear { src, map, scale, .. } => {
            let diagonals = &program.map(*map).diagonals;
            let scales = src
                .iter()
                .map(|run| Ok(diagonals.weight_scale(*scale, registers.get(*run)?.1)))
                .collect::<Result<Vec<Scale>, VmError>>()?;
            let level = fact()?.level;
            Ok(Step::Linear(LinearStep::new(context, program.map(*map), level, &scales), level))
        }
        Op::AddPlain { src, tensor, .. } => {
            let (level, scale) = registers.get(*src)?;
            plain(program, index, *tensor, level, scale)
        }
        Op::MulPlain { src, tensor, scale, .. } => {
            let (level, operand) = registers.get(*src)?;
            plain(program, index, *tensor, level, scale.over(operand))
        }
        Op::Input { .. }
        | Op::Square { .. }
        | Op::Mul { .. }
        | Op::Add { .. }
        | Op::Sub { .. }
        | Op::MulScalar { .. }
        | Op::Rescale { .. }
        | Op::Drop { .. }
        | Op::Free { .. }
        | Op::Output { .. } => Ok(Step::Bare),
    }
}

fn plain(
    program: &CheckedProgram,
    index: usize,
    tensor: TensorId,
    level: Level,
    scale: Scale,
) -> Result<Step, VmError> {
    let fact =
        program.fact(index).ok_or_else(|| VmError::Bug(format!("no facts for instruction {index}")))?;
    let mut vectors = program.plain(tensor, fact.layout).map_err(VmError::Bug)?;
    let period = program.layout(fact.layout).period();
    vectors.iter_mut().for_each(|vector| vector.truncate(period));
    Ok(Step::Plain(PlainStep { vectors, level, scale }))
}

/// Level and scale of every live register.
#[derive(Default)]
struct Registers(Vec<Option<(Level, Scale)>>);

impl Registers {
    fn define(&mut self, run: CtRange, level: Level, scale: Scale) {
        for id in run.iter() {
            if self.0.len() <= id.index() {
                self.0.resize(id.index() + 1, None);
            }
            self.0[id.index()] = Some((level, scale));
        }
    }

    fn free(&mut self, run: CtRange) {
        for id in run.iter() {
            if let Some(register) = self.0.get_mut(id.index()) {
                *register = None;
            }
        }
    }

    fn get(&self, run: CtRange) -> Result<(Level, Scale), VmError> {
        let register = self.0.get(run.first.index()).copied().flatten();
        register.ok_or_else(|| VmError::Bug(format!("register {} is not defined", run.first)))
    }

    fn bytes(&self, context: &Context) -> u64 {
        let poly = |(level, _): &(Level, Scale)| (level.n_towers() * context.params().n() * 8) as u64;
        self.0.iter().flatten().map(|register| 2 * poly(register)).sum()
    }
}
