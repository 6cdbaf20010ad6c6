//! Ctrl-C: half-written files are removed, and the user is told what is there.

use std::path::PathBuf;

use crate::{INTERRUPTED, complain};

/// From now on Ctrl-C removes every file that is being written, says what was written whole, and ends the process.
pub fn catch_interrupts() {
    let result = fhe_host::exit_on_interrupt(INTERRUPTED, |written| {
        // A bar may stand on the line.
        eprintln!();
        complain(&words(written));
    });
    if let Err(warning) = result {
        complain(&format!("warning: {warning}"));
    }
}

fn words(written: &[PathBuf]) -> String {
    match written {
        [] => "interrupted: nothing was written".to_owned(),
        files => {
            let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            format!("interrupted: {} was written before, nothing since", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_told_what_is_there() {
        assert_eq!(words(&[]), "interrupted: nothing was written");
        assert_eq!(words(&["a.evk".into()]), "interrupted: a.evk was written before, nothing since");
    }
}
