//! Inputs that a build measures values and errors on.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use fhe_bytecode::Preprocessing;
use fhe_input::{ImageShape, Normalization, read_samples};
use fhec_ir::{Graph, eval};

use crate::diagnostics::{Diagnostic, Kind};
use crate::pipeline::{BuildError, MADE_UP_INPUTS};
use crate::schedule::{LARGEST, made_up_inputs};

/// Images read at most.
const MAX_IMAGES: usize = 16;

/// Model inputs from the first images of a data set, or from pictures spread over a folder.
pub(super) fn read(
    path: &Path,
    shape: ImageShape,
    preprocessing: &Preprocessing,
) -> Result<Vec<Vec<f64>>, Diagnostic> {
    let cannot = |e: String| Diagnostic::new(Kind::Cannot, e);
    let normalization = Normalization { mean: preprocessing.mean.clone(), std: preprocessing.std.clone() };
    let files = if path.is_dir() { pictures(path)? } else { vec![path.to_owned()] };
    let mut inputs = Vec::new();
    for file in files {
        let samples = read_samples(&file, shape).map_err(|e| Diagnostic::input(&e))?;
        for i in 0..samples.len().min(MAX_IMAGES - inputs.len()) {
            inputs.push(samples.tensor(i, &normalization).map_err(|e| cannot(e.to_string()))?);
        }
    }
    Ok(inputs)
}

/// Pictures of a folder in the order of their names, thinned out evenly.
fn pictures(folder: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let cannot = |why: String| Diagnostic::new(Kind::Cannot, format!("{}: {why}", folder.display()));
    let is_picture = |path: &PathBuf| {
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_lowercase();
        ["png", "jpg", "jpeg"].contains(&extension.as_str())
    };
    let entries = std::fs::read_dir(folder).map_err(|e| cannot(format!("cannot be read: {e}")))?;
    let mut found: Vec<PathBuf> =
        entries.filter_map(|entry| entry.ok().map(|e| e.path())).filter(is_picture).collect();
    found.sort();
    if found.is_empty() {
        return Err(cannot("no PNG or JPEG pictures in this folder".to_owned()));
    }
    let count = found.len().min(MAX_IMAGES);
    Ok((0..count).map(|i| found[i * found.len() / count].clone()).collect())
}

/// The inputs that value ranges are measured on: images where there are any, nothing where batch normalizations tell the
/// ranges, and made-up pictures else.
pub(super) fn range_inputs(
    graph: &Graph,
    images: &[Vec<f64>],
    preprocessing: &Preprocessing,
) -> Vec<Vec<f64>> {
    let has_ranges = graph.ids().any(|id| graph.node(id).range.is_some());
    match graph.inputs()[..] {
        [input] if images.is_empty() && !has_ranges => {
            made_up_inputs(graph.shape(input), preprocessing, MADE_UP_INPUTS)
        }
        _ => images.to_vec(),
    }
}

/// Refuses a model that leads some input out of all bounds, by the layer where that happens.
pub(super) fn check_sizes(graph: &Graph, inputs: &[Vec<f64>]) -> Result<(), BuildError> {
    let mut first = None;
    for input in inputs {
        for member in graph.members() {
            let watched = eval::evaluate_with(graph, &[input], member, |id, value| {
                let size = value
                    .data
                    .iter()
                    .fold(0.0, |m: f64, x| if x.is_nan() { f64::INFINITY } else { m.max(x.abs()) });
                if size > LARGEST && first.is_none() {
                    first = Some((id, size));
                }
            });
            // Inputs of another shape are refused with a better message by those who use them.
            if watched.is_err() {
                return Ok(());
            }
        }
    }
    match first {
        None => Ok(()),
        Some((id, size)) => {
            let layer = graph.node(id).origins.first().cloned().unwrap_or_else(|| id.to_string());
            Err(BuildError::Overflow { layer, size })
        }
    }
}
