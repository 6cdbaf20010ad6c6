//! `fhec inspect`: what is in a program file.

use std::path::PathBuf;

use super::Outcome;
use super::output::{print, print_json};
use super::program::read_program;
use crate::diagnostics::Diagnostic;
use crate::report::program_text;

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    /// Parameters, layers and instructions for people
    Text,
    /// Everything but the constants, for other programs
    Json,
    /// Everything, to edit and read back
    Ron,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fhec inspect model.fhebc
  fhec inspect model.fhebc --format ron > model.ron")]
pub(super) struct Args {
    /// Program file
    program: PathBuf,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
}

pub(super) fn run(args: &Args) -> Outcome {
    let program = read_program(&args.program).map_err(|d| vec![d])?;
    let bug = |e: String| vec![Diagnostic::bug(format!("the program cannot be printed: {e}"))];
    let text = match args.format {
        Form::Text => program_text(&program),
        Form::Json => {
            let mut value = serde_json::to_value(program.spec()).map_err(|e| bug(e.to_string()))?;
            if let Some(fields) = value.as_object_mut() {
                fields.remove("constants");
            }
            return print_json(&value);
        }
        Form::Ron => program.spec().to_ron().map_err(|e| bug(e.to_string()))?,
    };
    print(&text)
}
