//! The smallest program there is, so small that Miri reads, checks and writes it in seconds (`cargo xtask evidence miri`).

use fhe_bytecode::codec::{self, DecodeError};
use fhe_bytecode::params::ntt_primes_near;
use fhe_bytecode::*;

const LOG_N: u32 = 5;
const LIMIT: u64 = 1 << 16;
const CHECKSUM_BYTES: usize = 32;

/// 2x + 1, squared, of sixteen numbers: every section has something in it.
fn program() -> ProgramSpec {
    let mut towers: Vec<u64> = Vec::new();
    for bits in [40, 30] {
        towers.extend(ntt_primes_near(2f64.powi(bits), LOG_N, 1, &towers).unwrap());
    }
    let special_primes = ntt_primes_near(2f64.powi(41), LOG_N, 1, &towers).unwrap();
    let layout = Layout::vector(Packing::Packed, 16, 1, 16).unwrap();
    let mut constants = Constants::default();
    let one = constants.push(Tensor::dense(vec![1], vec![1.0]));
    constants.codebooks.push(Codebook { members: 1, values: vec![0.5, 2.0] });
    let data = TensorData::Clustered { codebooks: vec![CodebookId(0)], indices: vec![1, 0, 1] };
    constants.push(Tensor { members: 1, shape: vec![3], data });
    let (scale, ct) = (Scale::new(f64::from(1 << 14)).unwrap(), |register| CtRange::new(register, 1));
    let before = Scale::new(scale.value() * towers[1] as f64).unwrap();
    let ops = [
        Op::Input { dst: ct(0) },
        Op::MulScalar { dst: ct(1), src: ct(0), value: 2.0, scale: before },
        Op::Free { src: ct(0) },
        Op::Rescale { dst: ct(2), src: ct(1) },
        Op::Free { src: ct(1) },
        Op::AddPlain { dst: ct(3), src: ct(2), tensor: one },
        Op::Free { src: ct(2) },
        Op::Square { dst: ct(4), src: ct(3) },
        Op::Free { src: ct(3) },
        Op::Output { src: ct(4) },
    ];
    let layer = LayerSpec { name: "all".to_owned(), seconds: 0.5, error: 0.0, peak: 1.0 };
    ProgramSpec {
        params: ParamsSpec::toy(LOG_N, towers, special_primes),
        origin: Origin { model: "tiny".to_owned(), ..Origin::default() },
        input: InputSpec {
            name: "x".to_owned(),
            layout: LayoutId(0),
            level: Level(1),
            scale,
            preprocessing: Preprocessing::default(),
            range: Some(Interval { low: -1.0, high: 1.0 }),
            ports: vec![Port { name: "x".to_owned(), dims: vec![1, 16], channels_last: false, offset: 0 }],
        },
        output: OutputSpec {
            name: "y".to_owned(),
            layout: LayoutId(0),
            labels: Vec::new(),
            range: None,
            ports: Vec::new(),
            tails: vec![Tail {
                name: "best".to_owned(),
                port: 0,
                steps: vec![TailStep::ArgMax { length: 16, inner: 1 }],
                classes: Vec::new(),
            }],
        },
        layouts: vec![layout.spec().clone()],
        constants,
        maps: Vec::new(),
        layers: vec![layer],
        instructions: ops.into_iter().map(|op| Instruction { layer: LayerId(0), op }).collect(),
        rotation_keys: Vec::new(),
        relin_level: Some(Level(0)),
        conjugation_level: None,
        lower_keys: Vec::new(),
        prediction: Prediction { max_abs_error: 1e-2, ..Prediction::default() },
    }
}

fn bytes() -> Vec<u8> {
    codec::encode(&CheckedProgram::new(program()).unwrap())
}

/// A changed file with its checksum made right, so that what stands behind it is reached.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - CHECKSUM_BYTES;
    let checksum = blake3::Hasher::new_derive_key("fhec 1 program file").update(&bytes[..body]).finalize();
    bytes[body..].copy_from_slice(checksum.as_bytes());
    bytes
}

#[test]
fn a_program_is_written_and_read() {
    let bytes = bytes();
    let read = codec::decode(&bytes, LIMIT).unwrap();
    assert_eq!((read.spec(), codec::encode(&read)), (&program(), bytes));
}

#[test]
fn its_interface_is_read_from_either_file() {
    let program = codec::decode(&bytes(), LIMIT).unwrap();
    let file = codec::encode_interface(&program.interface());
    let read = codec::read_interface(&file[..], LIMIT).unwrap();
    assert_eq!(read.spec(), codec::read_interface(&bytes()[..], LIMIT).unwrap().spec());
    assert_eq!(read.spec(), program.interface().spec());
}

/// Every byte changed, one in thirty under Miri: refused by the checksum, and where that is made right by whatever is behind
/// it, or accepted as another program that is written as the same bytes.
#[test]
fn changed_bytes_are_refused_or_another_program() {
    let good = bytes();
    let step = if cfg!(miri) { 31 } else { 1 };
    for at in (0..good.len() - CHECKSUM_BYTES).step_by(step) {
        let mut changed = good.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(codec::decode(&changed, LIMIT).is_err(), "byte {at}");
        assert!(codec::decode(&good[..at], LIMIT).is_err(), "cut after {at} bytes");
        let changed = sealed(changed);
        if let Ok(other) = codec::decode(&changed, LIMIT) {
            assert!(codec::encode(&other) == changed, "byte {at}");
        }
    }
}

/// What a program names in few bytes is charged before it is done: windows of sixteen places in 2^20 channels.
#[test]
fn a_map_beyond_the_budget_is_refused_before_it_is_looked_at() {
    let mut large = program();
    for side in [4, 1] {
        let layout = Layout::fresh(Packing::Packed, Shape::new(1 << 20, side, side), 1, 16).unwrap();
        large.layouts.push(layout.spec().clone());
    }
    let op = LinearOp::SumPool { kernel: [4; 2], stride: [1; 2], pads: [0; 2], factor: 1.0 };
    large.maps.push(LinearMap {
        terms: vec![LinearTerm { op, input: LayoutId(1) }],
        output: LayoutId(2),
        pairing: Pairing::None,
        plan: Plan::default(),
    });
    let found = CheckedProgram::new(large).map(drop).unwrap_err().to_string();
    assert!(found.contains("steps to check"), "{found}");
}

#[test]
fn bytes_of_no_program_are_refused() {
    for wrong in [&b""[..], b"FHEBC\r\n\x1a", b"\x89PNG\r\n\x1a\n 123456789012345678901234567890", &[0; 200]]
    {
        assert!(matches!(codec::decode(wrong, LIMIT), Err(DecodeError::NotAProgram)));
        assert!(codec::read_interface(wrong, LIMIT).is_err());
    }
}
