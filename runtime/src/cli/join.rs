//! `fhe-run join`: files of inputs that were encrypted one by one become the input of a program.

use fhe_ckks::Context;
use fhe_files::{Ciphertexts, Expected, Role};
use serde_json::json;

use super::args::Join;
use super::error::CliError;
use super::program::Contract;
use super::steps::different;
use super::sum_up;
use crate::join::{JoinError, inputs_of, joined};
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
    let refused = |error: JoinError| match error {
        JoinError::Part { index, reason } => CliError::NotJoined { path: args.parts[index].clone(), reason },
        JoinError::Missing(names) => {
            CliError::NotJoined { path: args.output.clone(), reason: format!("no file has input {names}") }
        }
        JoinError::Ckks(error) => error.into(),
    };
    // Which input every file has is known before anything large is read.
    let roles = args.parts.iter().map(|path| store::read_role(path)).collect::<Result<Vec<Role>, _>>()?;
    let inputs = inputs_of(ports, &roles).map_err(refused)?;
    let context = Context::new(program.interface.params().clone())?;
    let mut sum: Option<Ciphertexts> = None;
    for (index, (path, input)) in args.parts.iter().zip(inputs).enumerate() {
        let part = store::read_ciphertexts(path, &context, &Expected::part(&program.interface, input))?;
        sum = Some(joined(&context, sum, part, index).map_err(refused)?);
    }
    let sum = sum.expect("the command line asks for a file at least");
    store::write_ciphertexts(&args.output, &context, &Expected::input(&program.interface), &sum)?;
    let (n_inputs, n_samples) = (ports.len(), sum.samples.len());
    let words = format!("{}: {n_samples} sample(s) joined from {n_inputs} inputs", args.output.display());
    let fields = json!({ "output": args.output, "samples": n_samples, "inputs": n_inputs, "key": sum.key_id.to_string() });
    sum_up(args.summary.format, quiet, &words, &fields)
}
