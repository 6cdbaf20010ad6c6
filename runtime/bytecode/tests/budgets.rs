//! Hostile programs: what a file of few bytes may cost, in memory and time.
//!
//! One test, because the count of bytes is the process's.

use std::time::{Duration, Instant};

use fhe_bytecode::codec::{self, DEFAULT_LIMIT};
use fhe_bytecode::params::{ParamsSpec, Pool, TowerIdx, primes::ntt_primes_below};
use fhe_bytecode::{
    CheckedProgram, Codebook, CodebookId, CtRange, Fingerprint, Instruction, Interface, InterfaceSpec,
    LayerId, LayerSpec, LayoutId, LayoutSpec, Level, LinearMap, LinearOp, LinearTerm, MapId, Op, Pairing,
    Plan, ProgramSpec, Rotation, Scale, Split, Tensor, TensorData,
};
use fhe_host::memory::processor_seconds;
use large_ring::{layout, one_number, through};

#[path = "../../../tests/fuzz/src/memory.rs"]
#[allow(dead_code, unreachable_pub)]
mod memory;

#[path = "../../../tests/tests/common/large_ring.rs"]
#[allow(unreachable_pub)]
mod large_ring;

#[path = "../../../tests/src/sections.rs"]
#[allow(unreachable_pub)]
mod sections;

#[global_allocator]
static COUNTING: memory::Counting = memory::Counting;

const MOST_BYTES: usize = 64 << 20;
const MOST_TIME: Duration = Duration::from_secs(1);

/// The time that something takes, or its processor time if that is less: other work on the machine is no cost.
struct Clock {
    began: Instant,
    processor: Option<f64>,
}

impl Clock {
    fn start() -> Self {
        Self { began: Instant::now(), processor: processor_seconds() }
    }

    fn elapsed(&self) -> Duration {
        let used = self.processor.zip(processor_seconds()).map(|(before, now)| (now - before).max(0.0));
        used.map_or(Duration::MAX, Duration::from_secs_f64).min(self.began.elapsed())
    }
}

/// Judges a program: what it costs, and a part of what the checker says if it must be refused.
fn check(name: &str, program: ProgramSpec, expected: Option<&str>) {
    as_an_interface(name, &program);
    let start = Clock::start();
    let (result, bytes) = memory::peak_during(|| CheckedProgram::new(program).map(drop));
    let time = start.elapsed();
    println!("{name}: {bytes} bytes held, {time:?}");
    assert!(bytes <= MOST_BYTES, "{name}: {bytes} bytes");
    assert!(time <= MOST_TIME, "{name}: {time:?}");
    let message = result.map_err(|error| error.to_string());
    match expected {
        None => assert_eq!(message, Ok(()), "{name}"),
        Some(part) => {
            let message = message.expect_err(name);
            assert!(message.contains(part), "{name}: {message}");
            assert!(message.len() < 1 << 16, "{name}: an error of {} bytes", message.len());
        }
    }
}

/// What a client sees of the same program costs as little, whether it is refused or not.
fn as_an_interface(name: &str, program: &ProgramSpec) {
    let spec = InterfaceSpec {
        program: Fingerprint([7; 32]),
        params: program.params.clone(),
        origin: program.origin.clone(),
        input: program.input.clone(),
        output: program.output.clone(),
        output_level: Level(0),
        output_scale: program.input.scale,
        layouts: program.layouts.clone(),
        rotation_keys: program.rotation_keys.clone(),
        relin_level: program.relin_level,
        conjugation_level: program.conjugation_level,
        lower_keys: program.lower_keys.clone(),
        prediction: program.prediction.clone(),
    };
    let start = Clock::start();
    let (_, bytes) = memory::peak_during(|| Interface::new(spec).map(|i| i.key_bytes()));
    assert!(bytes <= MOST_BYTES, "{name} as an interface: {bytes} bytes");
    assert!(start.elapsed() <= MOST_TIME, "{name} as an interface: {:?}", start.elapsed());
}

fn map(op: LinearOp, pairing: Pairing) -> LinearMap {
    LinearMap {
        terms: vec![LinearTerm { op, input: LayoutId(0) }],
        output: LayoutId(1),
        pairing,
        plan: Plan::default(),
    }
}

fn pool(kernel: u32) -> LinearOp {
    LinearOp::SumPool { kernel: [kernel; 2], stride: [1; 2], pads: [0; 2], factor: 1.0 }
}

fn run(first: u32, len: u32) -> CtRange {
    CtRange::new(first, len)
}

#[test]
fn refused_programs_cost_little() {
    one_number_for_a_large_tensor();
    long_runs_of_registers();
    steps_that_do_not_match();
    many_members();
    codebooks_that_expand();
    many_terms_and_channels();
    many_uses_of_one_map();
    many_errors_with_long_names();
    bytes_that_become_many();
    pools();
}

/// 391 bytes took 2.1 GB.
fn one_number_for_a_large_tensor() {
    let mut program = one_number();
    check("one number", program.clone(), None);
    program.constants.tensors[0] = Tensor::dense(vec![2], vec![0.5, 0.5]);
    check("two numbers", program, Some("constant of shape [2] does not fit [4096,256,256]"));
}

/// Runs of 2^19 registers were walked through by every instruction.
fn long_runs_of_registers() {
    let wide = layout([1 << 19, 1, 1], 1, 1, 1 << 16);
    let (a, b) = (run(0, 1 << 19), run(1 << 19, 1 << 19));
    let mut code = vec![Op::Input { dst: a }];
    for _ in 0..10_000 {
        code.extend([Op::Add { dst: b, a, b: a }, Op::Free { src: b }]);
    }
    let mut refused = code.clone();
    code.push(Op::Output { src: a });
    check("long runs", through(vec![wide.clone()], code), None);
    refused.push(Op::Output { src: b });
    check("long runs, a bad end", through(vec![wide], refused), Some("are not one whole tensor"));
}

/// 404 bytes computed 22 GB: every tap of a pooling falls apart into single slots.
fn steps_that_do_not_match() {
    let code = vec![Op::Input { dst: run(0, 1) }, Op::Output { src: run(0, 1) }];
    for kernel in [4000, 64] {
        let dense = layout([1, 128, 256], 1, 256, 1 << 16);
        let apart = LayoutSpec { gap: [1, 2], ..layout([1, 128, 128], 1, 512, 1 << 16) };
        let mut program = through(vec![dense, apart], code.clone());
        program.maps = vec![map(pool(kernel), Pairing::None)];
        check("pooling", program, Some("steps to check"));
    }
}

/// 9 KB took 23 minutes: a matrix for each of 2^16 members.
fn many_members() {
    let code = vec![Op::Input { dst: run(0, 1) }, Op::Output { src: run(0, 1) }];
    let members = layout([1, 1, 1], 1 << 16, 1, 1);
    let mut program = through(vec![members.clone(), members.clone()], code.clone());
    let weight = program.constants.push(Tensor::dense(vec![1, 1], vec![0.5]));
    program.maps = vec![map(LinearOp::Dense { weight }, Pairing::None)];
    // Member by member this is one rotation, by zero, for which the plan has no split.
    check("a matrix per member", program.clone(), Some("no split for rotation +0"));
    let two = layout([2, 1, 1], 1 << 15, 1, 2);
    program.layouts = vec![LayoutSpec { blocks: 2, block_stride: 1, ..two.clone() }; 2];
    program.constants.tensors[0] = Tensor::dense(vec![2, 2], vec![0.5; 4]);
    check("a matrix of four per member", program, Some("no split for rotation -1"));
}

/// Rows of codebooks: one bit becomes a value for every member.
fn codebooks_that_expand() {
    let code = vec![Op::Input { dst: run(0, 1) }, Op::Output { src: run(0, 1) }];
    let vector = LayoutSpec { blocks: 8, block_stride: 1, ..layout([8, 1, 1], 1 << 13, 1, 8) };
    let mut program = through(vec![vector.clone(), vector], code);
    program.constants.codebooks = vec![Codebook { members: 1 << 13, values: vec![0.5; 1 << 13] }];
    let indices = vec![0; 64];
    let data = TensorData::Clustered { codebooks: vec![CodebookId(0)], indices };
    let tensor = Tensor { members: 1 << 13, shape: vec![8, 8], data };
    let weight = program.constants.push(tensor);
    program.maps = vec![map(LinearOp::Dense { weight }, Pairing::None); 64];
    check("codebooks", program, Some("steps to check"));
}

/// Every term looks at a whole period, and at every channel.
fn many_terms_and_channels() {
    let code = vec![Op::Input { dst: run(0, 1) }, Op::Output { src: run(0, 1) }];
    let image = layout([1, 1, 1], 1, 1, 1 << 16);
    let mut program = through(vec![image.clone(), image], code.clone());
    let term = LinearTerm { op: LinearOp::identity(), input: LayoutId(0) };
    program.maps = vec![LinearMap { terms: vec![term; 20_000], ..map(LinearOp::identity(), Pairing::None) }];
    check("terms", program, Some("steps to check"));
    let wide = layout([1 << 20, 1, 1], 1, 1, 1 << 16);
    let mut program = through(vec![wide.clone(), wide], code);
    program.maps = vec![map(LinearOp::identity(), Pairing::None)];
    check("channels", program, Some("steps to check"));
}

/// A map with many rotations in many instructions.
fn many_uses_of_one_map() {
    let row = layout([1, 1, 4096], 1, 4096, 1 << 16);
    let mut code = vec![Op::Input { dst: run(0, 1) }];
    let scale = Scale::from_log2(31.0);
    for _ in 0..20_000 {
        code.extend([
            Op::Linear { dst: run(1, 1), src: vec![run(0, 1)], map: MapId(0), scale },
            Op::Free { src: run(1, 1) },
        ]);
    }
    code.push(Op::Output { src: run(0, 1) });
    let mut program = through(vec![row.clone(), row], code);
    let op = LinearOp::SumPool { kernel: [1, 4096], stride: [1; 2], pads: [0; 2], factor: 1.0 };
    let split = |r: i64| Split { rotation: Rotation::new(r, 1 << 16), baby: Rotation::ZERO };
    let plan = Plan { splits: (0..4096).map(split).collect(), ..Plan::default() };
    program.maps = vec![LinearMap { plan, ..map(op, Pairing::None) }];
    check("uses", program, Some("keys: no key for rotation +1 at L2"));
}

/// Every instruction is wrong, and every message names a layer.
fn many_errors_with_long_names() {
    let image = layout([1, 1, 1], 1, 1, 1 << 16);
    let mut code = vec![Op::Input { dst: run(0, 1) }];
    for _ in 0..20_000 {
        code.extend([Op::Add { dst: run(1, 1), a: run(0, 1), b: run(0, 1) }, Op::Free { src: run(1, 1) }]);
    }
    let mut program = through(vec![image], code);
    program.layers[0] = LayerSpec { name: "x".repeat(1 << 19), peak: 1e300, ..LayerSpec::default() };
    check("errors", program, Some("instruction 1: layer y0"));
}

/// Lists of things that take few bytes in a file and many in memory.
fn bytes_that_become_many() {
    let of_levels = sections::long_lists(include_bytes!("../../../tests/golden/v3.fhebc"));
    let of_rings = sections::long_segment_lists(include_bytes!("../../../tests/golden/rings.fhebc"));
    for (name, bytes) in of_levels.into_iter().chain(of_rings) {
        let limits = |what: &str, read: &dyn Fn() -> Option<String>| {
            let start = Clock::start();
            let (error, peak) = memory::peak_during(read);
            println!("{name}{what}: {} bytes, {peak} bytes held, {:?}", bytes.len(), start.elapsed());
            assert!(peak <= MOST_BYTES, "{name}{what}: {peak} bytes");
            assert!(start.elapsed() <= MOST_TIME, "{name}{what}: {:?}", start.elapsed());
            assert!(error.is_none_or(|error| !error.contains("malformed")), "{name}{what} is not reached");
        };
        limits("", &|| codec::decode(&bytes, DEFAULT_LIMIT).err().map(|e| e.to_string()));
        limits(" as an interface", &|| {
            codec::read_interface(&bytes[..], DEFAULT_LIMIT).err().map(|e| e.to_string())
        });
    }
}

/// Levels of every tower and none twice, as many as there may be, and their opposites.
fn pools() {
    let image = layout([1, 1, 1], 1, 1, 1 << 16);
    let code = vec![Op::Input { dst: run(0, 1) }, Op::Output { src: run(0, 1) }];
    let primes = ntt_primes_below(40, 17, 257, &[]).unwrap();
    let all: Vec<TowerIdx> = (0..256).map(TowerIdx).collect();
    let pooled = |levels: Vec<Vec<TowerIdx>>, digits: Vec<u16>, insecure| {
        let mut program = through(vec![image.clone()], code.clone());
        let digit_size = digits.iter().copied().max().map_or(1, usize::from);
        let (towers, special_primes) = (primes[..256].to_vec(), primes[256..].to_vec());
        let pool = Some(Pool { levels, digits });
        program.params = ParamsSpec { towers, special_primes, digit_size, pool, insecure, ..program.params };
        program.input.level = Level(0);
        program
    };
    let chain: Vec<Vec<TowerIdx>> = (1..=256).map(|n| all[..n].to_vec()).collect();
    check("a pool of all towers", pooled(chain.clone(), vec![1; 256], true), None);
    check("an insecure pool", pooled(chain.clone(), vec![1; 256], false), Some("exceeds the 128-bit bound"));
    // Half of the towers exchanged for the other half: more than a number holds, multiplied by and divided by.
    let mut halves = chain;
    halves[127] = all[128..].to_vec();
    let exchanged = |op: Op| {
        let mut program = pooled(halves.clone(), vec![128, 128], true);
        program.input.level = Level(128);
        let code =
            [Op::Input { dst: run(0, 1) }, op, Op::Free { src: run(0, 1) }, Op::Output { src: run(1, 1) }];
        program.instructions = code.into_iter().map(|op| Instruction { layer: LayerId(0), op }).collect();
        program
    };
    let rescale = Op::Rescale { dst: run(1, 1), src: run(0, 1) };
    check("a pool of halves, a rescale", exchanged(rescale), Some("is below one"));
    let drop = Op::Drop { dst: run(1, 1), src: run(0, 1), level: Level(127) };
    check("a pool of halves, a drop", exchanged(drop), Some("is below one"));
    let long = vec![all[..1].to_vec(); 1 << 16];
    check("levels of one tower", pooled(long, vec![256], true), Some("65536 levels in a pool"));
    let deep = vec![vec![TowerIdx(0); 1 << 19]];
    check("one tower again and again", pooled(deep, vec![256], true), Some("not ascending"));
    check("many digits", pooled(vec![all.clone()], vec![1; 1 << 19], true), Some("digits of [1, 1"));
}
