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
    /// one copy per member.
    ///
    /// # Errors
    /// If the tensor has another size, a value cannot be encoded, or there is no randomness.
    pub fn encrypt(
        &self,
        tensor: &[f64],
        seeds: &mut SeedSource,
    ) -> Result<Vec<SeededCiphertext>, ClientError> {
        let layout = self.interface.input_layout();
        check_length(tensor.len(), layout)?;
        let slots = Zeroizing::new(layout.scatter(&Zeroizing::new(tensor.repeat(layout.members()))));
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
    /// As [`Client::decrypt_raw`].
    pub fn decrypt(&self, result: &[Ciphertext]) -> Result<Answer, ClientError> {
        Ok(Answer::new(&self.interface, &self.decrypt_raw(result)?))
    }

    /// Decrypts one result to the output tensor, with every digit; members that are still apart are averaged.
    ///
    /// Digits below the noise give the secret key away to whoever gets them and the ciphertexts.
    ///
    /// # Errors
    /// If there are not as many ciphertexts as the output layout has.
    pub fn decrypt_raw(&self, result: &[Ciphertext]) -> Result<Zeroizing<Vec<f64>>, ClientError> {
        let layout = self.interface.output_layout();
        let expected = layout.n_cts();
        if result.len() != expected {
            return Err(ClientError::ResultCount { found: result.len(), expected });
        }
        let slots = result
            .iter()
            .map(|ciphertext| self.key.decrypt(&self.context, ciphertext))
            .collect::<Result<Vec<_>, _>>()
            .map(Zeroizing::new)?;
        let all = Zeroizing::new(layout.gather(&slots));
        Ok(Zeroizing::new(average_members(layout, &all)))
    }
}

fn check_length(found: usize, layout: &Layout) -> Result<(), ClientError> {
    let expected = layout.shape().len();
    match found == expected {
        true => Ok(()),
        false => Err(ClientError::TensorLength { found, expected }),
    }
}

/// The mean over members of a tensor in (member, channel, y, x) order.
pub fn average_members(layout: &Layout, all: &[f64]) -> Vec<f64> {
    let (len, members) = (layout.shape().len(), layout.members());
    (0..len).map(|i| (0..members).map(|m| all[m * len + i]).sum::<f64>() / members as f64).collect()
}
