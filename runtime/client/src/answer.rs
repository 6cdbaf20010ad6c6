//! What a decrypted result says, with no digit that it must not show.

use std::ops::Range;

use fhe_bytecode::text::harmless;
use fhe_bytecode::{Classes, Interface, Interval};

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
    /// Where the scores of classes are.
    places: Range<usize>,
    /// Whether classes win by votes, so that no score is that of a class.
    is_voted: bool,
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
    /// What the raw scores of one input say. Nothing of it depends on a digit below the noise: not the class, nor what is
    /// doubted.
    pub fn new(interface: &Interface, raw: &[f64]) -> Self {
        let interface = &interface.of_one();
        let (finest, resolution) = (Resolution::finest(interface), Resolution::of(interface));
        let decided = Zeroizing::new(raw.iter().map(|&score| finest.round(score)).collect::<Vec<f64>>());
        let scores: Vec<f64> = decided.iter().map(|&score| resolution.round(score)).collect();
        let classes = interface.output().classes(interface.output_layout().shape());
        let is_voted = matches!(classes, Classes::Votes(..));
        let first = || interface.output().ports.first().and_then(|port| port.range(raw.len()));
        let places = match classes {
            Classes::Scores(range) | Classes::Votes(range, _) if range.end <= raw.len() => range,
            _ => first().unwrap_or(0..raw.len()),
        };
        let class = places.start + best(&decided[places.clone()]);
        // What is no number is no lead.
        let mut others = places.clone().filter(|&i| i != class);
        let is_sure = others.all(|i| scores[class] - scores[i] > resolution.doubt());
        let doubts = decided.iter().enumerate().filter_map(|(index, &score)| {
            doubt(interface, &resolution, score).map(|kind| Doubt { index, kind })
        });
        let outputs = outputs(interface, &decided, &resolution);
        let own = outputs.iter().find_map(Named::class);
        Self {
            class,
            label: own.map_or_else(|| label(interface, class), |(name, _)| name.to_owned()),
            // Where classes win by votes, the largest score is no class.
            confidence: (places.len() > 1 && !is_voted)
                .then(|| confidence(&scores[places.clone()], class - places.start)),
            is_undecided: own.map_or(!is_sure, |(_, is_undecided)| is_undecided),
            doubts: doubts.collect(),
            outputs,
            unit: resolution.unit(),
            scores,
            places,
            is_voted,
        }
    }

    /// Positions of the `n` best classes: the best one, then by rounded score, equal ones in the order of the output. Where
    /// classes win by votes no score is that of a class, and the best one is alone.
    pub fn top(&self, n: usize) -> Vec<usize> {
        if self.is_voted {
            return vec![self.class];
        }
        let mut order: Vec<usize> = self.places.clone().collect();
        // The order of equal scores must not tell what rounding hides.
        order.sort_by(|&a, &b| {
            (b == self.class).cmp(&(a == self.class)).then(self.scores[b].total_cmp(&self.scores[a]))
        });
        order.truncate(n);
        order
    }

    /// Whether classes win by votes, so that no score is that of a class.
    pub fn is_voted(&self) -> bool {
        self.is_voted
    }

    /// What is wrong with one score.
    pub fn doubt(&self, index: usize) -> Option<DoubtKind> {
        self.doubts.iter().find(|doubt| doubt.index == index).map(|doubt| doubt.kind)
    }
}

/// The label of the score at a position, or its number among the classes; what a terminal would obey is spelled out.
pub fn label(interface: &Interface, position: usize) -> String {
    let output = interface.output();
    if let Some(label) = output.labels.get(position) {
        return harmless(label);
    }
    match output.classes(interface.output_layout().shape()) {
        Classes::Scores(range) if range.contains(&position) => {
            let class = position - range.start;
            let names = output.tails.iter().find(|tail| tail.gives_classes()).map(|tail| &tail.classes);
            names.and_then(|names| names.get(class)).map_or_else(|| class.to_string(), |name| harmless(name))
        }
        _ => position.to_string(),
    }
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
