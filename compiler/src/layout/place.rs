//! A circuit in slots: every sum as linear maps between layouts, with its constants in the program's table.

use std::collections::BTreeMap;

use fhe_bytecode::{
    Codebook, CodebookId, Constants, Diagonals, Layout, LinearError, LinearOp, Operand, Tensor, TensorData,
    TensorId,
};
use rayon::prelude::*;

use crate::lower::{Circuit, CircuitOp, Constant, Conv, Map, Term, ValueId};
use crate::timed::Positions;

/// One summand of a value, computed at the raw scale of its position.
#[derive(Clone, Debug)]
pub enum Part {
    /// A linear map of one or more values.
    Map(PlacedMap),
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
    /// The operands, one per operation.
    pub sources: Vec<ValueId>,
    /// The operations.
    pub ops: Vec<LinearOp>,
    /// What the operations are in slots.
    pub diagonals: Diagonals,
}

/// A circuit with layouts, maps and constants.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The circuit.
    pub circuit: Circuit,
    /// Layout of every value.
    pub layouts: Vec<Layout>,
    /// All constants.
    pub constants: Constants,
    /// For every value what is added up at its raw scale.
    pub parts: Vec<Vec<Part>>,
    /// For every value the constant added at the end.
    pub biases: Vec<Option<TensorId>>,
}

/// Operands and operations of a map of a value, before its diagonals are known.
struct Terms {
    value: ValueId,
    sources: Vec<ValueId>,
    ops: Vec<LinearOp>,
}

impl Terms {
    fn new(value: ValueId) -> Self {
        Self { value, sources: Vec::new(), ops: Vec::new() }
    }

    fn placed(self, layouts: &[Layout], constants: &Constants) -> Result<PlacedMap, LinearError> {
        let inputs = self.sources.iter().map(|s| &layouts[s.index()]);
        let operands: Vec<Operand<'_>> =
            self.ops.iter().zip(inputs).map(|(op, input)| Operand { op, input }).collect();
        let output = &layouts[self.value.index()];
        let diagonals = Diagonals::best(&operands, output, constants)?;
        Ok(PlacedMap { sources: self.sources, ops: self.ops, diagonals })
    }
}

impl Placed {
    /// Puts a circuit into slots.
    ///
    /// # Errors
    /// When a map does not fit its layouts.
    pub fn new(circuit: &Circuit, positions: &Positions, layouts: Vec<Layout>) -> Result<Self, LinearError> {
        let mut constants = Constants::default();
        let mut parts: Vec<Vec<Part>> = Vec::with_capacity(circuit.values.len());
        let mut biases = Vec::with_capacity(circuit.values.len());
        let mut maps: Vec<Terms> = Vec::new();
        for id in circuit.ids() {
            // Operands of another period would make every diagonal of the map longer: they get a map of their own.
            let mut by_period: BTreeMap<usize, Terms> = BTreeMap::new();
            let mut others = Vec::new();
            let mut bias = None;
            if let CircuitOp::Affine(affine) = &circuit.value(id).op {
                let moved: Vec<&Term> = affine.terms.iter().filter(|t| !positions.is_still(t, id)).collect();
                for term in &moved {
                    match &term.map {
                        Map::Identity if moved.len() == 1 => {
                            others.push(Part::Scalar { source: term.source })
                        }
                        Map::Diagonal(factor) if factor.dims().len() > 1 => {
                            let factor = push(&mut constants, factor);
                            others.push(Part::Plain { source: term.source, factor });
                        }
                        map => {
                            let period = layouts[term.source.index()].period();
                            let terms = by_period.entry(period).or_insert_with(|| Terms::new(id));
                            terms.sources.push(term.source);
                            terms.ops.push(linear_op(map, &mut constants));
                        }
                    }
                }
                bias = affine.bias.as_ref().map(|b| push(&mut constants, b));
            }
            maps.extend(by_period.into_values());
            parts.push(others);
            biases.push(bias);
        }
        let built: Vec<(ValueId, PlacedMap)> = maps
            .into_par_iter()
            .map(|terms| Ok((terms.value, terms.placed(&layouts, &constants)?)))
            .collect::<Result<_, LinearError>>()?;
        for (id, map) in built {
            parts[id.index()].push(Part::Map(map));
        }
        Ok(Self { circuit: circuit.clone(), layouts, constants, parts, biases })
    }

    /// All linear maps with the value they belong to.
    pub fn maps(&self) -> impl Iterator<Item = (ValueId, &PlacedMap)> {
        self.circuit.ids().flat_map(|id| {
            self.parts[id.index()].iter().filter_map(move |part| match part {
                Part::Map(map) => Some((id, map)),
                Part::Scalar { .. } | Part::Plain { .. } => None,
            })
        })
    }
}

fn linear_op(map: &Map, constants: &mut Constants) -> LinearOp {
    match map {
        Map::Identity => LinearOp::identity(),
        Map::Diagonal(factor) => LinearOp::Pick {
            factors: Some(push(constants, factor)),
            channel_offset: 0,
            stride: [1, 1],
            pads: [0, 0],
        },
        Map::Conv(conv) if conv.is_dense() => {
            let dims = [conv.output.c as u32, conv.input.len() as u32];
            LinearOp::Dense { weight: push_shaped(constants, &conv.weight, &dims) }
        }
        Map::Conv(conv) => conv_op(conv, constants),
    }
}

fn conv_op(conv: &Conv, constants: &mut Constants) -> LinearOp {
    LinearOp::Conv2d {
        weight: push(constants, &conv.weight),
        stride: conv.stride.map(|s| s as u32),
        pads: conv.offset.map(|o| -o as i32),
        dilation: conv.dilation.map(|d| d as u32),
        groups: conv.groups as u32,
    }
}

fn push(constants: &mut Constants, constant: &Constant) -> TensorId {
    let dims: Vec<u32> = constant.dims().iter().map(|&d| d as u32).collect();
    push_shaped(constants, constant, &dims)
}

fn push_shaped(constants: &mut Constants, constant: &Constant, dims: &[u32]) -> TensorId {
    let members = constant.members();
    let data = match constant.codes() {
        None => TensorData::Dense(members.iter().flat_map(|t| t.iter().map(|v| v as f32)).collect()),
        Some(codes) => TensorData::Clustered {
            codebooks: codes.codebooks.iter().map(|book| codebook(constants, book)).collect(),
            indices: codes.indices.clone(),
        },
    };
    constants.push(Tensor { members: members.len() as u32, shape: dims.to_vec(), data })
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
