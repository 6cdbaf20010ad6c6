//! `fhe-run bench`: medians, memory and error of an evaluation.

use comfy_table::{CellAlignment, Table};
use fhe_bytecode::{CheckedProgram, Memory};
use fhe_host::memory::{peak_rss_bytes, processor_seconds};
use fhe_host::show_bytes;
use fhe_machine::{Model, Options, Profile, VmError};
use fhe_secret::SeedSource;

use super::args::{Bench, TextFormat};
use super::error::CliError;
use super::program::Program;
use super::progress::Bar;
use super::run::{check_profile, memory_budget, note_memory, report_profile};
use super::samples::{self, UNJUDGED, is_for};
use super::show::pretty;
use super::{complain, print};
use crate::trial::Trial;

/// Measures evaluations of one input under fresh keys.
pub(crate) fn bench(args: &Bench, quiet: bool) -> Result<(), CliError> {
    check_profile(&args.run)?;
    let program = Program::load(&args.program)?;
    program.check_security(args.insecure.insecure)?;
    let n_evaluations = (args.warmup + args.runs) as usize;
    // A program for batches takes as long for one input as for all.
    let batch = (args.batch as usize).max(program.checked.batch());
    let memory = memory_budget(&args.run);
    // Before an input is made up, whose size is the program's word.
    check_batch(&program.checked, batch, memory)?;
    let sample = samples::load_one(&program.interface, &args.sample)?;
    let mut seeds = SeedSource::os();
    let trial = Trial::new(&program.checked, Options { memory, n_evaluations }, &mut seeds)?;
    note_memory(trial.session(), quiet);
    let (mut seconds, mut first_seconds, mut max_abs_error) = (Vec::new(), None, 0f64);
    let (mut layers, mut core_seconds, mut predicted) = (Vec::new(), Vec::new(), Vec::new());
    let bound = program.checked.spec().prediction.max_abs_error;
    let (mut is_judged, mut deviation) = (true, None);
    for run in 0..n_evaluations {
        let bar = Bar::new(&format!("run {} of {n_evaluations}", run + 1), quiet);
        let began = processor_seconds();
        let outcomes = trial.run_batch(&vec![&sample.tensor[..]; batch], &mut seeds, &bar)?;
        let spent = began.and_then(|began| Some((processor_seconds()? - began) / batch as f64));
        drop(bar);
        for outcome in &outcomes {
            max_abs_error = max_abs_error.max(outcome.max_abs_error());
            is_judged = is_judged && is_for(&program.interface, &sample, outcome);
            deviation = deviation.or(outcome.judge(bound).err().map(|cause| (run, cause)));
        }
        let outcome = &outcomes[0];
        first_seconds.get_or_insert(outcome.eval_seconds);
        if run >= args.warmup as usize {
            seconds.push(outcome.eval_seconds);
            core_seconds.extend(spent);
            predicted.push(predicted_core_seconds(trial.session().model(), run == 0, batch));
        }
        if run + 1 == n_evaluations {
            report_profile(&args.run, &outcome.profile)?;
            layers = LayerTime::compared(&program.checked, &outcome.profile, batch);
        }
    }
    let params = program.checked.params();
    let memory = trial.session().memory();
    let report = serde_json::json!({
        "median_seconds": median(&seconds),
        "seconds": seconds,
        "batch": batch,
        "first_seconds": first_seconds,
        "median_core_seconds": (!core_seconds.is_empty()).then(|| median(&core_seconds)),
        "predicted_core_seconds": median(&predicted),
        "keygen_seconds": trial.keygen_seconds,
        "peak_rss_bytes": peak_rss_bytes(),
        "threads": rayon::current_num_threads(),
        "max_abs_error": max_abs_error,
        "predicted_max_abs_error": bound,
        "is_right": is_judged.then_some(deviation.is_none()),
        "predicted_seconds": program.checked.spec().prediction.seconds,
        "n": params.n(),
        "log2_pq": params.log2_pq(),
        "levels": params.max_level().0,
        "is_secure": params.is_secure(),
        "key_bytes": memory.key_bytes,
        "working_bytes": memory.working_bytes,
        "plaintext_bytes": memory.plaintext_bytes,
        "layers": layers,
    });
    match args.format {
        TextFormat::Json => print(&pretty(&report)),
        TextFormat::Text => print(&format!(
            "{}\nmedian of {} run(s){}: {:.3} s on {} thread(s), first {:.3} s\nprocessor time of an image: {} ({:.3} s predicted, encodings included)\npeak memory: {}\nlargest error: {max_abs_error:.2e} (predicted at most {bound:.2e})",
            LayerTime::table(&layers),
            seconds.len(),
            if batch > 1 { format!(", an image of {batch} at once") } else { String::new() },
            median(&seconds),
            rayon::current_num_threads(),
            first_seconds.unwrap_or_default(),
            if core_seconds.is_empty() {
                "unknown".to_owned()
            } else {
                format!("{:.3} s", median(&core_seconds))
            },
            median(&predicted),
            peak_rss_bytes().map_or("unknown".to_owned(), show_bytes),
        )),
    }?;
    if !is_judged {
        complain(UNJUDGED);
    }
    match deviation.filter(|_| is_judged) {
        None => Ok(()),
        Some((run, cause)) => Err(CliError::Deviates {
            what: format!("run {} of {n_evaluations} is not right", run + 1),
            cause,
        }),
    }
}

/// Seconds of one core that an image of a batch is expected to take: the first evaluation encodes all plaintexts, later ones
/// those that are not kept, and those of a batch share them.
fn predicted_core_seconds(model: &Model, is_first: bool, batch: usize) -> f64 {
    let prediction = &model.program().spec().prediction;
    let encoded = if is_first { 1.0 } else { model.encoded_anew() };
    prediction.seconds + encoded * prediction.encode_seconds / batch as f64
}

/// Refuses a batch that the memory does not hold.
fn check_batch(program: &CheckedProgram, batch: usize, budget: u64) -> Result<(), CliError> {
    let Memory { keys, working } = Memory::of(program);
    // Each evaluation takes as many inputs as the program does.
    let each = program.batch() as u64;
    let memory = Memory { keys, working: working.saturating_mul((batch as u64).div_ceil(each)) };
    if memory.spare(budget).is_some() {
        return Ok(());
    }
    let needed = memory.needed();
    let fits = (1..batch as u64).rev().find(|&n| {
        let part = Memory { keys, working: working.saturating_mul(n.div_ceil(each)) };
        part.spare(budget).is_some()
    });
    Err(match fits {
        Some(fits) => CliError::Batch { batch, fits, needed, budget },
        None => VmError::TooLittleMemory { needed, keys, working: memory.working, budget }.into(),
    })
}

/// Time of one layer: what the compiler expects of all threads together, and the last run.
#[derive(Debug, serde::Serialize)]
struct LayerTime {
    layer: String,
    predicted_seconds: f64,
    measured_seconds: f64,
}

impl LayerTime {
    /// Layers of one name together, in the order of execution.
    fn compared(program: &CheckedProgram, profile: &Profile, batch: usize) -> Vec<Self> {
        let threads = rayon::current_num_threads() as f64;
        let predicted = |name: &str| -> f64 {
            let layers = program.spec().layers.iter().filter(|layer| layer.name == name);
            layers.map(|layer| layer.seconds).sum::<f64>() / threads
        };
        let time = |(layer, share): (&str, fhe_machine::Share)| Self {
            layer: layer.to_owned(),
            predicted_seconds: predicted(layer),
            measured_seconds: share.seconds / batch as f64,
        };
        profile.by_layer().into_iter().map(time).collect()
    }

    /// Predicted beside measured time, for people.
    fn table(layers: &[Self]) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::UTF8_BORDERS_ONLY);
        table.set_header(["layer", "predicted s", "measured s"]);
        let sum = |pick: fn(&Self) -> f64| layers.iter().map(pick).sum::<f64>();
        let all = ("all layers", sum(|l| l.predicted_seconds), sum(|l| l.measured_seconds));
        let each = layers.iter().map(|l| (l.layer.as_str(), l.predicted_seconds, l.measured_seconds));
        for (name, predicted, measured) in each.chain([all]) {
            table.add_row([name.to_owned(), format!("{predicted:.3}"), format!("{measured:.3}")]);
        }
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        table.to_string()
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn median_is_the_middle_or_the_mean_of_both() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
