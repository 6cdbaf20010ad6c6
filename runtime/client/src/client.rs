//! The client's side of a program: what to encrypt, and what a decrypted result means.

use std::sync::Arc;

use fhe_bytecode::CheckedProgram;

use fhe_ckks::{Ciphertext, Context, SeededCiphertext};
use fhe_secret::{SecretKey, SeedSource};

use super::error::ClientError;

/// A program's input and output under one secret key.
pub struct Client<'p> {
    program: &'p CheckedProgram,
    context: Arc<Context>,
    key: SecretKey,
}

impl<'p> Client<'p> {
    /// A client with an existing key.
    ///
    /// # Errors
    /// If the context is for other parameters than the program's.
    pub fn new(
        program: &'p CheckedProgram,
        context: Arc<Context>,
        key: SecretKey,
    ) -> Result<Self, ClientError> {
        let (found, expected) = (context.params().fingerprint(), program.params().fingerprint());
        match found == expected {
            true => Ok(Self { program, context, key }),
            false => Err(ClientError::WrongParameters { found, expected }),
        }
    }

    /// The secret key.
    pub fn key(&self) -> &SecretKey {
        &self.key
    }

    /// Encrypts one input tensor in `[channel, y, x]` order; an ensemble gets one copy per member.
    ///
    /// # Errors
    /// If the tensor has another size, a value cannot be encoded, or there is no randomness.
    pub fn encrypt(
        &self,
        tensor: &[f64],
        seeds: &mut SeedSource,
    ) -> Result<Vec<SeededCiphertext>, ClientError> {
        let slots = input_slots(self.program, tensor)?;
        let input = &self.program.spec().input;
        slots
            .iter()
            .map(|slots| {
                let plain = self.context.encoder().encode(slots, input.scale, input.level)?;
                Ok(self.key.encrypt(&self.context, &plain, seeds)?)
            })
            .collect()
    }

    /// Decrypts one result to the output tensor; members that are still apart are averaged.
    ///
    /// # Errors
    /// If there are not as many ciphertexts as the output layout has.
    pub fn decrypt(&self, result: &[Ciphertext]) -> Result<Vec<f64>, ClientError> {
        let expected = self.program.output_layout().n_cts();
        if result.len() != expected {
            return Err(ClientError::ResultCount { found: result.len(), expected });
        }
        let slots = result
            .iter()
            .map(|ciphertext| self.key.decrypt(&self.context, ciphertext))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(output_tensor(self.program, &slots))
    }
}

/// The slots of a program's input for one tensor.
fn input_slots(program: &CheckedProgram, tensor: &[f64]) -> Result<Vec<Vec<f64>>, ClientError> {
    let layout = program.input_layout();
    let expected = layout.shape().len();
    if tensor.len() != expected {
        return Err(ClientError::TensorLength { found: tensor.len(), expected });
    }
    Ok(layout.scatter(&tensor.repeat(layout.members())))
}

/// The output tensor in the slots of a result; members that are still apart are averaged.
fn output_tensor(program: &CheckedProgram, slots: &[Vec<f64>]) -> Vec<f64> {
    average_members(program, &program.output_layout().gather(slots))
}

/// The mean over members of a tensor in (member, channel, y, x) order.
pub fn average_members(program: &CheckedProgram, all: &[f64]) -> Vec<f64> {
    let layout = program.output_layout();
    let (len, members) = (layout.shape().len(), layout.members());
    (0..len).map(|i| (0..members).map(|m| all[m * len + i]).sum::<f64>() / members as f64).collect()
}
