//! Sizes in bytes, as people write and read them.

/// Parses `8GiB`, `512M`, `1.5 g` or a plain number of bytes. Units are powers of 1024.
///
/// # Errors
/// With what is wrong, when it is no size or one that no machine has.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
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

/// A size with three significant digits and a binary unit.
#[must_use]
pub fn show_bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ if value >= 99.95 => format!("{value:.0} {}", units[unit]),
        _ if value >= 9.995 => format!("{value:.1} {}", units[unit]),
        _ => format!("{value:.2} {}", units[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_print_with_three_digits() {
        for (bytes, expected) in
            [(17, "17 B"), (2048, "2.00 KiB"), (999 << 20, "999 MiB"), (3 << 29, "1.50 GiB")]
        {
            assert_eq!(show_bytes(bytes), expected);
        }
    }

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
