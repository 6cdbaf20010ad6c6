//! The door of the library: what it tells its observer, what it refuses and by which code, and what it measures on.

use fhe_bytecode::clear::ClearProgram;
use fhe_bytecode::{CheckedProgram, codec};
use fhec::import::{ImportOptions, Imported, import_bytes};
use fhec::{
    Calibration, CompileError, ImageFile, Model, Observer, RehearsalError, Rehearse, Request, Stage, compile,
};
use fhec_ir::Graph;
use fhec_passes::{Pass, PassRun};
use fhec_tests::onnx::OnnxWriter;

/// A dense layer, a square and another dense layer on a vector of four.
fn model() -> Vec<u8> {
    let mut w = OnnxWriter::new("model");
    let x = w.input("x", &[Some(1), Some(4)]);
    let first: Vec<f32> = (0..16).map(|i| 0.3 * (i as f32 * 0.37).sin()).collect();
    let first = w.tensor("first", &[4, 4], &first);
    let y = w.node("MatMul", &[&x, &first]);
    let y = w.node("Mul", &[&y, &y]);
    let second: Vec<f32> = (0..8).map(|i| (i as f32 * 0.61).cos()).collect();
    let second = w.tensor("second", &[4, 2], &second);
    let z = w.node("MatMul", &[&y, &second]);
    w.finish(&z, &[Some(1), Some(2)])
}

fn request() -> Request {
    Request { toy: true, log_n: Some(9..=9), ..Request::new(Model::onnx("folder/model.onnx", model())) }
}

/// Writes down everything it sees.
#[derive(Default)]
struct Recorder {
    stages: Vec<String>,
    passes: Vec<&'static str>,
    fractions: Vec<(usize, usize)>,
    imported: usize,
    optimized: usize,
}

impl Observer for Recorder {
    fn stage(&mut self, stage: Stage<'_>) {
        self.stages.push(format!("{stage:?}").split(' ').next().unwrap_or_default().to_owned());
    }

    fn fraction(&mut self, done: usize, of: usize) {
        self.fractions.push((done, of));
    }

    fn imported(&mut self, _: &Imported) {
        self.imported += 1;
    }

    fn passed(&mut self, _: &dyn Pass, run: &PassRun, _: &Graph) {
        self.passes.push(run.name);
    }

    fn optimized(&mut self, _: &Graph) {
        self.optimized += 1;
    }
}

#[test]
fn observer_sees_every_stage_in_order() {
    let mut recorder = Recorder::default();
    let inputs = (0..70).map(|k| vec![0.01 * f64::from(k); 4]).collect();
    compile(&Request { calibration: Calibration::Inputs(inputs), ..request() }, &mut recorder).unwrap();
    assert_eq!(recorder.stages[..5], ["Import", "Passes", "Calibrate", "Schedule", "Simulate"]);
    assert!(recorder.passes.len() > 5, "{:?}", recorder.passes);
    assert_eq!((recorder.imported, recorder.optimized), (1, 1));
    // Both long stages count their inputs to the end; a program whose noise changes a class is given up early, so that few come
    // first.
    assert_eq!(recorder.fractions[..3], [(64, 70), (70, 70), (4, 70)]);
    assert_eq!(recorder.fractions.last(), Some(&(70, 70)));
}

#[test]
fn program_is_named_after_its_model() {
    let compiled = compile(&request(), &mut ()).unwrap();
    assert_eq!(compiled.built.program.spec().origin.model, "model");
}

#[test]
fn model_read_before_gives_the_same_program() {
    let imported = import_bytes(model(), &ImportOptions::default()).unwrap();
    let models = vec![Model::imported("folder/model.onnx", imported)];
    let bytes = |request: &Request| codec::encode(&compile(request, &mut ()).unwrap().built.program);
    assert_eq!(bytes(&request()), bytes(&Request { models, ..request() }));
}

#[test]
fn every_calibration_input_counts_for_ranges() {
    let peaks = |last: f64| {
        let mut inputs = vec![vec![0.5, -0.25, 0.125, 0.75]; 40];
        inputs.push(vec![last; 4]);
        inputs.extend(vec![vec![0.5; 4]; 30]);
        let calibration = Calibration::Inputs(inputs);
        let compiled = compile(&Request { calibration, ..request() }, &mut ()).unwrap();
        assert_eq!(compiled.check.summary.samples, 71);
        compiled.built.stats.extent.peak[0]
    };
    // The input far from the first sixteen and from any even spread of them is the largest number seen.
    assert_eq!(peaks(0.5), 0.75);
    assert_eq!(peaks(3.0), 3.0);
}

#[test]
fn files_are_calibrated_on_in_full() {
    let rows = |n: usize| (0..n).map(|i| format!("{},0.1,0.2,0.3\n", 0.01 * i as f64)).collect::<String>();
    let file = |n: usize| ImageFile { name: format!("{n}.csv"), bytes: rows(n).into_bytes() };
    let calibration = Calibration::Files(vec![file(20), file(50)]);
    let compiled = compile(&Request { calibration, ..request() }, &mut ()).unwrap();
    assert_eq!(compiled.check.summary.samples, 70);
    assert_eq!(compiled.built.stats.extent.peak[0], 0.49);
}

/// Stands in for encryption: the clear scores, moved by so many bounds.
struct Off(f64);

impl Rehearse for Off {
    fn scores(&self, program: &CheckedProgram, input: &[f64], _: u64) -> Result<Vec<f64>, RehearsalError> {
        let clear = ClearProgram::new(program).run(input, &mut ()).map_err(RehearsalError::new)?;
        let by = self.0 * program.spec().prediction.max_abs_error;
        Ok(clear.iter().map(|x| x + by).collect())
    }
}

#[test]
fn rehearsal_fails_beyond_the_bound_only() {
    let inputs = vec![vec![0.5, -0.25, 0.125, 0.75]; 3];
    let compiled =
        compile(&Request { calibration: Calibration::Inputs(inputs.clone()), ..request() }, &mut ()).unwrap();
    assert_eq!(compiled.sample, inputs[0]);
    assert!(compiled.is_quick());
    assert!(compiled.rehearse(&Off(0.9), 1 << 30).unwrap().is_passed());
    assert!(!compiled.rehearse(&Off(1.1), 1 << 30).unwrap().is_passed());
    assert!(!compiled.rehearse(&Off(f64::NAN), 1 << 30).unwrap().is_passed());
}

fn check_refused(request: &Request, code: &str) -> CompileError {
    let error = compile(request, &mut ()).unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(!error.is_bug(), "{error}");
    error
}

#[test]
fn refusals_have_codes() {
    check_refused(&Request { models: Vec::new(), ..request() }, "no-model");
    check_refused(&Request::new(Model::onnx("m", b"not a model".to_vec())), "model-malformed");
    check_refused(&Request { toy: false, ..request() }, "toy-ring");
    check_refused(&Request { classes: vec!["a".into(); 3], ..request() }, "label-count");
    check_refused(&Request { memory: 1000, ..request() }, "memory");
    check_refused(&Request { calibration: Calibration::Inputs(Vec::new()), ..request() }, "no-calibration");
    let short = Calibration::Inputs(vec![vec![0.0; 4], vec![0.0; 3]]);
    let error = check_refused(&Request { calibration: short, ..request() }, "calibration-unreadable");
    assert!(error.to_string().starts_with("calibration input 1: holds 3 numbers"), "{error}");
    let wild = Calibration::Inputs(vec![vec![1e30; 4]]);
    check_refused(&Request { calibration: wild, ..request() }, "overflow");
    let mut statistics = request();
    statistics.preprocessing.std = vec![0.0];
    check_refused(&statistics, "preprocessing-value");
    statistics.preprocessing.std = vec![1.0, 2.0];
    check_refused(&statistics, "preprocessing-channels");
}

/// Without a bias nothing comes of nothing. That was refused after a long search for scales of infinitely many bits.
#[test]
fn scores_that_are_all_zero_are_refused_at_once() {
    let calibrated = |inputs: &[[f64; 4]]| {
        let inputs = inputs.iter().map(|input| input.to_vec()).collect();
        Request { calibration: Calibration::Inputs(inputs), ..request() }
    };
    let error = check_refused(&calibrated(&[[0.0; 4], [0.0; 4]]), "vanish");
    assert!(error.to_string().contains("every score is zero"), "{error}");
    // One such input among others is no fault.
    assert!(compile(&calibrated(&[[0.0; 4], [1.0, -1.0, 0.5, 0.2]]), &mut ()).is_ok());
}
