//! Interface files: what is accepted is written back as the same bytes, where it is of today's version.
#![no_main]

use fhe_bytecode::codec::{DEFAULT_LIMIT, INTERFACE_MAGIC, INTERFACE_VERSION, encode_interface, read_interface};
use fhec_fuzz_guided::summed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let context = if data.starts_with(&INTERFACE_MAGIC) { "fhec 1 interface file" } else { "fhec 1 program file" };
    let data = summed(data, context);
    if let Ok(interface) = read_interface(&data[..], DEFAULT_LIMIT) {
        let again = encode_interface(&interface);
        let is_todays = data.starts_with(&INTERFACE_MAGIC) && data[8..12] == INTERFACE_VERSION.to_le_bytes();
        assert!(!is_todays || again == data, "an accepted interface is written as other bytes");
    }
});
