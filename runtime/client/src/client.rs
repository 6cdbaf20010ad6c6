//! The client's side of a program: what to encrypt, and what a decrypted result means.

use std::sync::Arc;

use fhe_bytecode::{Interface, Layout};

use fhe_ckks::{Ciphertext, Context, SeededCiphertext};
use fhe_secret::{SecretKey, SeedSource};
use zeroize::Zeroizing;

use super::answer::Answer;
use super::error::ClientError;

/// A program's input and output under one secret key. It knows the program's interface and nothing else of it.
pub struct Client {
    interface: Arc<Interface>,
    context: Arc<Context>,
    key: SecretKey,
}

impl Client {
    /// A client with an existing key.
    ///
    /// # Errors
    /// If the context is for other parameters than the interface's.
    pub fn new(
        interface: Arc<Interface>,
        context: Arc<Context>,
        key: SecretKey,
    ) -> Result<Self, ClientError> {
        let (found, expected) = (context.params().fingerprint(), interface.params().fingerprint());
        match found == expected {
            true => Ok(Self { interface, context, key }),
            false => Err(ClientError::WrongParameters { found, expected }),
        }
    }

    /// The interface of the program.
    pub fn interface(&self) -> &Arc<Interface> {
        &self.interface
    }

    /// The tables of the parameters.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The secret key.
    pub fn key(&self) -> &SecretKey {
        &self.key
    }

    /// Encrypts one input tensor in `[channel, y, x]` order, as [`prepare`](crate::prepare) makes it; an ensemble gets
    /// one copy per member. A program for batches takes as many tensors, one after the other ([`joined`]).
    ///
    /// # Errors
    /// If the tensor has another size or is one of a batch only, a value cannot be encoded, or there is no randomness.
    pub fn encrypt(
        &self,
        tensor: &[f64],
        seeds: &mut SeedSource,
    ) -> Result<Vec<SeededCiphertext>, ClientError> {
        let (layout, batch) = (self.interface.input_layout(), self.interface.batch());
        let (found, expected) = (tensor.len(), batch * layout.shape().len());
        if found != expected {
            let is_one = batch > 1 && found == layout.shape().len();
            return Err(if is_one {
                ClientError::Batch { batch }
            } else {
                ClientError::TensorLength { found, expected }
            });
        }
        let slots = Zeroizing::new(layout.scatter_batch(tensor, batch));
        let input = self.interface.input();
        let (context, key) = self.key.at(&self.context, input.level);
        slots
            .iter()
            .map(|slots| {
                // A smaller ring has one of the copies that a larger one would have.
                let slots = &slots[..slots.len().min(context.slots())];
                let plain = context.encoder().encode(slots, input.scale, input.level)?;
                let plain = Zeroizing::new(plain);
                Ok(key.encrypt(context, &plain, seeds)?)
            })
            .collect()
    }

    /// Decrypts one result to what may be seen of it.
    ///
    /// # Errors
    /// As [`Client::decrypt_raw`], and if the program is for batches.
    pub fn decrypt(&self, result: &[Ciphertext]) -> Result<Answer, ClientError> {
        match self.interface.batch() {
            1 => Ok(Answer::new(&self.interface, &self.decrypt_raw(result)?)),
            batch => Err(ClientError::Batch { batch }),
        }
    }

    /// Decrypts one result to the output tensor, with every digit; members that are still apart are averaged. Of a batch these
    /// are the tensors of all its inputs, one after the other.
    ///
    /// Digits below the noise give the secret key away to whoever gets them and the ciphertexts.
    ///
    /// # Errors
    /// If there are not as many ciphertexts as the output layout has.
    pub fn decrypt_raw(&self, result: &[Ciphertext]) -> Result<Zeroizing<Vec<f64>>, ClientError> {
        let (layout, batch) = (self.interface.output_layout(), self.interface.batch());
        let expected = self.interface.output_ciphertexts();
        if result.len() != expected {
            return Err(ClientError::ResultCount { found: result.len(), expected });
        }
        let slots = result
            .iter()
            .map(|ciphertext| self.key.decrypt(&self.context, ciphertext))
            .collect::<Result<Vec<_>, _>>()
            .map(Zeroizing::new)?;
        let all = Zeroizing::new(layout.gather_batch(&slots, batch));
        match batch {
            1 => Ok(Zeroizing::new(average_members(layout, &all))),
            _ => Ok(all),
        }
    }
}

/// Inputs of a batch one after the other; where there are too few, the last one stands for those that are missing.
pub fn joined(inputs: &[&[f64]], batch: usize) -> Zeroizing<Vec<f64>> {
    let missing = inputs.last().into_iter().cycle().take(batch.saturating_sub(inputs.len()));
    Zeroizing::new(inputs.iter().chain(missing).flat_map(|input| input.iter().copied()).collect())
}

/// The mean over members of a tensor in (member, channel, y, x) order.
pub fn average_members(layout: &Layout, all: &[f64]) -> Vec<f64> {
    let (len, members) = (layout.shape().len(), layout.members());
    (0..len).map(|i| (0..members).map(|m| all[m * len + i]).sum::<f64>() / members as f64).collect()
}
