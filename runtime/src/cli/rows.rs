//! Results as CSV: a head, then a row for every sample.

use fhe_bytecode::Interface;
use fhe_client::label;
use fhe_diagnostics::csv_row;

use super::prediction::Prediction;
use super::show::Shown;

/// What is shown of every sample. Columns of scores are there where scores are asked for, those of a single number or of
/// further outputs where the model has them.
pub(crate) fn of(predictions: &[Prediction]) -> String {
    let Some(first) = predictions.first() else { return String::new() };
    let mut head: Vec<String> =
        ["name", "class", "confidence", "undecided", "doubtful", "truth"].map(str::to_owned).to_vec();
    let has_scores = first.top.iter().any(|class| class.score.is_some());
    if has_scores {
        head.extend(
            (1..=first.top.len()).flat_map(|rank| [format!("class_{rank}"), format!("score_{rank}")]),
        );
    }
    if first.value.is_some() {
        head.push("value".to_owned());
    }
    head.extend(first.outputs.iter().map(|output| output.name.clone()));
    let rows = predictions.iter().map(|prediction| csv_row(row(prediction, has_scores)));
    std::iter::once(csv_row(&head)).chain(rows).collect::<Vec<_>>().join("\n")
}

fn row(prediction: &Prediction, has_scores: bool) -> Vec<String> {
    let or_empty = |text: Option<String>| text.unwrap_or_default();
    let doubts = prediction.doubtful().into_iter().chain(prediction.outside_input.clone());
    let mut fields = vec![
        or_empty(prediction.name.clone()),
        or_empty(prediction.top.first().map(|class| class.label.clone())),
        or_empty(prediction.confidence.map(|part| part.to_string())),
        prediction.undecided.to_string(),
        doubts.collect::<Vec<_>>().join("; "),
        or_empty(prediction.expected.clone()),
    ];
    if has_scores {
        let scores = prediction.top.iter();
        fields.extend(
            scores.flat_map(|class| [class.label.clone(), or_empty(class.score.map(|s| s.to_string()))]),
        );
    }
    fields.extend(prediction.value.map(|value| value.to_string()));
    fields.extend(prediction.outputs.iter().map(|output| {
        let numbers = output.values.iter().map(f64::to_string);
        output.classes.iter().cloned().chain(numbers).collect::<Vec<_>>().join(" ")
    }));
    fields
}

/// Every decrypted number of every sample, unrounded.
pub(crate) fn of_raw(interface: &Interface, all: &[Shown<'_>]) -> String {
    let n_scores = all.first().map_or(0, |shown| shown.raw.len());
    let head = std::iter::once("name".to_owned()).chain((0..n_scores).map(|class| label(interface, class)));
    let rows = all.iter().map(|shown| {
        let name = shown.name.unwrap_or_default().to_owned();
        csv_row(std::iter::once(name).chain(shown.raw.iter().map(f64::to_string)))
    });
    std::iter::once(csv_row(head)).chain(rows).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::prediction::Class;
    use super::*;

    fn prediction(name: &str, label: &str, score: Option<f64>) -> Prediction {
        Prediction {
            name: Some(name.to_owned()),
            top: vec![Class { index: 3, label: label.to_owned(), score }],
            confidence: Some(0.9),
            undecided: false,
            doubts: Vec::new(),
            outside_input: None,
            expected: Some("three".to_owned()),
            outputs: Vec::new(),
            value: None,
        }
    }

    #[test]
    fn every_sample_has_a_row_with_its_name() {
        let rows = of(&[prediction("a.png", "three", None), prediction("b, c.npy#1", "four", None)]);
        let expected = "name,class,confidence,undecided,doubtful,truth\n\
            a.png,three,0.9,false,,three\n\"b, c.npy#1\",four,0.9,false,,three";
        assert_eq!(rows, expected);
    }

    #[test]
    fn scores_have_columns_of_their_own() {
        let rows = of(&[prediction("a.png", "three", Some(2.5))]);
        assert_eq!(
            rows,
            "name,class,confidence,undecided,doubtful,truth,class_1,score_1\na.png,three,0.9,false,,three,three,2.5"
        );
    }
}
