//! The Python package: what the compiler, the client and the server do, under the names of a scientific package.
//!
//! Nothing is computed here that the crates below do not compute; this crate turns arrays into samples, errors into exceptions,
//! and long calls into ones that Ctrl-C ends.
#![forbid(unsafe_code)]

mod ciphertexts;
mod client;
mod compile;
mod fault;
mod interface;
mod keys;
mod long;
mod names;
mod paths;
mod program;
mod samples;
mod security;
mod server;
mod simulation;
mod sizes;
mod threads;

use pyo3::prelude::*;

/// What is written in Rust. Import `fhec`, not this.
#[pymodule]
mod _fhec {
    #[pymodule_export]
    use crate::ciphertexts::Ciphertexts;
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::compile::{compile, levels, report};
    #[pymodule_export]
    use crate::interface::Interface;
    #[pymodule_export]
    use crate::keys::EvalKeys;
    #[pymodule_export]
    use crate::paths::write_page;
    #[pymodule_export]
    use crate::program::Program;
    #[pymodule_export]
    use crate::server::Server;
    #[pymodule_export]
    use crate::sizes::{harmless, parse, show};
    use pyo3::prelude::*;

    /// Called in the child of a fork, before anything else.
    #[pyfunction]
    fn after_fork() {
        crate::threads::after_fork();
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
