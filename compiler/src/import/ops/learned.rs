//! Models of scikit-learn as `ai.onnx.ml` writes them: linear ones are dense layers, with a tail for the client.

use fhe_bytecode::TailStep;

use super::dense::linear;
use crate::import::constant::Constant;
use crate::import::limits::written;
use crate::import::node::Node;
use crate::import::reason::Reason;
use crate::import::tail::class_names;
use crate::import::translate::Translator;
use crate::import::value::{Encrypted, OpError, Scores, Value};

/// Label and scores of a linear classifier.
pub(super) fn linear_classifier(cx: &mut Translator<'_>, node: &Node) -> Result<Vec<Value>, OpError> {
    let classes = class_names(node, ["classlabels_strings", "classlabels_ints"])?;
    let scores = rows(cx, node)?;
    let n = scores.view.shape().len();
    if n != classes.len() {
        return Err(Reason::Attribute(format!("it has {n} scores for {} classes", classes.len())).into());
    }
    let transform = node.text("post_transform", "NONE")?;
    Ok(labeled(node, scores, classes, &transform))
}

/// The label of the best score, and the scores after their transform.
pub(super) fn labeled(node: &Node, scores: Encrypted, classes: Vec<String>, transform: &str) -> Vec<Value> {
    let n = written(scores.view.shape().len());
    let start = || Scores::new(node, scores.clone(), node.outputs.get(1).map_or("", String::as_str));
    let label = start().best().named(classes);
    let numbers = match transform {
        "NONE" => Value::Encrypted(scores.clone()),
        "SOFTMAX" => Value::Postprocessed(start().then(TailStep::Softmax { length: n, inner: 1 })),
        "LOGISTIC" => Value::Postprocessed(start().then(TailStep::Sigmoid {})),
        _ => Value::Postprocessed(Scores { steps: None, ..start() }),
    };
    vec![Value::Postprocessed(label), numbers]
}

/// The values of a linear regressor.
pub(super) fn linear_regressor(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    plain(node)?;
    rows(cx, node)
}

/// Refuses a transform of values that nobody has words for.
pub(super) fn plain(node: &Node) -> Result<(), OpError> {
    match node.text("post_transform", "NONE")?.as_str() {
        "NONE" => Ok(()),
        other => Err(Reason::Attribute(format!("it ends with the transform {other}")).into()),
    }
}

/// One dense layer of the attributes `coefficients` and `intercepts`.
fn rows(cx: &mut Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = features(cx, node)?;
    let n = x.view.shape().len();
    let coefficients = numbers(node, "coefficients")?;
    let n_rows = coefficients.len() / n;
    if n_rows == 0 || coefficients.len() != n_rows * n {
        let (have, of) = (coefficients.len(), n);
        return Err(node.malformed(format!("has {have} coefficients for {of} features")).into());
    }
    let intercepts = numbers(node, "intercepts")?;
    let bias = match intercepts.len() {
        0 => None,
        len if len == n_rows => Some(Constant::f64(vec![len], intercepts)),
        len => return Err(node.malformed(format!("has {len} intercepts for {n_rows} rows")).into()),
    };
    let weight = Constant::f64(vec![n_rows, n], coefficients);
    linear(cx, node, &x, &weight, bias.as_ref(), vec![1, n_rows])
}

/// The one row of features that such a model takes.
pub(super) fn features(cx: &Translator<'_>, node: &Node) -> Result<Encrypted, OpError> {
    let x = cx.encrypted(node, 0)?;
    match x.view.dims() {
        [_] | [1, _] => Ok(x),
        dims => Err(node.malformed(format!("takes rows of features, not {dims:?}")).into()),
    }
}

/// A list of numbers; empty if there is none.
pub(super) fn numbers(node: &Node, name: &str) -> Result<Vec<f64>, OpError> {
    Ok(node.floats(name)?.unwrap_or_default().iter().map(|&v| f64::from(v)).collect())
}

/// Why an operator of `ai.onnx.ml` has no encrypted form.
pub(super) fn refusal(op: &str) -> Reason {
    match op {
        "Normalizer" => Reason::RowNorm,
        "TreeEnsembleClassifier" | "TreeEnsembleRegressor" | "TreeEnsemble" => {
            Reason::Learned("a decision tree compares")
        }
        "Binarizer" | "LabelEncoder" | "OneHotEncoder" | "CategoryMapper" | "DictVectorizer" => {
            Reason::Learned("a category is compared")
        }
        "Imputer" => Reason::Learned("a missing value is compared"),
        _ => Reason::Operator,
    }
}
