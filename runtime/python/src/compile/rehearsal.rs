//! What a compilation ends with: one evaluation under encryption.

use fhe_bytecode::CheckedProgram;
use fhe_runtime::Trial;
use fhec::{Compiled, Rehearsal, RehearsalError, Rehearse};

use super::options::Options as Asked;
use crate::fault::Fault;
use crate::long::Watch;

/// Evaluates under keys that nobody keeps.
struct ThrowAwayKeys;

impl Rehearse for ThrowAwayKeys {
    fn scores(
        &self,
        program: &CheckedProgram,
        input: &[f64],
        memory: u64,
    ) -> Result<Vec<f64>, RehearsalError> {
        Trial::once(program, input, memory).map_err(RehearsalError::new)
    }
}

/// One encrypted evaluation, where it takes a few seconds; a program that does not keep its promise is not given away.
pub(super) fn rehearsed(
    compiled: &Compiled,
    options: &Asked,
    watch: &Watch,
) -> Result<Option<Rehearsal>, Fault> {
    if !options.check || !compiled.is_quick() {
        return Ok(None);
    }
    watch.tell(None, "evaluating once under throw-away keys".to_owned());
    let rehearsal = compiled
        .rehearse(&ThrowAwayKeys, options.memory)
        .map_err(|error| Fault::bug(format!("the program cannot be evaluated under encryption: {error}")))?;
    let Rehearsal { max_abs_error, predicted_max_abs_error, .. } = rehearsal;
    match rehearsal.is_passed() {
        true => Ok(Some(rehearsal)),
        false => Err(Fault::bug(format!(
            "the program is wrong under encryption: an error of {max_abs_error:.2e} where it promises {predicted_max_abs_error:.2e}"
        ))),
    }
}
