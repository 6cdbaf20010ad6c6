//! VGG-16 and ResNets over CIFAR images as imported graphs: convolution, batch normalization, polynomial, joins.

use fhec_ir::spec::Uniform;
use fhec_ir::{Conv2d, Divisor, Graph, Linear, NodeId, Op, Pads, Pool, Shape, Tensor};

/// How a residual block brings its operand to the shape of its result where they differ.
#[derive(Clone, Copy, PartialEq)]
pub enum Shortcut {
    /// Strided 1x1 convolution and batch normalization.
    Projection,
    /// Strided slice and zero channels.
    ZeroPad,
}

/// Builds networks with seeded weights.
pub struct Net {
    pub graph: Graph,
    stream: Uniform,
    degree: usize,
    /// Leading coefficients of the channels, repeated; nothing for one activation with the same in all.
    leads: Vec<f32>,
}

impl Net {
    pub fn new(seed: u64, degree: usize) -> Self {
        Self { graph: Graph::new(), stream: Uniform::new(seed), degree, leads: Vec::new() }
    }

    fn f32s(&mut self, dims: &[usize], bound: f64) -> Tensor {
        let n = dims.iter().product();
        let values: Vec<f32> = (0..n).map(|_| self.stream.between(-bound, bound) as f32).collect();
        Tensor::from_f32(dims.to_vec(), values).unwrap()
    }

    pub fn node(&mut self, op: Op, x: &[NodeId], name: &str) -> NodeId {
        self.graph.add(op, x, name).unwrap()
    }

    pub fn input(&mut self, shape: Shape) -> NodeId {
        self.node(Op::Input { shape }, &[], "image")
    }

    pub fn conv(&mut self, x: NodeId, out: usize, kernel: usize, stride: usize) -> NodeId {
        let c = self.graph.shape(x).c;
        let bound = (3.0 / (c * kernel * kernel) as f64).sqrt();
        let weight = self.f32s(&[out, c, kernel, kernel], bound);
        let weight = self.graph.add_tensor(weight);
        let conv = Conv2d {
            weight,
            bias: None,
            stride: [stride; 2],
            pads: Pads::same(kernel / 2),
            dilation: [1, 1],
            groups: 1,
        };
        self.node(Op::Conv2d(conv), &[x], "conv")
    }

    /// Batch normalization; one channel in sixteen is nearly dead.
    pub fn norm(&mut self, x: NodeId) -> NodeId {
        let c = self.graph.shape(x).c;
        let scale: Vec<f32> =
            (0..c).map(|i| if i % 16 == 7 { 1e-9 } else { self.stream.between(0.5, 1.2) as f32 }).collect();
        let shift: Vec<f32> = (0..c).map(|_| self.stream.between(-0.3, 0.3) as f32).collect();
        let scale = self.graph.add_tensor(Tensor::from_f32(vec![c], scale).unwrap());
        let shift = self.graph.add_tensor(Tensor::from_f32(vec![c], shift).unwrap());
        self.node(Op::BatchNorm { scale, shift }, &[x], "bn")
    }

    /// Activations whose channels have these leading coefficients in turn.
    pub fn with_leads(self, leads: &[f32]) -> Self {
        Self { leads: leads.to_vec(), ..self }
    }

    pub fn act(&mut self, x: NodeId) -> NodeId {
        let all = [0.1, 0.5, 0.25, 0.01, 0.005];
        if !self.leads.is_empty() {
            let c = self.graph.shape(x).c;
            let row = |r: usize| (0..c).map(move |i| all[r] + i as f32 / 64.0).collect::<Vec<f32>>();
            let leads = (0..c).map(|i| self.leads[i % self.leads.len()]);
            let rows = (0..self.degree).flat_map(row).chain(leads).collect::<Vec<_>>();
            let coeffs = Tensor::from_f32(vec![self.degree + 1, c], rows).unwrap();
            let coeffs = self.graph.add_tensor(coeffs);
            return self.node(Op::Poly { coeffs }, &[x], "act");
        }
        let coeffs = Tensor::from_f32(vec![self.degree + 1, 1], all[..=self.degree].to_vec()).unwrap();
        let coeffs = self.graph.add_tensor(coeffs);
        self.node(Op::Poly { coeffs }, &[x], "act")
    }

    pub fn conv_norm_act(&mut self, x: NodeId, out: usize, stride: usize) -> NodeId {
        let y = self.conv(x, out, 3, stride);
        let y = self.norm(y);
        self.act(y)
    }

    pub fn pool(&mut self, x: NodeId, kernel: usize) -> NodeId {
        let divisor = Divisor::Constant((kernel * kernel) as f64);
        let pool = Pool { kernel: [kernel; 2], stride: [kernel; 2], pads: Pads::NONE, divisor };
        self.node(Op::Pool(pool), &[x], "pool")
    }

    pub fn linear(&mut self, x: NodeId, out: usize) -> NodeId {
        let n = self.graph.shape(x).len();
        let weight = self.f32s(&[out, n], (3.0 / n as f64).sqrt());
        let bias = self.f32s(&[out], 0.1);
        let (weight, bias) = (self.graph.add_tensor(weight), self.graph.add_tensor(bias));
        self.node(Op::Linear(Linear { weight, bias: Some(bias) }), &[x], "linear")
    }

    pub fn block(&mut self, x: NodeId, out: usize, stride: usize, shortcut: Shortcut) -> NodeId {
        let y = self.conv_norm_act(x, out, stride);
        let y = self.conv(y, out, 3, 1);
        let y = self.norm(y);
        let from = self.graph.shape(x);
        let skip = if from.c == out && stride == 1 {
            x
        } else if shortcut == Shortcut::Projection {
            let skip = self.conv(x, out, 1, stride);
            self.norm(skip)
        } else {
            let slice = fhec_ir::Slice { start: [0; 3], end: from.dims(), step: [1, stride, stride] };
            let skip = self.node(Op::Slice(slice), &[x], "slice");
            let extra = out - from.c;
            let pad = fhec_ir::Pad { before: [extra / 2, 0, 0], after: [extra - extra / 2, 0, 0] };
            self.node(Op::Pad(pad), &[skip], "pad")
        };
        let sum = self.node(Op::Add, &[y, skip], "join");
        self.act(sum)
    }

    pub fn finish(mut self, x: NodeId) -> Graph {
        self.node(Op::Output, &[x], "logits");
        self.graph
    }
}

/// A residual network of basic blocks; `stages` gives channels and number of blocks.
pub fn resnet(stages: &[(usize, usize)], size: usize, degree: usize, shortcut: Shortcut, seed: u64) -> Graph {
    blocks(Net::new(seed, degree), stages, size, shortcut)
}

/// A residual network in the making, from its first layer to its last.
pub fn blocks(mut net: Net, stages: &[(usize, usize)], size: usize, shortcut: Shortcut) -> Graph {
    let x = net.input(Shape::new(3, size, size));
    let mut x = net.conv_norm_act(x, stages[0].0, 1);
    for (i, &(channels, blocks)) in stages.iter().enumerate() {
        for block in 0..blocks {
            x = net.block(x, channels, if i > 0 && block == 0 { 2 } else { 1 }, shortcut);
        }
    }
    let side = net.graph.shape(x).h;
    let x = net.pool(x, side);
    let x = net.node(Op::Flatten, &[x], "flatten");
    let x = net.linear(x, 10);
    net.finish(x)
}

pub fn resnet18(degree: usize, width: usize) -> Graph {
    let stages = [(64 / width, 2), (128 / width, 2), (256 / width, 2), (512 / width, 2)];
    resnet(&stages, 32, degree, Shortcut::Projection, 18)
}

pub fn resnet20(degree: usize) -> Graph {
    resnet(&[(16, 3), (32, 3), (64, 3)], 32, degree, Shortcut::ZeroPad, 20)
}

pub fn resnet32(degree: usize) -> Graph {
    resnet(&[(16, 5), (32, 5), (64, 5)], 32, degree, Shortcut::Projection, 32)
}

/// VGG-16 with average pooling and three linear layers; `width` divides the channels.
pub fn vgg16(degree: usize, width: usize) -> Graph {
    let mut net = Net::new(16, degree);
    let mut x = net.input(Shape::new(3, 32, 32));
    for (channels, convs) in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)] {
        for _ in 0..convs {
            x = net.conv_norm_act(x, channels / width, 1);
        }
        x = net.pool(x, 2);
    }
    x = net.node(Op::Flatten, &[x], "flatten");
    for _ in 0..2 {
        x = net.linear(x, 512 / width);
        x = net.act(x);
    }
    x = net.linear(x, 10);
    net.finish(x)
}
