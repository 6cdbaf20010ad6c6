//! Client and server in one process, for trying out, demos and benches.

use std::sync::Arc;
use std::time::Instant;

use fhe_bytecode::clear::ClearProgram;
use fhe_bytecode::{CheckedProgram, Classes, Interface};

use fhe_ckks::{CkksError, Context, key_request};
use fhe_client::{Client, ClientError, average_members, joined};
use fhe_machine::{Cancel, Input, Model, Observer, Options, Profile, Session, Silent, VmError, check_memory};
use fhe_secret::{SecretKey, SeedSource};

/// What stops a trial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrialError {
    /// The client's side.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server's side.
    #[error(transparent)]
    Vm(#[from] VmError),
    /// The scheme.
    #[error(transparent)]
    Ckks(#[from] CkksError),
}

/// A program with fresh keys, both sides of it.
pub struct Trial<'p> {
    program: &'p CheckedProgram,
    context: Arc<Context>,
    client: Client,
    session: Session,
    /// Seconds that making all keys took.
    pub keygen_seconds: f64,
}

/// One input through encryption, evaluation and decryption.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The decrypted output.
    pub decrypted: Vec<f64>,
    /// What the program gives in the clear.
    pub clear: Vec<f64>,
    /// Which of its numbers are the scores of classes.
    pub classes: Classes,
    /// Seconds to encode and encrypt the input.
    pub encrypt_seconds: f64,
    /// Seconds to evaluate.
    pub eval_seconds: f64,
    /// Seconds to decrypt and decode the result.
    pub decrypt_seconds: f64,
    /// Where the evaluation time went.
    pub profile: Profile,
}

impl Outcome {
    /// Largest difference between the decrypted and the clear output.
    pub fn max_abs_error(&self) -> f64 {
        let errors = self.decrypted.iter().zip(&self.clear).map(|(a, b)| (a - b).abs());
        // An error that is no number is the largest of all.
        errors.fold(0.0, |worst: f64, e| if e.is_nan() { f64::INFINITY } else { worst.max(e) })
    }
}

/// How an encrypted result differs from what its program promises.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Deviation {
    /// The error is larger than predicted.
    #[error("the largest error of a score is {error:.2e}, the program promises at most {bound:.2e}")]
    BeyondBound {
        /// Largest difference from the clear result.
        error: f64,
        /// What the program predicts.
        bound: f64,
    },
    /// Another class is best.
    #[error("the best class is {found}, in the clear it is {expected}, ahead by {margin:.2e}")]
    OtherClass {
        /// The class under encryption.
        found: usize,
        /// The class in the clear.
        expected: usize,
        /// How far apart the scores of the two are in the clear.
        margin: f64,
    },
}

impl Outcome {
    /// Compares with the clear result: the error is within `bound`, and the best class is the same, or as good in the clear.
    ///
    /// # Errors
    /// How the two differ.
    pub fn judge(&self, bound: f64) -> Result<(), Deviation> {
        let error = self.max_abs_error();
        // A bound that is no number holds for nothing.
        if error > bound || bound.is_nan() {
            return Err(Deviation::BeyondBound { error, bound });
        }
        match self.other_class() {
            Some(deviation) => Err(deviation),
            None => Ok(()),
        }
    }

    /// Whether the best class is that of the clear result, or as good there.
    pub fn is_same_class(&self) -> bool {
        self.other_class().is_none()
    }

    fn other_class(&self) -> Option<Deviation> {
        let [found, expected] = [&self.decrypted, &self.clear].map(|scores| self.classes.best(scores));
        let (found, expected) = (found?, expected?);
        let margin = self.classes.lead_over(found, &self.clear);
        (margin > 0.0).then_some(Deviation::OtherClass { found, expected, margin })
    }
}

impl<'p> Trial<'p> {
    /// Makes fresh keys and prepares the program.
    ///
    /// # Errors
    /// If the memory is too small, before any key is made, or there is no randomness.
    pub fn new(
        program: &'p CheckedProgram,
        options: Options,
        seeds: &mut SeedSource,
    ) -> Result<Self, TrialError> {
        let context = Context::new(program.params().clone())?;
        check_memory(program, options.memory)?;
        let began = Instant::now();
        let key = SecretKey::generate(&context, seeds)?;
        let keys = key.evaluation_keys(&context, &key_request(&context, program), seeds)?;
        let keygen_seconds = began.elapsed().as_secs_f64();
        let client = Client::new(Arc::new(program.interface()), context.clone(), key)?;
        let model = Model::new(program, context.clone(), options)?;
        let session = Session::new(Arc::new(model), Arc::new(keys))?;
        Ok(Self { program, context, client, session, keygen_seconds })
    }

    /// Sends one input through everything, under keys that nobody keeps, and gives the decrypted output.
    ///
    /// # Errors
    /// If the memory is too small, the tensor does not fit the program, or there is no randomness.
    pub fn once(program: &'p CheckedProgram, tensor: &[f64], memory: u64) -> Result<Vec<f64>, TrialError> {
        let mut seeds = SeedSource::os();
        let trial = Self::new(program, Options { memory, n_evaluations: 1 }, &mut seeds)?;
        Ok(trial.run(tensor, &mut seeds, &Silent)?.decrypted)
    }

    /// What the client knows of the program.
    pub fn interface(&self) -> &Interface {
        self.client.interface()
    }

    /// The server's side.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Sends one input tensor, in `[channel, y, x]` order, through everything.
    ///
    /// # Errors
    /// If the tensor does not fit the program.
    pub fn run(
        &self,
        tensor: &[f64],
        seeds: &mut SeedSource,
        observer: &dyn Observer,
    ) -> Result<Outcome, TrialError> {
        let mut outcomes = self.run_batch(&[tensor], seeds, observer)?;
        Ok(outcomes.pop().expect("one input gives one outcome"))
    }

    /// Sends several input tensors through everything, evaluated at once, as batches where the program takes
    /// batches; the times of an outcome are its share of theirs.
    ///
    /// # Errors
    /// If a tensor does not fit the program.
    pub fn run_batch(
        &self,
        tensors: &[&[f64]],
        seeds: &mut SeedSource,
        observer: &dyn Observer,
    ) -> Result<Vec<Outcome>, TrialError> {
        let share = |began: Instant| began.elapsed().as_secs_f64() / tensors.len() as f64;
        let began = Instant::now();
        let joined: Vec<_> =
            tensors.chunks(self.program.batch()).map(|inputs| joined(inputs, self.program.batch())).collect();
        let fresh =
            joined.iter().map(|tensor| self.client.encrypt(tensor, seeds)).collect::<Result<Vec<_>, _>>()?;
        let encrypt_seconds = share(began);
        let input = |fresh: &Vec<fhe_ckks::SeededCiphertext>| {
            let input = fresh.iter().map(|ciphertext| ciphertext.expand(&self.context)).collect();
            Input::new(&self.context, self.client.key().id(), input)
        };
        let inputs = fresh.iter().map(input).collect();
        let (results, profile) = self.session.evaluate_batch(inputs, &Cancel::default(), observer)?;
        let eval_seconds = profile.total_seconds / tensors.len() as f64;
        let began = Instant::now();
        let decrypted = results
            .iter()
            .map(|result| Ok(self.client.decrypt_raw(result)?.to_vec()))
            .collect::<Result<Vec<_>, ClientError>>()?;
        let decrypt_seconds = share(began);
        let classes = self.interface().output().classes(self.program.output_layout().shape());
        let outcome = |(decrypted, clear): (&[f64], &[f64])| {
            let [decrypted, clear] = [decrypted, clear].map(<[f64]>::to_vec);
            let (classes, profile) = (classes.clone(), profile.clone());
            Outcome { decrypted, clear, classes, encrypt_seconds, eval_seconds, decrypt_seconds, profile }
        };
        let n_scores = self.program.output_layout().shape().len();
        let mut outcomes = Vec::with_capacity(tensors.len());
        for (decrypted, tensor) in decrypted.iter().zip(&joined) {
            let clear = clear_output(self.program, tensor)?;
            outcomes.extend(decrypted.chunks(n_scores).zip(clear.chunks(n_scores)).map(outcome));
        }
        // What stood for inputs that were missing is nobody's.
        outcomes.truncate(tensors.len());
        Ok(outcomes)
    }
}

/// What the program gives in the clear, for one input or a whole batch; members that are still apart are averaged.
///
/// # Errors
/// If the tensor does not fit the program.
pub fn clear_output(program: &CheckedProgram, tensor: &[f64]) -> Result<Vec<f64>, TrialError> {
    let all = ClearProgram::new(program)
        .run(tensor, &mut ())
        .map_err(|e| TrialError::Client(ClientError::TensorLength { found: e.found, expected: e.needed }))?;
    Ok(if program.batch() > 1 { all } else { average_members(program.output_layout(), &all) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(decrypted: &[f64], clear: &[f64]) -> Outcome {
        Outcome {
            decrypted: decrypted.to_vec(),
            clear: clear.to_vec(),
            classes: Classes::Scores(0..clear.len()),
            encrypt_seconds: 0.0,
            eval_seconds: 0.0,
            decrypt_seconds: 0.0,
            profile: Profile::default(),
        }
    }

    #[test]
    fn error_beyond_the_bound_is_told_before_the_class() {
        let found = outcome(&[1.0, 2.5], &[1.0, 2.0]).judge(0.1);
        assert_eq!(found, Err(Deviation::BeyondBound { error: 0.5, bound: 0.1 }));
        assert!(outcome(&[f64::NAN], &[1.0]).judge(10.0).is_err());
        assert!(outcome(&[1.0], &[1.0]).judge(f64::NAN).is_err());
        assert_eq!(outcome(&[1.0, 2.05], &[1.0, 2.0]).judge(0.1), Ok(()));
    }

    #[test]
    fn another_class_is_told_even_within_the_bound() {
        let found = outcome(&[2.25, 2.0], &[1.75, 2.0]).judge(1.0);
        assert_eq!(found, Err(Deviation::OtherClass { found: 0, expected: 1, margin: 0.25 }));
    }

    #[test]
    fn equal_scores_and_numbers_that_are_no_scores_have_no_other_class() {
        let tied = outcome(&[2.1, 2.0], &[2.0, 2.0]);
        assert!(tied.is_same_class() && tied.judge(1.0).is_ok());
        let image = Outcome { classes: Classes::None, ..outcome(&[2.25, 2.0], &[1.75, 2.0]) };
        assert!(image.is_same_class() && image.judge(1.0).is_ok());
        assert!(image.judge(0.1).is_err());
    }
}
