//! Ctrl-C: half-written files are removed, and the user is told what is there.

use std::path::PathBuf;

use fhe_host::Left;

use crate::{INTERRUPTED, complain};

/// From now on Ctrl-C removes every file that is being written, says what was written whole, and ends the process.
pub fn catch_interrupts() {
    let result = fhe_host::exit_on_interrupt(INTERRUPTED, |left| {
        // A bar may stand on the line.
        eprintln!();
        complain(&words(left));
    });
    if let Err(warning) = result {
        complain(&format!("warning: {warning}"));
    }
}

fn words(left: Left<'_>) -> String {
    match (left.resumable, left.written) {
        ([], []) => "interrupted: nothing was written".to_owned(),
        ([], files) => format!("interrupted: {} was written before, nothing since", names(files)),
        (parts, _) => format!(
            "interrupted: what is finished is in {}; the same command goes on from there",
            names(parts)
        ),
    }
}

fn names(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_told_what_is_there() {
        let said = |written: &[PathBuf], resumable: &[PathBuf]| words(Left { written, resumable });
        assert_eq!(said(&[], &[]), "interrupted: nothing was written");
        assert_eq!(said(&["a.evk".into()], &[]), "interrupted: a.evk was written before, nothing since");
        let part = "interrupted: what is finished is in r.ct.partial; the same command goes on from there";
        assert_eq!(said(&[], &["r.ct.partial".into()]), part);
    }
}
