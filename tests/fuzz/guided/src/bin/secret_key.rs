//! Secret key files: what is accepted is written back as the same key.
#![no_main]

use fhe_client::{decode_secret_key, encode_secret_key};
use fhec_fuzz_guided::{golden, sealed};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let data = sealed(data);
    if let Ok((key, Some(program))) = decode_secret_key(&data, &golden().context) {
        let again = encode_secret_key(&golden().context, &key, program).expect("memory is written");
        assert!(*again == data, "an accepted key is written as other bytes");
    }
});
