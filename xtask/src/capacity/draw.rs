//! Seeded draws: when the next job comes, and whose it is.

/// A small seeded generator (splitmix64).
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1].
    pub(super) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Seconds until the next of `rate` events a second, when events come independently.
    pub(super) fn pause(&mut self, rate: f64) -> f64 {
        -self.unit().ln() / rate
    }
}

/// Clients of which the i-th comes 1/i^skew times as often as the first.
pub(super) struct Popularity {
    sums: Vec<f64>,
}

impl Popularity {
    pub(super) fn new(n_clients: usize, skew: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=n_clients)
            .map(|rank| {
                sum += (rank as f64).powf(-skew);
                sum
            })
            .collect();
        Self { sums }
    }

    pub(super) fn draw(&self, draw: &mut Draw) -> usize {
        let at = draw.unit() * self.sums.last().copied().unwrap_or(0.0);
        self.sums.partition_point(|sum| *sum < at).min(self.sums.len() - 1)
    }
}
