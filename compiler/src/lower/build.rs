//! Walks the tensor graph and writes the circuit.

use std::collections::BTreeMap;

use fhec_ir::op::monomials;
use fhec_ir::{Graph, NodeId, Op, Shape, TensorId, Verified};

use super::circuit::{Affine, Circuit, CircuitOp, Map, Term, Value, ValueId};
use super::constant::Constant;
use super::fuse;
use super::members;
use super::piece;
use super::poly::Monomial;
use super::view::View;
use super::windows::Windows;

/// The circuit of a graph.
#[must_use]
pub fn lower(graph: Verified<'_>) -> Circuit {
    let graph: &Graph = &graph;
    let circuit = Circuit { n_members: graph.n_members(), ..Circuit::default() };
    let mut builder = Builder {
        graph,
        circuit,
        depth: Vec::new(),
        views: vec![None; graph.bound()],
        windows: BTreeMap::new(),
    };
    for id in graph.topo_order() {
        let view = builder.node(id);
        builder.views[id.index()] = Some(view);
    }
    let mut circuit = builder.circuit;
    for id in graph.outputs() {
        let view = builder.views[id.index()].as_ref().expect("every node was visited");
        circuit.outputs.push(view.whole().expect("outputs are whole values"));
    }
    members::merged(fuse::fuse(circuit))
}

/// The state of a walk.
pub(super) struct Builder<'a> {
    pub(super) graph: &'a Graph,
    pub(super) circuit: Circuit,
    depth: Vec<u32>,
    views: Vec<Option<View>>,
    /// Values that only sum windows of another: layers after them read through.
    pub(super) windows: BTreeMap<ValueId, Windows>,
}

impl Builder<'_> {
    fn view(&self, id: NodeId) -> View {
        self.views[id.index()].clone().expect("operands come first")
    }

    pub(super) fn constant(&self, id: TensorId) -> Constant {
        Constant::new(self.graph.weights().members(id).to_vec())
    }

    /// Appends a value to the circuit.
    pub(super) fn push(&mut self, op: CircuitOp, shape: Shape, node: NodeId) -> ValueId {
        let reached = op.sources_with_depth().into_iter().map(|(s, d)| self.depth[s.index()] + d).max();
        self.depth.push(reached.unwrap_or(0));
        let origins = &self.graph.node(node).origins;
        let name =
            origins.first().cloned().unwrap_or_else(|| format!("{}{node}", self.graph.op(node).mnemonic()));
        self.circuit.push(Value { op, shape, node, name })
    }

    /// Multiplications on the longest path to a value.
    pub(super) fn depth(&self, id: ValueId) -> u32 {
        self.depth[id.index()]
    }

    /// Extent of a value.
    pub(super) fn shape(&self, id: ValueId) -> Shape {
        self.circuit.value(id).shape
    }

    fn node(&mut self, id: NodeId) -> View {
        let graph = self.graph;
        let shape = graph.shape(id);
        let operands: Vec<View> = graph.operands(id).into_iter().map(|o| self.view(o)).collect();
        match graph.op(id) {
            Op::Input { .. } => View::of(self.push(CircuitOp::Input, shape, id), shape),
            Op::Conv2d(conv) => self.conv(id, conv, &operands[0]),
            Op::Linear(linear) => self.linear(id, linear.weight, linear.bias, &operands[0]),
            Op::Pool(pool) => self.pool(id, pool, &operands[0]),
            Op::BatchNorm { scale, shift } => {
                let (scale, shift) = (self.constant(*scale), self.constant(*shift));
                self.elementwise(id, &operands[0], |b, v, part| {
                    let map = diagonal(&part(&scale), b.shape(v));
                    b.affine(vec![Term { source: v, map }], Some(part(&shift)), b.shape(v), id)
                })
            }
            Op::Scale { factor } => {
                let factor = self.constant(*factor);
                self.elementwise(id, &operands[0], |b, v, part| {
                    let map = diagonal(&part(&factor), b.shape(v));
                    b.affine(vec![Term { source: v, map }], None, b.shape(v), id)
                })
            }
            Op::AddConst { value } => {
                let value = self.constant(*value);
                self.elementwise(id, &operands[0], |b, v, part| {
                    b.affine(vec![Term { source: v, map: Map::Identity }], Some(part(&value)), b.shape(v), id)
                })
            }
            Op::Poly { coeffs } => {
                let rows = rows(&self.constant(*coeffs));
                self.elementwise(id, &operands[0], |b, v, part| {
                    let monomials = rows
                        .iter()
                        .enumerate()
                        .map(|(i, c)| Monomial { powers: [i, 0], coeff: part(c) })
                        .collect();
                    b.polynomial([v, v], monomials, id)
                })
            }
            Op::Bivar { coeffs } => self.bivar(id, *coeffs, &operands),
            Op::Add => self.add(id, &operands[0], &operands[1]),
            Op::Mul => self.mul(id, &operands[0], &operands[1]),
            Op::Concat => View::concatenated(operands, shape),
            Op::Slice(slice) => operands[0].sliced(slice, shape).unwrap_or_else(|| {
                let whole = self.seen(id, &operands[0]);
                whole.sliced(slice, shape).expect("a whole value can be sliced")
            }),
            Op::Pad(pad) => operands[0].padded(pad, shape).unwrap_or_else(|| {
                let whole = self.seen(id, &operands[0]);
                whole.padded(pad, shape).expect("a whole value can be padded")
            }),
            Op::Flatten => operands[0].clone().flattened(),
            Op::Output => {
                let value = operands[0].whole().unwrap_or_else(|| self.whole_as_seen(id, &operands[0]));
                View::of(value, self.shape(value))
            }
        }
    }

    /// A sum of linear maps and a constant as a value; a lone identity is the value itself.
    pub(super) fn affine(
        &mut self,
        terms: Vec<Term>,
        bias: Option<Constant>,
        shape: Shape,
        node: NodeId,
    ) -> ValueId {
        let bias = bias.filter(|b| !b.is_all(0.0)).map(|b| b.spread(shape));
        match (&terms[..], &bias) {
            ([Term { source, map: Map::Identity }], None) => *source,
            _ => self.push(CircuitOp::Affine(Affine { terms, bias }), shape, node),
        }
    }

    /// Applies a channel-wise operation to every piece; `part` cuts a constant of the whole tensor down to the piece.
    fn elementwise(
        &mut self,
        id: NodeId,
        operand: &View,
        mut apply: impl FnMut(&mut Self, ValueId, &dyn Fn(&Constant) -> Constant) -> ValueId,
    ) -> View {
        let view = match operand.whole_pieces() {
            Some(_) => operand.clone(),
            None => self.seen(id, operand),
        };
        let sources = view.whole_pieces().expect("just made whole");
        let mut first = 0;
        let mut pieces = Vec::with_capacity(view.pieces.len());
        for (piece, source) in view.pieces.iter().zip(sources) {
            // Numbers per entry of a constant of the whole tensor: one channel of the view.
            let (len, seen) = (piece.shape.len() / view.shape.area(), view.shape);
            let part = |c: &Constant| cut(c, seen, first, len, piece.shape);
            let value = apply(self, source, &part);
            pieces.push(View::of(value, piece.shape).pieces[0]);
            first += len;
        }
        View { shape: view.shape, pieces }
    }

    fn bivar(&mut self, id: NodeId, coeffs: TensorId, operands: &[View]) -> View {
        let rows = rows(&self.constant(coeffs));
        let degree = fhec_ir::op::bivar_degree(rows.len()).expect("the verifier checked the monomial count");
        let values = self.whole_pair(id, &operands[0], &operands[1]);
        let shape = self.shape(values[0]);
        let seen = self.graph.shape(id);
        let monomials = monomials(degree)
            .zip(&rows)
            .map(|((i, j), c)| Monomial { powers: [i, j], coeff: cut(c, seen, 0, seen.c, shape) })
            .collect();
        View::of(self.polynomial(values, monomials, id), shape)
    }

    fn add(&mut self, id: NodeId, a: &View, b: &View) -> View {
        if a.is_cut_like(b)
            && let (Some(left), Some(right)) = (a.whole_pieces(), b.whole_pieces())
        {
            let mut pieces = Vec::with_capacity(left.len());
            for (piece, sources) in a.pieces.iter().zip(left.into_iter().zip(right)) {
                let terms = [sources.0, sources.1].map(|source| Term { source, map: Map::Identity });
                let value = self.affine(terms.to_vec(), None, piece.shape, id);
                pieces.push(View::of(value, piece.shape).pieces[0]);
            }
            return View { shape: a.shape, pieces };
        }
        let mut terms = self.placed(a);
        terms.extend(self.placed(b));
        View::of(self.affine(terms, None, a.shape, id), a.shape)
    }

    /// Products number by number; of joined parts, part by part.
    fn mul(&mut self, id: NodeId, a: &View, b: &View) -> View {
        if a.pieces.len() > 1
            && a.is_cut_like(b)
            && let (Some(left), Some(right)) = (a.whole_pieces(), b.whole_pieces())
        {
            let mut pieces = Vec::with_capacity(left.len());
            for (piece, (x, y)) in a.pieces.iter().zip(left.into_iter().zip(right)) {
                let value = self.push(CircuitOp::Product([x, y]), piece.shape, id);
                pieces.push(View::of(value, piece.shape).pieces[0]);
            }
            return View { shape: a.shape, pieces };
        }
        let factors = self.whole_pair(id, a, b);
        let shape = self.shape(factors[0]);
        View::of(self.push(CircuitOp::Product(factors), shape, id), shape)
    }

    /// Two views of one extent as two values of one extent.
    fn whole_pair(&mut self, id: NodeId, a: &View, b: &View) -> [ValueId; 2] {
        match (a.whole(), b.whole()) {
            (Some(x), Some(y)) if self.shape(x) == self.shape(y) => [x, y],
            _ => [self.whole_as_seen(id, a), self.whole_as_seen(id, b)],
        }
    }

    /// The view as one value with the extent the graph sees; a view of several parts costs a multiplication.
    fn whole_as_seen(&mut self, id: NodeId, view: &View) -> ValueId {
        let terms = self.placed(view);
        self.affine(terms, None, view.shape, id)
    }

    pub(super) fn seen(&mut self, id: NodeId, view: &View) -> View {
        View::of(self.whole_as_seen(id, view), view.shape)
    }

    /// Linear maps that put every piece of a view where it belongs.
    fn placed(&mut self, view: &View) -> Vec<Term> {
        if let Some(source) = view.whole().filter(|&v| self.shape(v) == view.shape) {
            return vec![Term { source, map: Map::Identity }];
        }
        let mut terms = Vec::new();
        let mut first = 0;
        for piece in &view.pieces {
            let n = if view.is_flattened() { piece.shape.len() } else { piece.shape.c };
            if let Some(window) = piece.window {
                let conv = if view.is_flattened() {
                    piece::dense(&piece::selection(view.shape.len(), first, n), piece)
                } else {
                    piece::placement(piece, first, view.shape)
                };
                terms.push(Term { source: window.source, map: Map::Conv(conv) });
            }
            first += n;
        }
        if terms.is_empty() {
            // Nothing but zeros: the first input times zero.
            let source = ValueId(0);
            let conv = piece::zeros(self.shape(source), view.shape);
            terms.push(Term { source, map: Map::Conv(conv) });
        }
        terms
    }
}

/// A factor per channel or element as a map; ones are no factor.
pub(super) fn diagonal(factor: &Constant, shape: Shape) -> Map {
    if factor.is_all(1.0) { Map::Identity } else { Map::Diagonal(factor.spread(shape)) }
}

/// The rows of a coefficient table as constants of their own.
fn rows(table: &Constant) -> Vec<Constant> {
    let (n_rows, n) = (table.dims()[0], table.dims()[1]);
    let row = |r: usize| table.map(&[n], |t| (r * n..(r + 1) * n).map(|i| t.get(i)).collect());
    (0..n_rows).map(row).collect()
}

/// A constant of a tensor with extent `seen`, cut down to its channels `first .. first + len`, for a piece of `shape`.
fn cut(constant: &Constant, seen: Shape, first: usize, len: usize, shape: Shape) -> Constant {
    let n = constant.members()[0].len();
    if n == 1 || (len == seen.c && n == seen.c && shape.c == seen.c) {
        return constant.spread(shape);
    }
    let per_channel = if n == seen.c { 1 } else { seen.area() };
    let (start, count) = (first * per_channel, len * per_channel);
    let dims = if count == shape.c { vec![shape.c] } else { vec![shape.c, shape.h, shape.w] };
    constant.map(&dims, |t| (start..start + count).map(|i| t.get(i)).collect())
}
