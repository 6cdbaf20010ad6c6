//! A session: one client's keys on a model that all clients share.
//!
//! Instructions run one after the other; each works on the ciphertexts of its run in parallel, and the operations
//! below on towers. Nothing depends on the order in which threads finish, so any number of them gives the same bits.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use fhe_bytecode::{CtRange, Fingerprint, Level, MapId, Memory, Op};
use fhe_ring::parallel::*;

use super::cancel::Cancel;
use super::error::VmError;
use super::linear::MapSource;
use super::model::Model;
use super::prepare::{PlainStep, Step};
use super::profile::{Profile, Recorder};
use super::progress::{Observer, Progress, Ticker};
use super::registers::RegisterFile;
use fhe_ckks::linear::{self, Diagonal};
use fhe_ckks::{
    Ciphertext, CkksError, Context, EvaluationKeys, Evaluator, KeyId, Plaintext, SegmentKeys, descend,
    key_request,
};

/// Inputs that are evaluated at once at most: transformed plaintexts and keys are then read from a cache by nearly all of them.
const MAX_BATCH: u64 = 4;

/// Cannot happen: steps are prepared from the same instructions.
const MISPREPARED: CkksError = CkksError::Plan("an instruction was prepared as another one");

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

/// An encrypted input: its ciphertexts, and what they belong to.
#[derive(Debug, Clone)]
pub struct Input {
    params: Fingerprint,
    key: KeyId,
    ciphertexts: Vec<Ciphertext>,
}

impl Input {
    /// Ciphertexts in the order of the input layout, made or read with `context` and encrypted under the secret key `key`.
    pub fn new(context: &Context, key: KeyId, ciphertexts: Vec<Ciphertext>) -> Self {
        Self { params: context.params().fingerprint(), key, ciphertexts }
    }
}

/// One client's keys on a shared model.
#[derive(Debug, Clone)]
pub struct Session {
    model: Arc<Model>,
    keys: Arc<EvaluationKeys>,
}

impl Session {
    /// Joins keys and model. Costs no homomorphic operation and no memory but the keys.
    ///
    /// # Errors
    /// If keys are missing or for other parameters.
    pub fn new(model: Arc<Model>, keys: Arc<EvaluationKeys>) -> Result<Self, VmError> {
        let (found, expected) = (keys.params(), model.context.params().fingerprint());
        if found != expected {
            return Err(VmError::WrongParameters { found, expected });
        }
        if let Some((key_use, level)) = keys.missing(&key_request(&model.context, &model.program)) {
            return Err(VmError::MissingKey { key_use, level });
        }
        Ok(Self { model, keys })
    }

    /// What the evaluations need, plaintexts of all clients included.
    pub fn memory(&self) -> MemoryPlan {
        MemoryPlan {
            key_bytes: self.keys.bytes(),
            working_bytes: self.model.working_bytes(),
            plaintext_bytes: self.model.plaintext_bytes(),
        }
    }

    /// How many inputs a budget lets be evaluated at once, at least one; more than some bring nothing.
    pub fn batch(&self, budget: u64) -> usize {
        let MemoryPlan { key_bytes, working_bytes, plaintext_bytes } = self.memory();
        let keys = key_bytes.saturating_add(plaintext_bytes);
        let fits = |n: &u64| {
            let working = working_bytes.saturating_mul(*n);
            Memory { keys, working }.spare(budget).is_some_and(|spare| spare > 0)
        };
        (2..=MAX_BATCH).take_while(fits).last().unwrap_or(1) as usize
    }

    /// The keys.
    pub fn keys(&self) -> &Arc<EvaluationKeys> {
        &self.keys
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Evaluates the program on one encrypted input.
    ///
    /// # Errors
    /// If the input does not fit keys and program, the evaluation is cancelled, or an instruction is refused.
    pub fn evaluate(
        &self,
        input: Input,
        cancel: &Cancel,
        observer: &dyn Observer,
    ) -> Result<(Vec<Ciphertext>, Profile), VmError> {
        let (mut outputs, profile) = self.evaluate_batch(vec![input], cancel, observer)?;
        Ok((outputs.pop().unwrap_or_default(), profile))
    }

    /// Evaluates the program on several encrypted inputs at once, each a whole batch where the program takes batches. They share
    /// the transforms of plaintexts, each gets the bits that it would get alone, and each takes its own
    /// [`MemoryPlan::working_bytes`].
    ///
    /// # Errors
    /// As [`Session::evaluate`], for any of them.
    pub fn evaluate_batch(
        &self,
        inputs: Vec<Input>,
        cancel: &Cancel,
        observer: &dyn Observer,
    ) -> Result<(Vec<Vec<Ciphertext>>, Profile), VmError> {
        inputs.iter().try_for_each(|input| self.check_input(input))?;
        let n_samples = inputs.len();
        if n_samples == 0 {
            return Ok((Vec::new(), Profile::default()));
        }
        let mut input = inputs.into_iter().flat_map(|input| input.ciphertexts).collect();
        let mut registers = RegisterFile::new(n_samples);
        let mut output = Vec::new();
        let mut recorder = Recorder::new();
        let weights = self.weights();
        let mut done = 0.0;
        for (index, instruction) in self.model.program.spec().instructions.iter().enumerate() {
            if cancel.is_cancelled() {
                return Err(VmError::Cancelled);
            }
            let layer = self.layer_name(index);
            let cached_bytes = self.model.meter.cached_bytes();
            let at_start = Progress { layer, fraction: done, elapsed: recorder.elapsed(), cached_bytes };
            observer.progress(at_start);
            let ticker = Ticker {
                observer,
                cancel,
                at_start,
                began: recorder.began(),
                weight: weights[index],
                n_parts: self.model.steps[index].demand(&self.model.context).n_uses,
                n_done: AtomicUsize::new(0),
            };
            recorder
                .time(layer, instruction.op.name(), || match &instruction.op {
                    Op::Input { dst } => registers.put(*dst, std::mem::take(&mut input)),
                    Op::Output { src } => registers.take(*src).map(|result| output = result),
                    Op::Free { src } => registers.take(*src).map(drop),
                    Op::Linear { dst, src, map, .. } => {
                        let result = self.linear(index, *map, src, ticker, &mut registers)?;
                        registers.put(*dst, self.settled(index, result)?)
                    }
                    op => self.compute(index, op, &mut registers),
                })
                .map_err(|cause| match cause {
                    CkksError::Cancelled => VmError::Cancelled,
                    cause => VmError::Instruction {
                        instruction: index,
                        name: instruction.op.name(),
                        layer: layer.to_owned(),
                        cause,
                    },
                })?;
            done += weights[index];
        }
        let (encode_seconds, n_encoded) = self.model.meter.encoded();
        let n_outputs = output.len() / n_samples;
        let mut output = output.into_iter();
        let outputs = (0..n_samples).map(|_| output.by_ref().take(n_outputs).collect()).collect();
        Ok((outputs, recorder.finish(encode_seconds, n_encoded)))
    }

    fn check_input(&self, input: &Input) -> Result<(), VmError> {
        let (found, expected) = (input.params, self.keys.params());
        if found != expected {
            return Err(VmError::WrongParameters { found, expected });
        }
        let (found, expected) = (input.key, self.keys.id());
        if found != expected {
            return Err(VmError::WrongKey { found, expected });
        }
        let input = &input.ciphertexts;
        let layout = self.model.program.input_layout();
        let expected = layout.n_cts() * layout.lanes(self.model.program.batch());
        if input.len() != expected {
            return Err(VmError::InputCount { found: input.len(), expected });
        }
        let spec = &self.model.program.spec().input;
        let fits = |ct: &Ciphertext| {
            let is_whole = ct.is_relinearized_in(&self.model.context);
            is_whole && ct.level() == spec.level && ct.scale().agrees(spec.scale)
        };
        match input.iter().find(|ct| !fits(ct)) {
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
        let context = &self.model.context;
        let level = self.model.levels[index];
        let evaluator = Evaluator::new(context.at(level));
        let own = self.segment_keys(level)?;
        let relin = || own.relin().ok_or(CkksError::Malformed { what: "relinearization key" });
        let descended = |ct: Ciphertext| descend(context, level, ct, &self.keys);
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
        let (dst, result) = match (op, &self.model.steps[index]) {
            (Op::AddPlain { dst, src, .. }, Step::Plain(step)) => {
                (dst, self.plain(index, step, registers, *src, |ct, p| evaluator.add_plain(ct, p))?)
            }
            (Op::MulPlain { dst, src, .. }, Step::Plain(step)) => {
                (dst, self.plain(index, step, registers, *src, |ct, p| evaluator.mul_plain(ct, p))?)
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
            (Op::Rescale { dst, src }, _) => {
                (dst, one(*src, &|ct| evaluator.rescale(ct).and_then(descended))?)
            }
            (Op::Drop { dst, src, level }, _) => {
                (dst, one(*src, &|ct| evaluator.drop_to(ct, *level).and_then(descended))?)
            }
            (Op::Linear { .. } | Op::AddPlain { .. } | Op::MulPlain { .. }, _)
            | (Op::Input { .. } | Op::Free { .. } | Op::Output { .. }, _) => {
                return Err(MISPREPARED);
            }
        };
        registers.put(*dst, self.settled(index, result)?)
    }

    /// Results under the scale that the checker computed, so that rounding never adds up from level to level.
    fn settled(&self, index: usize, result: Vec<Ciphertext>) -> Result<Vec<Ciphertext>, CkksError> {
        let Some(fact) = self.model.program.fact(index) else { return Ok(result) };
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
        let Step::Linear(step, _) = &self.model.steps[index] else { return Err(MISPREPARED) };
        let level = self.model.levels[index];
        let context = self.model.context.at(level);
        let source = MapSource {
            context,
            step,
            diagonals: &self.model.program.map(map).diagonals,
            set: &self.model.sets[index],
            meter: &self.model.meter,
            ticker,
        };
        let evaluator = Evaluator::new(context);
        let own = self.segment_keys(level)?;
        let lanes = self.model.program.fact(index).map_or(1, |fact| fact.lanes as usize);
        registers.with_lanes(src, lanes, |samples| {
            let keys = own.galois();
            let results = linear::evaluate_batch(&evaluator, samples, step.plan(), &source, keys)?;
            Ok(results.into_iter().flatten().collect())
        })
    }

    fn plain(
        &self,
        index: usize,
        step: &PlainStep,
        registers: &RegisterFile,
        src: CtRange,
        apply: impl Fn(&Ciphertext, &Plaintext) -> Result<Ciphertext, CkksError> + Sync,
    ) -> Result<Vec<Ciphertext>, CkksError> {
        let context = self.model.context.at(step.level);
        let (basis, encoder) = (context.basis(step.level), context.encoder());
        let operands = registers.run(src)?;
        let one = |(i, &operand): (usize, &&Ciphertext)| {
            // Every sample, and every lane of it, takes all vectors.
            let i = i % step.vectors.len().max(1);
            let vector = step.vectors.get(i).ok_or(CkksError::Plan("a constant has no vectors"))?;
            let encode = || encoder.round(vector, step.scale);
            match self.model.sets[index].get(context, &self.model.meter, i, encode)? {
                Diagonal::Plaintext(plain) => apply(operand, &plain),
                Diagonal::Encoding(encoding) => apply(operand, &encoder.transform(&encoding, basis)),
            }
        };
        operands.par_iter().enumerate().map(one).collect()
    }

    /// The keys of the segment of a level.
    fn segment_keys(&self, level: Level) -> Result<&SegmentKeys, CkksError> {
        let keys = self.keys.segment(self.model.context.params().segment(level));
        keys.ok_or(CkksError::Malformed { what: "set of evaluation keys" })
    }

    fn layer_name(&self, index: usize) -> &str {
        let spec = self.model.program.spec();
        let layer = spec.instructions[index].layer;
        spec.layers.get(layer.index()).map_or("", |layer| &layer.name)
    }

    /// Part of the work of each instruction: the predicted time of its layer, spread over what takes long.
    fn weights(&self) -> Vec<f64> {
        let spec = self.model.program.spec();
        let is_heavy = |op: &Op| op.kind().is_heavy();
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
