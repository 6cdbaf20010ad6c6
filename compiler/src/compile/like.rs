//! Programs that the keys of another program serve.

use std::collections::BTreeMap;

use fhe_bytecode::{CheckedProgram, Level};

use crate::pipeline::{BuildError, BuildOptions, LayoutChoice, ParamsChoice};
use crate::search::Like;

use super::CompileError;

/// Asks for the parameters and the layout of another program.
pub(super) fn ask(options: &mut BuildOptions, other: &CheckedProgram) -> Result<(), CompileError> {
    let like = Like::of(other).ok_or_else(|| unlike("it leaves a level of its moduli out"))?;
    if options.batch != other.batch() {
        return Err(unlike(&format!("it takes {} inputs at once", other.batch())));
    }
    let members =
        other.steps().filter_map(|step| step.result).map(|fact| other.layout(fact.layout).members());
    options.shared = options.shared.min(members.max().unwrap_or(1));
    options.params = ParamsChoice::Like(Box::new(like));
    options.layout = match other.spec().origin.packing.as_str() {
        "hw" => LayoutChoice::Hw,
        "packed" => LayoutChoice::Packed,
        _ => LayoutChoice::Auto,
    };
    Ok(())
}

/// What does not fit the other program's parameters and layout is unlike it, whatever else may help it.
pub(super) fn explained(error: CompileError) -> CompileError {
    match error {
        CompileError::Build(error) if error.is_schedule() || matches!(error, BuildError::Layout(_)) => {
            unlike(&error.to_string())
        }
        other => other,
    }
}

fn unlike(what: &str) -> CompileError {
    CompileError::Unlike { what: what.to_owned() }
}

/// Refuses a program that needs keys which the other one does not.
pub(super) fn check(program: &CheckedProgram, other: &CheckedProgram) -> Result<(), CompileError> {
    if program.params().fingerprint() != other.params().fingerprint() {
        return Err(unlike("it needs other parameters"));
    }
    let (new, old) = (program.spec(), other.spec());
    let known: BTreeMap<_, Level> = old.rotation_keys.iter().map(|key| (key.rotation, key.level)).collect();
    let is_missing = |level: Level, has: Option<Level>| has.is_none_or(|has| has < level);
    let rotations = new
        .rotation_keys
        .iter()
        .filter(|key| is_missing(key.level, known.get(&key.rotation).copied()))
        .count();
    if rotations > 0 {
        let all = new.rotation_keys.len();
        return Err(unlike(&format!(
            "{rotations} of its {all} rotation keys are not among those of the other"
        )));
    }
    let others = [(new.relin_level, old.relin_level), (new.conjugation_level, old.conjugation_level)];
    if others.into_iter().any(|(new, old)| new.is_some_and(|level| is_missing(level, old))) {
        return Err(unlike("it needs a key at a level that the other does not"));
    }
    // Readers refuse keys that nobody asks for, so fewer are as bad as others.
    let is_same = new.rotation_keys == old.rotation_keys
        && new.lower_keys == old.lower_keys
        && others.into_iter().all(|(new, old)| new == old);
    match is_same {
        true => Ok(()),
        false => Err(unlike(
            "it asks for fewer keys, or at lower levels, and a file of keys holds exactly those of its program",
        )),
    }
}
