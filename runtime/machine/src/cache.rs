//! Which plaintexts are kept between uses, decided before the work starts.
//!
//! A plaintext is encoded in two steps: values to integer coefficients, coefficients to residues. Coefficients are
//! small and save the first step, residues are as many times larger as there are towers and save both. The plan
//! spends a budget of bytes: first coefficients of everything that is used more than once, then residues of what is used
//! often, plaintexts with most uses first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fhe_ckks::linear::Diagonal;
use fhe_ckks::{CkksError, Context, Encoding};
use fhe_ring::Basis;

/// The plaintexts of one instruction and what keeping one takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Number of distinct plaintexts.
    pub n_plaintexts: usize,
    /// How often they are used in one evaluation, all together.
    pub n_uses: usize,
    /// Bytes of one as coefficients, at most.
    pub coeff_bytes: u64,
    /// Bytes of one as residues.
    pub residue_bytes: u64,
}

/// How many plaintexts of one instruction are kept, and in which form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// The first so many are kept as residues,
    pub n_residues: usize,
    /// the next so many as coefficients, the rest not at all.
    pub n_coeffs: usize,
}

/// Uses from which on residues are kept. They save little, since a core transforms coefficients almost as fast as it reads
/// residues from memory, and gigabytes of them take seconds to fill (docs/notes/networks.md).
const RESIDUE_USES: f64 = 32.0;

/// Spends `budget` bytes on `demands` for so many evaluations.
pub(crate) fn share_budget(demands: &[Demand], budget: u64, n_evaluations: usize) -> Vec<Share> {
    let mut shares = vec![Share::default(); demands.len()];
    let reuse = |d: &Demand| (d.n_uses * n_evaluations) as f64 / d.n_plaintexts.max(1) as f64;
    let mut order: Vec<usize> = (0..demands.len()).filter(|&i| reuse(&demands[i]) > 1.0).collect();
    order.sort_by(|&a, &b| reuse(&demands[b]).total_cmp(&reuse(&demands[a])));
    let mut left = budget;
    for &i in &order {
        let n = affordable(demands[i].coeff_bytes, demands[i].n_plaintexts, left);
        shares[i].n_coeffs = n;
        left -= n as u64 * demands[i].coeff_bytes;
    }
    for &i in order.iter().filter(|&&i| reuse(&demands[i]) >= RESIDUE_USES) {
        let more = demands[i].residue_bytes.saturating_sub(demands[i].coeff_bytes);
        let n = affordable(more, shares[i].n_coeffs, left);
        shares[i] = Share { n_residues: n, n_coeffs: shares[i].n_coeffs - n };
        left -= n as u64 * more;
    }
    shares
}

fn affordable(bytes: u64, wanted: usize, budget: u64) -> usize {
    budget.checked_div(bytes).map_or(wanted, |n| wanted.min(n as usize))
}

/// The share of the work of encoding that plaintexts take of which nothing is kept.
pub(crate) fn encoded_anew(demands: &[Demand], shares: &[Share]) -> f64 {
    // Coefficients are as many as there are slots to encode.
    let work = |n: usize, demand: &Demand| n as f64 * demand.coeff_bytes as f64;
    let all: f64 = demands.iter().map(|demand| work(demand.n_plaintexts, demand)).sum();
    let kept = shares.iter().zip(demands).map(|(share, demand)| work(share.n_kept(), demand));
    if all > 0.0 { 1.0 - kept.sum::<f64>() / all } else { 0.0 }
}

impl Share {
    /// Plaintexts of which something is kept.
    fn n_kept(&self) -> usize {
        self.n_residues + self.n_coeffs
    }

    /// Bytes it takes at most once everything is encoded.
    pub(crate) fn bytes(&self, demand: &Demand) -> u64 {
        self.n_residues as u64 * demand.residue_bytes + self.n_coeffs as u64 * demand.coeff_bytes
    }
}

/// Counts for all sets of one machine.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    cached_bytes: AtomicU64,
    encode_nanos: AtomicU64,
    n_encoded: AtomicU64,
}

impl Meter {
    /// Bytes of plaintexts kept so far.
    pub(crate) fn cached_bytes(&self) -> u64 {
        self.cached_bytes.load(Ordering::Relaxed)
    }

    /// Seconds spent encoding, summed over threads, and the number of encodings.
    pub(crate) fn encoded(&self) -> (f64, u64) {
        (self.encode_nanos.load(Ordering::Relaxed) as f64 * 1e-9, self.n_encoded.load(Ordering::Relaxed))
    }
}

/// The plaintexts of one instruction, encoded on demand and kept as planned.
#[derive(Debug)]
pub(crate) struct PlaintextSet {
    share: Share,
    basis: Basis,
    kept: Vec<OnceLock<Diagonal>>,
}

impl PlaintextSet {
    /// An empty set over `basis`.
    pub(crate) fn new(share: Share, basis: Basis) -> Self {
        Self { share, basis, kept: (0..share.n_kept()).map(|_| OnceLock::new()).collect() }
    }

    /// Plaintext `index`; `encode` is asked if it is not at hand. Threads that ask at the same time may all encode,
    /// to the same bits.
    pub(crate) fn get(
        &self,
        context: &Context,
        meter: &Meter,
        index: usize,
        encode: impl FnOnce() -> Result<Encoding, CkksError>,
    ) -> Result<Diagonal, CkksError> {
        let place = self.kept.get(index);
        if let Some(diagonal) = place.and_then(OnceLock::get) {
            return Ok(diagonal.clone());
        }
        let began = Instant::now();
        let encoding = encode()?;
        let diagonal = match index < self.share.n_residues {
            true => Diagonal::Plaintext(Arc::new(context.encoder().transform(&encoding, self.basis))),
            false => Diagonal::Encoding(Arc::new(encoding)),
        };
        meter.encode_nanos.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        meter.n_encoded.fetch_add(1, Ordering::Relaxed);
        if place.is_some_and(|place| place.set(diagonal.clone()).is_ok()) {
            let bytes = match &diagonal {
                Diagonal::Plaintext(plain) => plain.bytes(),
                Diagonal::Encoding(encoding) => encoding.bytes(),
            };
            meter.cached_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        Ok(diagonal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(n_plaintexts: usize, n_uses: usize) -> Demand {
        Demand { n_plaintexts, n_uses, coeff_bytes: 10, residue_bytes: 100 }
    }

    #[test]
    fn what_is_not_kept_is_encoded_anew() {
        let demands = [demand(5, 5), demand(15, 15)];
        let anew = |budget: u64, n: usize| encoded_anew(&demands, &share_budget(&demands, budget, n));
        assert_eq!([anew(1000, 1), anew(0, 2), anew(1_000_000, 2)], [1.0, 1.0, 0.0]);
        let half = share_budget(&demands, 10 * demands[0].coeff_bytes, 2);
        assert_eq!(encoded_anew(&demands, &half), 0.5);
        assert_eq!(encoded_anew(&[], &[]), 0.0);
    }

    fn check(demands: &[Demand], budget: u64, n_evaluations: usize, expected: &[(usize, usize)]) {
        let shares = share_budget(demands, budget, n_evaluations);
        let found: Vec<_> = shares.iter().map(|s| (s.n_residues, s.n_coeffs)).collect();
        assert_eq!(found, expected);
        let bytes: u64 = shares.iter().zip(demands).map(|(s, d)| s.bytes(d)).sum();
        assert!(bytes <= budget);
    }

    #[test]
    fn what_is_used_once_is_not_kept() {
        check(&[demand(5, 5), demand(2, 8)], 1000, 1, &[(0, 0), (0, 2)]);
    }

    #[test]
    fn coefficients_come_before_residues() {
        check(&[demand(5, 5), demand(5, 5)], 100, 32, &[(0, 5), (0, 5)]);
        check(&[demand(5, 5), demand(5, 5)], 190, 32, &[(1, 4), (0, 5)]);
    }

    #[test]
    fn few_uses_are_worth_no_residues() {
        check(&[demand(5, 5), demand(5, 20)], 1000, 8, &[(0, 5), (5, 0)]);
    }

    #[test]
    fn most_used_plaintexts_come_first() {
        check(&[demand(5, 5), demand(5, 50)], 30, 2, &[(0, 0), (0, 3)]);
    }

    #[test]
    fn no_budget_keeps_nothing() {
        check(&[demand(5, 50)], 0, 9, &[(0, 0)]);
    }
}
