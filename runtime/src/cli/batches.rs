//! Samples of a ciphertext file that hold several inputs: their names, and whose results are whose.
//!
//! A program for batches takes so many inputs at once, so a sample of its files is a batch. Its name lists those of its inputs,
//! and says by that how many there are: what stands for inputs that are missing has none, and its results are dropped.

use fhe_bytecode::Interface;
use zeroize::Zeroizing;

/// Between the names of a batch's inputs.
const BETWEEN: &str = ", ";

/// The name of a batch; that of a single input is its own.
pub(super) fn name<'a>(inputs: impl Iterator<Item = &'a str>, batch: usize) -> String {
    match batch {
        1 => inputs.collect(),
        _ => inputs.map(|name| name.replace(BETWEEN, ",")).collect::<Vec<_>>().join(BETWEEN),
    }
}

/// The scores of every input with its name, where batches have names.
pub(super) fn results<'a>(
    interface: &Interface,
    batches: &'a [Zeroizing<Vec<f64>>],
    names: &[String],
) -> Vec<(&'a [f64], Option<String>)> {
    let (batch, n_scores) = (interface.batch(), interface.output_layout().shape().len());
    let mut all = Vec::new();
    for (i, scores) in batches.iter().enumerate() {
        match names.get(i) {
            Some(name) if batch > 1 => {
                let names = name.split(BETWEEN).map(|name| Some(name.to_owned()));
                all.extend(scores.chunks(n_scores).zip(names));
            }
            name => all.extend(scores.chunks(n_scores.max(1)).map(|scores| (scores, name.cloned()))),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_named_after_its_inputs() {
        assert_eq!(name(["a, b.png"].into_iter(), 1), "a, b.png");
        assert_eq!(name(["a, b.png", "c.png"].into_iter(), 4), "a,b.png, c.png");
    }
}
