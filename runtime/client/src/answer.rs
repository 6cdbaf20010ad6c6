//! What a decrypted result says, with no digit that it must not show.

use fhe_bytecode::text::harmless;
use fhe_bytecode::{Interface, Interval, TailStep};

use super::resolution::Resolution;
use super::tail::{Named, outputs};
use zeroize::Zeroizing;

/// The confidence is told in so many steps.
const CONFIDENCE_STEPS: f64 = 10.0;
/// Part of what the modulus holds, beyond which a score may have wrapped around.
const WRAP_PART: f64 = 0.5;

/// A decrypted result: the class, a coarse confidence, and rounded scores for who asks for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The best class: its position in the output.
    pub class: usize,
    /// Its label, or its position where the program has no labels.
    pub label: String,
    /// Softmax of the rounded scores, rounded down to tenths; none for a single score.
    pub confidence: Option<f64>,
    /// Whether the error may have exchanged the best class with another.
    pub is_undecided: bool,
    /// Scores in the order of the output, rounded to `unit`.
    pub scores: Vec<f64>,
    /// What scores are rounded to, a power of ten.
    pub unit: f64,
    /// What is wrong with scores, in the order of the output.
    pub doubts: Vec<Doubt>,
    /// The model's outputs where they are more or other than the scores: several, or what a client computes from them.
    pub outputs: Vec<Named>,
}

/// Why a score is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubt {
    /// The score's position in the output.
    pub index: usize,
    /// What is wrong.
    pub kind: DoubtKind,
}

/// What is wrong with a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DoubtKind {
    /// No score of the calibration lay there.
    Uncalibrated(Interval),
    /// The modulus holds values up to this; what exceeds it comes back as another number.
    MayHaveWrapped(f64),
}

impl DoubtKind {
    /// A word for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Uncalibrated(_) => "outside-calibration",
            Self::MayHaveWrapped(_) => "may-have-wrapped",
        }
    }
}

impl std::fmt::Display for DoubtKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Uncalibrated(range) => write!(f, "outside the calibrated scores {range}"),
            Self::MayHaveWrapped(limit) => {
                write!(f, "may have wrapped around: the modulus holds ±{limit:.3}")
            }
        }
    }
}

impl Answer {
    /// What raw scores say. Nothing of it depends on a digit below the noise: not the class, nor what is doubted.
    pub fn new(interface: &Interface, raw: &[f64]) -> Self {
        let (finest, resolution) = (Resolution::finest(interface), Resolution::of(interface));
        let decided = Zeroizing::new(raw.iter().map(|&score| finest.round(score)).collect::<Vec<f64>>());
        let scores: Vec<f64> = decided.iter().map(|&score| resolution.round(score)).collect();
        // The classes are those of the first output.
        let first = interface.output().ports.first().and_then(|port| port.range(raw.len()));
        let classes = first.unwrap_or(0..raw.len());
        let class = classes.start + best(&decided[classes.clone()]);
        // What is no number is no lead.
        let mut others = classes.clone().filter(|&i| i != class);
        let is_sure = others.all(|i| scores[class] - scores[i] > resolution.doubt());
        let doubts = decided.iter().enumerate().filter_map(|(index, &score)| {
            doubt(interface, &resolution, score).map(|kind| Doubt { index, kind })
        });
        let outputs = outputs(interface, &decided, &resolution);
        // Where classes win by votes, the largest score is no class.
        let voted = interface
            .output()
            .tails
            .iter()
            .any(|tail| tail.steps.iter().any(|step| matches!(step, TailStep::Votes { .. })));
        let own = outputs.iter().find_map(Named::class);
        Self {
            class,
            label: own.map_or_else(|| label(interface, class), |(name, _)| name.to_owned()),
            confidence: (classes.len() > 1 && !voted)
                .then(|| confidence(&scores[classes.clone()], class - classes.start)),
            is_undecided: own.map_or(!is_sure, |(_, is_undecided)| is_undecided),
            doubts: doubts.collect(),
            outputs,
            unit: resolution.unit(),
            scores,
        }
    }

    /// Positions of the `n` best classes: the best one, then by rounded score, equal ones in the order of the output.
    pub fn top(&self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.scores.len()).collect();
        // The order of equal scores must not tell what rounding hides.
        order.sort_by(|&a, &b| {
            (b == self.class).cmp(&(a == self.class)).then(self.scores[b].total_cmp(&self.scores[a]))
        });
        order.truncate(n);
        order
    }

    /// What is wrong with one score.
    pub fn doubt(&self, index: usize) -> Option<DoubtKind> {
        self.doubts.iter().find(|doubt| doubt.index == index).map(|doubt| doubt.kind)
    }
}

/// The label of a class, or its position; what a terminal would obey is spelled out.
pub fn label(interface: &Interface, class: usize) -> String {
    interface.output().labels.get(class).map_or_else(|| class.to_string(), |label| harmless(label))
}

fn best(scores: &[f64]) -> usize {
    (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(b.cmp(&a))).unwrap_or(0)
}

/// Softmax of rounded scores, in coarse steps, down.
fn confidence(scores: &[f64], class: usize) -> f64 {
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weight = |score: f64| (score - top).exp();
    let part = weight(scores[class]) / scores.iter().copied().map(weight).sum::<f64>();
    if part.is_finite() { (part * CONFIDENCE_STEPS).floor() / CONFIDENCE_STEPS } else { 0.0 }
}

fn doubt(interface: &Interface, resolution: &Resolution, score: f64) -> Option<DoubtKind> {
    let limit = largest_value(interface);
    if score.abs() > WRAP_PART * limit || score.is_nan() {
        return Some(DoubtKind::MayHaveWrapped(limit));
    }
    let range = interface.output().range?;
    let slack = resolution.unit().max(interface.spec().prediction.max_abs_error);
    let wide = Interval { low: range.low - slack, high: range.high + slack };
    (!wide.contains(score)).then_some(DoubtKind::Uncalibrated(range))
}

/// Half the modulus of the output, in units of a score.
pub fn largest_value(interface: &Interface) -> f64 {
    let bits = interface.params().log2_q_at(interface.output_level()) - interface.output_scale().log2();
    (bits - 1.0).exp2()
}
