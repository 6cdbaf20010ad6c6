//! Ciphertext files as inputs and as results.
#![no_main]

use fhe_files::{Expected, VERSION, decode_request, encode_ciphertexts, read_request};
use fhec_fuzz_guided::{golden, sealed};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let data = sealed(data);
    let (context, interface) = (&golden().context, &golden().interface);
    let len = data.len() as u64;
    for expected in [Expected::input(interface), Expected::result(interface)] {
        let front = read_request(&data[..], len, context, &expected);
        if let Ok((read, request)) = decode_request(&data[..], len, context, &expected) {
            assert_eq!(front.expect("what is read whole has a front"), request);
            let mut again = Vec::new();
            encode_ciphertexts(&mut again, context, &expected, &read).expect("memory is written");
            assert!(data[8..10] != VERSION.to_le_bytes() || again == data, "accepted ciphertexts are written as other bytes");
        }
    }
});
