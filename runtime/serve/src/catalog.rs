//! The programs of a server: loaded and checked once, with everything that follows from them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fhe_bytecode::codec::{DEFAULT_LIMIT, decode, encode_interface};
use fhe_bytecode::memory::{POOL_BYTES, RESERVE};
use fhe_bytecode::{CheckedProgram, DecodeError};
use fhe_ckks::{CkksError, Context, key_request};
use fhe_files::{Expected, Form, ciphertexts_len, evaluation_keys_len};
use fhe_host::show_bytes;
use fhe_machine::{Model, VmError};

use crate::ids::ProgramId;

/// A program and what a client has to know of it.
#[derive(Debug)]
pub struct Entry {
    /// Hash of the program file.
    pub id: ProgramId,
    /// Name of its model.
    pub name: String,
    /// The interface file.
    pub interface: Vec<u8>,
    /// Bytes of a file of evaluation keys.
    pub key_file_bytes: u64,
    /// Bytes of an encrypted input.
    pub input_bytes: u64,
    /// Bytes of an input that was joined from several, each encrypted by itself.
    pub joined_bytes: u64,
    /// Bytes of an encrypted result.
    pub result_bytes: u64,
    /// Bytes of evaluation keys in memory.
    pub key_bytes: u64,
    /// What encrypted inputs look like.
    pub expected_input: Expected,
    /// What encrypted results look like.
    pub expected_result: Expected,
    /// Program and plaintexts.
    pub model: Arc<Model>,
}

/// All programs of a server.
#[derive(Debug)]
pub struct Catalog {
    entries: BTreeMap<ProgramId, Arc<Entry>>,
    plaintext_bytes: u64,
}

/// Why a program cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The operating system refused.
    #[error("{}: cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What it said.
        #[source]
        cause: io::Error,
    },
    /// No program.
    #[error("{}: {cause}", path.display())]
    Program {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        cause: DecodeError,
    },
    /// Parameters below the bar.
    #[error("{}: its parameters are below 128 bits of security: serve it with --insecure for tests only", .0.display())]
    Insecure(PathBuf),
    /// Tables that cannot be made.
    #[error("{}: {cause}", path.display())]
    Context {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: CkksError,
    },
    /// A model that cannot be prepared.
    #[error("{}: {cause}", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: VmError,
    },
    /// The budget is too small.
    #[error(
        "{} of memory are not enough: an evaluation needs at least {} (keys {}, working set {}): allow more with --memory",
        show_bytes(*budget), show_bytes(*needed), show_bytes(*keys), show_bytes(*working)
    )]
    Memory {
        /// Bytes allowed.
        budget: u64,
        /// Least bytes.
        needed: u64,
        /// Of these, keys.
        keys: u64,
        /// Of these, the working set.
        working: u64,
    },
}

/// A program file, read and checked.
struct Loaded {
    path: PathBuf,
    program: CheckedProgram,
    context: Arc<Context>,
}

impl Catalog {
    /// Loads programs; their plaintexts take what `memory` leaves beside the keys and working sets of `n_workers` evaluations.
    ///
    /// # Errors
    /// The first program that cannot be served, or a budget that is too small.
    pub fn load(
        paths: &[PathBuf],
        memory: u64,
        n_workers: usize,
        allow_insecure: bool,
    ) -> Result<Self, CatalogError> {
        let read = |path: &PathBuf| match fhe_host::read_bounded(path, DEFAULT_LIMIT) {
            Ok(bytes) => Ok((path.clone(), bytes)),
            Err(cause) => Err(CatalogError::Read { path: path.clone(), cause }),
        };
        let files = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Self::of_files(&files, memory, n_workers, allow_insecure)
    }

    /// The same with files that were read, each with its name.
    ///
    /// # Errors
    /// The first program that cannot be served, or a budget that is too small.
    pub fn of_files(
        files: &[(PathBuf, Vec<u8>)],
        memory: u64,
        n_workers: usize,
        allow_insecure: bool,
    ) -> Result<Self, CatalogError> {
        let loaded = check_all(files, allow_insecure)?;
        let spare = spare(&loaded, memory, n_workers)?;
        Self::of_loaded(&loaded, spare)
    }

    /// Programs that are told of and never evaluated here: no plaintext is kept.
    ///
    /// # Errors
    /// The first program that cannot be served.
    pub fn outlines(files: &[(PathBuf, Vec<u8>)], allow_insecure: bool) -> Result<Self, CatalogError> {
        Self::of_loaded(&check_all(files, allow_insecure)?, 0)
    }

    fn of_loaded(loaded: &[Loaded], mut spare: u64) -> Result<Self, CatalogError> {
        let (mut entries, mut plaintext_bytes) = (BTreeMap::new(), 0);
        for (n_done, one) in loaded.iter().enumerate() {
            // What one program leaves is for the next ones.
            let share = spare / (loaded.len() - n_done) as u64;
            let model = Model::with_plaintexts(&one.program, one.context.clone(), share, usize::MAX)
                .map_err(|cause| CatalogError::Model { path: one.path.clone(), cause })?;
            spare -= model.plaintext_bytes().min(spare);
            plaintext_bytes += model.plaintext_bytes();
            let entry = entry(&one.program, model);
            entries.insert(entry.id, Arc::new(entry));
        }
        Ok(Self { entries, plaintext_bytes })
    }

    /// The program with this hash.
    pub fn get(&self, id: ProgramId) -> Option<&Arc<Entry>> {
        self.entries.get(&id)
    }

    /// All programs, in order of their hashes.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.values()
    }

    /// Bytes of all plaintexts once they are encoded.
    pub fn plaintext_bytes(&self) -> u64 {
        self.plaintext_bytes
    }

    /// Bytes of plaintexts that are encoded now.
    pub fn kept_bytes(&self) -> u64 {
        self.iter().map(|entry| entry.model.kept_bytes()).sum()
    }

    /// Bytes of a budget that stay for keys and working sets.
    pub fn capacity(&self, memory: u64) -> u64 {
        let working = self.iter().map(|entry| entry.model.working_bytes()).max().unwrap_or(0);
        memory.saturating_sub(overhead(memory, working)).saturating_sub(self.plaintext_bytes)
    }
}

/// Bytes that stay free: tables and programs, and buffers that wait for their next use.
fn overhead(memory: u64, working: u64) -> u64 {
    memory / RESERVE + working.saturating_mul(2).min(POOL_BYTES).min(memory / 4)
}

/// Bytes for plaintexts: half of what the largest evaluations leave, so that keys of other clients find room, too. Of
/// `n_workers` evaluations as many are counted as fit: the others wait for memory.
fn spare(loaded: &[Loaded], memory: u64, n_workers: usize) -> Result<u64, CatalogError> {
    let largest = |of: &dyn Fn(&Loaded) -> u64| loaded.iter().map(of).max().unwrap_or(0);
    let keys = largest(&|l| key_request(&l.context, &l.program).bytes(&l.context));
    let working = largest(&|l| l.program.peak_bytes());
    let needed = |n: usize| {
        let all = keys.saturating_add(working).saturating_mul(n as u64);
        all.saturating_add(overhead(memory, working))
    };
    let rest = (1..=n_workers.max(1)).rev().find_map(|n| memory.checked_sub(needed(n)));
    rest.map(|rest| rest / 2).ok_or(CatalogError::Memory { budget: memory, needed: needed(1), keys, working })
}

fn check_all(files: &[(PathBuf, Vec<u8>)], allow_insecure: bool) -> Result<Vec<Loaded>, CatalogError> {
    files.iter().map(|(path, bytes)| check(path, bytes, allow_insecure)).collect()
}

fn check(path: &Path, bytes: &[u8], allow_insecure: bool) -> Result<Loaded, CatalogError> {
    let path = path.to_path_buf();
    let program =
        decode(bytes, DEFAULT_LIMIT).map_err(|cause| CatalogError::Program { path: path.clone(), cause })?;
    if !program.params().is_secure() && !allow_insecure {
        return Err(CatalogError::Insecure(path));
    }
    let context = Context::new(program.params().clone())
        .map_err(|cause| CatalogError::Context { path: path.clone(), cause })?;
    Ok(Loaded { path, program, context })
}

fn entry(program: &CheckedProgram, model: Model) -> Entry {
    let interface = program.interface();
    let context = model.context();
    let (expected_input, expected_result) = (Expected::input(&interface), Expected::result(&interface));
    let request = key_request(context, program);
    // A sum of inputs that were encrypted one by one has no seed.
    let joined = if interface.input().ports.len() > interface.batch() { Form::Full } else { Form::Seeded };
    Entry {
        id: ProgramId(interface.program().0),
        name: interface.spec().origin.model.clone(),
        interface: encode_interface(&interface),
        key_file_bytes: evaluation_keys_len(context.params(), request.places()),
        input_bytes: ciphertexts_len(context, &expected_input, 1, Form::Seeded),
        joined_bytes: ciphertexts_len(context, &expected_input, 1, joined),
        result_bytes: ciphertexts_len(context, &expected_result, 1, Form::Full),
        key_bytes: request.bytes(context),
        expected_input,
        expected_result,
        model: Arc::new(model),
    }
}
