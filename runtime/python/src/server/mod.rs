//! The server's side: a program, the evaluation keys of clients, and evaluations. Nothing in this folder knows a secret key.

mod room;

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use fhe_ckks::{Context, EvaluationKeys, key_request};
use fhe_files::{
    Ciphertexts as Stored, Expected, Kind, decode_request, decode_requested_keys, encode_ciphertexts,
};
use fhe_machine::{Input, Model, Session};
use fhe_runtime::store;
use pyo3::prelude::*;

use self::room::Room;
use crate::ciphertexts::{Ciphertexts, bytes_of};
use crate::fault::{Class, Fault};
use crate::keys::EvalKeys;
use crate::long::{self, Watch};
use crate::names::key_name;
use crate::paths::{Source, wrong_type};
use crate::program::{Loaded, Program};
use crate::security::{self, refuse_secret};
use crate::threads::Threads;

/// Evaluates a program on encrypted inputs of any number of clients. It has no code for secret keys.
///
/// Args:
///     program: a `Program`, or the path of a .fhebc file.
///     memory: bytes for keys, ciphertexts and kept plaintexts together, as a number or as "4GiB"; by default most of what
///         the machine has to spare.
///     clients: clients whose keys are held at a time; what their keys and one evaluation leave of the memory is for plaintexts.
///     threads: threads of this server; by default one for each processor.
///     insecure: accept a program whose parameters protect nothing, for tests.
#[pyclass(frozen, module = "fhec")]
pub(crate) struct Server {
    program: Arc<Loaded>,
    state: RwLock<State>,
    threads: Threads,
}

/// What closing ends.
struct State {
    model: Option<Arc<Model>>,
    sessions: BTreeMap<String, Session>,
    room: Room,
}

impl Server {
    fn read<T>(&self, f: impl FnOnce(&State, &Arc<Model>) -> Result<T, Fault>) -> Result<T, Fault> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let model = state.model.as_ref().ok_or_else(closed)?;
        f(&state, model)
    }

    /// Keys from wherever they come; only evaluation keys are read.
    fn keys(&self, py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Arc<EvaluationKeys>> {
        if let Ok(keys) = given.downcast::<EvalKeys>() {
            return Ok(keys.get().keys.clone());
        }
        let source =
            Source::new(given).ok_or_else(|| wrong_type("keys", given, "EvalKeys, a path or bytes"))?;
        let context = self.program.context()?;
        let wanted = key_request(&context, &self.program.program);
        let keys = long::run(py, &self.threads, None, move |_| match source {
            Source::File(path) => {
                refuse_secret(store::kind_of(&path)?, &path.display().to_string())?;
                Ok(store::read_evaluation_keys(&path, &context, &wanted, &mut |_| {})?)
            }
            Source::Bytes(bytes) => {
                refuse_secret(Kind::of_magic(&bytes), "bytes")?;
                decode_requested_keys(Cursor::new(&bytes), bytes.len() as u64, &context, &wanted)
                    .map_err(|error| Fault::format("bytes", error))
            }
        })?;
        Ok(Arc::new(keys))
    }
}

/// A server that is no more.
fn closed() -> Fault {
    Fault::new(Class::Usage, "closed", "the server is closed".to_owned()).with_remedy("make a new one")
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (program, *, memory=None, clients=1, threads=None, insecure=false))]
    fn new(
        py: Python<'_>,
        program: &Bound<'_, PyAny>,
        memory: Option<&Bound<'_, PyAny>>,
        clients: usize,
        threads: Option<usize>,
        insecure: bool,
    ) -> PyResult<Self> {
        let program = match program.downcast::<Program>() {
            Ok(program) => program.get().inner.clone(),
            Err(_) => {
                let path: PathBuf = program
                    .extract()
                    .map_err(|_| wrong_type("program", program, "a Program or the path of one"))?;
                let read = py.get_type::<Program>().call_method1("load", (path,))?;
                read.downcast::<Program>()?.get().inner.clone()
            }
        };
        security::check(program.program.params(), insecure)?;
        let threads = Threads::new(threads.filter(|n| *n > 0));
        let room = Room::new(&program.program, room::asked(memory)?, clients)?;
        let (loaded, budget) = (program.clone(), room.plaintexts);
        let model = long::run(py, &threads, None, move |_| {
            let context = loaded.context()?;
            // A server does not know how often it will be asked; plaintexts that are used again are worth keeping.
            Ok(Model::with_plaintexts(&loaded.program, context, budget, room::MANY)?)
        })?;
        let state = State { model: Some(Arc::new(model)), sessions: BTreeMap::new(), room };
        Ok(Self { program, state: RwLock::new(state), threads })
    }

    /// Takes the evaluation keys of a client: `EvalKeys`, or the path or bytes of a file of them. Returns the id of the client's
    /// secret key, under which its inputs are recognized.
    fn add_keys(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<String> {
        self.read(|_, _| Ok(()))?;
        let keys = self.keys(py, keys)?;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let model = state.model.clone().ok_or_else(closed)?;
        let id = key_name(keys.id());
        // Keys of another program are refused as such, whatever their size.
        let session = Session::new(model, keys.clone()).map_err(Fault::from)?;
        let others = state.sessions.iter().filter(|(other, _)| **other != id);
        let held: u64 = others.map(|(_, session)| session.keys().bytes()).sum();
        state.room.check(held, keys.bytes())?;
        state.sessions.insert(id.clone(), session);
        Ok(id)
    }

    /// Forgets the keys of a client.
    fn remove_keys(&self, key: &str) -> PyResult<()> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match state.sessions.remove(key) {
            Some(_) => Ok(()),
            None => Err(unknown_key(key).into()),
        }
    }

    /// Ids of the clients whose keys are here.
    #[getter]
    fn keys_held(&self) -> Vec<String> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).sessions.keys().cloned().collect()
    }

    /// Evaluates every sample of an encrypted input: `Ciphertexts`, or the path or bytes of a file of them.
    ///
    /// The interpreter's lock is released; Ctrl-C ends it within a layer. `progress` is True for a bar, or a function that is
    /// called with a fraction and the name of the layer.
    #[pyo3(signature = (request, *, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        request: &Bound<'_, PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Ciphertexts> {
        let bytes = bytes_of("request", request)?;
        refuse_secret(Kind::of_magic(&bytes), "request")?;
        let (sessions, context) =
            self.read(|state, model| Ok((state.sessions.clone(), model.context().clone())))?;
        let interface = self.program.program.interface();
        let result = long::run(py, &self.threads, progress, move |watch| {
            let (input, output) = (Expected::input(&interface), Expected::result(&interface));
            let (inputs, asked) = decode_request(Cursor::new(&bytes), bytes.len() as u64, &context, &input)
                .map_err(|error| Fault::format("request", error))?;
            drop(bytes);
            let id = key_name(inputs.key_id);
            let session = sessions.get(&id).ok_or_else(|| unknown_key(&id))?;
            let results = Stored { request: Some(asked.hash), ..evaluate(session, &context, inputs, watch)? };
            let mut bytes = Vec::new();
            encode_ciphertexts(&mut bytes, &context, &output, &results)
                .map_err(|error| Fault::format("result", error))?;
            Ciphertexts::new(bytes, "result")
        })?;
        Ok(result)
    }

    /// Bytes that are planned for: keys that are held, one evaluation, and plaintexts once all that are kept are encoded.
    #[getter]
    fn nbytes(&self) -> PyResult<u64> {
        Ok(self.read(|state, model| {
            let keys: u64 = state.sessions.values().map(|session| session.keys().bytes()).sum();
            Ok(keys + model.working_bytes() + model.plaintext_bytes())
        })?)
    }

    /// Frees keys and plaintexts. Evaluations that run go on to their end; new ones are refused.
    fn close(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.model = None;
        state.sessions.clear();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let name = &self.program.program.spec().origin.model;
        match &state.model {
            Some(_) => format!("<fhec.Server of {name}: keys of {} clients>", state.sessions.len()),
            None => format!("<fhec.Server of {name}: closed>"),
        }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(pyo3::exceptions::PyTypeError::new_err(
            "a Server holds threads and gigabytes: make one in every process from the program's file",
        ))
    }
}

fn unknown_key(key: &str) -> Fault {
    Fault::new(Class::Mismatch, "unknown-key", format!("there are no evaluation keys of key {key} here"))
        .with_remedy("give the client's keys to Server.add_keys first")
        .with_fact("key", key)
}

/// Evaluates every sample in turn.
fn evaluate(session: &Session, context: &Context, inputs: Stored, watch: &Watch) -> Result<Stored, Fault> {
    let (key_id, names, n) = (inputs.key_id, inputs.names, inputs.samples.len());
    let samples = inputs
        .samples
        .into_iter()
        .enumerate()
        .map(|(index, sample)| {
            let sample = sample.into_iter().map(|stored| stored.expand(context)).collect();
            let part = watch.part(index, n);
            let (result, _) = session.evaluate(Input::new(context, key_id, sample), &watch.cancel, &part)?;
            Ok(result.into_iter().map(fhe_files::Stored::Full).collect())
        })
        .collect::<Result<_, Fault>>()?;
    Ok(Stored { names, ..Stored::new(key_id, samples) })
}
