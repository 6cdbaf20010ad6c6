//! A model: a program with its plaintexts, ready for any number of clients.
//!
//! Everything here is the same for all clients, so a server holds one model behind an [`Arc`] and one
//! [`Session`](crate::Session) per client. Plaintexts are encoded when they are first used and kept while they
//! fit the model's share of the memory; all sessions read the same ones.

use std::sync::Arc;

use fhe_bytecode::{CheckedProgram, Level, Memory};
use fhe_ckks::{Context, key_request};

use super::cache::{Meter, PlaintextSet, Share, encoded_anew, share_budget};
use super::error::VmError;
use super::prepare::{Step, prepare, spare_memory};

/// How much one client's evaluations may use, and how many there will be.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Bytes for keys, ciphertexts and kept plaintexts.
    pub memory: u64,
    /// Evaluations to come; plaintexts are kept only if they will be used again.
    pub n_evaluations: usize,
}

/// A program and its plaintexts.
#[derive(Debug)]
pub struct Model {
    pub(crate) program: CheckedProgram,
    pub(crate) context: Arc<Context>,
    pub(crate) steps: Vec<Step>,
    /// The level that every instruction works at.
    pub(crate) levels: Vec<Level>,
    pub(crate) sets: Vec<PlaintextSet>,
    pub(crate) meter: Meter,
    working_bytes: u64,
    plaintext_bytes: u64,
    encoded_anew: f64,
}

impl Model {
    /// Prepares a program for one client: what its keys and one evaluation leave of the memory is for plaintexts.
    ///
    /// # Errors
    /// If the memory does not hold the keys and the ciphertexts of one evaluation.
    pub fn new(program: &CheckedProgram, context: Arc<Context>, options: Options) -> Result<Self, VmError> {
        check_parameters(program, &context)?;
        let keys = key_request(&context, program).bytes(&context);
        let spare = spare_memory(Memory { keys, working: program.peak_bytes() }, options.memory)?;
        Self::with_plaintexts(program, context, spare, options.n_evaluations)
    }

    /// Prepares a program that keeps at most so many bytes of plaintexts, whatever its clients need besides.
    ///
    /// # Errors
    /// If the context is for other parameters.
    pub fn with_plaintexts(
        program: &CheckedProgram,
        context: Arc<Context>,
        budget: u64,
        n_evaluations: usize,
    ) -> Result<Self, VmError> {
        check_parameters(program, &context)?;
        let (steps, working_bytes) = (prepare(&context, program)?, program.peak_bytes());
        let demands: Vec<_> = steps.iter().map(|step| step.demand(&context)).collect();
        let shares = share_budget(&demands, budget, n_evaluations);
        let plaintext_bytes = shares.iter().zip(&demands).map(|(share, demand)| share.bytes(demand)).sum();
        let encoded_anew = encoded_anew(&demands, &shares);
        let sets =
            steps.iter().zip(shares).map(|(step, share)| plaintext_set(&context, step, share)).collect();
        let meter = Meter::default();
        let levels = program.steps().map(|step| step.level()).collect();
        let program = program.clone();
        Ok(Self {
            program,
            context,
            steps,
            levels,
            sets,
            meter,
            working_bytes,
            plaintext_bytes,
            encoded_anew,
        })
    }

    /// The program.
    pub fn program(&self) -> &CheckedProgram {
        &self.program
    }

    /// The tables of its parameters.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Bytes of ciphertexts and sums that every running evaluation takes at most.
    pub fn working_bytes(&self) -> u64 {
        self.working_bytes
    }

    /// Bytes of plaintexts at most, once all that are kept are encoded, for all clients together.
    pub fn plaintext_bytes(&self) -> u64 {
        self.plaintext_bytes
    }

    /// The share of all encodings that are made again in every evaluation after the first, because nothing is kept of them.
    pub fn encoded_anew(&self) -> f64 {
        self.encoded_anew
    }

    /// Bytes of plaintexts that are kept now.
    pub fn kept_bytes(&self) -> u64 {
        self.meter.cached_bytes()
    }
}

fn check_parameters(program: &CheckedProgram, context: &Context) -> Result<(), VmError> {
    let (found, expected) = (context.params().fingerprint(), program.params().fingerprint());
    match found == expected {
        true => Ok(()),
        false => Err(VmError::WrongParameters { found, expected }),
    }
}

fn plaintext_set(context: &Context, step: &Step, share: Share) -> PlaintextSet {
    match step {
        Step::Linear(linear, level) => linear.plaintext_set(context.at(*level), *level, share),
        Step::Plain(plain) => PlaintextSet::new(share, context.at(plain.level).basis(plain.level)),
        Step::Bare => PlaintextSet::new(share, context.basis(Level(0))),
    }
}
