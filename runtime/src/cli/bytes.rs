//! Sizes in bytes, as people write them.

/// Parses `8GiB`, `512M`, `1.5 g` or a plain number of bytes. Units are powers of 1024.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.trim().parse().map_err(|_| format!("{text:?} is no size: try 8GiB"))?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(format!("unknown unit {unit:?}: use KiB, MiB, GiB or TiB")),
    };
    let bytes = number * (1u64 << shift) as f64;
    if !(1.0..1e18).contains(&bytes) {
        return Err(format!("{text:?} is out of range"));
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_with_and_without_units() {
        for (text, expected) in [("17", 17), ("2k", 2048), ("1.5 MiB", 3 << 19), ("8GiB", 8 << 30)] {
            assert_eq!(parse_bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "GiB", "-1", "0", "3 parsecs", "1e300"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
