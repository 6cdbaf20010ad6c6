//! The command line: parses, calls one function, maps the result to an exit code (0 done, 1 cannot do that, 2 usage, 3 a bug).

mod args;
mod many;
mod program;
mod run;
mod token;

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Serve compiled networks to clients that send encrypted inputs.
#[derive(Debug, Parser)]
#[command(
    name = "fhe-serve",
    version,
    max_term_width = 110,
    after_help = "\
Examples:
  fhe-serve run model.fhebc                               on this machine, without tokens
  fhe-serve run model.fhebc --page=target/web             with a page to draw and ask (cargo xtask web)
  fhe-serve token add clinic --store data                 who may use the server
  fhe-serve run model.fhebc --store data --memory 16GiB --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem

On many machines, with a build that has the feature cluster:
  fhe-serve program add model.fhebc --store s3://bucket   what is served
  fhe-serve gateway --nats nats://queue --store s3://bucket --tokens tokens.json --listen 0.0.0.0:8080 --behind-proxy
  fhe-serve worker --nats nats://queue --store s3://bucket --memory 60GiB

Exit codes: 0 done, 1 cannot do that, 2 usage, 3 a bug in fhe-serve."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a server on this machine
    Run(Box<run::Run>),
    /// Meet clients, for workers on other machines
    Gateway(Box<many::Gateway>),
    /// Evaluate what gateways take
    Worker(Box<many::Worker>),
    /// Say what gateways and workers serve
    #[command(subcommand)]
    Program(program::Program),
    /// Say who may use a server
    #[command(subcommand)]
    Token(token::Token),
    /// Print the contract as an OpenAPI document
    Openapi,
}

/// Runs the command line and gives the exit code of the process.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results, not errors; clap knows.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let done = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Gateway(args) => many::gateway(&args),
        Command::Worker(args) => many::worker(&args),
        Command::Program(command) => program::run(command),
        Command::Token(command) => token::run(command),
        Command::Openapi => openapi(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The whole grammar of the command line, for documents.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

fn openapi() -> Result<(), Box<dyn Error>> {
    Ok(fhe_host::print(&crate::http::document()?)?)
}
