//! Everything in one process: `infer` for trying out, `demo` for seeing what happened.

use fhe_bytecode::CheckedProgram;
use fhe_host::memory::peak_rss_bytes;
use fhe_host::show_bytes;
use fhe_machine::{Observer, Options, Profile, check_memory};
use fhe_secret::SeedSource;

use super::args::{Demo, Infer, TextFormat};
use super::error::CliError;
use super::prediction::Prediction;
use super::program::{Program, insecurity};
use super::progress::Bar;
use super::run::{check_profile, memory_budget, note_memory, report_profile};
use super::samples::{self, Sample, UNJUDGED, is_for};
use super::{complain, print, show};
use crate::trial::{Deviation, Outcome, Trial, TrialError};

/// Encrypts, evaluates and decrypts inputs under fresh keys.
pub(crate) fn infer(args: &Infer, quiet: bool) -> Result<(), CliError> {
    show::check_args(&args.show)?;
    check_profile(&args.run)?;
    let program = Program::load(&args.program)?;
    program.check_security(args.insecure.insecure)?;
    let (inputs, _) = samples::load(&program.interface, &args.input.inputs, &args.input.taken)?;
    let options = Options { memory: memory_budget(&args.run), n_evaluations: inputs.len() };
    let mut seeds = SeedSource::os();
    let trial = Trial::new(&program.checked, options, &mut seeds)?;
    note_memory(trial.session(), quiet);
    let mut bar = Bar::new("evaluating", quiet);
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(inputs.len());
    for batch in inputs.chunks(program.checked.batch()) {
        bar.items(outcomes.len()..outcomes.len() + batch.len(), inputs.len());
        let tensors: Vec<&[f64]> = batch.iter().map(|input| &input.tensor[..]).collect();
        outcomes.extend(trial.run_batch(&tensors, &mut seeds, &bar)?);
    }
    drop(bar);
    let scores: Vec<_> = outcomes.iter().map(|outcome| outcome.decrypted.clone()).collect();
    let seconds: f64 = outcomes.iter().map(|outcome| outcome.eval_seconds).sum();
    let bound = program.checked.spec().prediction.max_abs_error;
    let verdicts: Vec<_> = outcomes.iter().map(|outcome| outcome.judge(bound)).collect();
    let shown: Vec<_> = inputs
        .iter()
        .zip(&scores)
        .map(|(input, raw)| show::Shown {
            raw,
            label: input.label,
            name: Some(&input.name),
            outside: input.outside,
        })
        .collect();
    show::show(&program.interface, &shown, &args.show)?;
    report_profile(&args.run, &Profile::joined(outcomes.into_iter().map(|o| o.profile).collect()))?;
    if !quiet {
        eprintln!("evaluated in {:.2} s per input", seconds / inputs.len() as f64);
    }
    // Results are shown first: whoever asks for a check wants to see what it is about.
    if args.check { passed(&verdicts) } else { Ok(()) }
}

/// The first deviation, if there is one, and how many there are.
fn passed(verdicts: &[Result<(), Deviation>]) -> Result<(), CliError> {
    let wrong: Vec<(usize, Deviation)> =
        verdicts.iter().enumerate().filter_map(|(i, verdict)| Some((i, verdict.err()?))).collect();
    match wrong.first() {
        None => Ok(()),
        Some(&(first, cause)) => {
            let what =
                format!("{} of {} results differ, first that of input {first}", wrong.len(), verdicts.len());
            Err(CliError::Deviates { what, cause })
        }
    }
}

/// Shows a whole run on one input.
pub(crate) fn demo(args: &Demo, quiet: bool) -> Result<(), CliError> {
    check_profile(&args.run)?;
    let program = Program::load(&args.program)?;
    program.check_security(args.insecure.insecure)?;
    let memory = memory_budget(&args.run);
    // Before an input is made up, whose size is the program's word.
    check_memory(&program.checked, memory)?;
    let sample = samples::load_one(&program.interface, &args.sample)?;
    let bar = Bar::new("evaluating", quiet);
    let report = run_demo(&program.checked, &sample, memory, &bar)?;
    drop(bar);
    report_profile(&args.run, &report.profile)?;
    match args.format {
        TextFormat::Text => print(&report.text),
        TextFormat::Json => print(&show::pretty(&report.json)),
    }?;
    match report.verdict {
        None => {
            complain(UNJUDGED);
            Ok(())
        }
        Some(verdict) => {
            verdict.map_err(|cause| CliError::Deviates { what: "the result is not right".to_owned(), cause })
        }
    }
}

/// A finished demo.
struct DemoReport {
    /// For people.
    text: String,
    /// The same for programs.
    json: serde_json::Value,
    /// Where the time went.
    profile: Profile,
    /// Whether the result is what the program promises; nothing where the promise is not for the input.
    verdict: Option<Result<(), Deviation>>,
}

/// Makes keys, encrypts an input, evaluates, decrypts, compares with the clear result, and tells about it.
fn run_demo(
    program: &CheckedProgram,
    sample: &Sample,
    memory: u64,
    observer: &dyn Observer,
) -> Result<DemoReport, TrialError> {
    let mut seeds = SeedSource::os();
    let trial = Trial::new(program, Options { memory, n_evaluations: 1 }, &mut seeds)?;
    let outcome = trial.run(&sample.tensor, &mut seeds, observer)?;
    let Sample { label, outside, .. } = *sample;
    let shown = show::Shown { raw: &outcome.decrypted, label, name: None, outside };
    let predictions = show::predictions(trial.interface(), &[shown], Some(5));
    let table: String = predictions.iter().map(Prediction::text).collect();
    let text = format!("{table}\n{}", summary(program, &trial, &outcome));
    let json = serde_json::json!({
        "predictions": predictions,
        "same_class_as_clear": outcome.is_same_class(),
        "max_abs_error": outcome.max_abs_error(),
        "predicted_max_abs_error": program.spec().prediction.max_abs_error,
        "keygen_seconds": trial.keygen_seconds,
        "encrypt_seconds": outcome.encrypt_seconds,
        "eval_seconds": outcome.eval_seconds,
        "decrypt_seconds": outcome.decrypt_seconds,
        "threads": rayon::current_num_threads(),
        "key_bytes": trial.session().memory().key_bytes,
        "peak_rss_bytes": peak_rss_bytes(),
        "log2_pq": program.params().log2_pq(),
        "is_secure": program.params().is_secure(),
    });
    let verdict = is_for(trial.interface(), sample, &outcome)
        .then(|| outcome.judge(program.spec().prediction.max_abs_error));
    Ok(DemoReport { text, json, profile: outcome.profile, verdict })
}

fn summary(program: &CheckedProgram, trial: &Trial<'_>, outcome: &Outcome) -> String {
    let params = program.params();
    let security = match (insecurity(params), params.security_cap()) {
        (None, Some(cap)) => format!("128 bits: log2(PQ) = {:.1} of at most {cap}", params.log2_pq()),
        (reason, _) => reason.unwrap_or_default(),
    };
    let agree = if outcome.is_same_class() { "same class" } else { "ANOTHER class" };
    let memory = trial.session().memory();
    [
        format!(
            "ring        N = 2^{}, {} levels, {} special prime(s)",
            params.log_n(),
            params.max_level().0,
            params.special_primes().len()
        ),
        format!("security    {security}"),
        format!(
            "precision   largest error {:.2e} (predicted at most {:.2e}), {agree} as in the clear",
            outcome.max_abs_error(),
            program.spec().prediction.max_abs_error
        ),
        format!(
            "time        keys {:.2} s, encrypt {:.3} s, evaluate {:.2} s, decrypt {:.3} s, {} thread(s)",
            trial.keygen_seconds,
            outcome.encrypt_seconds,
            outcome.eval_seconds,
            outcome.decrypt_seconds,
            rayon::current_num_threads()
        ),
        format!(
            "memory      evaluation keys {}, peak {}",
            show_bytes(memory.key_bytes),
            peak_rss_bytes().map_or("unknown".to_owned(), show_bytes)
        ),
    ]
    .join("\n")
}
