//! Tables of numbers: one sample a row, the label last if there is one column more; or one gray image as a matrix.

use crate::labels::{class, from_values};
use crate::samples::{Samples, Values};
use crate::{ImageShape, InputErrorKind};

/// Characters of a bad word that an error repeats.
const MAX_WORD: usize = 40;

/// Decodes a table separated by commas, semicolons, tabs or spaces. A first line that is not numbers is a heading.
pub(crate) fn decode(data: &[u8], shape: ImageShape) -> Result<Samples, InputErrorKind> {
    let n = shape.n_values();
    let (row_len, numbers) = parse(data)?;
    let n_rows = numbers.len() / row_len;
    let is_matrix = row_len == shape.width && numbers.len() == n;
    if row_len == n {
        return Samples::from_numbers(&[n_rows, n], numbers, shape);
    }
    if is_matrix {
        return Ok(Samples { shape, values: Values::Numbers(numbers), labels: None });
    }
    if row_len != n + 1 {
        return Err(InputErrorKind::WrongShape {
            found: format!("{n_rows} rows of {row_len} numbers"),
            wanted: shape,
        });
    }
    let mut values = Vec::with_capacity(n_rows * n);
    let mut labels = Vec::with_capacity(n_rows);
    for (index, row) in numbers.chunks_exact(row_len).enumerate() {
        values.extend_from_slice(&row[..n]);
        labels.push(class(index, row[n])?);
    }
    let samples = Samples::from_numbers(&[n_rows, n], values, shape)?;
    Ok(Samples { labels: Some(labels), ..samples })
}

/// Decodes a table with one class a row.
pub(crate) fn decode_labels(data: &[u8]) -> Result<Vec<usize>, InputErrorKind> {
    let (row_len, numbers) = parse(data)?;
    match row_len {
        1 => from_values(Values::Numbers(numbers)),
        n => Err(InputErrorKind::NotLabels { found: format!("rows of {n} numbers") }),
    }
}

/// The numbers of a row, and all numbers.
fn parse(data: &[u8]) -> Result<(usize, Vec<f64>), InputErrorKind> {
    let damaged = |reason: String| InputErrorKind::damaged("CSV", reason);
    let text = std::str::from_utf8(data).map_err(|e| damaged(e.to_string()))?;
    let mut table = Table { row_len: None, numbers: Vec::new() };
    for (line_no, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match table.push_row(line) {
            Ok(()) => {}
            Err(_) if line_no == 0 => table = Table { row_len: None, numbers: Vec::new() },
            Err(reason) => return Err(damaged(format!("line {}: {reason}", line_no + 1))),
        }
    }
    let row_len = table.row_len.ok_or_else(|| damaged("no numbers".to_owned()))?;
    Ok((row_len, table.numbers))
}

/// Rows of one length, one after the other.
struct Table {
    row_len: Option<usize>,
    numbers: Vec<f64>,
}

impl Table {
    fn push_row(&mut self, line: &str) -> Result<(), String> {
        let before = self.numbers.len();
        for word in line.split([',', ';', '\t', ' ']).map(str::trim).filter(|w| !w.is_empty()) {
            match word.parse::<f64>() {
                Ok(number) if number.is_finite() => self.numbers.push(number),
                _ => {
                    // A word may be as long as the file.
                    let begin: String = word.chars().take(MAX_WORD).collect();
                    return Err(format!("{begin:?} is no finite number"));
                }
            }
        }
        let len = self.numbers.len() - before;
        if len == 0 {
            return Err("no numbers".to_owned());
        }
        match *self.row_len.get_or_insert(len) {
            expected if expected == len => Ok(()),
            expected => Err(format!("{len} numbers, but {expected} in the rows above")),
        }
    }
}
