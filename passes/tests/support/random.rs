//! Seeded random networks: convolutions of all kinds, normalizations with dead channels, polynomials of mixed degree,
//! joins, concatenations, pooling, re-arrangements, products, shared values, one or two members.

use fhec_ir::op::n_monomials;
use fhec_ir::spec::Uniform;
use fhec_ir::{Conv2d, Divisor, Graph, Linear, NodeId, Op, Pad, Pads, Pool, Shape, Slice, Tensor, TensorId};

/// A network that depends on the seed only.
pub fn network(seed: u64) -> Graph {
    let mut stream = Uniform::new(seed);
    let members = 1 + stream.below(5) / 4;
    let mut maker = Maker { graph: Graph::with_members(members), stream, values: Vec::new() };
    maker.input();
    let steps = 4 + maker.stream.below(12);
    for _ in 0..steps {
        maker.step();
    }
    maker.finish()
}

struct Maker {
    graph: Graph,
    stream: Uniform,
    values: Vec<NodeId>,
}

impl Maker {
    fn input(&mut self) {
        let side = 4 + self.stream.below(4);
        let shape = Shape::new(1 + self.stream.below(4), side, side);
        self.push(Op::Input { shape }, &[]);
    }

    fn push(&mut self, op: Op, x: &[NodeId]) -> NodeId {
        let id = self.graph.add(op, x, "n").expect("the generator makes fitting nodes");
        self.values.push(id);
        id
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.stream.below(100) < percent
    }

    /// A constant per member, numbers from `f`.
    fn tensor(&mut self, dims: &[usize], mut f: impl FnMut(&mut Uniform) -> f64) -> TensorId {
        let n: usize = dims.iter().product();
        let members = (0..self.graph.n_members())
            .map(|_| Tensor::from_f64(dims.to_vec(), (0..n).map(|_| f(&mut self.stream)).collect::<Vec<_>>()))
            .map(|t| t.expect("as many numbers as the extents ask for"));
        let members = members.collect();
        self.graph.add_member_tensors(members)
    }

    fn uniform(&mut self, dims: &[usize], lo: f64, hi: f64) -> TensorId {
        self.tensor(dims, |s| s.between(lo, hi))
    }

    fn width(&mut self, c: usize) -> usize {
        if self.chance(50) { c } else { 1 }
    }

    /// Mostly the newest value, sometimes an older one, which makes it shared.
    fn pick(&mut self) -> NodeId {
        let n = self.values.len();
        if self.chance(70) { self.values[n - 1] } else { self.values[self.stream.below(n)] }
    }

    fn partner(&mut self, x: NodeId) -> Option<NodeId> {
        let shape = self.graph.shape(x);
        let same: Vec<NodeId> =
            self.values.iter().copied().filter(|&y| self.graph.shape(y) == shape).collect();
        Some(same[self.stream.below(same.len())]).filter(|&y| y != x)
    }

    fn step(&mut self) {
        let x = self.pick();
        match self.stream.below(20) {
            0..=4 => self.conv(x),
            5..=7 => self.norm(x),
            8..=11 => self.poly(x),
            12 => self.pool(x),
            13..=15 => self.join(x),
            16 => self.rearrange(x),
            17 => self.constants(x),
            18 => self.block(x),
            _ => self.linear(x),
        }
    }

    fn conv(&mut self, x: NodeId) {
        let shape = self.graph.shape(x);
        let depthwise = self.chance(15);
        let groups = if depthwise { shape.c } else { 1 };
        let out = if depthwise { shape.c } else { 1 + self.stream.below(5) };
        let kernel = [1, 3][self.stream.below(2)].min(shape.h).min(shape.w);
        let bound = 1.5 / ((shape.c / groups * kernel * kernel) as f64).sqrt();
        let weight = self.uniform(&[out, shape.c / groups, kernel, kernel], -bound, bound);
        let bias = self.chance(50).then(|| self.uniform(&[out], -0.2, 0.2));
        let pads = if self.chance(70) {
            Pads::same(kernel / 2)
        } else {
            Pads { top: 1, left: 0, bottom: 0, right: 2 }
        };
        let stride = if self.chance(20) { 2 } else { 1 };
        let conv = Conv2d { weight, bias, stride: [stride; 2], pads, dilation: [1, 1], groups };
        self.push(Op::Conv2d(conv), &[x]);
    }

    fn norm(&mut self, x: NodeId) {
        let c = self.graph.shape(x).c;
        let scale = self.tensor(&[c], |s| match s.below(12) {
            0 => 0.0,
            1 => 1e-9,
            2 => s.between(-1.2, -0.5),
            _ => s.between(0.5, 1.2),
        });
        let shift = self.uniform(&[c], -0.3, 0.3);
        self.push(Op::BatchNorm { scale, shift }, &[x]);
    }

    fn poly(&mut self, x: NodeId) {
        let c = self.graph.shape(x).c;
        let degree = [1, 2, 2, 2, 3, 4][self.stream.below(6)];
        let width = self.width(c);
        let sign = if self.chance(80) { 1.0 } else { -1.0 };
        let zero_lead = self.chance(5);
        let mut rows = 0;
        let coeffs = self.tensor(&[degree + 1, width], |s| {
            let row = rows / width % (degree + 1);
            rows += 1;
            match (row == degree, zero_lead) {
                (true, true) => 0.0,
                (true, false) => sign * s.between(0.1, 0.5) / degree as f64,
                (false, _) => s.between(-0.4, 0.4),
            }
        });
        self.push(Op::Poly { coeffs }, &[x]);
    }

    fn pool(&mut self, x: NodeId) {
        let shape = self.graph.shape(x);
        if shape.h < 2 || shape.w < 2 {
            return;
        }
        let padded = self.chance(30);
        let pads = if padded { Pads::same(1) } else { Pads::NONE };
        let divisor = if padded && self.chance(50) { Divisor::ExcludePad } else { Divisor::Constant(4.0) };
        self.push(Op::Pool(Pool { kernel: [2, 2], stride: [2, 2], pads, divisor }), &[x]);
    }

    fn join(&mut self, x: NodeId) {
        let Some(y) = self.partner(x) else { return };
        match self.stream.below(6) {
            0 => {
                self.push(Op::Concat, &[x, y, x]);
            }
            1 => {
                self.push(Op::Mul, &[x, y]);
            }
            2 => {
                let width = self.graph.shape(x).c;
                let width = self.width(width);
                let coeffs = self.uniform(&[n_monomials(2), width], -0.4, 0.4);
                self.push(Op::Bivar { coeffs }, &[x, y]);
            }
            _ => {
                let sum = self.push(Op::Add, &[x, y]);
                if self.chance(60) {
                    self.poly(sum);
                }
            }
        }
    }

    /// A residual block with an identity or projection shortcut.
    fn block(&mut self, x: NodeId) {
        let shape = self.graph.shape(x);
        let weight = |m: &mut Self| m.uniform(&[shape.c, shape.c, 3, 3], -0.4, 0.4);
        let conv = |weight| {
            Op::Conv2d(Conv2d {
                weight,
                bias: None,
                stride: [1, 1],
                pads: Pads::same(1),
                dilation: [1, 1],
                groups: 1,
            })
        };
        let w = weight(self);
        let y = self.push(conv(w), &[x]);
        self.norm(y);
        let y = *self.values.last().expect("just pushed");
        self.poly(y);
        let y = *self.values.last().expect("just pushed");
        let w = weight(self);
        let y = self.push(conv(w), &[y]);
        self.norm(y);
        let y = *self.values.last().expect("just pushed");
        let mut skip = x;
        if self.chance(40) {
            let w = weight(self);
            skip = self.push(conv(w), &[x]);
            self.norm(skip);
            skip = *self.values.last().expect("just pushed");
        }
        let pair = if self.chance(50) { [y, skip] } else { [skip, y] };
        let sum = self.push(Op::Add, &pair);
        self.poly(sum);
    }

    fn rearrange(&mut self, x: NodeId) {
        let shape = self.graph.shape(x);
        match self.stream.below(3) {
            0 => {
                let step = [1, 1 + self.stream.below(2), 1 + self.stream.below(2)];
                let first = self.stream.below(shape.c);
                self.push(Op::Slice(Slice { start: [first, 0, 0], end: shape.dims(), step }), &[x]);
            }
            1 => {
                let before = [self.stream.below(2), self.stream.below(2), 0];
                self.push(Op::Pad(Pad { before, after: [1, 0, 1] }), &[x]);
            }
            _ => {
                self.push(Op::Flatten, &[x]);
            }
        }
    }

    fn constants(&mut self, x: NodeId) {
        let shape = self.graph.shape(x);
        let width = self.width(shape.c);
        if self.chance(50) {
            let factor = self.uniform(&[width], 0.3, 1.5);
            self.push(Op::Scale { factor }, &[x]);
        } else {
            let dims = if self.chance(50) { vec![width] } else { shape.dims().to_vec() };
            let value = self.uniform(&dims, -0.3, 0.3);
            self.push(Op::AddConst { value }, &[x]);
        }
    }

    fn linear(&mut self, x: NodeId) {
        let n = self.graph.shape(x).len();
        let out = 1 + self.stream.below(4);
        let bound = 1.5 / (n as f64).sqrt();
        let weight = self.uniform(&[out, n], -bound, bound);
        let bias = self.chance(50).then(|| self.uniform(&[out], -0.2, 0.2));
        self.push(Op::Linear(Linear { weight, bias }), &[x]);
    }

    /// The newest value is an output, and sometimes an older one.
    fn finish(mut self) -> Graph {
        let last = *self.values.last().expect("there is an input");
        self.graph.add(Op::Output, &[last], "y").expect("an output fits any value");
        if self.chance(20) {
            let other = self.pick();
            self.graph.add(Op::Output, &[other], "z").expect("an output fits any value");
        }
        let mut graph = self.graph;
        graph.remove_dead();
        graph
    }
}
