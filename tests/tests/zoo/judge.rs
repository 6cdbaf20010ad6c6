//! Builds a model, evaluates it under encryption, and compares with the original runtime.

use std::collections::BTreeSet;

use fhe_bytecode::{Interface, Port};
use fhe_client::{Answer, Content, label};
use fhe_machine::{Options, Silent};
use fhe_runtime::Trial;
use fhe_secret::SeedSource;
use fhec::diagnostics::{Diagnostic, Words};
use fhec::import::{Functions, ImportOptions, import_bytes};
use fhec::{Calibration, Compiled, Model, Request, compile};

use super::card::{Answers, Card, Expect};

/// What single precision in the original runtime explains.
const FLOAT: f64 = 2e-4;
/// How much further than on the calibration inputs an approximated score may be off, relative to the largest.
const APPROXIMATED: f64 = 4.0;
/// Error of a score that any approximation may have, relative to the largest.
const LEAST_APPROXIMATED: f64 = 0.06;

/// Whether a card tells the truth.
pub(crate) fn judge(card: &Card) -> Result<(), String> {
    match (card.expect, compiled(card)) {
        (Expect::Refused, Ok(_)) => Err("it is not refused".into()),
        (Expect::Refused, Err(refusal)) => refusal.judge(card),
        (_, Err(refusal)) => Err(refusal.text),
        (_, Ok((compiled, ports))) => compared(card, &compiled, &ports),
    }
}

struct Refused {
    text: String,
    has_help: bool,
    is_bug: bool,
}

impl Refused {
    fn judge(&self, card: &Card) -> Result<(), String> {
        match self.text.contains(&card.because) && self.has_help && !self.is_bug {
            true => Ok(()),
            false => Err(format!("expected {:?} and a remedy, found {}", card.because, self.text)),
        }
    }
}

/// The program, and where the model's inputs lie in its own.
fn compiled(card: &Card) -> Result<(Compiled, Vec<Port>), Refused> {
    let outputs: Vec<String> =
        card.build.iter().filter_map(|o| o.strip_prefix("--model-output=")).map(str::to_owned).collect();
    let approximate = card.expect == Expect::Approximated;
    let functions = if approximate { Functions::Open } else { Functions::Refused };
    let options = ImportOptions { outputs: outputs.clone(), functions, ..ImportOptions::default() };
    // The order and places of the inputs, where the model can be read at all.
    let (ports, n): (Vec<Port>, usize) = match import_bytes(card.model(), &options) {
        Ok(imported) => {
            let n = imported.graph.shape(imported.graph.inputs()[0]).len();
            (imported.inputs.iter().map(|input| input.port()).collect(), n)
        }
        Err(_) => (Vec::new(), 0),
    };
    let n_samples = card.inputs[0].samples.len();
    let n_more = card.inputs[0].calibrate.len();
    let calibration = match ports.is_empty() {
        true => Calibration::MadeUp,
        false => Calibration::Inputs((0..n_samples + n_more).map(|i| joined(card, &ports, n, i)).collect()),
    };
    let request = Request {
        calibration,
        toy: true,
        log_n: Some(9..=12),
        approximate,
        outputs,
        ..Request::new(Model::onnx(&card.name, card.model()))
    };
    match compile(&request, &mut ()) {
        Ok(compiled) => Ok((compiled, ports)),
        Err(error) => {
            let shown = Diagnostic::compile(&card.name, &error);
            let helps = !shown.places.is_empty() && shown.places.iter().all(|place| place.help.is_some());
            let has_help = shown.help.is_some() || helps;
            Err(Refused { text: shown.to_string(), has_help, is_bug: error.is_bug() })
        }
    }
}

/// Sample `index`, of those to compare and then those to calibrate on, as the program takes it.
fn joined(card: &Card, ports: &[Port], n: usize, index: usize) -> Vec<f64> {
    let mut tensor = vec![0.0; n];
    for port in ports {
        let input = card.inputs.iter().find(|input| input.name == port.name).unwrap();
        let values = input.samples.iter().chain(&input.calibrate).nth(index).unwrap();
        assert_eq!(values.len(), port.n_numbers().unwrap(), "{}: {}", card.name, port.name);
        for (i, &value) in values.iter().enumerate() {
            tensor[port.offset as usize + port.position(i)] = value;
        }
    }
    tensor
}

fn compared(card: &Card, compiled: &Compiled, ports: &[Port]) -> Result<(), String> {
    let program = &compiled.built.program;
    let mut seeds = SeedSource::os();
    let options = Options { memory: 4 << 30, n_evaluations: 2 };
    let trial = Trial::new(program, options, &mut seeds).map_err(|e| e.to_string())?;
    let n = program.input_layout().shape().len();
    for sample in 0..card.inputs[0].samples.len() {
        let tensor = joined(card, ports, n, sample);
        let outcome = trial.run(&tensor, &mut seeds, &Silent).map_err(|e| e.to_string())?;
        let bound = program.spec().prediction.max_abs_error;
        let off =
            outcome.decrypted.iter().zip(&outcome.clear).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        if off > bound {
            return Err(format!("sample {sample}: off by {off}, predicted at most {bound}"));
        }
        for (name, answers) in &card.outputs {
            output(card, compiled, &outcome.decrypted, name, answers, sample)?;
        }
        listed(trial.interface(), &outcome.decrypted)?;
    }
    Ok(())
}

/// What is listed as classes are numbers of one output, each under a name of its own.
fn listed(interface: &Interface, raw: &[f64]) -> Result<(), String> {
    let classes = Answer::new(interface, raw).top(usize::MAX);
    let names: BTreeSet<String> = classes.iter().map(|&class| label(interface, class)).collect();
    let ports = &interface.output().ports;
    let holds =
        |port: &Port| port.range(raw.len()).is_some_and(|own| classes.iter().all(|c| own.contains(c)));
    match names.len() == classes.len() && (ports.is_empty() || ports.iter().any(holds)) {
        true => Ok(()),
        false => Err(format!("{names:?} are listed as classes")),
    }
}

/// Compares one output of the model with the original runtime's.
fn output(
    card: &Card,
    compiled: &Compiled,
    raw: &[f64],
    name: &str,
    answers: &Answers,
    sample: usize,
) -> Result<(), String> {
    let interface = compiled.built.program.interface();
    let wrong = |what: String| Err(format!("sample {sample}, output {name}: {what}"));
    let loss = match &compiled.approximation {
        Some(found) => (APPROXIMATED * found.score_error).max(LEAST_APPROXIMATED),
        None => 0.0,
    };
    let tail = Answer::new(&interface, raw).outputs.into_iter().find(|output| output.name == name);
    let is_tail = interface.output().tails.iter().any(|tail| tail.name == name);
    match (answers, tail.filter(|_| is_tail).map(|tail| tail.content)) {
        (Answers::Labels(all), Some(Content::Classes { names, is_undecided })) => {
            match names == all[sample] || is_undecided {
                true => Ok(()),
                false => wrong(format!("{names:?} instead of {:?}", all[sample])),
            }
        }
        (Answers::Numbers(all), Some(Content::Numbers { values, unit, .. })) => {
            let expected = &all[sample];
            let off = largest_difference(&values, expected);
            match values.len() == expected.len() && off <= 1.5 * unit + FLOAT + loss {
                true => Ok(()),
                false => wrong(format!("{values:?} (to {unit}) instead of {expected:?}")),
            }
        }
        (Answers::Numbers(all), None) => {
            let port = interface.output().ports.iter().find(|port| port.name == name);
            let Some(port) = port else { return wrong("it is not there".into()) };
            let range = port.range(raw.len()).unwrap();
            let found: Vec<f64> = (0..range.len()).map(|i| raw[range.start + port.position(i)]).collect();
            let expected = &all[sample];
            let size = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            let bound =
                interface.spec().prediction.max_abs_error + FLOAT * (1.0 + size) + loss * size.max(1.0);
            match found.len() == expected.len() && largest_difference(&found, expected) <= bound {
                true => Ok(()),
                false => wrong(format!("{found:?} (to {bound}) instead of {expected:?}")),
            }
        }
        (answers, content) => wrong(format!("{content:?} for {answers:?} of {}", card.name)),
    }
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(x, y)| (x - y).abs())
        .fold(0.0, |m, e| if e.is_nan() { f64::INFINITY } else { m.max(e) })
}
