//! Rows of a CSV file.

/// One row; fields are quoted where they would be taken for several.
pub fn csv_row<S: AsRef<str>>(fields: impl IntoIterator<Item = S>) -> String {
    let quoted = |field: S| {
        let field = field.as_ref();
        match field.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", field.replace('"', "\"\"")),
            false => field.to_owned(),
        }
    };
    fields.into_iter().map(quoted).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::csv_row;

    #[test]
    fn fields_stay_apart() {
        assert_eq!(csv_row(["cat.png", "0.5", ""]), "cat.png,0.5,");
        assert_eq!(
            csv_row(["a,b", "the \"best\"", "two\nlines"]),
            "\"a,b\",\"the \"\"best\"\"\",\"two\nlines\""
        );
    }
}
