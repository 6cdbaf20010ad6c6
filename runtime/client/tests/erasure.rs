//! What was secret is gone from the process's memory once it is dropped.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use fhe_bytecode::codec::{DEFAULT_LIMIT, decode};
use fhe_bytecode::params::ntt_primes_near;
use fhe_bytecode::{
    Fingerprint, Interface, Layout, LayoutId, Level, Packing, Params, ParamsSpec, Scale, SegmentSpec,
};
use fhe_ckks::{Context, KeyUse};
use fhe_client::{Client, decode_secret_key, encode_secret_key};
use fhe_fixed_seeds::fixed_seeds;
use fhe_ring::NttForm;
use fhe_ring::Poly;
use fhe_secret::SecretKey;
use zeroize::Zeroize;

/// What a pattern is hidden behind, so that the search does not find itself.
const MASK: u8 = 0xa5;
/// Where patterns begin: an allocator writes into the first bytes of what is freed.
const START: usize = 1000;

/// Bytes that nobody may find.
struct Hidden {
    what: &'static str,
    masked: Vec<u8>,
}

impl Hidden {
    fn new(what: &'static str, bytes: impl Iterator<Item = u8>) -> Self {
        Self { what, masked: bytes.map(|byte| byte ^ MASK).collect() }
    }

    fn words(what: &'static str, words: &[u64]) -> Self {
        Self::new(what, words[START..START + 6].iter().flat_map(|word| word.to_le_bytes()))
    }

    fn doubles(what: &'static str, values: &[f64]) -> Self {
        Self::new(what, values[START..START + 6].iter().flat_map(|value| value.to_le_bytes()))
    }

    fn is_in(&self, memory: &[u8]) -> bool {
        let first = self.masked[0] ^ MASK;
        memory.windows(self.masked.len()).any(|window| {
            window[0] == first && window.iter().zip(&self.masked).all(|(byte, masked)| byte ^ MASK == *masked)
        })
    }
}

/// Which of the patterns are in the writable memory of this process.
fn found(patterns: &[Hidden]) -> Vec<&'static str> {
    const CHUNK: usize = 1 << 20;
    const OVERLAP: usize = 64;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let memory = File::open("/proc/self/mem").unwrap();
    let mut buffer = vec![0; CHUNK + OVERLAP];
    let mut seen = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw") && !line.contains("[v")) {
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
        let mut at = start;
        while at < end {
            let len = ((end - at) as usize).min(buffer.len());
            if memory.read_exact_at(&mut buffer[..len], at).is_ok() {
                seen.extend(patterns.iter().filter(|p| p.is_in(&buffer[..len])).map(|p| p.what));
            }
            at += CHUNK as u64;
        }
    }
    // What the search itself has copied is not to be found by the next one.
    buffer.zeroize();
    seen.sort_unstable();
    seen.dedup();
    seen
}

/// The golden interface at a ring of degree 2^12, so that polynomials are large enough for the pool.
fn interface() -> Arc<Interface> {
    let golden = include_bytes!("../../../tests/golden/v2.fhebc");
    let mut spec = decode(golden, DEFAULT_LIMIT).unwrap().interface().spec().clone();
    let towers = ntt_primes_near(40f64.exp2(), 12, 2, &[]).unwrap();
    let special_primes = ntt_primes_near(41f64.exp2(), 12, 1, &towers).unwrap();
    spec.params = ParamsSpec {
        log_n: 12,
        towers,
        special_primes,
        digit_size: 1,
        pool: None,
        lower: Vec::new(),
        insecure: true,
        toy: false,
    };
    let layout = Layout::vector(Packing::Packed, 2048, 1, 2048).unwrap();
    spec.layouts = vec![layout.spec().clone()];
    (spec.input.layout, spec.output.layout) = (LayoutId(0), LayoutId(0));
    (spec.input.level, spec.output_level) = (Level(1), Level(1));
    (spec.input.scale, spec.output_scale) = (Scale::from_log2(34.0), Scale::from_log2(34.0));
    spec.input.preprocessing = Default::default();
    spec.output.labels = Vec::new();
    spec.rotation_keys = Vec::new();
    (spec.relin_level, spec.conjugation_level) = (None, None);
    Arc::new(Interface::new(spec).unwrap())
}

/// One search at a time: each has copies of what it looks at.
static SEARCH: Mutex<()> = Mutex::new(());

#[test]
fn dropped_secrets_are_not_in_memory() {
    let _alone = SEARCH.lock();
    let interface = interface();
    let context = Context::new(interface.params().clone()).unwrap();
    let mut seeds = fixed_seeds(5);
    let key = SecretKey::generate(&context, &mut seeds).unwrap();
    let relinearization = key.relin_key(&context, Level(1), &mut seeds).unwrap();
    let mut tensor: Vec<f64> = (0..2048).map(|i| f64::from(i) / 2048.0).collect();
    let mut patterns = vec![
        Hidden::new("coefficients", key.coeffs()[START..START + 48].iter().map(|&c| c as u8)),
        Hidden::new("bytes of the file", key.coeffs()[START..START + 48].iter().map(|&c| (c + 1) as u8)),
    ];
    let file = encode_secret_key(&context, &key, interface.program()).unwrap();
    drop(key);
    let (key, _) = decode_secret_key(&file, &context).unwrap();
    let client = Client::new(interface, context.clone(), key).unwrap();
    patterns.push(Hidden::doubles("input", &tensor));
    let mut encoded = context.encoder().round(&tensor, Scale::from_log2(34.0)).unwrap();
    let mut doubles = encoded.coeffs().to_vec();
    patterns.push(Hidden::doubles("encoded input, first half", &doubles));
    patterns.push(Hidden::doubles("encoded input, second half", &doubles[2048..]));
    let mut narrow = context.encoder().round(&tensor, Scale::from_log2(20.0)).unwrap();
    let integers = narrow.coeffs().to_vec();
    assert_eq!(narrow.bytes(), 4 * integers.len());
    let bytes = integers[START..START + 12].iter().flat_map(|&c| (c as i32).to_ne_bytes());
    patterns.push(Hidden::new("encoded input, in 32 bits", bytes));
    let mut plain = context.encoder().encode(&tensor, Scale::from_log2(34.0), Level(1)).unwrap();
    patterns.push(Hidden::words("residues of the input", &plain.expanded_tower(4096, 0)));
    let fresh = client.encrypt(&tensor, &mut seeds).unwrap()[0].expand(&context);
    let raw = client.decrypt_raw(std::slice::from_ref(&fresh)).unwrap();
    patterns.push(Hidden::doubles("scores", &raw));
    let answer = client.decrypt(std::slice::from_ref(&fresh)).unwrap();
    let mut message: Poly<NttForm> = client.key().decrypt_poly(&context, &fresh).unwrap();
    patterns.push(Hidden::words("decrypted polynomial", message.data()));
    let mut coefficients = context.encoder().centered(message.clone());
    patterns.push(Hidden::doubles("decrypted coefficients", &coefficients));
    // The search can tell: all of them are there now.
    assert_eq!(found(&patterns).len(), patterns.len(), "{:?}", found(&patterns));
    message.zeroize();
    coefficients.zeroize();
    encoded.zeroize();
    doubles.zeroize();
    narrow.zeroize();
    plain.zeroize();
    tensor.zeroize();
    drop((file, client, raw, coefficients, message));
    let left = found(&patterns);
    assert!(left.is_empty(), "still in memory: {left:?}");
    drop((relinearization, answer, tensor));
}

#[test]
fn dropped_secrets_of_smaller_rings_are_not_in_memory() {
    let _alone = SEARCH.lock();
    let mut spec = interface().params().spec().clone();
    let special_primes = ntt_primes_near(42f64.exp2(), 12, 1, &spec.towers).unwrap();
    spec.lower = vec![SegmentSpec { log_n: 11, level: Level(0), special_primes, digits: vec![1] }];
    spec.toy = true;
    let context = Context::new(Params::new(spec).unwrap()).unwrap();
    let mut seeds = fixed_seeds(6);
    let key = SecretKey::generate(&context, &mut seeds).unwrap();
    let lower = |key: &SecretKey| key.at(&context, Level(0)).1.coeffs()[START..START + 48].to_vec();
    let mut coefficients = lower(&key);
    assert_ne!(coefficients, key.coeffs()[START..START + 48], "a secret of its own");
    let patterns = [Hidden::new("coefficients", coefficients.iter().map(|&c| c as u8))];
    coefficients.zeroize();
    assert_eq!(found(&patterns).len(), 1, "the search can tell");
    // The file has the coefficients of the largest ring alone; the others follow from them.
    let file = encode_secret_key(&context, &key, Fingerprint([1; 32])).unwrap();
    drop(key);
    let (key, _) = decode_secret_key(&file, &context).unwrap();
    assert_eq!(found(&patterns).len(), 1);
    let entering = key.evaluation_key(&context, (KeyUse::Enter, Level(0)), &mut seeds).unwrap();
    drop((key, file));
    let left = found(&patterns);
    assert!(left.is_empty(), "still in memory: {left:?}");
    drop(entering);
}
