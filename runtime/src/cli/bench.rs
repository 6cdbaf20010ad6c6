//! `fhe-run bench`: medians, memory and error of an evaluation.

use super::args::{Bench, TextFormat};
use super::error::CliError;
use super::program::Program;
use super::progress::Bar;
use super::run::{memory_budget, note_memory, report_profile};
use super::show::pretty;
use super::{print, samples};
use crate::ckks::SeedSource;
use crate::vm::memory::{peak_rss_bytes, show_bytes};
use crate::vm::{Options, Trial};

/// Measures evaluations of one input under fresh keys.
pub(crate) fn bench(args: &Bench, quiet: bool) -> Result<(), CliError> {
    let program = Program::load(&args.program)?;
    program.check_security(args.insecure.insecure)?;
    let sample = samples::load_one(&program.checked, &args.sample)?;
    let n_evaluations = (args.warmup + args.runs) as usize;
    let options = Options { memory: memory_budget(&args.run), n_evaluations };
    let mut seeds = SeedSource::os();
    let trial = Trial::new(&program.checked, options, &mut seeds)?;
    note_memory(trial.machine(), quiet);
    let (mut seconds, mut first_seconds, mut max_abs_error) = (Vec::new(), None, 0f64);
    for run in 0..n_evaluations {
        let bar = Bar::new(&format!("run {} of {n_evaluations}", run + 1), quiet);
        let outcome = trial.run(&sample.tensor, &mut seeds, &bar)?;
        drop(bar);
        first_seconds.get_or_insert(outcome.eval_seconds);
        max_abs_error = max_abs_error.max(outcome.max_abs_error());
        if run >= args.warmup as usize {
            seconds.push(outcome.eval_seconds);
        }
        if run + 1 == n_evaluations {
            report_profile(&args.run, &outcome.profile)?;
        }
    }
    let params = program.checked.params();
    let memory = trial.machine().memory();
    let report = serde_json::json!({
        "median_seconds": median(&seconds),
        "seconds": seconds,
        "first_seconds": first_seconds,
        "keygen_seconds": trial.keygen_seconds,
        "peak_rss_bytes": peak_rss_bytes(),
        "threads": rayon::current_num_threads(),
        "max_abs_error": max_abs_error,
        "predicted_max_abs_error": program.checked.spec().prediction.max_abs_error,
        "predicted_seconds": program.checked.spec().prediction.seconds,
        "n": params.n(),
        "log2_pq": params.log2_pq(),
        "levels": params.max_level().0,
        "is_secure": params.is_secure(),
        "key_bytes": memory.key_bytes,
        "working_bytes": memory.working_bytes,
        "plaintext_bytes": memory.plaintext_bytes,
    });
    match args.format {
        TextFormat::Json => print(&pretty(&report)),
        TextFormat::Text => print(&format!(
            "median of {} run(s): {:.3} s on {} thread(s), first {:.3} s\npeak memory: {}\nlargest error: {max_abs_error:.2e}",
            seconds.len(),
            median(&seconds),
            rayon::current_num_threads(),
            first_seconds.unwrap_or_default(),
            peak_rss_bytes().map_or("unknown".to_owned(), show_bytes),
        )),
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
