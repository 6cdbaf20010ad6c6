//! The machine: a program with its keys and plaintexts, ready for any number of inputs.
//!
//! Instructions run one after the other; each works on the ciphertexts of its run in parallel, and the operations
//! below on towers. Nothing depends on the order in which threads finish, so any number of them gives the same bits.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use fhe_bytecode::{CheckedProgram, CtRange, MapId, Memory, Op};
use fhe_ring::parallel::*;

use super::cache::{Meter, PlaintextSet, Share, share_budget};
use super::error::VmError;
use super::linear::MapSource;
use super::prepare::{PlainStep, Step, prepare, spare_memory};
use super::profile::{Profile, Recorder};
use super::progress::{Observer, Progress, Ticker};
use super::registers::RegisterFile;
use fhe_ckks::linear::{self, Diagonal};
use fhe_ckks::{Ciphertext, CkksError, Context, EvaluationKeys, Evaluator, Plaintext, key_request};

/// Cannot happen: steps are prepared from the same instructions.
const MISPREPARED: CkksError = CkksError::Plan("an instruction was prepared as another one");

/// How much the machine may use, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Bytes for keys, ciphertexts and kept plaintexts.
    pub memory: u64,
    /// Evaluations to come; plaintexts are kept only if they will be used again.
    pub n_evaluations: usize,
}

/// What an evaluation is going to need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Evaluation keys.
    pub key_bytes: u64,
    /// Ciphertexts and intermediate sums, at most.
    pub working_bytes: u64,
    /// Plaintexts kept.
    pub plaintext_bytes: u64,
}

impl MemoryPlan {
    /// Everything together.
    pub fn total(&self) -> u64 {
        self.key_bytes + self.working_bytes + self.plaintext_bytes
    }
}

/// A program, its evaluation keys and its plaintexts.
#[derive(Debug)]
pub struct Machine<'p> {
    program: &'p CheckedProgram,
    context: Arc<Context>,
    keys: EvaluationKeys,
    steps: Vec<Step>,
    sets: Vec<PlaintextSet>,
    meter: Meter,
    memory: MemoryPlan,
}

impl<'p> Machine<'p> {
    /// Prepares a program. Costs no homomorphic operation.
    ///
    /// # Errors
    /// If keys are missing or for other parameters, or the memory does not hold keys and ciphertexts.
    pub fn new(
        program: &'p CheckedProgram,
        context: Arc<Context>,
        keys: EvaluationKeys,
        options: Options,
    ) -> Result<Self, VmError> {
        let (found, expected) = (context.params().fingerprint(), program.params().fingerprint());
        if found != expected {
            return Err(VmError::WrongParameters { found, expected });
        }
        if let Some((key_use, level)) = keys.missing(&key_request(&context, program)) {
            return Err(VmError::MissingKey { key_use, level });
        }
        let (key_bytes, working_bytes) = (keys.bytes(), program.peak_bytes());
        let spare = spare_memory(Memory { keys: key_bytes, working: working_bytes }, options.memory)?;
        let steps = prepare(&context, program)?;
        let demands: Vec<_> = steps.iter().map(|step| step.demand(&context)).collect();
        let shares = share_budget(&demands, spare, options.n_evaluations);
        let plaintext_bytes = shares.iter().zip(&demands).map(|(share, demand)| share.bytes(demand)).sum();
        let sets =
            steps.iter().zip(shares).map(|(step, share)| plaintext_set(&context, step, share)).collect();
        let memory = MemoryPlan { key_bytes, working_bytes, plaintext_bytes };
        Ok(Self { program, context, keys, steps, sets, meter: Meter::default(), memory })
    }

    /// What the evaluations need.
    pub fn memory(&self) -> MemoryPlan {
        self.memory
    }

    /// The keys.
    pub fn keys(&self) -> &EvaluationKeys {
        &self.keys
    }

    /// Evaluates the program on one encrypted input.
    ///
    /// # Errors
    /// If the input does not fit the program, or an instruction is refused.
    pub fn run(
        &self,
        input: Vec<Ciphertext>,
        observer: &dyn Observer,
    ) -> Result<(Vec<Ciphertext>, Profile), VmError> {
        self.check_input(&input)?;
        let mut input = Some(input);
        let mut registers = RegisterFile::default();
        let mut output = Vec::new();
        let mut recorder = Recorder::new();
        let weights = self.weights();
        let mut done = 0.0;
        for (index, instruction) in self.program.spec().instructions.iter().enumerate() {
            let layer = self.layer_name(index);
            let cached_bytes = self.meter.cached_bytes();
            let at_start = Progress { layer, fraction: done, elapsed: recorder.elapsed(), cached_bytes };
            observer.progress(at_start);
            let ticker = Ticker {
                observer,
                at_start,
                began: recorder.began(),
                weight: weights[index],
                n_parts: self.steps[index].demand(&self.context).n_uses,
                n_done: AtomicUsize::new(0),
            };
            recorder
                .time(layer, instruction.op.name(), || match &instruction.op {
                    Op::Input { dst } => registers.put(*dst, input.take().unwrap_or_default()),
                    Op::Output { src } => registers.take(*src).map(|result| output = result),
                    Op::Free { src } => registers.take(*src).map(drop),
                    Op::Linear { dst, src, map, .. } => {
                        let result = self.linear(index, *map, src, ticker, &mut registers)?;
                        registers.put(*dst, self.settled(index, result)?)
                    }
                    op => self.compute(index, op, &mut registers),
                })
                .map_err(|cause| VmError::Instruction {
                    instruction: index,
                    name: instruction.op.name(),
                    layer: layer.to_owned(),
                    cause,
                })?;
            done += weights[index];
        }
        let (encode_seconds, n_encoded) = self.meter.encoded();
        Ok((output, recorder.finish(encode_seconds, n_encoded)))
    }

    fn check_input(&self, input: &[Ciphertext]) -> Result<(), VmError> {
        let expected = self.program.input_layout().n_cts();
        if input.len() != expected {
            return Err(VmError::InputCount { found: input.len(), expected });
        }
        let spec = &self.program.spec().input;
        match input.iter().find(|ct| ct.level() != spec.level || !ct.scale().agrees(spec.scale)) {
            Some(ct) => Err(VmError::InputForm {
                found_level: ct.level(),
                found_scale: ct.scale(),
                level: spec.level,
                scale: spec.scale,
            }),
            None => Ok(()),
        }
    }

    /// Instructions that compute: source registers stay, destinations are new.
    fn compute(&self, index: usize, op: &Op, registers: &mut RegisterFile) -> Result<(), CkksError> {
        let evaluator = Evaluator::new(&self.context);
        let relin = || self.keys.relin().ok_or(CkksError::Malformed { what: "relinearization key" });
        let one = |src: CtRange, f: &(dyn Fn(&Ciphertext) -> Result<Ciphertext, CkksError> + Sync)| {
            registers.run(src)?.par_iter().map(|&ct| f(ct)).collect::<Result<Vec<_>, _>>()
        };
        let two =
            |a: CtRange,
             b: CtRange,
             f: &(dyn Fn(&Ciphertext, &Ciphertext) -> Result<Ciphertext, CkksError> + Sync)| {
                let (a, b) = (registers.run(a)?, registers.run(b)?);
                a.par_iter().zip(b).map(|(&a, b)| f(a, b)).collect::<Result<Vec<_>, _>>()
            };
        let (dst, result) = match (op, &self.steps[index]) {
            (Op::AddPlain { dst, src, .. }, Step::Plain(step)) => {
                (dst, self.plain(index, step, &registers.run(*src)?, |ct, p| evaluator.add_plain(ct, p))?)
            }
            (Op::MulPlain { dst, src, .. }, Step::Plain(step)) => {
                (dst, self.plain(index, step, &registers.run(*src)?, |ct, p| evaluator.mul_plain(ct, p))?)
            }
            (Op::Square { dst, src }, _) => {
                let key = relin()?;
                (dst, one(*src, &|ct| evaluator.relinearize(&evaluator.square(ct)?, key))?)
            }
            (Op::Mul { dst, a, b }, _) => {
                let key = relin()?;
                (dst, two(*a, *b, &|a, b| evaluator.relinearize(&evaluator.mul(a, b)?, key))?)
            }
            (Op::Add { dst, a, b }, _) => (dst, two(*a, *b, &|a, b| evaluator.add(a, b))?),
            (Op::Sub { dst, a, b }, _) => (dst, two(*a, *b, &|a, b| evaluator.sub(a, b))?),
            (Op::MulScalar { dst, src, value, scale }, _) => {
                (dst, one(*src, &|ct| evaluator.mul_scalar(ct, *value, scale.over(ct.scale())))?)
            }
            (Op::Rescale { dst, src }, _) => (dst, one(*src, &|ct| evaluator.rescale(ct))?),
            (Op::Drop { dst, src, level }, _) => (dst, one(*src, &|ct| evaluator.drop_to(ct, *level))?),
            (Op::Linear { .. } | Op::AddPlain { .. } | Op::MulPlain { .. }, _)
            | (Op::Input { .. } | Op::Free { .. } | Op::Output { .. }, _) => {
                return Err(MISPREPARED);
            }
        };
        registers.put(*dst, self.settled(index, result)?)
    }

    /// Results under the scale that the checker computed, so that rounding never adds up from level to level.
    fn settled(&self, index: usize, result: Vec<Ciphertext>) -> Result<Vec<Ciphertext>, CkksError> {
        let Some(fact) = self.program.fact(index) else { return Ok(result) };
        result.into_iter().map(|ct| ct.with_scale(fact.scale)).collect()
    }

    fn linear(
        &self,
        index: usize,
        map: MapId,
        src: &[CtRange],
        ticker: Ticker<'_>,
        registers: &mut RegisterFile,
    ) -> Result<Vec<Ciphertext>, CkksError> {
        let Step::Linear(step, _) = &self.steps[index] else { return Err(MISPREPARED) };
        let source = MapSource {
            context: &self.context,
            step,
            diagonals: &self.program.map(map).diagonals,
            set: &self.sets[index],
            meter: &self.meter,
            ticker,
        };
        let evaluator = Evaluator::new(&self.context);
        registers.with_runs(src, |inputs| {
            linear::evaluate(&evaluator, inputs, step.plan(), &source, self.keys.rotations())
        })
    }

    fn plain(
        &self,
        index: usize,
        step: &PlainStep,
        operands: &[&Ciphertext],
        apply: impl Fn(&Ciphertext, &Plaintext) -> Result<Ciphertext, CkksError> + Sync,
    ) -> Result<Vec<Ciphertext>, CkksError> {
        let basis = self.context.basis(step.level);
        let encoder = self.context.encoder();
        let one = |(i, operand): (usize, &&Ciphertext)| {
            let vector = step.vectors.get(i).ok_or(CkksError::Plan("a constant has too few vectors"))?;
            let encode = || encoder.round(vector, step.scale);
            match self.sets[index].get(&self.context, &self.meter, i, encode)? {
                Diagonal::Plaintext(plain) => apply(operand, &plain),
                Diagonal::Encoding(encoding) => apply(operand, &encoder.transform(&encoding, basis)),
            }
        };
        operands.par_iter().enumerate().map(one).collect()
    }

    fn layer_name(&self, index: usize) -> &'p str {
        let spec = self.program.spec();
        let layer = spec.instructions[index].layer;
        spec.layers.get(layer.index()).map_or("", |layer| &layer.name)
    }

    /// Part of the work of each instruction: the predicted time of its layer, spread over what takes long.
    fn weights(&self) -> Vec<f64> {
        let spec = self.program.spec();
        let is_heavy = |op: &Op| matches!(op, Op::Linear { .. } | Op::Square { .. } | Op::Mul { .. });
        let mut n_heavy = vec![0usize; spec.layers.len()];
        for instruction in spec.instructions.iter().filter(|i| is_heavy(&i.op)) {
            if let Some(n) = n_heavy.get_mut(instruction.layer.index()) {
                *n += 1;
            }
        }
        let weight = |(op, layer): (&Op, usize)| match spec.layers.get(layer) {
            Some(spec) if is_heavy(op) && spec.seconds > 0.0 => spec.seconds / n_heavy[layer] as f64,
            _ if is_heavy(op) => 1e-9,
            _ => 0.0,
        };
        let mut weights: Vec<f64> =
            spec.instructions.iter().map(|i| weight((&i.op, i.layer.index()))).collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= total.max(f64::MIN_POSITIVE));
        weights
    }
}

fn plaintext_set(context: &Context, step: &Step, share: Share) -> PlaintextSet {
    match step {
        Step::Linear(linear, level) => linear.plaintext_set(context, *level, share),
        Step::Plain(plain) => PlaintextSet::new(share, context.basis(plain.level)),
        Step::Bare => PlaintextSet::new(share, context.basis(fhe_bytecode::Level(0))),
    }
}
