//! What is known of an operation without computing it: its kind, where its channels come from, and its attributes.
//!
//! Passes that follow channels or constants ask here, so that they need no list of operations of their own.

use crate::{Conv2d, Divisor, Graph, NodeId, Op, Pads, Shape, TensorId, number};

/// What an operation mainly does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value comes in or goes out.
    Port,
    /// Sums numbers of its operand times constants.
    Linear,
    /// Multiplies encrypted numbers.
    Product,
    /// Works with one constant per channel or position.
    Constant,
    /// Adds or re-arranges, without a multiplication.
    Free,
}

/// Where the channels of a result come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channels {
    /// From outside.
    Outside,
    /// Every channel from those of the operand that its group has, by the operation's first constant.
    Mixed {
        /// Groups that do not see each other.
        groups: usize,
    },
    /// Channel c from channel c of every operand.
    Each,
    /// Every channel is one of an operand, by slot and channel, or zeros.
    Moved(Vec<Option<(usize, usize)>>),
}

impl Op {
    /// What it mainly does.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Input { .. } | Self::Output => Kind::Port,
            Self::Conv2d(_) | Self::Linear(_) | Self::Pool(_) => Kind::Linear,
            Self::Poly { .. } | Self::Bivar { .. } | Self::Mul => Kind::Product,
            Self::BatchNorm { .. } | Self::Scale { .. } | Self::AddConst { .. } => Kind::Constant,
            Self::Add | Self::Concat | Self::Slice(_) | Self::Pad(_) | Self::Flatten => Kind::Free,
        }
    }

    /// Whether the result of a sum of operands is the sum of the results, a bias aside.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        match self.kind() {
            Kind::Linear | Kind::Free => true,
            Kind::Constant => matches!(self, Self::Scale { .. }),
            Kind::Port | Kind::Product => false,
        }
    }

    /// The constant that multiplies every channel of the operand, if it has one.
    #[must_use]
    pub fn factor(&self) -> Option<TensorId> {
        match self {
            Self::BatchNorm { scale: factor, .. } | Self::Scale { factor } => Some(*factor),
            _ => None,
        }
    }

    /// The axis of its constants that counts channels: tables of coefficients have one row per power.
    #[must_use]
    pub fn channel_axis(&self) -> usize {
        usize::from(matches!(self, Self::Poly { .. } | Self::Bivar { .. }))
    }
}

/// Where the channels of a node come from.
#[must_use]
pub fn channels(graph: &Graph, id: NodeId) -> Channels {
    let operands: Vec<Shape> = graph.operands(id).into_iter().map(|o| graph.shape(o)).collect();
    let first = |channels: &mut dyn Iterator<Item = usize>| {
        Channels::Moved(channels.map(|channel| Some((0, channel))).collect())
    };
    match graph.op(id) {
        Op::Input { .. } => Channels::Outside,
        Op::Conv2d(conv) => Channels::Mixed { groups: conv.groups },
        Op::Linear(_) => Channels::Mixed { groups: 1 },
        Op::BatchNorm { .. }
        | Op::Pool(_)
        | Op::Poly { .. }
        | Op::Bivar { .. }
        | Op::Scale { .. }
        | Op::AddConst { .. }
        | Op::Add
        | Op::Mul => Channels::Each,
        Op::Concat => {
            let slots = operands.iter().enumerate();
            Channels::Moved(slots.flat_map(|(slot, x)| (0..x.c).map(move |c| Some((slot, c)))).collect())
        }
        Op::Slice(slice) => first(&mut (slice.start[0]..slice.end[0]).step_by(slice.step[0])),
        Op::Pad(pad) => {
            let inside = |c: usize| c.checked_sub(pad.before[0]).filter(|c| *c < operands[0].c);
            Channels::Moved((0..graph.shape(id).c).map(|c| inside(c).map(|c| (0, c))).collect())
        }
        Op::Flatten => first(&mut (0..operands[0].len()).map(|position| position / operands[0].area())),
        Op::Output => first(&mut (0..operands[0].c)),
    }
}

/// What an operation has besides operands and constants, each as `name=value`, in a fixed order.
#[must_use]
pub fn attributes(graph: &Graph, op: &Op) -> Vec<String> {
    let mut out = Vec::new();
    match op {
        Op::Conv2d(Conv2d { weight, stride, pads, dilation, groups, .. }) => {
            let dims = graph.tensor(*weight).dims();
            out.push(format!("k={}x{}", dims[2], dims[3]));
            out.push(format!("s={}", pair(*stride)));
            out.push(format!("p={}", sides(*pads)));
            if *dilation != [1, 1] {
                out.push(format!("d={}", pair(*dilation)));
            }
            if *groups != 1 {
                out.push(format!("g={groups}"));
            }
        }
        Op::Pool(pool) => {
            out.push(format!("k={}x{}", pool.kernel[0], pool.kernel[1]));
            out.push(format!("s={}", pair(pool.stride)));
            out.push(format!("p={}", sides(pool.pads)));
            out.push(match pool.divisor {
                Divisor::Constant(k) => format!("div={}", number(k)),
                Divisor::ExcludePad => "div=inside".into(),
            });
        }
        Op::Poly { coeffs } | Op::Bivar { coeffs } => {
            let tensor = graph.tensor(*coeffs);
            if graph.weights().members(*coeffs).len() == 1 && tensor.dims()[1] == 1 {
                let shown: Vec<_> = tensor.iter().map(number).collect();
                out.push(format!("c=({})", shown.join(" ")));
            } else {
                out.push(format!("rows={}", tensor.dims()[0]));
            }
        }
        Op::Scale { factor: id } | Op::AddConst { value: id } => {
            if graph.weights().members(*id).len() == 1 && graph.tensor(*id).len() == 1 {
                out.push(format!("v={}", number(graph.tensor(*id).get(0))));
            }
        }
        Op::Slice(slice) => {
            for (axis, name) in ["c", "h", "w"].into_iter().enumerate() {
                let (start, end, step) = (slice.start[axis], slice.end[axis], slice.step[axis]);
                out.push(if step == 1 {
                    format!("{name}={start}..{end}")
                } else {
                    format!("{name}={start}..{end}/{step}")
                });
            }
        }
        Op::Pad(pad) => {
            for (axis, name) in ["c", "h", "w"].into_iter().enumerate() {
                if pad.before[axis] + pad.after[axis] > 0 {
                    out.push(format!("{name}={}+{}", pad.before[axis], pad.after[axis]));
                }
            }
        }
        Op::Input { shape: Shape { .. } }
        | Op::Linear(_)
        | Op::BatchNorm { .. }
        | Op::Add
        | Op::Mul
        | Op::Concat
        | Op::Flatten
        | Op::Output => {}
    }
    out
}

fn pair([h, w]: [usize; 2]) -> String {
    if h == w { h.to_string() } else { format!("{h}x{w}") }
}

fn sides(p: Pads) -> String {
    if p == Pads::same(p.top) {
        p.top.to_string()
    } else {
        format!("{},{},{},{}", p.top, p.left, p.bottom, p.right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pad, Slice};

    fn moved(op: Op, shape: Shape) -> Channels {
        let mut graph = Graph::new();
        let x = graph.add(Op::Input { shape }, &[], "x").expect("an input");
        let y = graph.add(op, &[x], "y").expect("the operation fits its operand");
        channels(&graph, y)
    }

    #[test]
    fn channels_are_followed_through_arrangements() {
        let pad = Pad { before: [1, 0, 0], after: [1, 0, 0] };
        let shape = Shape::new(2, 1, 2);
        assert_eq!(moved(Op::Pad(pad), shape), Channels::Moved(vec![None, Some((0, 0)), Some((0, 1)), None]));
        let slice = Slice { start: [1, 0, 0], end: [4, 1, 2], step: [2, 1, 1] };
        let found = moved(Op::Slice(slice), Shape::new(4, 1, 2));
        assert_eq!(found, Channels::Moved(vec![Some((0, 1)), Some((0, 3))]));
        let flat = [0, 0, 1, 1].map(|c| Some((0, c)));
        assert_eq!(moved(Op::Flatten, shape), Channels::Moved(flat.to_vec()));
    }
}
