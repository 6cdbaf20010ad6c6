//! Inputs that were encrypted one by one become the input of a program.
//!
//! Each has its numbers at its own positions and zeros elsewhere, so their sum is the encrypted input. It has the noise of as
//! many fresh ciphertexts, which programs of models with several inputs allow for. No secret is needed.

use fhe_bytecode::Port;
use fhe_ckks::{CkksError, Context, Evaluator};
use fhe_files::{Ciphertexts, Role, Stored};

/// Why parts do not make a whole input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// One of the parts does not fit.
    #[error("{reason}")]
    Part {
        /// Which one, counted from zero.
        index: usize,
        /// Why.
        reason: String,
    },
    /// An input that no part has.
    #[error("no part has input {0}")]
    Missing(String),
    /// The scheme.
    #[error(transparent)]
    Ckks(#[from] CkksError),
}

/// Which of the model's inputs each part has; every input must be there once.
///
/// # Errors
/// If one is missing, there twice, or no part of an input.
pub fn inputs_of(ports: &[Port], roles: &[Role]) -> Result<Vec<u32>, JoinError> {
    let mut found: Vec<u32> = Vec::with_capacity(roles.len());
    for (index, role) in roles.iter().enumerate() {
        let refused = |reason: String| JoinError::Part { index, reason };
        let port = match role {
            Role::Part(port) if (*port as usize) < ports.len() => *port,
            Role::Part(_) => return Err(refused("has an input that this program does not have".into())),
            Role::Input => return Err(refused("is a whole input already".into())),
            Role::Result => return Err(refused("is a result".into())),
        };
        if found.contains(&port) {
            let name = &ports[port as usize].name;
            return Err(refused(format!("has input {name}, as one before it does")));
        }
        found.push(port);
    }
    let missing: Vec<&str> = (0u32..)
        .zip(ports)
        .filter(|(port, _)| !found.contains(port))
        .map(|(_, port)| port.name.as_str())
        .collect();
    match missing.is_empty() {
        true => Ok(found),
        false => Err(JoinError::Missing(missing.join(", "))),
    }
}

/// Sample by sample the sum of a part, the one at `index`, and what is joined already.
///
/// # Errors
/// If it has another key or another number of samples.
pub fn joined(
    context: &Context,
    sum: Option<Ciphertexts>,
    part: Ciphertexts,
    index: usize,
) -> Result<Ciphertexts, JoinError> {
    let Some(sum) = sum else { return Ok(part) };
    let refused = |reason: String| JoinError::Part { index, reason };
    if part.key_id != sum.key_id {
        let (own, before) = (part.key_id, sum.key_id);
        return Err(refused(format!("belongs to key {own}, and what is before it to key {before}")));
    }
    if part.samples.len() != sum.samples.len() {
        let (n, before) = (part.samples.len(), sum.samples.len());
        return Err(refused(format!("has {n} samples, and what is before it has {before}")));
    }
    let add = |(a, b): (Stored, Stored)| {
        let mut total = a.expand(context);
        let evaluator = Evaluator::new(context.at(total.level()));
        evaluator.add_assign(&mut total, &b.expand(context))?;
        Ok(Stored::Full(total))
    };
    let samples = sum.samples.into_iter().zip(part.samples);
    let samples = samples
        .map(|(a, b)| a.into_iter().zip(b).map(add).collect())
        .collect::<Result<Vec<Vec<Stored>>, JoinError>>()?;
    // Names are one for each sample; the first part's are as good as the others'.
    let names = if sum.names.is_empty() { part.names } else { sum.names };
    Ok(Ciphertexts { samples, names, ..Ciphertexts::new(sum.key_id, Vec::new()) })
}
