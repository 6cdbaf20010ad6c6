//! The client's side: a secret key, what it encrypts and what it decrypts.

mod answers;
mod samples;

use std::path::PathBuf;
use std::sync::Arc;

use fhe_bytecode::{Fingerprint, Interface as Contract, Port};
use fhe_ckks::key_request;
use fhe_client::Told;
use fhe_runtime::store;
use fhe_secret::{SecretKey, SeedSource};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use self::samples::{Digits, decrypted, encrypted};
use crate::ciphertexts::{Ciphertexts, bytes_of};
use crate::fault::{Class, Fault};
use crate::interface::Interface;
use crate::keys::EvalKeys;
use crate::long;
use crate::names::key_name;
use crate::paths::{Source, wrong_type};
use crate::program::Program;
use crate::samples::{Wanted, array, fit, part, samples};
use crate::security;
use crate::threads::COMMON;

/// Encrypts samples for a program and decrypts its results. Holds the secret key: it cannot be copied, pickled or printed.
///
/// A new client makes a new key. `save` writes it to a file that only its owner can read, `Client.load` reads it again.
///
/// Args:
///     interface: an `Interface`, a `Program`, or the path of a .fhei or .fhebc file.
///     insecure: accept parameters that protect nothing, for tests.
#[pyclass(frozen, module = "fhec")]
pub(crate) struct Client {
    inner: Arc<fhe_client::Client>,
}

/// The interface in what the user gave.
fn interface<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Interface>> {
    if let Ok(interface) = given.downcast::<Interface>() {
        return Ok(interface.clone());
    }
    let found = match given.downcast::<Program>() {
        Ok(program) => program.getattr("interface")?,
        Err(_) if Source::new(given).is_some() => {
            given.py().get_type::<Interface>().call_method1("load", (given,))?
        }
        Err(_) => return Err(wrong_type("interface", given, "an Interface, a Program or a path")),
    };
    Ok(found.downcast_into::<Interface>()?)
}

impl Client {
    fn with_key(
        py: Python<'_>,
        given: &Bound<'_, PyAny>,
        key: impl FnOnce(&fhe_ckks::Context) -> Result<(SecretKey, Option<Fingerprint>), Fault> + Send + 'static,
        insecure: Option<bool>,
    ) -> PyResult<Self> {
        let interface = interface(given)?;
        if let Some(insecure) = insecure {
            security::check(interface.get().inner.params(), insecure)?;
        }
        let (contract, context) = (interface.get().inner.clone(), interface.get().context()?);
        let program = contract.program();
        let (inner, made_for) = long::run(py, &COMMON, None, move |_| {
            let (key, made_for) = key(&context)?;
            Ok((fhe_client::Client::new(contract, context, key)?, made_for))
        })?;
        if let Some(other) = made_for.filter(|made_for| *made_for != program) {
            let text = format!(
                "the secret key was made for program {other}, and is used with {program}, of the same parameters"
            );
            py.import("fhec._errors")?.call_method1("doubt", (text,))?;
        }
        Ok(Self { inner: Arc::new(inner) })
    }

    fn contract(&self) -> &Contract {
        self.inner.interface()
    }

    /// What results say; warns of what is not to be trusted, and of scores.
    fn read(
        &self,
        py: Python<'_>,
        result: &Bound<'_, PyAny>,
        request: Option<&Bound<'_, PyAny>>,
        digits: Digits,
    ) -> PyResult<Vec<Told>> {
        let bytes = bytes_of("result", result)?;
        let request = request.map(|request| bytes_of("request", request)).transpose()?;
        let inner = self.inner.clone();
        let found = long::run(py, &COMMON, None, move |watch| {
            decrypted(&inner, &bytes, request.as_deref(), digits, watch)
        })?;
        answers::warn(py, &found, digits != Digits::None)?;
        Ok(found)
    }
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (interface, *, insecure=false))]
    fn new(py: Python<'_>, interface: &Bound<'_, PyAny>, insecure: bool) -> PyResult<Self> {
        let key =
            |context: &fhe_ckks::Context| Ok((SecretKey::generate(context, &mut SeedSource::os())?, None));
        Self::with_key(py, interface, key, Some(insecure))
    }

    /// A client with the secret key in a file, as `save` or `fhe-run keygen` wrote it. A key that was made for another program of
    /// the same parameters gives an `fhec.DoubtWarning`.
    #[staticmethod]
    fn load(py: Python<'_>, interface: &Bound<'_, PyAny>, path: PathBuf) -> PyResult<Self> {
        Self::with_key(py, interface, move |context| Ok(store::read_secret_key(&path, context)?), None)
    }

    /// Writes the secret key to a new file that only its owner can read. A file that is there already is never replaced.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let (context, program) = (self.inner.context(), self.contract().program());
        Ok(store::write_secret_key(&path, context, self.inner.key(), program).map_err(Fault::from)?)
    }

    /// Id of the secret key: a random number that says nothing about it.
    #[getter]
    fn key(&self) -> String {
        key_name(self.inner.key().id())
    }

    /// The interface of the program that it encrypts for.
    #[getter]
    fn interface(&self) -> Interface {
        Interface::new(self.contract().clone(), Some(self.inner.context().clone()))
    }

    /// Makes the evaluation keys that a server needs, in memory. Fresh ones every time: one call for each server.
    #[pyo3(signature = (*, progress=None))]
    fn eval_keys(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<EvalKeys> {
        let inner = self.inner.clone();
        long::run(py, &COMMON, progress, move |watch| {
            let (context, key) = (inner.context(), inner.key());
            let request = key_request(context, inner.interface().as_ref());
            let (n, mut seeds) = (request.len(), SeedSource::os());
            let mut keys = Vec::with_capacity(n);
            for (done, (key_use, level)) in request.iter().enumerate() {
                watch.tell(Some(done as f64 / n as f64), format!("key {} of {n}", done + 1));
                keys.push((key_use, key.evaluation_key(context, (key_use, level), &mut seeds)?));
            }
            let keys = fhe_ckks::EvaluationKeys::from_parts(context, key.id(), keys);
            Ok(EvalKeys { context: context.clone(), keys: Arc::new(keys) })
        })
    }

    /// Makes the evaluation keys and writes them to a file one by one, so that only one is in memory: as `fhe-run keygen` does.
    #[pyo3(signature = (path, *, progress=None))]
    fn save_eval_keys(
        &self,
        py: Python<'_>,
        path: PathBuf,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let inner = self.inner.clone();
        long::run(py, &COMMON, progress, move |watch| {
            let request = key_request(inner.context(), inner.interface().as_ref());
            let mut told = |part: f64| watch.tell(Some(part), format!("of {} keys", request.len()));
            let (context, key) = (inner.context(), inner.key());
            Ok(store::generate_evaluation_keys(
                &path,
                context,
                key,
                &request,
                &mut SeedSource::os(),
                &mut told,
            )?)
        })
    }

    /// Encrypts samples: an array, or the paths of files and folders that `fhe-run encrypt` reads.
    ///
    /// Arrays are [samples, channels, height, width], or one sample without the first axis; channels may come last where that is
    /// not ambiguous. uint8 are pixels, which get the model's normalization; float32 and float64 are inputs of the model as
    /// they are.
    ///
    /// Args:
    ///     x: the samples. A model of several inputs takes a dictionary with an array for each, or an .npz file of them.
    ///     model_input: of a model with several inputs, encrypt this one alone; `Interface.join` puts them together.
    ///     resize: stretch pictures in files to the model's size, if they have another.
    ///     any_range: encrypt numbers far outside those that the model was calibrated on, too; scores then mean little.
    ///
    /// Numbers a little outside them give an `fhec.DoubtWarning`: the error bound is not for them.
    #[pyo3(signature = (x, *, model_input=None, resize=false, any_range=false))]
    fn encrypt(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        model_input: Option<&str>,
        resize: bool,
        any_range: bool,
    ) -> PyResult<Ciphertexts> {
        let wanted = Wanted::new(self.contract().input_layout().shape(), self.contract().input());
        let chosen = model_input.map(|name| port_named(self.contract(), name)).transpose()?;
        let given = match &chosen {
            None => samples(x, wanted, fit(resize))?,
            Some((_, port)) => part(x, port, wanted)?,
        };
        let inner = self.inner.clone();
        let (encrypted, outside) = long::run(py, &COMMON, None, move |watch| {
            let part = chosen.as_ref().map(|(index, port)| (*index, port));
            encrypted(&inner, &given, part, any_range, watch)
        })?;
        if let Some(outside) = outside {
            py.import("fhec._errors")?.call_method1("doubt", (outside,))?;
        }
        Ok(encrypted)
    }

    /// Decrypts results: a list with an `Answer` for every sample, or an array of [samples, scores] where scores are asked for.
    ///
    /// An answer has the class and its label, a coarse confidence, and whether the noise leaves it undecided. `scores=True` gives
    /// scores in its place, rounded to the digits that mean something, with an `fhec.ScoresWarning`: they are decrypted values
    /// and must not reach the server. Digits below the noise give the secret key away to whoever gets them together with the
    /// ciphertexts; `raw=True` gives them nevertheless, for measuring errors with keys that protect nothing else.
    ///
    /// `request` is what the result has to answer: one that answers another request is refused.
    ///
    /// A score where no score of the calibration lay, or that may have wrapped around, gives an `fhec.DoubtWarning`.
    #[pyo3(signature = (result, *, request=None, scores=false, raw=false))]
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        result: &Bound<'py, PyAny>,
        request: Option<&Bound<'py, PyAny>>,
        scores: bool,
        raw: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let digits = match (raw, scores) {
            (true, _) => Digits::All,
            (false, true) => Digits::Rounded,
            (false, false) => Digits::None,
        };
        let told = self.read(py, result, request, digits)?;
        if digits == Digits::None {
            return answers::all(py, told);
        }
        let rows: Vec<Vec<f64>> = told.into_iter().filter_map(|told| told.scores).collect();
        array(py, &rows, self.contract().output_layout().shape().len())
    }

    /// Decrypts results to what they say: a list with an `Answer` for every sample, as `fhe-run decrypt` shows it.
    ///
    /// With `scores=True` answers have the rounded scores, what is wrong with each, and the outputs of the model where they are
    /// more or other than the scores, such as probabilities after a softmax; see `decrypt` for what they risk and for `request`.
    #[pyo3(signature = (result, *, request=None, scores=false))]
    fn answers<'py>(
        &self,
        py: Python<'py>,
        result: &Bound<'py, PyAny>,
        request: Option<&Bound<'py, PyAny>>,
        scores: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let digits = if scores { Digits::Rounded } else { Digits::None };
        let told = self.read(py, result, request, digits)?;
        answers::all(py, told)
    }

    fn __repr__(&self) -> String {
        format!("<fhec.Client with key {}…>", &self.key()[..8])
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(secret())
    }

    fn __getstate__(&self) -> PyResult<()> {
        Err(secret())
    }

    fn __copy__(&self) -> PyResult<()> {
        Err(secret())
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(secret())
    }
}

/// One of the model's inputs, with its position among them.
fn port_named(contract: &Contract, name: &str) -> Result<(u32, Port), Fault> {
    let ports = &contract.input().ports;
    (0u32..).zip(ports.iter().cloned()).find(|(_, port)| port.name == name).ok_or_else(|| {
        let known: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        Fault::new(
            Class::Data,
            "no-such-input",
            format!("the model has no input {name}, but {}", known.join(", ")),
        )
        .with_remedy("give one of these names; a model with one input needs no model_input")
        .with_fact("wanted", known)
    })
}

/// Why a client stays where it is.
fn secret() -> PyErr {
    PyTypeError::new_err(
        "a Client holds a secret key and is neither pickled nor copied: save the key to a file of its own with Client.save",
    )
}
