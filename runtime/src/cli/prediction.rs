//! Decrypted scores as a table, as JSON or as a NumPy array.

use comfy_table::{CellAlignment, Table};
use npyz::WriterBuilder;

/// Scores of one input, best first, rounded for showing.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Prediction {
    /// The best classes.
    pub top: Vec<Class>,
    /// The true class, if the input file told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

/// One class and its score.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Class {
    /// Position in the output vector.
    pub index: usize,
    /// Label, or the position where the program has no labels.
    pub label: String,
    /// Rounded score.
    pub score: f64,
}

impl Prediction {
    /// The `n_top` best of `scores`, rounded to `decimals` digits after the point.
    pub(crate) fn new(scores: &[f64], labels: &[String], n_top: usize, decimals: u32) -> Self {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let unit = 10f64.powi(decimals as i32);
        let class = |&index: &usize| Class {
            index,
            label: label_of(labels, index),
            // Adding zero turns minus zero into zero.
            score: (scores[index] * unit).round() / unit + 0.0,
        };
        Self { top: order.iter().take(n_top).map(class).collect(), expected: None }
    }

    /// A table of rank, class and score.
    pub(crate) fn to_table(&self) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::UTF8_BORDERS_ONLY);
        table.set_header(["", "class", "score"]);
        for (rank, class) in self.top.iter().enumerate() {
            table.add_row([(rank + 1).to_string(), class.label.clone(), class.score.to_string()]);
        }
        if let Some(column) = table.column_mut(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.to_string()
    }
}

/// The label of a class, or its number.
pub(crate) fn label_of(labels: &[String], index: usize) -> String {
    labels.get(index).cloned().unwrap_or_else(|| index.to_string())
}

/// Digits after the point that an absolute error of `error` leaves meaningful.
pub(crate) fn decimals_for_error(error: f64) -> u32 {
    match error.is_finite() && error > 0.0 {
        true => (-error.log10()).floor().clamp(0.0, 6.0) as u32,
        false => 2,
    }
}

/// A NumPy array of `[rows, columns]`; all rows have the same length.
pub(crate) fn to_npy(rows: &[Vec<f64>]) -> std::io::Result<Vec<u8>> {
    let shape = [rows.len() as u64, rows.first().map_or(0, |row| row.len() as u64)];
    let mut data = Vec::new();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut data).begin_nd()?;
    writer.extend(rows.iter().flatten().copied())?;
    writer.finish()?;
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_classes_come_first_and_rounded() {
        let labels = ["a".to_owned(), "b".to_owned()];
        assert_eq!(Prediction::new(&[-0.001], &labels, 1, 1).to_table().matches('-').count(), 0);
        let prediction = Prediction::new(&[0.123, 2.987, -1.0], &labels, 2, 1);
        let top: Vec<_> = prediction.top.iter().map(|c| (c.label.as_str(), c.score)).collect();
        assert_eq!(top, [("b", 3.0), ("a", 0.1)]);
        assert!(prediction.to_table().contains("class"));
    }

    #[test]
    fn class_without_label_shows_its_number() {
        assert_eq!(Prediction::new(&[1.0], &[], 5, 0).top[0].label, "0");
    }

    #[test]
    fn rounding_follows_the_predicted_error() {
        for (error, decimals) in [(0.5, 0), (0.03, 1), (1e-3, 3), (1e-12, 6), (f64::NAN, 2), (0.0, 2)] {
            assert_eq!(decimals_for_error(error), decimals, "{error}");
        }
    }

    #[test]
    fn npy_has_one_row_per_input() {
        let data = to_npy(&[vec![1.0, 2.0], vec![3.0, 4.0]]).unwrap();
        let file = npyz::NpyFile::new(&data[..]).unwrap();
        assert_eq!(file.shape(), [2, 2]);
        assert_eq!(file.into_vec::<f64>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }
}
