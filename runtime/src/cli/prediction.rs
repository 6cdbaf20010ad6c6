//! An answer as a line, a table or JSON, and raw values as a NumPy array.
//!
//! Without scores as little is shown as says what the result is: one class, a coarse confidence, and whether it or any other
//! score is doubted. A bit for every score would tell whoever wrote the program about as much as scores do.

use comfy_table::{CellAlignment, Table};
use fhe_bytecode::Interface;
use fhe_client::{Answer, Content, Doubt, Named, label};

/// What is shown of one answer.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Prediction {
    /// Name of the sample, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The best class, or the best classes with their scores; nothing for a number that is not asked for.
    pub top: Vec<Class>,
    /// Softmax of the scores in steps of a tenth; nothing for a single score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Whether the error may have exchanged the best class with another.
    pub undecided: bool,
    /// Scores that are not to be trusted: each where scores are asked for, else the best one and whether there is another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubted>,
    /// The number of the input that the model was not calibrated on, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside_input: Option<String>,
    /// The true class, if the input file told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The model's outputs where they are more or other than the scores: a class, and where scores are asked for all there is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Output>,
    /// The rounded value of a model that computes a single number, where scores are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

/// An output of the model.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Output {
    /// Name in the model.
    pub name: String,
    /// Extents in the model, where they are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<usize>,
    /// Classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// Rounded numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// What the numbers are called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// What the numbers are rounded to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<f64>,
}

impl Output {
    fn new(named: &Named, shows_all: bool) -> Option<Self> {
        let empty = Self {
            name: named.name.clone(),
            shape: named.dims.clone(),
            classes: Vec::new(),
            values: Vec::new(),
            names: Vec::new(),
            unit: None,
        };
        match &named.content {
            Content::Classes { names, .. } if shows_all || names.len() == 1 => {
                Some(Self { classes: names.clone(), ..empty })
            }
            Content::Numbers { values, unit, classes } if shows_all => {
                Some(Self { values: values.clone(), unit: Some(*unit), names: classes.clone(), ..empty })
            }
            Content::Classes { .. } | Content::Numbers { .. } => None,
        }
    }

    /// For people, on a line.
    fn text(&self) -> String {
        let numbers = self.values.iter().enumerate().map(|(i, value)| match self.names.get(i) {
            Some(name) => format!("{name} {value}"),
            None => value.to_string(),
        });
        let all: Vec<String> = self.classes.iter().cloned().chain(numbers).collect();
        format!("{}: {}", self.name, all.join(", "))
    }
}

/// One class.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Class {
    /// Position in the output vector.
    pub index: usize,
    /// Label, or the position where the program has no labels.
    pub label: String,
    /// Rounded score, where scores are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// A score that is not to be trusted; one that is not said to be of any class is not that of the best one.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Doubted {
    /// Position in the output vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Label of the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What is wrong, for programs.
    pub doubt: &'static str,
    /// What is wrong, for people.
    pub reason: String,
}

impl Prediction {
    /// The best class; with `n_top` the best classes with their scores.
    pub(crate) fn new(interface: &Interface, answer: &Answer, n_top: Option<usize>) -> Self {
        let class = |index: usize| Class {
            index,
            label: if index == answer.class { answer.label.clone() } else { label(interface, index) },
            score: n_top.filter(|_| !answer.is_voted()).map(|_| answer.scores[index]),
        };
        let doubted = |doubt: &Doubt, is_named: bool| Doubted {
            index: is_named.then_some(doubt.index),
            label: is_named.then(|| label(interface, doubt.index)),
            doubt: doubt.kind.code(),
            reason: doubt.kind.to_string(),
        };
        let doubts = match n_top {
            Some(_) => answer.doubts.iter().map(|doubt| doubted(doubt, true)).collect(),
            None => {
                let [best, other] = answer.two_doubts();
                let best = best.map(|doubt| doubted(doubt, true));
                best.into_iter().chain(other.map(|doubt| doubted(doubt, false))).collect()
            }
        };
        // A number is a score, and no class stands for it.
        let n_shown = n_top.unwrap_or(usize::from(!answer.is_number()));
        Self {
            name: None,
            top: answer.top(n_shown).into_iter().map(class).collect(),
            confidence: answer.confidence,
            undecided: answer.is_undecided,
            doubts,
            outside_input: None,
            expected: None,
            outputs: answer.outputs.iter().filter_map(|o| Output::new(o, n_top.is_some())).collect(),
            value: n_top.filter(|_| answer.is_number()).and_then(|_| single(answer)),
        }
    }

    /// For people: a line, or a table where there are scores.
    pub(crate) fn text(&self) -> String {
        let mut lines = Vec::new();
        let name = self.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        let best = self.top.first().map_or(String::new(), |class| class.label.clone());
        let confidence = self.confidence.map_or(String::new(), |part| format!(", confidence {part}"));
        match self.value {
            Some(value) => lines.push(format!("{name}{value}")),
            None if self.top.is_empty() => {
                lines.push(format!("{name}a number, which --scores shows rounded"))
            }
            None => lines.push(format!("{name}{best}{confidence}")),
        }
        lines.extend(self.outputs.iter().map(Output::text));
        if self.top.iter().any(|class| class.score.is_some()) {
            lines.push(self.table());
        }
        if self.undecided && self.confidence.is_some() {
            lines.push("undecided: another class is within the error".to_owned());
        }
        lines.extend(self.doubtful().iter().map(|words| format!("doubtful: {words}")));
        lines.extend(self.outside_input.iter().map(|outside| format!("doubtful: {outside}")));
        lines.extend(self.expected.iter().map(|expected| format!("true class: {expected}")));
        lines.join("\n")
    }

    /// What is wrong with scores, in words.
    pub(crate) fn doubtful(&self) -> Vec<String> {
        in_words(&self.doubts)
    }

    /// A table of rank, class and score.
    fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::UTF8_BORDERS_ONLY);
        table.set_header(["", "class", "score"]);
        for (rank, class) in self.top.iter().enumerate() {
            let score = class.score.map_or(String::new(), |score| score.to_string());
            let mark =
                if self.doubts.iter().any(|d| d.index == Some(class.index)) { " (doubtful)" } else { "" };
            table.add_row([(rank + 1).to_string(), class.label.clone(), format!("{score}{mark}")]);
        }
        if let Some(column) = table.column_mut(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.to_string()
    }
}

/// What a model of a single number computes: the number that a client makes of its score, or the score itself.
fn single(answer: &Answer) -> Option<f64> {
    match answer.outputs.first().map(|output| &output.content) {
        Some(Content::Numbers { values, .. }) => values.first().copied(),
        None | Some(Content::Classes { .. }) => answer.scores.first().copied(),
    }
}

/// A NumPy array of `[rows, columns]`; all rows have the same length.
pub(crate) fn to_npy(rows: &[Vec<f64>]) -> Vec<u8> {
    let (n_rows, n_columns) = (rows.len(), rows.first().map_or(0, Vec::len));
    let about = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({n_rows}, {n_columns}), }}");
    // The magic bytes, the version, the length of what follows, and it, padded so that numbers begin at a multiple of 64.
    const HEAD: usize = 10;
    let width = (HEAD + about.len() + 1).next_multiple_of(64) - HEAD - 1;
    let header = format!("{about:width$}\n");
    let len = u16::try_from(header.len()).expect("two numbers of twenty digits fit");
    let mut data = [b"\x93NUMPY\x01\x00", &len.to_le_bytes()[..], header.as_bytes()].concat();
    data.extend(rows.iter().flatten().flat_map(|value| value.to_le_bytes()));
    data
}

/// What is wrong with scores, those with the same fault together.
fn in_words(doubts: &[Doubted]) -> Vec<String> {
    let words = |doubts: &[Doubted]| {
        let labels: Vec<&str> =
            doubts.iter().map(|d| d.label.as_deref().unwrap_or("another class")).collect();
        let (scores, verb) = match labels[..] {
            [label] => (format!("the score of {label}"), "is "),
            _ => (format!("the scores of {}", labels.join(", ")), "are "),
        };
        // What may have happened has a verb of its own.
        let verb = if doubts[0].reason.starts_with("may ") { "" } else { verb };
        format!("{scores} {verb}{}", doubts[0].reason)
    };
    let mut sorted = doubts.to_vec();
    sorted.sort_by_key(|d| d.doubt);
    sorted.chunk_by(|a, b| a.doubt == b.doubt).map(words).collect()
}

#[cfg(test)]
mod tests {
    use fhe_bytecode::Interval;
    use fhe_client::DoubtKind;

    use super::*;

    #[test]
    fn doubts_are_sentences() {
        let doubted = |index: Option<usize>, kind: DoubtKind| Doubted {
            index,
            label: index.map(|index| index.to_string()),
            doubt: kind.code(),
            reason: kind.to_string(),
        };
        let wrapped = DoubtKind::MayHaveWrapped(8.0);
        let outside = DoubtKind::Uncalibrated(Interval { low: -1.0, high: 2.0 });
        assert_eq!(
            in_words(&[doubted(Some(0), wrapped), doubted(Some(1), outside), doubted(Some(2), wrapped)]),
            [
                "the scores of 0, 2 may have wrapped around: the modulus holds ±8.000",
                "the score of 1 is outside the calibrated scores [-1, 2]",
            ]
        );
        assert_eq!(
            in_words(&[doubted(Some(4), outside), doubted(None, outside)]),
            ["the scores of 4, another class are outside the calibrated scores [-1, 2]"]
        );
    }

    #[test]
    fn npy_has_one_row_per_input() {
        let data = to_npy(&[vec![1.0, 2.0], vec![3.0, 4.0]]);
        assert_eq!((data.len() - 4 * 8) % 64, 0);
        let file = npyz::NpyFile::new(&data[..]).unwrap();
        assert_eq!(file.shape(), [2, 2]);
        assert_eq!(file.into_vec::<f64>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }
}
