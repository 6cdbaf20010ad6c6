//! Interface files, which a client gets in place of the program.

use fhe_bytecode::Interface;
use fhe_bytecode::codec::{INTERFACE_LIMIT, encode_interface, read_interface};
use fhec::pipeline::LayoutChoice;
use fhec_tests::models::random::Random;

use super::specimen::{BRANCHED, DENSE, ensemble_program, golden, program};
use crate::mutate;
use crate::run::Target;

const CHECKSUM_BYTES: usize = 32;
const CHECKSUM_CONTEXT: &str = "fhec 1 interface file";

/// Interfaces of programs in small and in large rings, with and without ports, tails and a pool.
pub(super) struct Interfaces {
    seeds: Vec<Vec<u8>>,
}

impl Interfaces {
    pub(super) fn new() -> Self {
        let programs = [
            program(DENSE, LayoutChoice::Packed, 5),
            program(BRANCHED, LayoutChoice::Packed, 14),
            ensemble_program(BRANCHED, LayoutChoice::Hw, 15),
        ];
        let programs = programs.into_iter().chain(golden());
        Self { seeds: programs.map(|p| encode_interface(&p.interface())).collect() }
    }
}

impl Target for Interfaces {
    type Read = Interface;
    const NAME: &'static str = "interface";

    fn input(&self, random: &mut Random) -> Vec<u8> {
        let seed = &self.seeds[random.below(self.seeds.len())];
        let mut data = mutate::bytes(seed, &self.seeds[0], random);
        if data.len() > CHECKSUM_BYTES && random.below(4) != 0 {
            let body = data.len() - CHECKSUM_BYTES;
            let mut hasher = blake3::Hasher::new_derive_key(CHECKSUM_CONTEXT);
            let checksum = *hasher.update(&data[..body]).finalize().as_bytes();
            data[body..].copy_from_slice(&checksum);
        }
        data
    }

    fn read(&self, input: &[u8]) -> Option<Interface> {
        let read = read_interface(input, INTERFACE_LIMIT);
        // Every error must be printable.
        read.inspect_err(|e| assert!(!e.to_string().is_empty())).ok()
    }

    fn memory_bound(&self, len: usize) -> usize {
        256 * len + (64 << 20)
    }

    fn exercise(&self, interface: Interface, _random: &mut Random) -> Result<(), String> {
        let bytes = encode_interface(&interface);
        let again =
            read_interface(&bytes[..], INTERFACE_LIMIT).map_err(|e| format!("reads not back: {e}"))?;
        match encode_interface(&again) == bytes {
            true => Ok(()),
            false => Err("an accepted interface reads back as another one".to_owned()),
        }
    }
}
