//! `fhec levels`: what a model costs in levels, pass by pass.

use std::path::{Path, PathBuf};

use fhec_passes::Config;

use fhe_diagnostics::{Bar, complain};

use super::output::print;
use super::{Outcome, relu};
use crate::diagnostics::{Diagnostic, Kind, Words};
use crate::fit::FitSpec;
use crate::import::{ImportOptions, Imported, Oracle, import_file};
use crate::levels::{
    Agreement, Format, LevelsOptions, ModelLevels, agreement, analyze, pass_list, render, with_degree,
};

/// Random inputs per comparison under `--verify`.
const VERIFY_INPUTS: usize = 5;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fhec levels model.onnx
  fhec levels --format json vgg16.onnx resnet20.onnx
  fhec levels --degree 4 model.onnx
  fhec levels --relu quadratic,c=3 relu-model.onnx
  fhec levels --verify --print-after fuse model.onnx")]
pub(super) struct Args {
    /// ONNX files
    #[arg(required_unless_present = "list_passes")]
    models: Vec<PathBuf>,
    /// How to write the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Answer what the levels were if the activations had this degree
    #[arg(long, value_parser = clap::value_parser!(u8).range(2..=32))]
    degree: Option<u8>,
    /// Replace ReLU and its relatives, as `quadratic[,c=2,b=10]`: c is the range of the fit, b its fractional bits
    #[arg(long, value_parser = relu::parse, value_name = "SPEC")]
    relu: Option<FitSpec>,
    /// Run only these passes
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    passes: Vec<String>,
    /// Switch node fusing (F) off
    #[arg(long)]
    no_fuse: bool,
    /// Switch weight redistribution (R) off
    #[arg(long)]
    no_redistribute: bool,
    /// Switch redistribution to later layers off
    #[arg(long)]
    no_forward: bool,
    /// Switch redistribution to earlier layers off
    #[arg(long)]
    no_backward: bool,
    /// Print the graph after a pass of the last configuration (may be repeated)
    #[arg(long, value_name = "PASS")]
    print_after: Vec<String>,
    /// Stop the last configuration after a pass
    #[arg(long, value_name = "PASS")]
    stop_after: Option<String>,
    /// Show how long every pass took
    #[arg(long)]
    timings: bool,
    /// Show the passes and end
    #[arg(long)]
    list_passes: bool,
    /// Compare the graph before and after every pass, and with the original model, on random inputs
    #[arg(long)]
    verify: bool,
}

pub(super) fn run(args: &Args, quiet: bool) -> Outcome {
    if args.list_passes {
        let lines: Vec<String> =
            pass_list().iter().map(|(name, summary)| format!("{name:20} {summary}")).collect();
        return print(&lines.join("\n"));
    }
    let mut reports = Vec::new();
    let mut failures = Vec::new();
    for path in &args.models {
        match report(path, args, quiet) {
            Ok(report) => reports.push(report),
            Err(failure) => failures.push(failure),
        }
    }
    if !reports.is_empty() {
        print(&render(&reports, args.format, args.timings))?;
    }
    failures.sort_by_key(|d| std::cmp::Reverse(d.kind.exit_code()));
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

fn report(path: &Path, args: &Args, quiet: bool) -> Result<ModelLevels, Diagnostic> {
    let name = path.display().to_string();
    let bar = Bar::new(&format!("reading {name}"), quiet);
    let mut imported = import_file(path, &ImportOptions { relu: args.relu })
        .map_err(|error| Diagnostic::import(&name, &error))?;
    if !quiet {
        bar.suspend(|| imported.notes.iter().for_each(|note| complain(&format!("note: {note}"))));
    }
    if let Some(degree) = args.degree {
        imported.graph = with_degree(&imported.graph, usize::from(degree))
            .map_err(|e| Diagnostic::bug(format!("{name}: {e}")))?;
    }
    bar.begin(&format!("running the passes on {name}"));
    let analysis =
        analyze(&name, &imported.graph, &options(args)).map_err(|e| Diagnostic::pass(&name, &e))?;
    let mut report = analysis.report;
    if args.verify {
        bar.begin(&format!("comparing with {name}"));
        report.agreement = verified(path, &name, args, &imported, &analysis.graph, quiet)?;
    }
    Ok(report)
}

fn options(args: &Args) -> LevelsOptions {
    LevelsOptions {
        allowed: Config {
            fuse: !args.no_fuse,
            forward: !args.no_redistribute && !args.no_forward,
            backward: !args.no_redistribute && !args.no_backward,
            finish: true,
        },
        only: args.passes.clone(),
        print_after: args.print_after.clone(),
        stop_after: args.stop_after.clone(),
        compare: if args.verify { VERIFY_INPUTS } else { 0 },
    }
}

/// Compares with the original model, unless the user asked for another function than the model's.
fn verified(
    path: &Path,
    name: &str,
    args: &Args,
    imported: &Imported,
    graph: &fhec_ir::Graph,
    quiet: bool,
) -> Result<Option<Agreement>, Diagnostic> {
    if args.degree.is_some() || imported.has_replacements() {
        if !quiet {
            complain(&format!(
                "note: {name}: activations were changed, so only the passes are compared, not the original model"
            ));
        }
        return Ok(None);
    }
    let oracle =
        Oracle::from_file(path, imported).and_then(|oracle| agreement(graph, &oracle, VERIFY_INPUTS));
    match oracle {
        Ok(found) if found.holds() => Ok(Some(found)),
        Ok(found) => Err(Diagnostic::bug(format!(
            "{name}: the graph differs from the model by {:.2e} of its range",
            found.error
        ))),
        Err(error) => Err(Diagnostic::new(Kind::Cannot, format!("{name}: {error}"))
            .with_help("without `--verify` the levels are still computed")),
    }
}
