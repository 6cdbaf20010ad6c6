//! `fhe-run info`: what a file is.

use fhe_files::Kind;
use serde_json::{Value, json};

use super::args::{Info, TextFormat};
use super::error::CliError;
use super::print;
use super::program::Program;
use super::show::pretty;
use crate::store::{kind_of, read_header};

/// Describes a program, key or ciphertext file.
pub(crate) fn info(args: &Info) -> Result<(), CliError> {
    let fields = match kind_of(&args.file)? {
        Some(kind) => describe_file(args, kind)?,
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
    Ok(vec![
        ("kind", json!(kind.to_string())),
        ("bytes", json!(bytes)),
        ("key", json!(header.key_id.to_string())),
        ("parameters", json!(header.parameters.to_string())),
        ("insecure", json!(header.is_insecure)),
    ])
}

fn describe_program(program: &Program) -> Fields {
    let (spec, params) = (program.checked.spec(), program.checked.params());
    vec![
        ("kind", json!("a program")),
        ("program", json!(program.fingerprint.to_string())),
        ("parameters", json!(params.fingerprint().to_string())),
        ("input", json!(program.checked.input_layout().shape().to_string())),
        ("input_ciphertexts", json!(program.checked.input_layout().n_cts())),
        ("output", json!(program.checked.output_layout().shape().to_string())),
        ("labels", json!(spec.output.labels.len())),
        ("n", json!(params.n())),
        ("levels", json!(params.max_level().0)),
        ("log2_q", json!(params.log2_q())),
        ("log2_pq", json!(params.log2_pq())),
        ("security_cap_log2_pq", json!(params.security_cap())),
        ("insecure", json!(!params.is_secure())),
        ("layers", json!(spec.layers.len())),
        ("instructions", json!(spec.instructions.len())),
        ("rotation_keys", json!(spec.rotation_keys.len())),
        ("key_bytes", json!(program.checked.key_bytes())),
        ("working_bytes", json!(program.checked.peak_bytes())),
        // From here on the word of whoever wrote the file.
        ("claimed_model", json!(spec.origin.model)),
        ("claimed_producer", json!(spec.origin.producer)),
        ("claimed_packing", json!(spec.origin.packing)),
        ("claimed_seconds", json!(spec.prediction.seconds)),
        ("claimed_max_abs_error", json!(spec.prediction.max_abs_error)),
    ]
}

/// One line per field.
fn text(fields: &Fields) -> String {
    let line = |(name, value): &(&str, Value)| match value {
        Value::String(text) => format!("{name:24}{text}"),
        Value::Number(number) if number.is_f64() => {
            format!("{name:24}{:.4}", number.as_f64().unwrap_or_default())
        }
        other => format!("{name:24}{other}"),
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}
