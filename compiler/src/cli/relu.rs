//! The value of `--relu`: `quadratic[,c=2,b=10]`.

use crate::fit::FitSpec;

/// Parses a request to replace activations.
///
/// # Errors
/// With what is wrong, for people.
pub fn parse(text: &str) -> Result<FitSpec, String> {
    let mut parts = text.split(',');
    if parts.next() != Some("quadratic") {
        return Err("expected `quadratic`, optionally with `,c=RANGE` and `,b=BITS`".into());
    }
    let mut spec = FitSpec::default();
    for part in parts {
        match part.split_once('=') {
            Some(("c", value)) => {
                let c = value.parse().ok().filter(|c: &f64| c.is_finite() && *c > 0.0);
                spec.c = c.ok_or_else(|| format!("`{value}` is not a positive range"))?;
            }
            Some(("b", value)) => {
                spec.bits = value.parse().map_err(|_| format!("`{value}` is not a number of bits"))?;
            }
            _ => return Err(format!("`{part}` is neither `c=RANGE` nor `b=BITS`")),
        }
    }
    // The fit itself knows its limits; asking it early makes this a usage error.
    crate::fit::fit(spec, |x| x.max(0.0)).map_err(|e| e.to_string())?;
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_and_bits_are_optional() {
        assert_eq!(parse("quadratic"), Ok(FitSpec::default()));
        assert_eq!(parse("quadratic,b=8,c=3.5"), Ok(FitSpec { degree: 2, c: 3.5, bits: 8 }));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "cubic", "quadratic,c", "quadratic,c=-1", "quadratic,b=99", "quadratic,d=2"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
