//! What a program costs its users: seconds, bytes to send, memory of the server, money.
//!
//! Bytes follow from the program itself. Seconds are the compiler's prediction for one core, so what several cores make of them
//! is a division that real machines do not quite reach; `fhe-run bench` measures.

use std::fmt::Write as _;

use fhe_bytecode::{CheckedProgram, Level, Memory};
use serde::Serialize;

use super::units;

/// Costs of one program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Seconds of one core for an image, plaintexts kept as far as memory goes.
    pub core_seconds: f64,
    /// Seconds of one core to encode the plaintexts that are kept, once.
    pub encode_core_seconds: f64,
    /// Bytes of evaluation keys that a client uploads once; half of every key is a seed.
    pub upload_once_bytes: u64,
    /// Bytes of one encrypted input; half of it is a seed.
    pub upload_bytes: u64,
    /// Bytes of one encrypted result.
    pub download_bytes: u64,
    /// Bytes of memory that one client's evaluation cannot do without.
    pub least_memory_bytes: u64,
    /// Bytes of memory with all plaintexts kept.
    pub memory_bytes: u64,
}

impl Estimate {
    /// The costs of a program.
    #[must_use]
    pub fn new(program: &CheckedProgram) -> Self {
        let (spec, params) = (program.spec(), program.params());
        let poly = |level: Level| (params.log2_q_at(level) * params.at(level).n() as f64 / 8.0).ceil() as u64;
        let least = Memory::of(program).needed();
        let (interface, batch) = (program.interface(), program.batch());
        Self {
            core_seconds: spec.prediction.seconds / batch as f64,
            encode_core_seconds: spec.prediction.encode_seconds / batch as f64,
            upload_once_bytes: program.key_bytes() / 2,
            upload_bytes: interface.input_ciphertexts() as u64 * poly(spec.input.level) / batch as u64,
            download_bytes: 2 * interface.output_ciphertexts() as u64 * poly(program.output_level())
                / batch as u64,
            least_memory_bytes: least,
            memory_bytes: least.saturating_add(spec.prediction.plaintext_bytes),
        }
    }

    /// The costs on a server with so much memory: plaintexts that it cannot keep are encoded for every image.
    #[must_use]
    pub fn within(self, memory: u64) -> Self {
        let plaintexts = self.memory_bytes - self.least_memory_bytes;
        let kept = memory.saturating_sub(self.least_memory_bytes) as f64 / plaintexts.max(1) as f64;
        let again = (1.0 - kept.min(1.0)) * self.encode_core_seconds;
        Self {
            core_seconds: self.core_seconds + again,
            encode_core_seconds: self.encode_core_seconds - again,
            ..self
        }
    }

    /// Seconds of an image on so many cores, the first one included or not.
    #[must_use]
    pub fn seconds(&self, cores: usize, first: bool) -> f64 {
        let once = if first { self.encode_core_seconds } else { 0.0 };
        (self.core_seconds + once) / cores.max(1) as f64
    }

    /// What a thousand images cost for a price of a core for an hour.
    #[must_use]
    pub fn thousand_images(&self, price_per_core_hour: f64) -> f64 {
        self.core_seconds * 1000.0 / 3600.0 * price_per_core_hour
    }

    /// The costs in words, four lines, or five with a price.
    #[must_use]
    pub fn words(&self, cores: usize, price_per_core_hour: Option<f64>) -> String {
        let bytes = units::bytes;
        let mut text = format!(
            "about {} an image on {} ({} the first time), predicted\n\
             a client uploads {} of keys once, then {} per image,\n\
             and gets {} back\n\
             a server needs {} of memory for it, {} to be fast\n",
            units::seconds(self.seconds(cores, false)),
            if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") },
            units::seconds(self.seconds(cores, true)),
            bytes(self.upload_once_bytes),
            bytes(self.upload_bytes),
            bytes(self.download_bytes),
            bytes(self.least_memory_bytes),
            bytes(self.memory_bytes),
        );
        if let Some(price) = price_per_core_hour {
            let _ = writeln!(
                text,
                "1000 images cost {} at {} per core and hour",
                units::price(self.thousand_images(price)),
                units::price(price)
            );
        }
        text
    }
}

/// Cores of this machine.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ESTIMATE: Estimate = Estimate {
        core_seconds: 7.2,
        encode_core_seconds: 3.6,
        upload_once_bytes: 450 << 20,
        upload_bytes: 3 << 20,
        download_bytes: 1 << 18,
        least_memory_bytes: 1 << 30,
        memory_bytes: 3 << 30,
    };

    #[test]
    fn the_words_agree_with_each_other() {
        let words = ESTIMATE.words(2, Some(0.05));
        for part in [
            "about 3.60 s an image on 2 cores (5.40 s the first time)",
            "uploads 450 MiB",
            "1000 images cost 0.10",
        ] {
            assert!(words.contains(part), "{words}");
        }
        assert_eq!(ESTIMATE.words(1, None).lines().count(), 4);
    }

    #[test]
    fn what_memory_does_not_hold_is_encoded_for_every_image() {
        let seconds = |memory: u64| [false, true].map(|first| ESTIMATE.within(memory).seconds(1, first));
        assert_eq!(seconds(4 << 30), [7.2, 10.8]);
        assert_eq!(seconds(2 << 30), [9.0, 10.8]);
        assert_eq!(seconds(0), [10.8, 10.8]);
    }
}
