//! The largest moduli that keep 128 bits of classical security.
//!
//! For a uniform ternary secret and an error of standard deviation about 3.2, by today's estimates. Sources, the
//! script and what is judgement: `docs/notes/security-table.md`.

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

#[cfg(test)]
mod tests {
    use std::f64::consts::{E, PI};

    use super::super::LOG_N_RANGE;
    use super::*;

    /// log2 of the root Hermite factor of blocks of `beta`.
    fn log2_delta(beta: f64) -> f64 {
        (beta / (2.0 * PI * E) * (PI * beta).powf(1.0 / beta)).log2() / (2.0 * (beta - 1.0))
    }

    /// log2 of the gates that reducing with blocks of `beta` takes in dimension `d`: progressive sieves by list decoding.
    fn price(beta: f64, d: f64) -> f64 {
        let free = beta * (4f64 / 3.0).ln() / (beta / (2.0 * PI * E)).ln();
        let sieve = 5.46f64.log2() + 0.296_135_003 * (beta - free) + 20.387_885_985;
        sieve + (5.46 * (d - beta)).log2()
    }

    /// log2 of the cost of the primal attack, which embeds secret and error as a unique shortest vector.
    fn primal(n: f64, log2_q: f64) -> f64 {
        let (secret, error) = ((2f64 / 3.0).sqrt(), crate::noise::ERROR_VARIANCE.sqrt());
        let stretch = (error / secret).log2();
        // Not negative when the last block is longer than the projection of the short vector.
        let gap = |beta: f64, d: f64| {
            let volume = (error.log2() + stretch * n + log2_q * (d - n - 1.0)) / d;
            log2_delta(beta) * (2.0 * beta - d - 1.0) + volume - (error * beta.sqrt()).log2()
        };
        let costs = (60..3000).map(f64::from).filter_map(|beta| {
            let balanced =
                (((n + 1.0) * log2_q - n * stretch - error.log2()) / log2_delta(beta)).sqrt().ceil();
            (gap(beta, balanced) >= 0.0).then(|| {
                let (mut low, mut high) = (n, balanced);
                while high - low > 1.0 {
                    let middle = ((low + high) / 2.0).floor();
                    if gap(beta, middle) >= 0.0 { high = middle } else { low = middle }
                }
                price(beta, high)
            })
        });
        costs.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn the_primal_attack_costs_128_bits_at_every_bound_and_less_above() {
        for log_n in LOG_N_RANGE {
            let (n, cap) = (2f64.powi(log_n as i32), f64::from(security_cap(log_n).unwrap()));
            assert!(primal(n, cap) >= 128.0, "2^{log_n}: {}", primal(n, cap));
            // No bound is much lower than it needs to be.
            assert!(primal(n, 1.02 * cap) < 128.0, "2^{log_n}: {}", primal(n, 1.02 * cap));
        }
    }
}
