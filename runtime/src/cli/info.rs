//! `fhe-run info`: what a file is.

use serde_json::{Value, json};

use super::args::{Info, TextFormat};
use super::error::CliError;
use super::print;
use super::program::Program;
use super::show::pretty;
use crate::files::{Kind, kind_of, read_header};

/// Describes a program, key or ciphertext file.
pub(crate) fn info(args: &Info) -> Result<(), CliError> {
    let description = match kind_of(&args.file)? {
        Some(kind) => describe_file(args, kind)?,
        None => describe_program(&Program::load(&args.file)?),
    };
    match args.format {
        TextFormat::Json => print(&pretty(&description)),
        TextFormat::Text => print(&text(&description)),
    }
}

fn describe_file(args: &Info, kind: Kind) -> Result<Value, CliError> {
    let header = read_header(&args.file, kind)?;
    let bytes = std::fs::metadata(&args.file)?.len();
    Ok(json!({
        "kind": kind.to_string(),
        "bytes": bytes,
        "key": header.key_id.to_string(),
        "parameters": header.parameters.to_string(),
        "insecure": header.is_insecure,
    }))
}

fn describe_program(program: &Program) -> Value {
    let (spec, params) = (program.checked.spec(), program.checked.params());
    json!({
        "kind": "a program",
        "model": spec.origin.model,
        "producer": spec.origin.producer,
        "packing": spec.origin.packing,
        "program": program.fingerprint.to_string(),
        "parameters": params.fingerprint().to_string(),
        "input": program.checked.input_layout().shape().to_string(),
        "input_ciphertexts": program.checked.input_layout().n_cts(),
        "output": program.checked.output_layout().shape().to_string(),
        "labels": spec.output.labels.len(),
        "n": params.n(),
        "levels": params.max_level().0,
        "log2_q": params.log2_q(),
        "log2_pq": params.log2_pq(),
        "security_cap_log2_pq": params.security_cap(),
        "insecure": !params.is_secure(),
        "layers": spec.layers.len(),
        "instructions": spec.instructions.len(),
        "rotation_keys": spec.rotation_keys.len(),
        "key_bytes": spec.prediction.key_bytes,
        "predicted_seconds": spec.prediction.seconds,
        "predicted_max_abs_error": spec.prediction.max_abs_error,
    })
}

/// One line per field.
fn text(description: &Value) -> String {
    let fields = description.as_object().into_iter().flatten();
    let line = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name:24}{text}"),
        Value::Number(number) if number.is_f64() => {
            format!("{name:24}{:.4}", number.as_f64().unwrap_or_default())
        }
        other => format!("{name:24}{other}"),
    };
    fields.map(line).collect::<Vec<_>>().join("\n")
}
