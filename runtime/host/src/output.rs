//! Standard output.

use std::io::{self, ErrorKind, Write};

/// Writes a result to standard output. A reader that has seen enough, as `head` has, is no error.
///
/// # Errors
/// If the output cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
