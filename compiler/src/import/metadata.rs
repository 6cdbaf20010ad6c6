//! What the model's metadata says about its inputs and classes.
//!
//! Understood keys: `fhec.labels`, `labels`, `class_names`, `classes` or `names` (a JSON list, a JSON object from index to
//! name, or names separated by commas or lines), and `fhec.mean` and `fhec.std`, or the same as `mean` and `std`, or
//! `image_mean` and `image_std` (a JSON list or numbers separated by commas). Mean and deviation apply to
//! pixels from 0 to 1, channel by channel: x = (pixel/255 - mean)/std.

use std::collections::BTreeMap;

use super::clean::clean;

/// How a client prepares an image.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Preprocessing {
    /// Subtracted from each channel of pixels from 0 to 1.
    pub mean: Vec<f64>,
    /// Divides each channel after that.
    pub std: Vec<f64>,
}

/// Class names, if the metadata has them and their number is that of the scores.
pub(super) fn labels(metadata: &BTreeMap<String, String>, n_scores: usize) -> Option<Vec<String>> {
    let text = ["fhec.labels", "labels", "class_names", "classes", "names"]
        .iter()
        .find_map(|key| metadata.get(*key))?;
    let mut names = names(text).filter(|names| names.len() == n_scores)?;
    // JSON can spell what the file itself does not hold.
    names.iter_mut().for_each(clean);
    Some(names)
}

/// Mean and deviation, if the metadata has them for every channel or one for all.
pub(super) fn preprocessing(metadata: &BTreeMap<String, String>, channels: usize) -> Option<Preprocessing> {
    let find = |keys: [&str; 3]| keys.iter().find_map(|key| metadata.get(*key)).and_then(|t| numbers(t));
    let fits = |v: &Vec<f64>| v.len() == channels || v.len() == 1;
    let mean = find(["fhec.mean", "mean", "image_mean"]).filter(fits)?;
    let std = find(["fhec.std", "std", "image_std"]).filter(fits).filter(|s| s.iter().all(|v| *v > 0.0))?;
    Some(Preprocessing { mean, std })
}

fn names(text: &str) -> Option<Vec<String>> {
    // Some trainers write a Python dictionary, which differs from JSON in its quotes and bare keys.
    let quoted = text.replace('\'', "\"");
    for candidate in [text, quoted.as_str()] {
        if let Ok(list) = serde_json::from_str::<Vec<String>>(candidate) {
            return Some(list);
        }
        if let Ok(map) = serde_json::from_str::<BTreeMap<usize, String>>(candidate) {
            let is_complete = map.keys().copied().eq(0..map.len());
            return is_complete.then(|| map.into_values().collect());
        }
    }
    let separator = if text.contains('\n') { '\n' } else { ',' };
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed.starts_with(['[', '{']) {
        return None;
    }
    Some(trimmed.split(separator).map(|s| s.trim().to_owned()).collect())
}

fn numbers(text: &str) -> Option<Vec<f64>> {
    let inner = text.trim().trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
    let values = inner.split(',').map(|s| s.trim().parse::<f64>().ok().filter(|v| v.is_finite()));
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    }

    #[test]
    fn labels_come_in_the_forms_trainers_write() {
        for text in [r#"["cat", "dog"]"#, "cat,dog", "cat\ndog", r#"{"0": "cat", "1": "dog"}"#] {
            assert_eq!(
                labels(&metadata(&[("labels", text)]), 2),
                Some(vec!["cat".into(), "dog".into()]),
                "{text}"
            );
        }
        assert_eq!(labels(&metadata(&[("names", "['cat', 'dog']")]), 2).map(|l| l.len()), Some(2));
        assert_eq!(labels(&metadata(&[("labels", "cat,dog")]), 3), None);
    }

    #[test]
    fn labels_hold_nothing_a_terminal_would_obey() {
        let found = labels(&metadata(&[("labels", r#"["cat\u001b[2J", "dog"]"#)]), 2).unwrap();
        assert_eq!(found, ["cat\\u{1b}[2J", "dog"]);
    }

    #[test]
    fn preprocessing_needs_both_numbers_for_every_channel() {
        let both = metadata(&[("mean", "[0.5, 0.4, 0.3]"), ("std", "0.2,0.2,0.2")]);
        assert_eq!(preprocessing(&both, 3).map(|p| p.mean), Some(vec![0.5, 0.4, 0.3]));
        assert_eq!(preprocessing(&both, 4), None);
        assert_eq!(preprocessing(&metadata(&[("mean", "0.5")]), 1), None);
        assert_eq!(preprocessing(&metadata(&[("mean", "0"), ("std", "0")]), 1), None);
    }
}
