//! `fhec levels`: what a model costs in levels, pass by pass.

use std::path::{Path, PathBuf};

use fhec_passes::Config;

use fhe_diagnostics::{Bar, complain};

use super::output::print;
use super::{Outcome, relu};
use crate::diagnostics::{Diagnostic, Kind, Words};
use crate::fit::FitSpec;
use crate::import::{ImportOptions, Imported, import_file};
use crate::levels::{
    Agreement, Format, LevelsOptions, ModelCost, ModelLevels, OpenOriginal, Shown, agreement, analyze,
    pass_list, render, with_degree,
};
use crate::report::{BuildReport, Estimate};
use crate::{Model, Request, compile};

/// Random inputs per comparison under `--verify`.
const VERIFY_INPUTS: usize = 5;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fhec levels model.onnx
  fhec levels model.onnx --core-hour 0.04
  fhec levels --format json vgg16.onnx resnet20.onnx
  fhec levels --degree 4 model.onnx
  fhec levels --relu quadratic,c=3 relu-model.onnx
  fhec levels --print-after fuse model.onnx")]
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
    /// Show every node that is left, what it costs and where it comes from: a wide table
    #[arg(long)]
    nodes: bool,
    /// Only count: do not build the model in memory to say ring, seconds, bytes to send and memory
    #[arg(long)]
    no_cost: bool,
    /// Price of a core for an hour: says what a thousand images cost
    #[arg(long, value_name = "PRICE", value_parser = super::price)]
    core_hour: Option<f64>,
    /// Show how long every pass took
    #[arg(long)]
    timings: bool,
    /// Show the passes and end
    #[arg(long)]
    list_passes: bool,
    /// Compare the graph before and after every pass, and with the original model, on random inputs (only where fhec was
    /// built with the feature `oracle`)
    #[arg(long)]
    verify: bool,
}

pub(super) fn run(args: &Args, quiet: bool, original: Option<OpenOriginal>) -> Outcome {
    if args.list_passes {
        let lines: Vec<String> =
            pass_list().iter().map(|(name, summary)| format!("{name:20} {summary}")).collect();
        return print(&lines.join("\n"));
    }
    if args.verify && original.is_none() {
        return Err(vec![without_original()]);
    }
    let mut reports = Vec::new();
    let mut failures = Vec::new();
    for path in &args.models {
        match report(path, args, quiet, original) {
            Ok(report) => reports.push(report),
            Err(failure) => failures.push(failure),
        }
    }
    if !reports.is_empty() {
        let shown = Shown { nodes: args.nodes, timings: args.timings, price: args.core_hour };
        print(&render(&reports, args.format, shown))?;
    }
    failures.sort_by_key(|d| std::cmp::Reverse(d.kind.exit_code()));
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

fn report(
    path: &Path,
    args: &Args,
    quiet: bool,
    original: Option<OpenOriginal>,
) -> Result<ModelLevels, Diagnostic> {
    let name = path.display().to_string();
    let bar = Bar::new(&format!("reading {name}"), quiet);
    let mut imported = import_file(path, &ImportOptions { relu: args.relu, ..ImportOptions::default() })
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
    if wants_cost(args) {
        bar.begin(&format!("building {name}"));
        match cost(&name, imported.clone()) {
            Ok(cost) => report.cost = Some(cost),
            Err(why) => bar.suspend(|| complain(&format!("note: it has no price yet: {}", why.what))),
        }
    }
    if let Some(original) = original.filter(|_| args.verify) {
        bar.begin(&format!("comparing with {name}"));
        report.agreement = verified(path, &name, args, &imported, &analysis.graph, original, quiet)?;
    }
    Ok(report)
}

/// Whether the question is what a model costs as it would be built, and not how the passes work.
fn wants_cost(args: &Args) -> bool {
    let changes = args.no_fuse || args.no_redistribute || args.no_forward || args.no_backward;
    let stops = !args.passes.is_empty() || args.stop_after.is_some() || args.degree.is_some();
    !args.no_cost && args.models.len() == 1 && !changes && !stops && args.format == Format::Table
}

/// What a model costs with default options, values measured on made-up inputs.
fn cost(name: &str, imported: Imported) -> Result<ModelCost, Diagnostic> {
    let request = Request::new(Model::imported(name, imported));
    let compiled = compile(&request, &mut ()).map_err(|error| Diagnostic::compile(name, &error))?;
    let program = &compiled.built.program;
    Ok(ModelCost {
        log_n: program.params().log_n(),
        levels: BuildReport::new(&compiled, 0).levels,
        estimate: Estimate::new(program).within(request.memory),
    })
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
    original: OpenOriginal,
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
    let found = original(path, imported).and_then(|original| agreement(graph, &*original, VERIFY_INPUTS));
    match found {
        Ok(found) if found.holds() => Ok(Some(found)),
        Ok(found) => Err(Diagnostic::bug(format!(
            "{name}: the graph differs from the model by {:.2e} of its range",
            found.error
        ))),
        Err(error) => Err(Diagnostic::new(Kind::Cannot, format!("{name}: {error}"))
            .with_help("without `--verify` the levels are still computed")),
    }
}

fn without_original() -> Diagnostic {
    let what = "`--verify` compares with tract, and this fhec was built without it";
    let help = "build it with `--features fhec-command/oracle`, or install it with `cargo install --path compiler/command --features oracle`";
    Diagnostic::new(Kind::Cannot, what).with_help(help)
}
