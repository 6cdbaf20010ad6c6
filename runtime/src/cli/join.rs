//! `fhe-run join`: inputs that were encrypted one by one become the input of a program.
//!
//! Each has its numbers at its own positions and zeros elsewhere, so their sum is the encrypted input. It has the noise of as
//! many fresh ciphertexts, which programs of models with several inputs allow for.

use std::path::Path;

use fhe_bytecode::Port;
use fhe_ckks::{Context, Evaluator};
use fhe_files::{Ciphertexts, Expected, Role, Stored};
use serde_json::json;

use super::args::Join;
use super::error::CliError;
use super::program::Contract;
use super::steps::different;
use super::sum_up;
use crate::store;

/// Adds inputs that were encrypted one by one.
pub(crate) fn join(args: &Join, quiet: bool) -> Result<(), CliError> {
    for path in &args.parts {
        different(path, &args.output)?;
    }
    store::check_ciphertexts(&args.output)?;
    let program = Contract::load(&args.program)?;
    let one = program.interface.of_one();
    let ports = &one.input().ports;
    // Which input every file has is known before anything large is read.
    let found = args.parts.iter().map(|path| port_of(path, ports)).collect::<Result<Vec<u32>, _>>()?;
    let name = |port: u32| ports[port as usize].name.as_str();
    for (i, (path, port)) in args.parts.iter().zip(&found).enumerate() {
        if let Some(first) = found[..i].iter().position(|other| other == port) {
            let reason = format!("has input {}, as {} does", name(*port), args.parts[first].display());
            return Err(CliError::NotJoined { path: path.clone(), reason });
        }
    }
    let missing: Vec<&str> =
        (0u32..).take(ports.len()).filter(|port| !found.contains(port)).map(name).collect();
    if !missing.is_empty() {
        let reason = format!("no file has input {}", missing.join(", "));
        return Err(CliError::NotJoined { path: args.output.clone(), reason });
    }
    let context = Context::new(program.interface.params().clone())?;
    let mut sum: Option<Ciphertexts> = None;
    for (path, port) in args.parts.iter().zip(found) {
        let part = store::read_ciphertexts(path, &context, &Expected::part(&program.interface, port))?;
        sum = Some(match sum {
            None => part,
            Some(sum) => added(&context, sum, part, path)?,
        });
    }
    let sum = sum.expect("the command line asks for a file at least");
    store::write_ciphertexts(&args.output, &context, &Expected::input(&program.interface), &sum)?;
    let (n_inputs, n_samples) = (ports.len(), sum.samples.len());
    let words = format!("{}: {n_samples} sample(s) joined from {n_inputs} inputs", args.output.display());
    let fields = json!({ "output": args.output, "samples": n_samples, "inputs": n_inputs, "key": sum.key_id.to_string() });
    sum_up(args.summary.format, quiet, &words, &fields)
}

/// The input that a file has, by its position among the model's.
fn port_of(path: &Path, ports: &[Port]) -> Result<u32, CliError> {
    let refused =
        |reason: &str| Err(CliError::NotJoined { path: path.to_path_buf(), reason: reason.to_owned() });
    match store::read_role(path)? {
        Role::Part(port) if (port as usize) < ports.len() => Ok(port),
        Role::Part(_) => refused("has an input that this program does not have"),
        Role::Input => refused("is a whole input already"),
        Role::Result => refused("is a result"),
    }
}

/// Sample by sample the sum of what two files have.
fn added(
    context: &Context,
    sum: Ciphertexts,
    part: Ciphertexts,
    path: &Path,
) -> Result<Ciphertexts, CliError> {
    let refused = |reason: String| CliError::NotJoined { path: path.to_path_buf(), reason };
    if part.key_id != sum.key_id {
        return Err(refused(format!(
            "belongs to key {}, and files before it to key {}",
            part.key_id, sum.key_id
        )));
    }
    if part.samples.len() != sum.samples.len() {
        let (n, before) = (part.samples.len(), sum.samples.len());
        return Err(refused(format!("has {n} samples, and files before it have {before}")));
    }
    let evaluator = Evaluator::new(context);
    let add = |(a, b): (Stored, Stored)| {
        let mut total = a.expand(context);
        evaluator.add_assign(&mut total, &b.expand(context))?;
        Ok(Stored::Full(total))
    };
    let samples = sum.samples.into_iter().zip(part.samples);
    let samples = samples
        .map(|(a, b)| a.into_iter().zip(b).map(add).collect())
        .collect::<Result<Vec<Vec<Stored>>, CliError>>()?;
    // Names are one for each sample; the first file's are as good as the others'.
    let names = if sum.names.is_empty() { part.names } else { sum.names };
    Ok(Ciphertexts { samples, names, ..Ciphertexts::new(sum.key_id, Vec::new()) })
}
