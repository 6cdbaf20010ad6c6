//! The largest moduli that keep 128 bits of classical security.
//!
//! For a uniform ternary secret and an error of standard deviation about 3.2, by today's estimates.

/// Largest log2(PQ) at 128 bits for ring degree 2^`log_n`; none outside 2^12 to 2^17.
pub fn security_cap(log_n: u32) -> Option<u32> {
    match log_n {
        12 => Some(106),
        13 => Some(214),
        14 => Some(430),
        15 => Some(868),
        16 => Some(1746),
        17 => Some(3520),
        _ => None,
    }
}
