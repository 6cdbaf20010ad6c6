//! `fhe-run`: evaluates compiled networks on encrypted inputs. See [`fhe_runtime::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    fhe_machine::keep_freed_memory();
    fhe_runtime::cli::main(std::env::args_os())
}
