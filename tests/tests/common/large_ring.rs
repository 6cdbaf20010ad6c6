//! Programs of the largest ring that ask for the work of a large network in some hundred bytes, as a hostile author writes them.

use fhe_bytecode::params::primes::ntt_primes_below;
use fhe_bytecode::{
    CtRange, Instruction, LayerId, LayerSpec, LayoutId, LayoutSpec, Level, Op, ParamsSpec, ProgramSpec,
    Scale, Shape, Tensor, TensorId,
};

/// A program of the largest ring that hands its input out; `layouts[0]` is that of both.
///
/// # Panics
/// When the golden program is none.
pub fn through(layouts: Vec<LayoutSpec>, code: Vec<Op>) -> ProgramSpec {
    let text = include_str!("../../golden/v2.ron");
    let mut program = ProgramSpec::from_ron(text).expect("a golden program");
    let primes = ntt_primes_below(45, 17, 4, &[]).expect("primes of 45 bits");
    program.params = ParamsSpec {
        log_n: 17,
        towers: primes[..3].to_vec(),
        special_primes: primes[3..].to_vec(),
        digit_size: 1,
        pool: None,
        lower: Vec::new(),
        insecure: false,
        toy: false,
    };
    program.input.layout = LayoutId(0);
    program.input.level = Level(2);
    program.input.scale = Scale::from_log2(30.0);
    program.input.preprocessing = Default::default();
    program.output.layout = LayoutId(0);
    program.layouts = layouts;
    program.constants = Default::default();
    program.maps = Vec::new();
    program.layers = vec![LayerSpec { name: "all".to_owned(), ..LayerSpec::default() }];
    program.instructions = code.into_iter().map(|op| Instruction { layer: LayerId(0), op }).collect();
    program.rotation_keys = Vec::new();
    program.relin_level = None;
    program.conjugation_level = None;
    program
}

/// A layout of single slots in the largest ring.
pub fn layout(shape: [u32; 3], members: u32, row_stride: u32, member_stride: u32) -> LayoutSpec {
    let [channels, height, width] = shape;
    LayoutSpec {
        shape: Shape::new(channels, height, width),
        members,
        slots: 1 << 16,
        gap: [1, 1],
        phases: [1, 1],
        blocks: 1,
        row_stride,
        block_stride: 1 << 16,
        member_stride,
        period: 1 << 16,
    }
}

/// One number that is added to a tensor of 2^28 of them.
pub fn one_number() -> ProgramSpec {
    let image = layout([4096, 256, 256], 1, 256, 1 << 16);
    let (a, b) = (CtRange::new(0, 4096), CtRange::new(4096, 4096));
    let code = vec![
        Op::Input { dst: a },
        Op::AddPlain { dst: b, src: a, tensor: TensorId(0) },
        Op::Free { src: a },
        Op::Output { src: b },
    ];
    let mut program = through(vec![image], code);
    program.constants.push(Tensor::dense(vec![1], vec![0.5]));
    program
}
