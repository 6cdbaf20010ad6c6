//! Parameter sets of the CKKS bench.

use fhe_bytecode::params::{Params, ParamsSpec, ntt_primes_below};

/// A named parameter set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Set {
    /// Its name in tables and JSON.
    pub(super) name: &'static str,
    log_n: u32,
    n_towers: usize,
    bits: u32,
    n_special: usize,
    special_bits: u32,
}

/// A and B are where other libraries were measured, C is the next ring; R is what a ResNet-20 needs.
pub(super) const SETS: [Set; 4] = [
    Set { name: "A", log_n: 15, n_towers: 21, bits: 42, n_special: 1, special_bits: 42 },
    Set { name: "B", log_n: 15, n_towers: 15, bits: 50, n_special: 2, special_bits: 50 },
    Set { name: "C", log_n: 16, n_towers: 33, bits: 50, n_special: 4, special_bits: 50 },
    Set { name: "R", log_n: 15, n_towers: 21, bits: 36, n_special: 3, special_bits: 37 },
];

impl Set {
    /// The parameters. Sets A and C exceed the 128-bit bound, as the comparison they serve does.
    pub(super) fn params(&self) -> Result<Params, String> {
        let towers =
            ntt_primes_below(self.bits, self.log_n, self.n_towers, &[]).map_err(|e| e.to_string())?;
        let special_primes = ntt_primes_below(self.special_bits, self.log_n, self.n_special, &towers)
            .map_err(|e| e.to_string())?;
        let digit_size = self.n_special;
        let spec = ParamsSpec {
            log_n: self.log_n,
            towers,
            special_primes,
            digit_size,
            pool: None,
            lower: Vec::new(),
            insecure: true,
            toy: false,
        };
        Params::new(spec).map_err(|e| e.to_string())
    }

    /// Whether the linear map of a convolution is measured too.
    pub(super) fn has_linear_map(&self) -> bool {
        self.name == "R"
    }

    /// One line for people.
    pub(super) fn describe(&self) -> String {
        format!(
            "set {}: N = 2^{}, {} primes of {} bits, {} special",
            self.name, self.log_n, self.n_towers, self.bits, self.n_special
        )
    }
}
