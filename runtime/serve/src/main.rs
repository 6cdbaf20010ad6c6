//! The `fhe-serve` command.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    fhe_machine::keep_freed_memory();
    fhe_serve::cli::main(std::env::args_os())
}
