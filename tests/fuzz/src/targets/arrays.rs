//! NumPy arrays, alone and in archives.

use fhe_input::{ImageShape, Samples};
use fhec_tests::models::random::Random;
use flate2::Crc;

use super::samples;
use crate::mutate;
use crate::run::Target;

const SHAPE: ImageShape = ImageShape::new(1, 2, 3);

/// Arrays of several types.
pub(super) struct Arrays {
    arrays: Vec<Vec<u8>>,
}

impl Arrays {
    pub(super) fn new() -> Self {
        let floats: Vec<u8> = (0..12).flat_map(|i| (i as f32 / 4.0).to_le_bytes()).collect();
        let doubles: Vec<u8> = (0..6).flat_map(|i| f64::from(i).to_be_bytes()).collect();
        let longs: Vec<u8> = (0..6i64).flat_map(i64::to_le_bytes).collect();
        Self {
            arrays: vec![
                npy("<f4", "(2, 1, 2, 3)", &floats),
                npy(">f8", "(2, 3, 1)", &doubles),
                npy("<i8", "(6,)", &longs),
                npy("|u1", "(3, 2, 3)", &[9; 18]),
            ],
        }
    }
}

impl Target for Arrays {
    type Read = Samples;
    const NAME: &'static str = "arrays";

    fn input(&self, random: &mut Random) -> Vec<u8> {
        let array = &self.arrays[random.below(self.arrays.len())];
        let other = &self.arrays[random.below(self.arrays.len())];
        match random.below(3) {
            0 => mutate::bytes(array, other, random),
            1 => npz(&[("x.npy", &mutate::bytes(array, other, random)), ("y.npy", &self.arrays[3])]),
            _ => mutate::bytes(&npz(&[("x.npy", array), ("labels.npy", other)]), array, random),
        }
    }

    fn read(&self, input: &[u8]) -> Option<Samples> {
        samples::read(input, "array.npy", SHAPE)
    }

    fn memory_bound(&self, len: usize) -> usize {
        64 * len + (1 << 20)
    }

    fn exercise(&self, read: Samples, _random: &mut Random) -> Result<(), String> {
        samples::exercise(&read, SHAPE)
    }
}

/// One array in the format of version 1.
fn npy(kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    header += &" ".repeat((64 - (11 + header.len()) % 64) % 64);
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend_from_slice(&(header.len() as u16).to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    file
}

/// An archive of stored files.
fn npz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in files {
        let mut crc = Crc::new();
        crc.update(data);
        let offset = archive.len() as u32;
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for word in [crc.sum(), data.len() as u32, data.len() as u32] {
            common.extend_from_slice(&word.to_le_bytes());
        }
        common.extend_from_slice(&(name.len() as u16).to_le_bytes());
        common.extend_from_slice(&[0, 0]);
        archive.extend_from_slice(b"PK\x03\x04");
        archive.extend_from_slice(&common);
        archive.extend_from_slice(name.as_bytes());
        archive.extend_from_slice(data);
        directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        directory.extend_from_slice(&common);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (n, offset) = (files.len() as u16, archive.len() as u32);
    archive.extend_from_slice(&directory);
    archive.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    archive.extend_from_slice(&n.to_le_bytes());
    archive.extend_from_slice(&n.to_le_bytes());
    archive.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    archive.extend_from_slice(&offset.to_le_bytes());
    archive.extend_from_slice(&[0, 0]);
    archive
}
