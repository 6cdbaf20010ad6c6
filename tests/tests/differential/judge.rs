//! One network: built, evaluated under encryption inside and outside its range, compared.

use fhe_bytecode::clear::ClearProgram;
use fhec::Request;
use fhec::levels::Original as _;
use fhec::simulate::disturbed;
use fhec_ir::{MemberIdx, evaluate};
use fhec_oracle::Oracle;
use fhec_tests::differential::Drawn;

use crate::compile::{Refusal, Rings, try_compile_with};
use crate::encrypted::Encrypted;

/// What single precision may lose of the largest score.
const SINGLE_PRECISION: f64 = 2e-3;

/// How far from the calibrated range an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// One of the inputs that the program was calibrated on.
    Calibrated,
    /// One of the same kind, which may lie where none of them lay.
    Like,
    /// Half as large again.
    Beyond,
    /// Ten times as large.
    Far,
}

impl Place {
    fn factor(self) -> f64 {
        match self {
            Self::Calibrated | Self::Like => 1.0,
            Self::Beyond => 1.5,
            Self::Far => 10.0,
        }
    }
}

/// One encrypted evaluation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evaluation {
    pub(crate) place: Place,
    /// Largest error, in units of what is allowed.
    pub(crate) ratio: f64,
    /// The same of the program in the clear: what passes, lowering and stored constants alone do.
    pub(crate) clear_ratio: f64,
    /// The same of the program with simulated noise.
    pub(crate) simulated_ratio: f64,
    /// The user was told that the input or the result is none that the program was calibrated on.
    pub(crate) is_flagged: bool,
    /// A class is shown as decided that is not the best one.
    pub(crate) is_other_class: bool,
}

impl Evaluation {
    pub(crate) fn is_right(&self) -> bool {
        self.ratio <= 1.0 && !self.is_other_class
    }

    /// Wrong, and nobody said so; on an input that was calibrated on, wrong is wrong.
    pub(crate) fn is_fault(&self) -> bool {
        !self.is_right() && (!self.is_flagged || self.place == Place::Calibrated)
    }
}

/// What became of a network.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// It was built and evaluated.
    Evaluated { log_n: u32, evaluations: Vec<Evaluation> },
    /// It was not built.
    Refused(Refusal),
    /// The references disagree, before anything is encrypted.
    Misread(String),
}

/// Builds a network and evaluates it.
pub(crate) fn judge(drawn: &Drawn, rings: Rings) -> Verdict {
    judge_with(drawn, rings, |_| ())
}

/// The same with changes to what is asked for.
pub(crate) fn judge_with(drawn: &Drawn, rings: Rings, change: impl FnOnce(&mut Request)) -> Verdict {
    let bytes = drawn.network.to_onnx();
    let tried = match try_compile_with(bytes.clone(), drawn.calibration.as_deref(), rings, change) {
        Ok(tried) => tried,
        Err(refusal) => return Verdict::Refused(refusal),
    };
    let oracle = match Oracle::from_bytes(&bytes, &tried.imported) {
        Ok(oracle) => oracle,
        Err(error) => return Verdict::Misread(error.to_string()),
    };
    let inputs = inputs(drawn);
    let mut encrypted = Encrypted::new(&tried.program, drawn.seed, inputs.len());
    let mut evaluations = Vec::new();
    for (place, input) in inputs {
        let expected = drawn.network.scores(&input);
        let size = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let clear = evaluate(&tried.imported.graph, &[&input], MemberIdx::FIRST).unwrap().remove(0).data;
        // Scores beyond single precision are beyond tract.
        let tract = match size < f64::from(f32::MAX) {
            true => oracle.run(&[&input]).unwrap().remove(0),
            false => expected.clone(),
        };
        if matches!(place, Place::Calibrated | Place::Like) {
            for (name, other) in [("the clear evaluator", &clear), ("tract", &tract)] {
                let off = worst(other, &expected);
                if off > SINGLE_PRECISION * size {
                    return Verdict::Misread(format!("{name} is off by {off:.1e} of {size:.1e}"));
                }
            }
        }
        let found = encrypted.run(&input);
        let allowed = encrypted.bound() + worst(&tract, &expected);
        // Beyond what single precision holds nothing is right.
        let ratio = |numbers: &[f64]| match allowed.is_finite() {
            true => worst(numbers, &tract) / allowed,
            false => f64::INFINITY,
        };
        evaluations.push(Evaluation {
            place,
            ratio: ratio(&found.numbers),
            clear_ratio: ratio(&ClearProgram::new(&tried.program).run(&input, &mut ()).unwrap()),
            simulated_ratio: ratio(&disturbed(&tried.program, &input, drawn.seed).unwrap()),
            is_flagged: found.is_flagged,
            is_other_class: found.class.is_some_and(|class| !is_best(class, &expected, &tract)),
        });
    }
    Verdict::Evaluated { log_n: tried.program.params().log_n(), evaluations }
}

/// One input that was calibrated on, if there are any, two like it, one beyond that and one far beyond.
fn inputs(drawn: &Drawn) -> Vec<(Place, Vec<f64>)> {
    let scaled = |place: Place, input: &Vec<f64>| {
        (place, input.iter().map(|x| f64::from((x * place.factor()) as f32)).collect())
    };
    let calibrated = drawn.calibration.as_ref().and_then(|all| all.first());
    let others = [(Place::Like, 0), (Place::Like, 1), (Place::Beyond, 2), (Place::Far, 0)];
    let first = calibrated.map(|input| scaled(Place::Calibrated, input));
    first.into_iter().chain(others.map(|(place, i)| scaled(place, &drawn.fresh[i]))).collect()
}

/// Whether a class is the best one by either of two references.
fn is_best(class: usize, exact: &[f64], other: &[f64]) -> bool {
    [exact, other].iter().any(|scores| scores.iter().all(|score| scores[class] >= *score))
}

/// The largest difference; numbers that are none differ by infinity.
pub(crate) fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(x, y)| (x - y).abs());
    differences.fold(0.0, |m: f64, d| if d.is_nan() { f64::INFINITY } else { m.max(d) })
}
