//! Program files: what is accepted is written back as the same bytes.
#![no_main]

use fhe_bytecode::codec::{DEFAULT_LIMIT, decode, encode};
use fhec_fuzz_guided::summed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let data = summed(data, "fhec 1 program file");
    if let Ok(program) = decode(&data, DEFAULT_LIMIT) {
        let again = encode(&program);
        assert!(data[8] != 2 || again == data, "an accepted program is written as other bytes");
    }
});
