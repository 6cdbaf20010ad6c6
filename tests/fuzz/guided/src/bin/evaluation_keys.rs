//! Evaluation key files, any keys and exactly those of the golden program.
#![no_main]

use fhe_ckks::key_request;
use fhe_files::{VERSION, decode_evaluation_keys, decode_requested_keys, encode_evaluation_keys};
use fhec_fuzz_guided::{golden, sealed};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let data = sealed(data);
    let context = &golden().context;
    let len = data.len() as u64;
    let wanted = key_request(context, &golden().program);
    if let Ok(keys) = decode_requested_keys(&data[..], len, context, &wanted) {
        assert!(keys.missing(&wanted).is_none());
    }
    if let Ok(keys) = decode_evaluation_keys(&data[..], len, context) {
        let mut again = Vec::new();
        encode_evaluation_keys(&mut again, context, &keys).expect("memory is written");
        assert!(data[8..10] != VERSION.to_le_bytes() || again == data, "accepted keys are written as other bytes");
    }
});
