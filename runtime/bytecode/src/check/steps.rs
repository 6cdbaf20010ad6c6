//! One walk over a program: every instruction with what it reads, what it defines, and the memory it needs.
//!
//! Predictions, reports, interpreters and machines go through [`CheckedProgram::steps`]; nobody else follows registers.

use super::{CheckedMap, CheckedProgram, Fact, Keys};
use crate::params::{Level, Params};
use crate::program::{Instruction, Op, ProgramSpec};

/// An instruction when it runs.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Its index.
    pub index: usize,
    /// The instruction.
    pub instruction: &'a Instruction,
    /// Layout, level and scale of what it reads, in the order of [`Op::sources`].
    pub sources: &'a [Fact],
    /// Layout, level and scale of what it defines.
    pub result: Option<&'a Fact>,
    /// Bytes of the ciphertexts alive while it runs, its operands and its result included.
    pub live_bytes: u64,
    /// Bytes of rotated inputs, digits and sums inside it.
    pub working_bytes: u64,
}

impl<'a> Step<'a> {
    /// What it does.
    pub fn op(&self) -> &'a Op {
        &self.instruction.op
    }

    /// The level it works at: that of its operands, or of the input that it takes.
    pub fn level(&self) -> Level {
        let fact = self.sources.first().or(self.result);
        fact.map_or(Level(0), |fact| fact.level)
    }

    /// All bytes that it needs beside keys and plaintexts.
    pub fn bytes(&self) -> u64 {
        self.live_bytes.saturating_add(self.working_bytes)
    }
}

/// What the replay found, instruction by instruction.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// Facts of the results.
    pub(super) results: Vec<Option<Fact>>,
    /// Facts of the sources, one instruction after the other.
    pub(super) sources: Vec<Fact>,
    /// Where the sources of each instruction end.
    pub(super) source_ends: Vec<usize>,
}

impl Trace {
    pub(super) fn sources(&self, index: usize) -> &[Fact] {
        let start = index.checked_sub(1).map_or(0, |before| self.source_ends[before]);
        &self.sources[start..self.source_ends[index]]
    }
}

/// Live and working bytes of every instruction.
pub(super) fn memory(
    spec: &ProgramSpec,
    params: &Params,
    maps: &[CheckedMap],
    trace: &Trace,
) -> Vec<(u64, u64)> {
    let tensor_bytes = |fact: &Fact, n_cts: usize| params.ciphertext_bytes(fact.level) * n_cts as u64;
    let mut live = 0u64;
    let mut all = Vec::with_capacity(spec.instructions.len());
    for (index, instruction) in spec.instructions.iter().enumerate() {
        let result = trace.results[index].as_ref();
        if let (Some(dst), Some(fact)) = (instruction.op.dst(), result) {
            live = live.saturating_add(tensor_bytes(fact, dst.len()));
        }
        let working = match (&instruction.op, result) {
            (Op::Linear { map, .. }, Some(fact)) => {
                let pairs = maps[map.index()].working_pairs + params.at(fact.level).n_digits(fact.level);
                params.key_pair_bytes(fact.level).saturating_mul(pairs as u64 * u64::from(fact.lanes))
            }
            _ => 0,
        };
        all.push((live, working));
        if let (Op::Free { src } | Op::Output { src }, [fact]) = (&instruction.op, trace.sources(index)) {
            live = live.saturating_sub(tensor_bytes(fact, src.len()));
        }
    }
    all
}

impl CheckedProgram {
    /// The instructions in order, each with its operands, its result and its memory.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = Step<'_>> + Clone {
        self.spec().instructions.iter().enumerate().map(|(index, instruction)| {
            let (live_bytes, working_bytes) = self.memory[index];
            Step {
                index,
                instruction,
                sources: self.trace.sources(index),
                result: self.trace.results[index].as_ref(),
                live_bytes,
                working_bytes,
            }
        })
    }

    /// Most bytes of ciphertexts, rotated inputs and sums at one time.
    pub fn peak_bytes(&self) -> u64 {
        self.steps().map(|step| step.bytes()).max().unwrap_or(0)
    }

    /// Bytes of all evaluation keys in memory.
    pub fn key_bytes(&self) -> u64 {
        Keys::from(self).bytes(self.params())
    }
}
