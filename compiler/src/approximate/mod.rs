//! Polynomials in place of functions that are none, fitted to what really occurs, without training.
//!
//! The model is read with its functions left open, so that calibration inputs can be led through it exactly. Every function
//! gets polynomials of degree 2, 4 and 8, one for every channel, fitted to the numbers that reach it; where a higher degree
//! moves the scores most, it is taken, until the scores are close to the model's or nothing is left to raise. At the end every
//! polynomial is fitted once more to the numbers that reach it behind the polynomials before it, with the model's own results
//! as targets, so that later layers make up for earlier ones.

mod fit;
mod network;

use std::collections::BTreeMap;

use fhe_bytecode::Classes;
use rayon::prelude::*;
use serde::Serialize;

use self::fit::fitted;
use self::network::{Network, Seen};
use crate::import::{Fitted, Function, Imported};
use crate::simulate::Inputs;

/// Degrees that are tried, each a level of multiplications deeper than the one before.
const DEGREES: [usize; 3] = [2, 4, 8];
/// Inputs that polynomials are fitted to, and that degrees are chosen by.
const FITTED_ON: usize = 400;
/// Inputs that ranges and the agreement are measured on.
const JUDGED_ON: usize = 1000;
/// Numbers of a layer that a fit looks at.
const NUMBERS: usize = 20_000;
/// Share of inputs whose class may change before a higher degree is tried.
const CHANGED: f64 = 0.004;
/// Error of the scores, relative to their size, above which a higher degree is tried.
const SCORE_ERROR: f64 = 0.04;
/// Part of the measured range added on both sides: what ten times as many inputs lead to stays within it, and beyond it a
/// polynomial of degree 8 runs away.
pub(crate) const MARGIN: f64 = 0.2;
/// Part of the range next to an end that counts as near the edge.
const EDGE: f64 = 0.05;

/// What was put in place of the functions of a model, and what it does to its scores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Approximation {
    /// The layers, in the order of the model.
    pub layers: Vec<Layer>,
    /// Inputs that the agreement was measured on.
    pub samples: usize,
    /// Share of them with the model's own class; none for a single score.
    pub agreement: Option<f64>,
    /// Root of the mean squared difference of the scores, relative to their size.
    pub score_error: f64,
}

/// One function and the polynomial in its place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layer {
    /// ONNX node.
    pub node: String,
    /// The function.
    pub function: String,
    /// Smallest number that reached it.
    pub low: f64,
    /// Largest number that reached it.
    pub high: f64,
    /// Degree of the polynomial.
    pub degree: usize,
    /// Largest error on the numbers that reached it.
    pub max_error: f64,
    /// Root of their mean squared error.
    pub rms_error: f64,
    /// Share of numbers next to the ends of their channel's range.
    pub near_edge: f64,
}

/// A model cannot be approximated on these inputs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{function} of {node} has no value for some of the numbers that reach it, from {low} to {high}")]
pub struct NoValue {
    /// ONNX node.
    pub node: String,
    /// The function.
    pub function: String,
    /// Smallest number.
    pub low: f64,
    /// Largest number.
    pub high: f64,
}

/// Polynomials for every function, by name: the best found, and then ones that are less deep.
pub(crate) fn approximate(
    open: &Imported,
    inputs: &dyn Inputs,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<(BTreeMap<String, Fitted>, Approximation)>, NoValue> {
    let network = Network::new(open);
    let n_layers = open.gaps.len();
    let (judged, chosen) = (spread(inputs, JUDGED_ON), spread(inputs, FITTED_ON));
    let mut exact = network.observe(&chosen, &network.exact(), NUMBERS);
    // What few inputs lead to may be far beyond what the others do, and there a polynomial runs away.
    let all = network.observe(&judged, &network.exact(), 1);
    exact.layers.iter_mut().zip(&all.layers).for_each(|(own, all)| own.widen(&all.ranges));
    for (gap, seen) in open.gaps.iter().zip(&exact.layers) {
        let (low, high) = seen.range();
        if !seen.x.iter().all(|&x| gap.function.eval(x).is_finite()) || !gap.function.eval(low).is_finite() {
            let (node, function) = (gap.name.clone(), gap.function.name().to_owned());
            return Err(NoValue { node, function, low, high });
        }
    }
    let choices = Choices::new(&network, &exact);
    let path = choices.path(&network, &chosen, &exact.scores, progress);
    // From the deepest to the least deep; a schedule may exist for a later one only.
    let mut found = Vec::new();
    for (i, degrees) in path.iter().rev().enumerate() {
        progress(n_layers + i, n_layers + path.len());
        let polynomials = refined(&network, &chosen, &exact.layers, degrees);
        let layers = layers(&network, &chosen, &polynomials);
        let scores = network.scores(&judged, &polynomials);
        let (agreement, score_error) = agreement(network.classes(), &all.scores, &scores);
        let samples = judged.len();
        let names = open.gaps.iter().map(|gap| gap.name.clone());
        let approximation = Approximation { layers, samples, agreement, score_error };
        found.push((names.zip(polynomials).collect(), approximation));
        if found.len() == 3 {
            break;
        }
    }
    Ok(found)
}

/// Some inputs, spread evenly.
fn spread(inputs: &dyn Inputs, count: usize) -> Vec<Vec<f64>> {
    let (n, count) = (inputs.len(), inputs.len().min(count));
    (0..count).map(|i| inputs.input(i * n / count)).collect()
}

/// For every layer one polynomial of every degree.
struct Choices {
    by_layer: Vec<Vec<Fitted>>,
}

impl Choices {
    fn new(network: &Network<'_>, exact: &Seen) -> Self {
        let of_layer = |(function, seen): (&Function, &network::LayerSeen)| {
            let targets: Vec<f64> = seen.x.iter().map(|&x| function.eval(x)).collect();
            DEGREES.iter().map(|&degree| fitted(degree, seen, &targets, |x| function.eval(x))).collect()
        };
        let functions: Vec<&Function> = network.functions().collect();
        Self { by_layer: functions.into_par_iter().zip(&exact.layers).map(of_layer).collect() }
    }

    /// Degrees of all layers, raised one after the other where that helps the scores most.
    fn path(
        &self,
        network: &Network<'_>,
        inputs: &[Vec<f64>],
        exact: &[Vec<f64>],
        progress: &mut dyn FnMut(usize, usize),
    ) -> Vec<Vec<usize>> {
        let n = self.by_layer.len();
        let inputs = &inputs[..inputs.len().min(64)];
        let judge = |chosen: &[usize]| {
            let polynomials: Vec<Fitted> =
                chosen.iter().enumerate().map(|(layer, &i)| self.by_layer[layer][i].clone()).collect();
            let found = network.scores(inputs, &polynomials);
            difference(network.classes(), &found, &exact[..inputs.len()])
        };
        let mut chosen = vec![0; n];
        let mut path = vec![chosen.clone()];
        let mut reached = judge(&chosen);
        let n_steps = n * (DEGREES.len() - 1);
        for step in 0..n_steps {
            progress(step, n_steps + n);
            if reached.is_close() {
                break;
            }
            let raised = (0..n).filter(|&layer| chosen[layer] + 1 < DEGREES.len()).map(|layer| {
                let mut other = chosen.clone();
                other[layer] += 1;
                let difference = judge(&other);
                (other, difference)
            });
            let better = |a: &Difference, b: &Difference| a.error.total_cmp(&b.error);
            let Some((other, difference)) = raised.min_by(|a, b| better(&a.1, &b.1)) else { break };
            chosen = other;
            reached = difference;
            path.push(chosen.clone());
        }
        path.into_iter().map(|chosen| chosen.iter().map(|&i| DEGREES[i]).collect()).collect()
    }
}

/// How far scores are from the model's.
struct Difference {
    /// Share of inputs with another class; none for a single score.
    changed: Option<f64>,
    /// Relative error of the scores.
    error: f64,
}

impl Difference {
    fn is_close(&self) -> bool {
        self.error <= SCORE_ERROR && self.changed.is_none_or(|share| share <= CHANGED)
    }
}

fn difference(classes: &Classes, found: &[Vec<f64>], exact: &[Vec<f64>]) -> Difference {
    let (mut squares, mut size, mut changed) = (0.0, 0.0, 0);
    for (a, b) in found.iter().zip(exact) {
        let mean = if b.len() > 1 { b.iter().sum::<f64>() / b.len() as f64 } else { 0.0 };
        squares += a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>();
        size += b.iter().map(|y| (y - mean).powi(2)).sum::<f64>();
        changed += usize::from(classes.best(a) != classes.best(b));
    }
    let error = (squares / size.max(f64::MIN_POSITIVE)).sqrt();
    let has_classes = exact.first().is_some_and(|scores| classes.lead(scores) < f64::INFINITY);
    Difference {
        changed: has_classes.then(|| changed as f64 / exact.len().max(1) as f64),
        error: if error.is_nan() { f64::INFINITY } else { error },
    }
}

/// Fits layer after layer behind the polynomials before it.
fn refined(
    network: &Network<'_>,
    inputs: &[Vec<f64>],
    exact: &[network::LayerSeen],
    degrees: &[usize],
) -> Vec<Fitted> {
    let functions: Vec<&Function> = network.functions().collect();
    let mut polynomials: Vec<Fitted> = Vec::with_capacity(degrees.len());
    for (layer, &degree) in degrees.iter().enumerate() {
        let mut seen = network.observe_layer(inputs, &polynomials, layer, NUMBERS);
        seen.widen(&exact[layer].ranges);
        // The model's own results, at the same places.
        let targets: Vec<f64> = exact[layer].x.iter().map(|&x| functions[layer].eval(x)).collect();
        polynomials.push(fitted(degree, &seen, &targets, |x| functions[layer].eval(x)));
    }
    polynomials
}

/// What is reported of every layer.
fn layers(network: &Network<'_>, inputs: &[Vec<f64>], polynomials: &[Fitted]) -> Vec<Layer> {
    let seen = network.observe(inputs, &network.replaced(polynomials), NUMBERS);
    let all = network.gaps().iter().zip(&seen.layers).zip(polynomials);
    all.map(|((gap, seen), fitted)| {
        let numbers = || seen.channel.iter().copied().zip(seen.x.iter().copied());
        let errors: Vec<f64> = numbers().map(|(c, x)| fitted.eval(c, x) - gap.function.eval(x)).collect();
        let (low, high) = seen.range();
        let is_near = |&(channel, x): &(usize, f64)| {
            let (low, high) = seen.ranges[channel];
            let near = EDGE * (high - low);
            x < low + near || x > high - near
        };
        let n = seen.x.len().max(1) as f64;
        Layer {
            node: gap.name.clone(),
            function: gap.function.name().to_owned(),
            low,
            high,
            degree: fitted.degree(),
            max_error: errors.iter().fold(0.0, |m, e| m.max(e.abs())),
            rms_error: (errors.iter().map(|e| e * e).sum::<f64>() / n).sqrt(),
            near_edge: numbers().filter(is_near).count() as f64 / n,
        }
    })
    .collect()
}

fn agreement(classes: &Classes, exact: &[Vec<f64>], found: &[Vec<f64>]) -> (Option<f64>, f64) {
    let Difference { changed, error } = difference(classes, found, exact);
    (changed.map(|share| 1.0 - share), error)
}
