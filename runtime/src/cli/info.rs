//! `fhe-run info`: what a file is.

use std::io::Read;

use fhe_bytecode::codec::INTERFACE_MAGIC;
use fhe_bytecode::{Interface, Keys};
use fhe_files::{Contents, Kind};
use serde_json::{Value, json};

use super::args::{Info, TextFormat};
use super::error::CliError;
use super::print;
use super::program::{Contract, Program};
use super::show::pretty;
use crate::store::{count_evaluation_keys, kind_of, read_contents, read_header};

/// Describes a program, interface, key or ciphertext file.
pub(crate) fn info(args: &Info) -> Result<(), CliError> {
    let fields = match kind_of(&args.file)? {
        Some(kind) => describe_file(args, kind)?,
        None if begins_with(args, &INTERFACE_MAGIC)? => {
            describe_interface(&Contract::load(&args.file)?.interface, "an interface")
        }
        None => describe_program(&Program::load(&args.file)?),
    };
    match args.format {
        TextFormat::Json => {
            print(&pretty(&fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
        }
        TextFormat::Text => print(&text(&fields)),
    }
}

/// Name and value of each field, in the order people want to read them.
type Fields = Vec<(&'static str, Value)>;

fn describe_file(args: &Info, kind: Kind) -> Result<Fields, CliError> {
    let header = read_header(&args.file, kind)?;
    let bytes = std::fs::metadata(&args.file)?.len();
    let mut fields = vec![("kind", json!(kind.to_string())), ("bytes", json!(bytes))];
    match kind {
        Kind::Ciphertexts => fields.extend(describe_ciphertexts(&read_contents(&args.file)?)),
        Kind::EvaluationKeys => fields.push(("evaluation_keys", json!(count_evaluation_keys(&args.file)?))),
        Kind::SecretKey => {}
    }
    fields.extend([
        ("key", json!(header.key_id.to_string())),
        ("parameters", json!(header.parameters.to_string())),
        ("insecure", json!(header.is_insecure)),
    ]);
    Ok(fields)
}

fn describe_ciphertexts(contents: &Contents) -> Fields {
    let mut fields = vec![
        ("holds", json!(contents.role.name())),
        ("samples", json!(contents.n_samples)),
        ("ciphertexts_per_sample", json!(contents.n_ciphertexts)),
        ("program", json!(contents.program.to_string())),
    ];
    fields.extend(contents.request.map(|request| ("answers_request", json!(request.to_string()))));
    if !contents.names.is_empty() {
        fields.push(("names", json!(contents.names)));
    }
    fields
}

fn begins_with(args: &Info, magic: &[u8]) -> Result<bool, CliError> {
    let mut first = Vec::new();
    let read = std::fs::File::open(&args.file).and_then(|file| file.take(8).read_to_end(&mut first));
    read.map_err(|cause| CliError::ReadProgram { path: args.file.clone(), cause })?;
    Ok(first == magic)
}

fn describe_interface(interface: &Interface, kind: &str) -> Fields {
    let (spec, params) = (interface.spec(), interface.params());
    vec![
        ("kind", json!(kind)),
        ("program", json!(interface.program().to_string())),
        ("parameters", json!(params.fingerprint().to_string())),
        ("input", json!(interface.input_layout().shape().to_string())),
        ("batch", json!(interface.batch())),
        ("input_ciphertexts", json!(interface.input_ciphertexts())),
        ("output", json!(interface.output_layout().shape().to_string())),
        ("labels", json!(spec.output.labels.len())),
        ("n", json!(params.n())),
        ("levels", json!(params.max_level().0)),
        ("log2_q", json!(params.log2_q())),
        ("log2_pq", json!(params.log2_pq())),
        ("security_cap_log2_pq", json!(params.security_cap())),
        ("insecure", json!(!params.is_secure())),
        ("rotation_keys", json!(Keys::from(interface).n_rotations())),
        ("key_bytes", json!(interface.key_bytes())),
        // From here on the word of whoever wrote the file.
        ("claimed_model", json!(spec.origin.model)),
        ("claimed_producer", json!(spec.origin.producer)),
        ("claimed_packing", json!(spec.origin.packing)),
        ("claimed_seconds", json!(spec.prediction.seconds)),
        ("claimed_max_abs_error", json!(spec.prediction.max_abs_error)),
    ]
}

/// A program is its interface and the work behind it.
fn describe_program(program: &Program) -> Fields {
    let spec = program.checked.spec();
    let work = [
        ("layers", json!(spec.layers.len())),
        ("instructions", json!(spec.instructions.len())),
        ("working_bytes", json!(program.checked.peak_bytes())),
    ];
    let mut fields = describe_interface(&program.interface, "a program");
    let at = fields.iter().position(|(name, _)| *name == "rotation_keys").unwrap_or(fields.len());
    fields.splice(at..at, work);
    fields
}

/// One line per field.
fn text(fields: &Fields) -> String {
    let line = |(name, value): &(&str, Value)| match value {
        Value::String(text) => format!("{name:24}{text}"),
        Value::Array(items) => format!("{name:24}{}", listed(items)),
        Value::Number(number) if number.is_f64() => {
            format!("{name:24}{:.4}", number.as_f64().unwrap_or_default())
        }
        other => format!("{name:24}{other}"),
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The first of some texts, and how many there are besides.
fn listed(items: &[Value]) -> String {
    const SHOWN: usize = 8;
    let first: Vec<&str> = items.iter().take(SHOWN).filter_map(Value::as_str).collect();
    match items.len().saturating_sub(SHOWN) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
