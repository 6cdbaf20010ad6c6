//! The `fhec` command: one file per subcommand, each a thin layer over a library function.

mod build;
mod choices;
mod inspect;
mod interface;
mod levels;
mod memory;
mod output;
mod program;
mod relu;
mod report;
mod simulate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory, Parser, Subcommand};

use fhe_diagnostics::complain;

pub use self::relu::parse as parse_relu;
use crate::Rehearse;
use crate::diagnostics::Diagnostic;
use crate::levels::OpenOriginal;

/// Compiles neural networks with polynomial activations to leveled homomorphic programs.
#[derive(Debug, Parser)]
#[command(
    name = "fhec",
    version = VERSION.as_str(),
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, 1 cannot do that, 2 usage, 3 a bug in fhec, 130 interrupted.\n\
        Results go to standard output, everything else to standard error. NO_COLOR is respected."
)]
struct Cli {
    /// Print results and errors only
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile a model to a program that a server evaluates on encrypted inputs
    Build(Box<build::Args>),
    /// Show what is in a program
    Inspect(inspect::Args),
    /// Write what clients need of a program, without its weights, into a file of its own
    Interface(interface::Args),
    /// Write a page about a model or a program: graphs, levels, time, memory and noise
    Report(Box<report::Args>),
    /// Run a program in the clear, with the noise of encryption, over a data set
    Simulate(simulate::Args),
    /// Show what a model costs in levels, pass by pass
    Levels(levels::Args),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

/// Version of the command, and of the program files it writes and reads.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    format!("{} (program format {})", env!("CARGO_PKG_VERSION"), fhe_bytecode::codec::VERSION)
});

/// The whole grammar of the command line, for documents.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Parses the command line, runs the command, and maps the result to an exit code. Programs are tried out with `rehearsal`;
/// models are compared with `original`, if there is one.
pub fn main(rehearsal: &dyn Rehearse, original: Option<OpenOriginal>) -> ExitCode {
    keep_contained_panics_silent();
    // Before the first file is begun: an interrupted process leaves no half-written file behind.
    fhe_diagnostics::catch_interrupts();
    let cli = Cli::parse();
    // The panic has printed where it happened.
    let result = catch_unwind(AssertUnwindSafe(|| dispatch(&cli, rehearsal, original)))
        .unwrap_or_else(|_| Err(vec![Diagnostic::bug("fhec stopped unexpectedly")]));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(diagnostics) => {
            for diagnostic in &diagnostics {
                complain(&diagnostic.to_string());
            }
            diagnostics.first().map_or(ExitCode::FAILURE, |d| ExitCode::from(d.kind.exit_code()))
        }
    }
}

fn dispatch(cli: &Cli, rehearsal: &dyn Rehearse, original: Option<OpenOriginal>) -> Outcome {
    match &cli.command {
        Command::Build(args) => build::run(args, cli.quiet, rehearsal),
        Command::Inspect(args) => inspect::run(args),
        Command::Interface(args) => interface::run(args),
        Command::Report(args) => report::run(args, cli.quiet),
        Command::Simulate(args) => simulate::run(args, cli.quiet),
        Command::Levels(args) => levels::run(args, cli.quiet, original),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "fhec", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
        Command::Man => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
            rendered.map_err(|e| vec![Diagnostic::bug(format!("there is no manual page: {e}"))])?;
            output::print(&String::from_utf8_lossy(&page))
        }
    }
}

/// A price: a number that is not negative.
fn price(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(price) if price.is_finite() && price >= 0.0 => Ok(price),
        _ => Err(format!("`{text}` is no price")),
    }
}

/// What a command returns: nothing, or everything that is wrong, worst first.
type Outcome = Result<(), Vec<Diagnostic>>;

/// Panics of foreign code that the import contains become errors and are not reported twice; ours are bugs.
fn keep_contained_panics_silent() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !crate::import::is_contained() {
            report(info);
        }
    }));
}
