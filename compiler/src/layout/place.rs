//! A circuit in slots: every sum as linear maps between layouts, with its constants in the program's table.

use std::collections::BTreeMap;
use std::sync::Arc;

use fhe_bytecode::{
    Codebook, CodebookId, Constants, Diagonals, Layout, LinearError, LinearOp, Operand, Tensor, TensorData,
    TensorId,
};
use rayon::prelude::*;

use crate::lower::{Circuit, CircuitOp, Constant, Conv, Map, Term, ValueId};
use crate::timed::Timed;

/// Numbers up to which a tensor keeps double precision where single would lose some of it: biases and coefficients, whose sums
/// cancel, and small layers.
pub(crate) const MOST_EXACT: usize = 4096;

/// One summand of a value, computed before its rescale; `M` is what a stage knows of a linear map.
#[derive(Clone, Debug)]
pub enum Part<M> {
    /// A linear map of one or more values.
    Map(M),
    /// A value as it is, for a change of scale only.
    Scalar {
        /// The value.
        source: ValueId,
    },
    /// A value times a constant per number.
    Plain {
        /// The value.
        source: ValueId,
        /// The constant.
        factor: TensorId,
    },
}

/// A linear map between layouts.
#[derive(Clone, Debug)]
pub struct PlacedMap {
    /// The summands.
    pub terms: Vec<PlacedTerm>,
    /// What they are in slots.
    pub diagonals: Diagonals,
}

/// One operand of a linear map.
#[derive(Clone, Debug)]
pub struct PlacedTerm {
    /// The operand.
    pub source: ValueId,
    /// Which part of its lanes it is, where a map brings several lanes together: the first, second, … as many lanes as the
    /// result has.
    pub part: u32,
    /// What happens to it.
    pub op: LinearOp,
}

impl PlacedTerm {
    /// Whether every number of the result comes from one number of the operand, the one at its place.
    #[must_use]
    pub fn in_place(&self) -> bool {
        matches!(self.op, LinearOp::Pick { .. })
    }
}

impl PlacedMap {
    /// The operands, with repetitions; once for every part of their lanes.
    pub fn sources(&self) -> impl Iterator<Item = ValueId> {
        self.terms.iter().map(|term| term.source)
    }
}

/// A value in slots.
#[derive(Clone, Debug)]
pub struct PlacedValue {
    /// Where its numbers are.
    pub layout: Layout,
    /// Tensors of this layout: of a batch, each has as many inputs as the layout has members.
    pub lanes: usize,
    /// What is multiplied and added up before the rescale.
    pub parts: Vec<Part<Arc<PlacedMap>>>,
    /// Summands that are added after the rescale, as they are.
    pub still: Vec<ValueId>,
    /// The constant added at the end.
    pub bias: Option<TensorId>,
}

impl PlacedValue {
    /// Ciphertexts of all lanes.
    #[must_use]
    pub fn n_cts(&self) -> usize {
        self.layout.n_cts() * self.lanes
    }

    /// All linear maps.
    pub fn maps(&self) -> impl Iterator<Item = &Arc<PlacedMap>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Map(map) => Some(map),
            Part::Scalar { .. } | Part::Plain { .. } => None,
        })
    }
}

/// A timed circuit with layouts, maps and constants.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The circuit.
    pub timed: Timed,
    /// All constants.
    pub constants: Constants,
    pub(super) values: Vec<PlacedValue>,
}

/// A map of a value before its diagonals are known.
struct Terms {
    value: ValueId,
    terms: Vec<PlacedTerm>,
}

/// The squared weights of the numbers that results depend on, in a summand of a value; nothing where nothing does.
pub type Acting<'a> = &'a (dyn Fn(ValueId, &PlacedTerm) -> Option<f64> + Sync);

impl Terms {
    fn placed(
        self,
        layouts: &[Layout],
        constants: &Constants,
        acting: Acting<'_>,
    ) -> Result<PlacedMap, LinearError> {
        let layout = |id: ValueId| &layouts[id.index()];
        let operands: Vec<Operand<'_>> =
            self.terms.iter().map(|term| Operand { op: &term.op, input: layout(term.source) }).collect();
        let acting = self
            .terms
            .iter()
            // A number reads one part of the lanes.
            .filter(|term| term.part == 0)
            .filter_map(|term| acting(self.value, term))
            .reduce(|a, b| a + b)
            .unwrap_or(f64::INFINITY);
        let diagonals = Diagonals::best(&operands, &layouts[self.value.index()], constants, acting)?;
        Ok(PlacedMap { terms: self.terms, diagonals })
    }
}

impl Placed {
    /// Puts a timed circuit into slots.
    ///
    /// # Errors
    /// When a map does not fit its layouts.
    pub fn new(timed: &Timed, layouts: Vec<Layout>, acting: Acting<'_>) -> Result<Self, LinearError> {
        Self::of_batch(timed, layouts, 1, acting)
    }

    /// Puts a batch of inputs into slots: layouts have as many members as inputs share a ciphertext.
    ///
    /// # Errors
    /// When a map does not fit its layouts.
    pub fn of_batch(
        timed: &Timed,
        layouts: Vec<Layout>,
        batch: usize,
        acting: Acting<'_>,
    ) -> Result<Self, LinearError> {
        let circuit = timed.circuit();
        let lanes = |id: ValueId| layouts[id.index()].lanes(batch);
        let mut constants = Constants::default();
        let mut values: Vec<PlacedValue> = Vec::with_capacity(circuit.values.len());
        let mut maps: Vec<Terms> = Vec::new();
        for (id, layout) in circuit.ids().zip(&layouts) {
            // Operands of another period would make every diagonal of the map longer: they get a map of their own.
            let mut by_period: BTreeMap<usize, Terms> = BTreeMap::new();
            let mut value = PlacedValue {
                layout: layout.clone(),
                lanes: lanes(id),
                parts: Vec::new(),
                still: Vec::new(),
                bias: None,
            };
            if let CircuitOp::Affine(affine) = &circuit.value(id).op {
                let (still, moved): (Vec<&Term>, Vec<&Term>) =
                    affine.terms.iter().partition(|term| timed.is_still(term, id));
                value.still = still.iter().map(|term| term.source).collect();
                for term in &moved {
                    match &term.map {
                        Map::Identity if moved.len() == 1 => {
                            value.parts.push(Part::Scalar { source: term.source })
                        }
                        Map::Diagonal(factor) if factor.dims().len() > 1 => {
                            let factor = push(&mut constants, factor);
                            value.parts.push(Part::Plain { source: term.source, factor });
                        }
                        map => {
                            let period = layouts[term.source.index()].period();
                            let terms = by_period
                                .entry(period)
                                .or_insert_with(|| Terms { value: id, terms: Vec::new() });
                            let source = term.source;
                            // Only convolutions bring lanes together: other summands share a layout with their sum.
                            let n_parts = (lanes(source) / lanes(id)) as u32;
                            for part in 0..n_parts {
                                let members = Members { of: layout.members() as u32, part, n_parts };
                                let op = linear_op(map, members, &mut constants);
                                terms.terms.push(PlacedTerm { source, part, op });
                            }
                        }
                    }
                }
                value.bias = affine.bias.as_ref().map(|b| push(&mut constants, b));
            }
            maps.extend(by_period.into_values());
            values.push(value);
        }
        let built: Vec<(ValueId, PlacedMap)> = maps
            .into_par_iter()
            .map(|terms| Ok((terms.value, terms.placed(&layouts, &constants, acting)?)))
            .collect::<Result<_, LinearError>>()?;
        for (id, map) in built {
            values[id.index()].parts.push(Part::Map(Arc::new(map)));
        }
        Ok(Self { timed: timed.clone(), constants, values })
    }

    /// The circuit.
    #[must_use]
    pub fn circuit(&self) -> &Circuit {
        self.timed.circuit()
    }

    /// A value in slots.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &PlacedValue {
        &self.values[id.index()]
    }

    /// The layout of a value.
    #[must_use]
    pub fn layout(&self, id: ValueId) -> &Layout {
        &self.value(id).layout
    }

    /// The most members that a value has.
    #[must_use]
    pub fn most_members(&self) -> usize {
        self.values.iter().map(|value| value.layout.members()).max().unwrap_or(1)
    }

    /// Whether a value at a boundary is rescaled itself: it is a product or has a summand that is multiplied.
    #[must_use]
    pub fn is_rescaled(&self, id: ValueId) -> bool {
        let is_multiplied =
            matches!(self.circuit().value(id).op, CircuitOp::Product(_)) || !self.value(id).parts.is_empty();
        is_multiplied && self.timed.time(id).is_boundary()
    }

    /// All linear maps with the value they belong to.
    pub fn maps(&self) -> impl Iterator<Item = (ValueId, &PlacedMap)> {
        self.circuit().ids().flat_map(|id| self.value(id).maps().map(move |map| (id, &**map)))
    }
}

/// The members of a result that a part of an operand's lanes gives: every `n_parts`-th, from `part` on.
#[derive(Clone, Copy)]
struct Members {
    of: u32,
    part: u32,
    n_parts: u32,
}

impl Members {
    /// A constant for these members; the others get zeros.
    fn only(self, tensor: Tensor) -> Tensor {
        if self.n_parts == 1 {
            return tensor;
        }
        let is_own = |m: u32| m % self.n_parts == self.part;
        let data = match tensor.data {
            TensorData::Dense(values) => TensorData::Dense(self.spread(&values, is_own)),
            TensorData::Exact(values) => TensorData::Exact(self.spread(&values, is_own)),
            TensorData::Clustered { .. } => unreachable!("clustered circuits are built for one input"),
        };
        Tensor { members: self.of, data, ..tensor }
    }

    fn spread<T: Copy + Default>(self, values: &[T], is_own: impl Fn(u32) -> bool) -> Vec<T> {
        let member = |m: u32| values.iter().map(move |&v| (m, v));
        (0..self.of).flat_map(member).map(|(m, v)| if is_own(m) { v } else { T::default() }).collect()
    }
}

fn linear_op(map: &Map, members: Members, constants: &mut Constants) -> LinearOp {
    match map {
        Map::Identity => LinearOp::identity(),
        Map::Diagonal(factor) => LinearOp::Pick {
            factors: Some(push(constants, factor)),
            channel_offset: 0,
            stride: [1, 1],
            pads: [0, 0],
        },
        Map::Conv(conv) if conv.is_dense() => {
            let matrix = [conv.output.c as u32, conv.input.len() as u32];
            let weight = tensor(constants, &conv.weight, &matrix);
            LinearOp::Dense { weight: constants.push(members.only(weight)) }
        }
        Map::Conv(conv) => {
            let weight = tensor(constants, &conv.weight, &dims(&conv.weight));
            conv_op(conv, constants.push(members.only(weight)))
        }
    }
}

fn conv_op(conv: &Conv, weight: TensorId) -> LinearOp {
    LinearOp::Conv2d {
        weight,
        stride: conv.stride.map(|s| s as u32),
        pads: conv.offset.map(|o| -o as i32),
        dilation: conv.dilation.map(|d| d as u32),
        groups: conv.groups as u32,
    }
}

fn dims(constant: &Constant) -> Vec<u32> {
    constant.dims().iter().map(|&d| d as u32).collect()
}

fn push(constants: &mut Constants, constant: &Constant) -> TensorId {
    let tensor = tensor(constants, constant, &dims(constant));
    constants.push(tensor)
}

fn tensor(constants: &mut Constants, constant: &Constant, dims: &[u32]) -> Tensor {
    let members = constant.members();
    let data = match constant.codes() {
        None => stored(members.iter().flat_map(|t| t.iter()).collect()),
        Some(codes) => TensorData::Clustered {
            codebooks: codes.codebooks.iter().map(|book| codebook(constants, book)).collect(),
            indices: codes.indices.clone(),
        },
    };
    Tensor { members: members.len() as u32, shape: dims.to_vec(), data }
}

/// Numbers in single precision, where that loses nothing or there are many of them.
fn stored(values: Vec<f64>) -> TensorData {
    let is_single = |&v: &f64| f64::from(v as f32) == v;
    match values.len() > MOST_EXACT || values.iter().all(is_single) {
        true => TensorData::Dense(values.into_iter().map(|v| v as f32).collect()),
        false => TensorData::Exact(values),
    }
}

/// A codebook of the program; layers may share it.
fn codebook(constants: &mut Constants, book: &Codebook) -> CodebookId {
    let known = constants.codebooks.iter().position(|b| b == book);
    let index = known.unwrap_or_else(|| {
        constants.codebooks.push(book.clone());
        constants.codebooks.len() - 1
    });
    CodebookId(index as u32)
}
