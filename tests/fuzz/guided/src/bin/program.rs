//! Program files: what is accepted is written back as the same bytes, where it is of today's version.
#![no_main]

use fhe_bytecode::codec::{DEFAULT_LIMIT, VERSION, decode, encode};
use fhec_fuzz_guided::summed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let data = summed(data, "fhec 1 program file");
    if let Ok(program) = decode(&data, DEFAULT_LIMIT) {
        let again = encode(&program);
        assert!(data[8..12] != VERSION.to_le_bytes() || again == data, "an accepted program is written as other bytes");
    }
});
