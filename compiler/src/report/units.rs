//! Numbers as people read them.

pub(super) use fhe_host::show_bytes as bytes;

/// A time with three significant digits.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 120.0 => format!("{} min", digits(s / 60.0)),
        s if s >= 1.0 => format!("{} s", digits(s)),
        s if s >= 1e-3 => format!("{} ms", digits(s * 1e3)),
        s if s > 0.0 => format!("{} µs", digits(s * 1e6)),
        _ => "0 s".to_owned(),
    }
}

/// A count with its thousands apart.
pub(super) fn count(n: u64) -> String {
    let text = n.to_string();
    let groups: Vec<&str> = text.as_bytes().rchunks(3).rev().filter_map(|g| str::from_utf8(g).ok()).collect();
    groups.join("\u{2009}")
}

/// A share in percent; small ones keep a digit.
pub(super) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent >= 10.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

/// A number as a power of two.
pub(super) fn power(log2: f64) -> String {
    let text = format!("2^{log2:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned).replace('-', "\u{2212}")
}

/// Two significant digits.
pub(super) fn two_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 10.0 => format!("{value:.0}"),
        v if v >= 1e-3 => format!("{value:.*}", (1.0 - v.log10().floor()) as usize),
        _ => format!("{value:.1e}"),
    }
}

/// A sum of money with two significant digits, never in powers of ten.
pub(super) fn price(value: f64) -> String {
    match value.abs() {
        v if v >= 10.0 => format!("{value:.0}"),
        v if v >= 1e-9 => format!("{value:.*}", (1.0 - v.log10().floor()) as usize),
        _ => "0".to_owned(),
    }
}

fn digits(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_plain_numbers() {
        assert_eq!([0.0, 5.49e-4, 0.04, 1.25, 37.2].map(price), ["0", "0.00055", "0.040", "1.2", "37"]);
    }

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(
            [0.0, 2.5e-5, 0.0312, 9.41, 600.0].map(seconds),
            ["0 s", "25.0 µs", "31.2 ms", "9.41 s", "10.0 min"]
        );
    }

    #[test]
    fn thousands_percents_and_powers() {
        assert_eq!([7, 1234, 40_000_000].map(count), ["7", "1\u{2009}234", "40\u{2009}000\u{2009}000"]);
        assert_eq!([0.5, 0.034].map(percent), ["50 %", "3.4 %"]);
        assert_eq!(
            [0.456, 12.3, 3.12, 0.0012, 2e-7].map(two_digits),
            ["0.46", "12", "3.1", "0.0012", "2.0e-7"]
        );
        assert_eq!([15.0, -7.25].map(power), ["2^15", "2^\u{2212}7.2"]);
    }
}
