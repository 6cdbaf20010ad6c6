//! What goes wrong, as exceptions: a class, a code that stays the same whatever the words are, the facts, and a remedy.
//!
//! Words and remedies are those of the commands, so a message found in docs/errors.md helps here as well.

use std::path::Path;

use fhe_bytecode::DecodeError;
use fhe_ckks::CkksError;
use fhe_diagnostics::{chain, remedy};
use fhe_files::FormatError;
use fhe_host::WriteError;
use fhe_input::{InputError, InputErrorKind};
use fhe_machine::VmError;
use fhe_runtime::store::{FileError, FileErrorKind};
use fhec::CompileError;
use fhec::diagnostics::{Diagnostic, Kind, Words};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

/// The classes of `fhec._errors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Model,
    Usage,
    Data,
    File,
    Mismatch,
    Resource,
    Bug,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Self::Model => "ModelError",
            Self::Usage => "UsageError",
            Self::Data => "DataError",
            Self::File => "FileError",
            Self::Mismatch => "MismatchError",
            Self::Resource => "ResourceError",
            Self::Bug => "InternalError",
        }
    }
}

/// An exception that is not raised yet.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    class: Class,
    code: &'static str,
    what: String,
    remedy: String,
    facts: Map<String, Value>,
}

impl Fault {
    pub(crate) fn new(class: Class, code: &'static str, what: String) -> Self {
        Self { class, code, what, remedy: String::new(), facts: Map::new() }
    }

    pub(crate) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }

    pub(crate) fn with_fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// Says what it is about, before what is wrong with it.
    pub(crate) fn about(self, name: &str) -> Self {
        Self { what: format!("{name}: {}", self.what), ..self }
    }

    /// Something only we can repair.
    pub(crate) fn bug(what: String) -> Self {
        Self::new(Class::Bug, "bug", what).with_remedy(remedy::BUG)
    }

    /// What the compiler says about a model.
    pub(crate) fn compile(model: &str, error: &CompileError) -> Self {
        let Diagnostic { kind, what, places, help } = Diagnostic::compile(model, error);
        let class = match (error, kind) {
            (CompileError::Calibration { .. } | CompileError::NoCalibration, _) => Class::Data,
            (_, Kind::Cannot) => Class::Model,
            (_, Kind::Usage) => Class::Usage,
            (_, Kind::Bug) => Class::Bug,
        };
        let places: Vec<Value> = places
            .iter()
            .map(|place| json!({ "at": place.at, "why": place.why, "remedy": place.help }))
            .collect();
        let text = match places.is_empty() {
            true => what,
            // The message of an exception stands alone, so it names the places as the command does.
            false => Diagnostic { help: None, ..Diagnostic::compile(model, error) }
                .to_string()
                .trim_start_matches("error: ")
                .to_owned(),
        };
        let remedy = help
            .or_else(|| places.first().and_then(|p| Some(p["remedy"].as_str()?.to_owned())))
            .unwrap_or_default();
        let fault = Self::new(class, error.code(), text).with_remedy(remedy).with_fact("model", model);
        if places.is_empty() { fault } else { fault.with_fact("places", places) }
    }

    /// A file, or bytes called `name`, that holds no program or interface.
    pub(crate) fn decode(name: &str, error: &DecodeError) -> Self {
        let (code, remedy) = match error {
            DecodeError::NotAProgram => {
                ("no-program", "give a .fhebc file, as `fhec build` or Program.save writes it")
            }
            DecodeError::NotAnInterface => {
                ("no-interface", "give a .fhei or .fhebc file, as `fhec build` or save writes it")
            }
            DecodeError::Version(_) | DecodeError::InterfaceVersion(_) => {
                ("later-release", "use a newer release of fhec")
            }
            _ => ("program-damaged", "copy the file again, or compile the model again"),
        };
        Self::new(Class::File, code, format!("{name}: {error}")).with_remedy(remedy).with_fact("file", name)
    }

    /// Samples, in the file or array called `name`.
    pub(crate) fn input(name: &str, error: &InputErrorKind) -> Self {
        let (code, facts) = match error {
            InputErrorKind::WrongShape { found, wanted } => (
                "shape",
                vec![
                    ("found", json!(found)),
                    ("wanted", json!([wanted.channels, wanted.height, wanted.width])),
                ],
            ),
            InputErrorKind::WrongSize { width, height, wanted } => (
                "shape",
                vec![
                    ("found", json!([height, width])),
                    ("wanted", json!([wanted.channels, wanted.height, wanted.width])),
                ],
            ),
            InputErrorKind::NotAClass { index, number } => {
                ("no-class", vec![("index", json!(index)), ("number", json!(number))])
            }
            InputErrorKind::NotLabels { found } => ("no-labels", vec![("found", json!(found))]),
            InputErrorKind::NotFinite { number } => {
                ("not-finite", vec![("number", json!(number.to_string()))])
            }
            _ => ("samples-unreadable", Vec::new()),
        };
        let fault =
            Self::new(Class::Data, code, format!("{name}: {error}")).with_remedy(remedy::input(error));
        facts.into_iter().fold(fault, |fault, (name, value)| fault.with_fact(name, value))
    }

    /// Bytes of keys or ciphertexts, called `name`.
    pub(crate) fn format(name: &str, error: FormatError) -> Self {
        let path = Path::new(name).to_path_buf();
        FileError { path, kind: FileErrorKind::Format(error) }.into()
    }
}

impl From<FileError> for Fault {
    fn from(error: FileError) -> Self {
        let (class, code) = match &error.kind {
            FileErrorKind::Io(_) | FileErrorKind::Format(FormatError::Io(_)) => {
                (Class::File, "file-unreadable")
            }
            FileErrorKind::Write(WriteError::Exists) => (Class::File, "file-exists"),
            FileErrorKind::Write(_) => (Class::File, "file-not-written"),
            FileErrorKind::Format(FormatError::WrongKind { .. } | FormatError::WrongRole { .. }) => {
                (Class::File, "other-kind")
            }
            FileErrorKind::Format(FormatError::UnsupportedVersion { .. }) => (Class::File, "later-release"),
            FileErrorKind::Format(FormatError::WrongParameters { .. }) => {
                (Class::Mismatch, "other-parameters")
            }
            FileErrorKind::Format(FormatError::WrongProgram { .. }) => (Class::Mismatch, "other-program"),
            FileErrorKind::Format(
                FormatError::WrongRequest { .. } | FormatError::WrongSamples { .. } | FormatError::NoRequest,
            ) => (Class::Mismatch, "other-request"),
            FileErrorKind::WrongKey { .. } | FileErrorKind::Format(FormatError::WrongKey { .. }) => {
                (Class::Mismatch, "other-key")
            }
            FileErrorKind::SecretReadable { .. } => (Class::File, "secret-readable"),
            _ => (Class::File, "file-damaged"),
        };
        let remedy = match code {
            "other-key" => "use the Client that encrypted the request, or the key file that it saved",
            _ => error.kind.help(),
        };
        Self::new(class, code, error.to_string())
            .with_remedy(remedy)
            .with_fact("file", error.path.display().to_string())
    }
}

impl From<InputError> for Fault {
    fn from(error: InputError) -> Self {
        let name = error.path.display().to_string();
        Self::input(&name, &error.kind).with_fact("file", name)
    }
}

impl From<VmError> for Fault {
    fn from(error: VmError) -> Self {
        let (class, code) = match &error {
            VmError::MissingKey { .. } => (Class::Mismatch, "missing-key"),
            VmError::WrongParameters { .. } => (Class::Mismatch, "other-parameters"),
            VmError::WrongKey { .. } => (Class::Mismatch, "other-key"),
            VmError::InputCount { .. } | VmError::InputForm { .. } | VmError::TensorLength { .. } => {
                (Class::Mismatch, "other-program")
            }
            VmError::TooLittleMemory { .. } => (Class::Resource, "memory"),
            VmError::Cancelled => (Class::Usage, "cancelled"),
            VmError::Ckks(_) => (Class::Data, "not-encodable"),
            _ => (Class::Bug, "bug"),
        };
        let facts = match &error {
            VmError::TooLittleMemory { needed, keys, working, budget } => {
                vec![("needed", *needed), ("keys", *keys), ("working", *working), ("budget", *budget)]
            }
            _ => Vec::new(),
        };
        let fault = Self::new(class, code, chain(&error)).with_remedy(machine_remedy(&error));
        facts.into_iter().fold(fault, |fault, (name, bytes)| fault.with_fact(name, bytes))
    }
}

fn machine_remedy(error: &VmError) -> &'static str {
    match error {
        VmError::MissingKey { .. } | VmError::WrongParameters { .. } => {
            "make keys for this program: Client(program.interface)"
        }
        VmError::WrongKey { .. } => "use the secret key and the evaluation keys of one Client",
        VmError::InputCount { .. } | VmError::InputForm { .. } | VmError::TensorLength { .. } => {
            "encrypt the input for this very program"
        }
        VmError::TooLittleMemory { .. } => {
            "allow more memory, or compile with less: fhec.compile(..., memory=...)"
        }
        VmError::Cancelled => "start again",
        VmError::Ckks(_) => "encrypt values that the model was trained on",
        _ => remedy::BUG,
    }
}

impl From<CkksError> for Fault {
    fn from(error: CkksError) -> Self {
        let remedy = "check that the machine has randomness, and report it if it has";
        Self::new(Class::Resource, "scheme", error.to_string()).with_remedy(remedy)
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        Python::with_gil(|py| raised(py, &fault).unwrap_or_else(|error| error))
    }
}

fn raised(py: Python<'_>, fault: &Fault) -> PyResult<PyErr> {
    let facts =
        py.import("json")?.call_method1("loads", (Value::Object(fault.facts.clone()).to_string(),))?;
    let class = py.import("fhec._errors")?.getattr(fault.class.name())?;
    Ok(PyErr::from_value(class.call1((&fault.what, fault.code, &fault.remedy, facts))?))
}
