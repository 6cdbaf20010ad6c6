//! One target per kind of file.

mod arrays;
mod interface;
mod key_files;
mod onnx;
mod parameters;
mod pictures;
mod program;
mod samples;
mod specimen;
mod tables;

use crate::run::{Config, Outcome, run};

/// Names of all targets.
pub const NAMES: [&str; 10] = [
    "onnx",
    "program",
    "interface",
    "secret-key",
    "evaluation-keys",
    "ciphertexts",
    "pictures",
    "arrays",
    "tables",
    "parameters",
];

/// Runs the target of that name.
///
/// # Errors
/// If there is no such target, or its findings cannot be written.
pub fn run_named(name: &str, config: &Config) -> std::io::Result<Outcome> {
    match name {
        "onnx" => run(&onnx::Onnx::new(), config),
        "program" => run(&program::Program::new(), config),
        "interface" => run(&interface::Interfaces::new(), config),
        "secret-key" => run(&key_files::SecretKeys::new(), config),
        "evaluation-keys" => run(&key_files::EvaluationKeyFiles::new(), config),
        "ciphertexts" => run(&key_files::CiphertextFiles::new(), config),
        "pictures" => run(&pictures::Pictures::new(), config),
        "arrays" => run(&arrays::Arrays::new(), config),
        "tables" => run(&tables::Tables::new(), config),
        "parameters" => run(&parameters::Parameters::new(), config),
        _ => Err(std::io::Error::other(format!("no target {name}; there are {}", NAMES.join(", ")))),
    }
}
