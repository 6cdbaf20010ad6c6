//! CSV tables, idx files and CIFAR-10 batches, plain and gzipped.

use std::io::Write;

use fhe_input::{ImageShape, Samples};
use fhec_tests::models::random::Random;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::samples;
use crate::mutate;
use crate::run::Target;

const SMALL: ImageShape = ImageShape::new(1, 2, 3);
const CIFAR: ImageShape = ImageShape::new(3, 32, 32);
const CSV: &str = "a,b,c,d,e,f,class\n1,2.5,-3,0,1e-3,6,7\n0,0,0,0,0,0,1\n";
const IDX: &[u8] = &[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const WORDS: &[&str] = &["nan", "inf", "1e999", "-", ",", ";", "\n", "\t", "\u{feff}", "0x1", "1_0", "class"];
/// One in so many inputs is a batch of CIFAR-10, which is a thousand times larger than the others.
const BATCHES: usize = 16;

/// Tables of several kinds.
pub(super) struct Tables;

impl Tables {
    pub(super) fn new() -> Self {
        Self
    }
}

/// Samples and the shape they were read for.
type Read = (Samples, ImageShape);

impl Target for Tables {
    type Read = Read;
    const NAME: &'static str = "tables";

    /// The first byte tells the file's name.
    fn input(&self, random: &mut Random) -> Vec<u8> {
        let (name, data) = match random.below(BATCHES) {
            0 => (b'b', mutate::bytes(&[7; 3073 * 2], &[], random)),
            1..=7 => (b'i', mutate::bytes(IDX, CSV.as_bytes(), random)),
            _ => (b'c', mutate::text(CSV, WORDS, random)),
        };
        let data = match random.below(8) {
            0 => gzipped(&data),
            1 => mutate::bytes(&gzipped(&data), IDX, random),
            _ => data,
        };
        [&[name], &data[..]].concat()
    }

    fn read(&self, input: &[u8]) -> Option<Read> {
        let (kind, data) = input.split_first()?;
        let (name, shape) = match kind {
            b'b' => ("batch.bin.gz", CIFAR),
            b'i' => ("images-idx3-ubyte", SMALL),
            _ => ("table.csv", SMALL),
        };
        let name = if data.starts_with(&[0x1f, 0x8b]) { name.to_owned() } else { name.replace(".gz", "") };
        Some((samples::read(data, &name, shape)?, shape))
    }

    fn memory_bound(&self, len: usize) -> usize {
        // Gzip packs up to a thousand bytes into one.
        2048 * len + (1 << 20)
    }

    fn exercise(&self, (read, shape): Read, _random: &mut Random) -> Result<(), String> {
        samples::exercise(&read, shape)
    }
}

fn gzipped(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).and_then(|()| encoder.finish()).expect("a vector takes any bytes")
}
