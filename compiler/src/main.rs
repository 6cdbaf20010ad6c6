//! The `fhec` command.

fn main() -> std::process::ExitCode {
    fhec::cli::main()
}
