//! Support vector machines with a linear or polynomial kernel: a dense layer, a power, a dense layer.

use super::arithmetic::power_of;
use super::dense::linear;
use super::learned::{features, labeled, numbers, plain};
use crate::import::constant::Constant;
use crate::import::limits::{MAX_EXPONENT, written};
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::tail::class_names;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError, Scores, Value};
use fhe_bytecode::TailStep;

/// The value of a support vector regression.
pub(super) fn regressor(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    plain(node)?;
    if node.int("one_class", 0)? != 0 {
        return Err(Reason::Learned("a novelty is compared").into());
    }
    let (kernels, n) = kernels(cx, node)?;
    let coefficients = numbers(node, "coefficients")?;
    if coefficients.len() != n {
        return Err(node.malformed(format!("has {} coefficients", coefficients.len())).into());
    }
    let bias = Constant::f64(vec![1], vec![numbers(node, "rho")?.first().copied().unwrap_or(0.0)]);
    linear(cx, node, &kernels, &Constant::f64(vec![1, n], coefficients), Some(&bias), vec![1, 1])
}

/// Label and decisions of a support vector classification.
pub(super) fn classifier(cx: &mut Translator<'_>, node: &Node) -> Result<Vec<Value>, OpError> {
    let classes = class_names(node, ["classlabels_strings", "classlabels_ints"])?;
    let counts = node.ints("vectors_per_class")?.unwrap_or_default();
    let counts: Vec<usize> = counts.iter().map(|&c| usize::try_from(c).unwrap_or(usize::MAX)).collect();
    let (kernels, n) = kernels(cx, node)?;
    let (coefficients, rho) = (numbers(node, "coefficients")?, numbers(node, "rho")?);
    let k = classes.len();
    let total = counts.iter().try_fold(0usize, |sum, &c| sum.checked_add(c));
    let n_pairs = k * k.saturating_sub(1) / 2;
    let fits = k >= 2 && counts.len() == k && total == Some(n) && rho.len() == n_pairs;
    if !fits || coefficients.len() != (k - 1) * n {
        return Err(node.malformed("has support vectors that do not belong to its classes").into());
    }
    cx.charge(node, n_pairs * n)?;
    let firsts: Vec<usize> = (0..k).map(|i| counts[..i].iter().sum()).collect();
    let mut weights = vec![0.0; n_pairs * n];
    let pairs = (0..k).flat_map(|i| (i + 1..k).map(move |j| (i, j)));
    for ((i, j), row) in pairs.zip(weights.chunks_exact_mut(n)) {
        for (class, of) in [(i, j - 1), (j, i)] {
            for at in firsts[class]..firsts[class] + counts[class] {
                row[at] = coefficients[of * n + at];
            }
        }
    }
    let (weight, bias) = (Constant::f64(vec![n_pairs, n], weights), Constant::f64(vec![n_pairs], rho));
    let decisions = linear(cx, node, &kernels, &weight, Some(&bias), vec![1, n_pairs])?;
    let has_probabilities = node.floats("prob_a")?.is_some_and(|a| !a.is_empty());
    if has_probabilities || node.text("post_transform", "NONE")? != "NONE" {
        let setting = "it makes probabilities of its decisions, which `SVC(probability=False)` does not";
        return Err(Reason::Attribute(setting.to_owned()).into());
    }
    if k == 2 {
        // Two classes have one decision, which is for the first where it is positive; onnxruntime writes it, as the score of
        // the second, behind its opposite. So the label is that of the worse score.
        let both = Constant::f64(vec![2, 1], vec![-1.0, 1.0]);
        let scores = linear(cx, node, &decisions, &both, None, vec![1, 2])?;
        return Ok(labeled(node, scores, classes.into_iter().rev().collect(), "NONE"));
    }
    let start = Scores::new(node, decisions.clone(), node.outputs.get(1).map_or("", String::as_str));
    let mut votes = start.then(TailStep::Votes { classes: written(k) });
    votes.dims = vec![1, k];
    Ok(vec![Value::Postprocessed(votes.best().named(classes)), Value::Encrypted(decisions)])
}

/// The kernel of the input with every support vector.
fn kernels(cx: &mut Translator<'_>, node: &Node) -> Result<(Encrypted, usize), OpError> {
    let x = features(cx, node)?;
    let n_features = x.view.shape().len();
    let vectors = numbers(node, "support_vectors")?;
    let n = vectors.len() / n_features;
    if n == 0 || vectors.len() != n * n_features {
        let (have, of) = (vectors.len(), n_features);
        return Err(node
            .malformed(format!("has {have} numbers of support vectors for {of} features"))
            .into());
    }
    let params = numbers(node, "kernel_params")?;
    let (gamma, offset, degree) = match (node.text("kernel_type", "LINEAR")?.as_str(), &params[..]) {
        ("LINEAR", _) => (1.0, 0.0, 1.0),
        ("POLY", &[gamma, offset, degree]) => (gamma, offset, degree),
        ("RBF", _) => return Err(Reason::Learned("a kernel of exponentials").into()),
        ("SIGMOID", _) => return Err(Reason::Learned("a kernel of hyperbolic tangents").into()),
        (other, _) => return Err(node.malformed(format!("has a kernel `{other}`")).into()),
    };
    if degree.fract() != 0.0 || !(1.0..=f64::from(MAX_EXPONENT)).contains(&degree) {
        return Err(Reason::Exponent(degree).into());
    }
    let weight = Constant::f64(vec![n, n_features], vectors.iter().map(|v| gamma * v).collect());
    let bias = Constant::f64(vec![n], vec![offset; n]);
    let dots = linear(cx, node, &x, &weight, Some(&bias), vec![1, n])?;
    Ok((power_of(cx, node, &dots, degree as u32)?, n))
}
