//! What a client computes from scores, so that a model's outputs come out as from the model itself.
//!
//! Tails see rounded scores only, so whatever they give is a function of what may be seen anyway. Beside every number goes
//! the interval that it may lie in, given the rounding and the error that the program predicts; results are rounded to what
//! that leaves. A single class is decided as that of the scores is: by the finest rounding that shows no digit below the noise.

use fhe_bytecode::text::harmless;
use fhe_bytecode::{Interface, OutputSpec, Port, Tail, TailStep};

use super::resolution::Resolution;

/// An output of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its name in the model.
    pub name: String,
    /// Its extents in the model, as far as they are known.
    pub dims: Vec<usize>,
    /// What it is.
    pub content: Content,
}

impl Named {
    /// The class and whether another may be it, if the output is a single class.
    pub(crate) fn class(&self) -> Option<(&str, bool)> {
        match &self.content {
            Content::Classes { names, is_undecided } => match &names[..] {
                [only] => Some((only, *is_undecided)),
                _ => None,
            },
            Content::Numbers { .. } => None,
        }
    }
}

/// What an output of the model is.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Numbers, and the power of ten that they are rounded to.
    Numbers {
        /// The numbers, in the order of the model.
        values: Vec<f64>,
        /// What they are rounded to.
        unit: f64,
        /// What they are called, where they have names.
        classes: Vec<String>,
    },
    /// Classes by name, or by index where they have none.
    Classes {
        /// The names.
        names: Vec<String>,
        /// Whether the error may have exchanged one of them with another.
        is_undecided: bool,
    },
}

/// The outputs of the model: scores of ports where there are several, then what tails make of them.
pub(crate) fn outputs(interface: &Interface, decided: &[f64], resolution: &Resolution) -> Vec<Named> {
    let output = interface.output();
    let tailed = |port: usize| output.tails.iter().any(|tail| tail.port as usize == port);
    // The only output is the scores as they are, unless the model has another order.
    let is_plain = output.ports.len() < 2 && !output.ports.iter().any(|port| port.channels_last);
    let ports = output.ports.iter().enumerate().filter(|(i, _)| !is_plain && !tailed(*i));
    let of_port = |(_, port): (usize, &Port)| {
        let scores = scores(Some(port), decided)?;
        let values = scores.iter().map(|&score| resolution.round(score)).collect();
        let content = Content::Numbers { values, unit: resolution.unit(), classes: Vec::new() };
        Some(Named { name: harmless(&port.name), dims: dims(port), content })
    };
    // What scores without digits below the noise tell of the exact ones.
    let slack = Resolution::finest(interface).unit() / 2.0 + resolution.error();
    ports
        .filter_map(of_port)
        .chain(output.tails.iter().filter_map(|tail| named(output, tail, decided, slack)))
        .collect()
}

fn dims(port: &Port) -> Vec<usize> {
    port.dims.iter().map(|&d| d as usize).collect()
}

/// The scores of a port, in the order of the model.
fn scores(port: Option<&Port>, decided: &[f64]) -> Option<Vec<f64>> {
    let Some(port) = port else { return Some(decided.to_vec()) };
    let range = port.range(decided.len())?;
    let part = &decided[range];
    Some((0..part.len()).map(|i| part[port.position(i)]).collect())
}

fn named(output: &OutputSpec, tail: &Tail, decided: &[f64], slack: f64) -> Option<Named> {
    let scores = scores(output.ports.get(tail.port as usize), decided)?;
    let spans = run(&tail.steps, scores.iter().map(|&score| Span::around(score, slack)).collect());
    let class = |index: f64| {
        let name = tail.classes.iter().enumerate().find(|(i, _)| *i as f64 == index);
        name.map_or_else(|| index.to_string(), |(_, name)| harmless(name))
    };
    let content = match tail.gives_classes() {
        true => {
            let is_undecided = spans.iter().any(|span| span.low != span.high);
            Content::Classes { names: spans.iter().map(|span| class(span.value)).collect(), is_undecided }
        }
        false => {
            let slack = spans.iter().map(Span::slack).fold(0.0, f64::max);
            let resolution = Resolution::for_error(slack);
            let values = spans.iter().map(|span| resolution.round(span.value)).collect();
            let classes = tail.classes.iter().map(|name| harmless(name)).collect();
            Content::Numbers { values, unit: resolution.unit(), classes }
        }
    };
    Some(Named { name: harmless(&tail.name), dims: Vec::new(), content })
}

/// A number and the interval that its exact value lies in.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    value: f64,
    low: f64,
    high: f64,
}

impl Span {
    fn around(value: f64, slack: f64) -> Self {
        Self { value, low: value - slack, high: value + slack }
    }

    fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { value: rising(self.value), low: rising(self.low), high: rising(self.high) }
    }

    fn slack(&self) -> f64 {
        // What is no number has no digit to show.
        let slack = (self.high - self.value).max(self.value - self.low);
        if slack.is_nan() { f64::INFINITY } else { slack }
    }
}

fn run(steps: &[TailStep], spans: Vec<Span>) -> Vec<Span> {
    steps.iter().fold(spans, |spans, &step| apply(step, &spans))
}

fn apply(step: TailStep, spans: &[Span]) -> Vec<Span> {
    match step {
        TailStep::Softmax { length, inner } => along(spans, length, inner, softmax),
        TailStep::LogSoftmax { length, inner } => {
            along(spans, length, inner, |group| softmax(group).into_iter().map(|s| s.map(f64::ln)).collect())
        }
        TailStep::Normalize { length, inner } => along(spans, length, inner, |group| shares(group, f64::abs)),
        TailStep::ArgMax { length, inner } => arg_max(spans, length as usize, inner as usize),
        TailStep::Sigmoid {} => spans.iter().map(|span| span.map(|x| 1.0 / (1.0 + (-x).exp()))).collect(),
        TailStep::Votes { classes } => votes(spans, classes as usize),
    }
}

/// Positions of every group of `length` numbers that are `inner` apart.
fn groups(n: usize, length: usize, inner: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..n / (length * inner)).flat_map(move |outer| {
        (0..inner).map(move |i| (0..length).map(|k| (outer * length + k) * inner + i).collect())
    })
}

fn along(spans: &[Span], length: u32, inner: u32, f: impl Fn(&[Span]) -> Vec<Span>) -> Vec<Span> {
    let mut result = spans.to_vec();
    for positions in groups(spans.len(), length as usize, inner as usize) {
        let group: Vec<Span> = positions.iter().map(|&at| spans[at]).collect();
        for (at, span) in positions.into_iter().zip(f(&group)) {
            result[at] = span;
        }
    }
    result
}

fn softmax(group: &[Span]) -> Vec<Span> {
    let top = group.iter().map(|s| s.high).fold(f64::NEG_INFINITY, f64::max);
    shares(group, |x| (x - top).exp())
}

/// Each weight as a part of all; the least part is that of the least weight beside the largest of the others.
fn shares(group: &[Span], weight: impl Fn(f64) -> f64) -> Vec<Span> {
    let weights: Vec<Span> = group.iter().map(|s| s.map(&weight)).collect();
    let total = |of: fn(&Span) -> f64| weights.iter().map(of).sum::<f64>();
    let (values, lows, highs) = (total(|w| w.value), total(|w| w.low), total(|w| w.high));
    let part = |own: f64, all: f64| if own == 0.0 { 0.0 } else { own / all };
    let share = |w: &Span| Span {
        value: part(w.value, values),
        low: part(w.low, highs - w.high + w.low),
        high: part(w.high, lows - w.low + w.high),
    };
    weights.iter().map(share).collect()
}

/// The index of the largest; as an interval, all indices that may be it.
fn arg_max(spans: &[Span], length: usize, inner: usize) -> Vec<Span> {
    let best = |positions: Vec<usize>| {
        let first = |of: fn(&Span) -> f64| {
            let better = |&a: &usize, &b: &usize| {
                of(&spans[positions[a]]).total_cmp(&of(&spans[positions[b]])).then(b.cmp(&a))
            };
            (0..length).max_by(better).unwrap_or(0)
        };
        let value = first(|s| s.value);
        let sure = spans[positions[value]].low;
        let mut possible = (0..length).filter(|&k| k == value || spans[positions[k]].high >= sure);
        let low = possible.next().unwrap_or(value);
        let high = possible.next_back().unwrap_or(low);
        Span { value: value as f64, low: low as f64, high: high as f64 }
    };
    groups(spans.len(), length, inner).map(best).collect()
}

/// A positive decision between i and j > i is a vote for i.
fn votes(spans: &[Span], classes: usize) -> Vec<Span> {
    let mut all = vec![Span::around(0.0, 0.0); classes];
    let pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
    for ((i, j), decision) in pairs.zip(spans) {
        let won = |x: f64| f64::from(u8::from(x > 0.0));
        let vote = decision.map(won);
        let add = |to: &mut Span, vote: Span| {
            *to = Span { value: to.value + vote.value, low: to.low + vote.low, high: to.high + vote.high };
        };
        add(&mut all[i], vote);
        add(&mut all[j], Span { value: 1.0 - vote.value, low: 1.0 - vote.high, high: 1.0 - vote.low });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [u32; 2] = [3, 1];

    fn spans(values: &[f64], slack: f64) -> Vec<Span> {
        values.iter().map(|&v| Span::around(v, slack)).collect()
    }

    fn values(step: TailStep, numbers: &[f64]) -> Vec<f64> {
        apply(step, &spans(numbers, 0.0)).iter().map(|s| s.value).collect()
    }

    #[test]
    fn steps_compute_what_their_names_say() {
        let [length, inner] = ALL;
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-12);
        let softmax = values(TailStep::Softmax { length, inner }, &[1.0, 2.0, 4.0]);
        let sum = 1f64.exp() + 2f64.exp() + 4f64.exp();
        assert!(close(&softmax, &[1f64.exp() / sum, 2f64.exp() / sum, 4f64.exp() / sum]));
        let logs = values(TailStep::LogSoftmax { length, inner }, &[1.0, 2.0, 4.0]);
        assert!(close(&logs, &softmax.iter().map(|p| p.ln()).collect::<Vec<_>>()));
        assert!(close(&values(TailStep::Sigmoid {}, &[0.0, 2.0]), &[0.5, 1.0 / (1.0 + (-2f64).exp())]));
        assert_eq!(values(TailStep::Normalize { length, inner }, &[1.0, 1.0, 2.0]), [0.25, 0.25, 0.5]);
        assert_eq!(values(TailStep::ArgMax { length, inner }, &[1.0, 5.0, 5.0]), [1.0]);
        // 0 beats 1, 2 beats 0, 2 beats 1.
        assert_eq!(values(TailStep::Votes { classes: 3 }, &[1.0, -1.0, -1.0]), [1.0, 0.0, 2.0]);
    }

    #[test]
    fn a_dimension_in_the_middle_is_taken_apart_from_its_neighbours() {
        let planes = [1.0, 8.0, 3.0, 2.0, 5.0, 4.0];
        assert_eq!(values(TailStep::ArgMax { length: 3, inner: 2 }, &planes), [2.0, 0.0]);
        assert_eq!(values(TailStep::ArgMax { length: 2, inner: 1 }, &planes), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn intervals_hold_every_value_that_scores_within_theirs_give() {
        let [length, inner] = ALL;
        let (scores, slack) = ([0.3, -0.2, 0.9], 0.4);
        for step in [
            TailStep::Softmax { length, inner },
            TailStep::LogSoftmax { length, inner },
            TailStep::Sigmoid {},
            TailStep::Votes { classes: 3 },
        ] {
            let bounds = apply(step, &spans(&scores, slack));
            for corner in 0..8 {
                let moved = [0, 1, 2].map(|i| scores[i] + if corner >> i & 1 == 1 { slack } else { -slack });
                for (bound, found) in bounds.iter().zip(values(step, &moved)) {
                    assert!(bound.low - 1e-12 <= found && found <= bound.high + 1e-12, "{step:?} {corner}");
                }
            }
        }
    }

    #[test]
    fn a_class_is_certain_only_beyond_the_slack() {
        let [length, inner] = ALL;
        let found = |slack| apply(TailStep::ArgMax { length, inner }, &spans(&[0.0, 0.5, 1.0], slack))[0];
        assert_eq!(found(0.2), Span { value: 2.0, low: 2.0, high: 2.0 });
        assert_eq!(found(0.3), Span { value: 2.0, low: 1.0, high: 2.0 });
    }
}
