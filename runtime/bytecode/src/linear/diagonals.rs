//! The diagonals of a map, listed once and written out on demand.

use super::dense::DenseTerm;
use super::sparse::{Mask, SparseTerm};
use super::{LinearError, Operand, ResolvedOp};
use crate::constants::Constants;
use crate::layout::Layout;
use crate::rotation::Rotation;
use serde::{Deserialize, Serialize};

/// Index of a diagonal in its map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiagonalId(pub u32);

impl DiagonalId {
    /// Position in the list of diagonals.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One non-empty diagonal: `y_output[s] += d[s]·x_input[s + rotation]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagonal {
    /// Ciphertext of the output tensor.
    pub output: u32,
    /// Input ciphertext, counted through the terms of the map.
    pub input: u32,
    /// Rotation of the input.
    pub rotation: Rotation,
}

/// What a diagonal's vector depends on: equal keys under one giant step mean equal plaintexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PlaintextKey {
    /// One weight over one mask; clustering makes these few.
    Masked {
        /// Term of the map.
        term: u32,
        /// The slots.
        mask: Mask,
        /// Stands for all weights with the same values.
        weight_class: u32,
    },
    /// A vector of its own.
    Whole(DiagonalId),
}

#[derive(Clone, Debug)]
enum TermSource {
    Sparse(SparseTerm),
    Dense(DenseTerm),
}

/// Where a diagonal comes from: its term, that term's first input ciphertext, and its pieces.
#[derive(Clone, Debug)]
struct Origin {
    term: u32,
    first_input: u32,
    pieces: std::ops::Range<u32>,
}

/// The diagonals of one linear map, sorted by output, input and rotation.
#[derive(Clone, Debug)]
pub struct Diagonals {
    list: Vec<Diagonal>,
    origins: Vec<Origin>,
    sources: Vec<TermSource>,
    period: usize,
    input_period: usize,
    folds: Vec<Rotation>,
    slots: usize,
    n_inputs: usize,
    n_outputs: usize,
}

impl Diagonals {
    /// Finds the diagonals of Σ op(input) into `output`.
    ///
    /// # Errors
    /// When an operation does not fit its weights or layouts.
    pub fn build(terms: &[Operand<'_>], output: &Layout, constants: &Constants) -> Result<Self, LinearError> {
        let slots = output.slots();
        let input_period = terms.iter().map(|t| t.input.period()).max().ok_or(LinearError::NoTerms)?;
        let period = output.period().max(input_period);
        let mut found: Vec<(Diagonal, Origin)> = Vec::new();
        let (mut sources, mut n_inputs) = (Vec::new(), 0);
        for (index, term) in terms.iter().enumerate() {
            if term.input.slots() != slots {
                return Err(LinearError::Slots { input: term.input.slots(), output: slots });
            }
            let op = ResolvedOp::new(term.op, term.input.shape(), output.shape(), constants)?;
            let mut push = |(output, input, rotation): (u32, u32, Rotation), pieces| {
                let diagonal = Diagonal { output, input: n_inputs + input, rotation };
                found.push((diagonal, Origin { term: index as u32, first_input: n_inputs, pieces }));
            };
            if op.is_dense() {
                let (source, diagonals) = DenseTerm::build(op, term.input, output)?;
                diagonals.into_iter().for_each(|key| push(key, 0..0));
                sources.push(TermSource::Dense(source));
            } else {
                let (source, diagonals) = SparseTerm::build(op, term.input, output)?;
                diagonals.into_iter().for_each(|d| push((d.output, d.input, d.rotation), d.pieces));
                sources.push(TermSource::Sparse(source));
            }
            n_inputs += term.input.n_cts() as u32;
        }
        add_empty_outputs(&mut found, output.n_cts());
        found.sort_by_key(|(diagonal, _)| *diagonal);
        let (list, origins) = found.into_iter().unzip();
        let folds = std::iter::successors(Some(output.period()), |f| Some(2 * f))
            .take_while(|&f| f < period)
            .map(|f| Rotation::new(f as i64, slots))
            .collect();
        Ok(Self {
            list,
            origins,
            sources,
            period,
            input_period,
            folds,
            slots,
            n_inputs: n_inputs as usize,
            n_outputs: output.n_cts(),
        })
    }

    /// The diagonals, sorted; [`DiagonalId`] is the position.
    pub fn list(&self) -> &[Diagonal] {
        &self.list
    }

    /// Slots after which every diagonal repeats.
    pub fn period(&self) -> usize {
        self.period
    }

    /// Slots after which every input repeats: rotations of the inputs count modulo this.
    pub fn input_period(&self) -> usize {
        self.input_period
    }

    /// Slots of a ciphertext.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Rotations to add up at the end, y ← y + rot(y, f), in order.
    pub fn folds(&self) -> &[Rotation] {
        &self.folds
    }

    /// Input ciphertexts over all terms.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// Output ciphertexts.
    pub fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// The term that a diagonal belongs to.
    pub fn term(&self, id: DiagonalId) -> usize {
        self.origins[id.index()].term as usize
    }

    /// Writes one period of `rot(d, -giant)` into `out`: the vector that a term under that giant step
    /// multiplies with.
    ///
    /// # Panics
    /// When `out` does not have [`Self::period`] slots or the diagonal does not exist.
    pub fn write(&self, id: DiagonalId, giant: Rotation, out: &mut [f64]) {
        assert_eq!(out.len(), self.period, "a diagonal is written over one period");
        out.fill(0.0);
        let (diagonal, origin) = (&self.list[id.index()], &self.origins[id.index()]);
        let shift = giant.left(self.period);
        match &self.sources[origin.term as usize] {
            TermSource::Sparse(term) => term.write(origin.pieces.clone(), shift, out),
            TermSource::Dense(term) => {
                let input = diagonal.input - origin.first_input;
                term.write(diagonal.output, input, diagonal.rotation, shift, out);
            }
        }
    }

    /// What the vector of a diagonal depends on.
    pub fn key(&self, id: DiagonalId) -> PlaintextKey {
        let origin = &self.origins[id.index()];
        let single = match &self.sources[origin.term as usize] {
            TermSource::Sparse(term) => term.single(origin.pieces.clone()),
            TermSource::Dense(_) => None,
        };
        single.map_or(PlaintextKey::Whole(id), |(mask, weight_class)| PlaintextKey::Masked {
            term: origin.term,
            mask,
            weight_class,
        })
    }

    /// The weight of a masked plaintext, if all members share one value.
    pub fn uniform_weight(&self, key: PlaintextKey) -> Option<f64> {
        let PlaintextKey::Masked { term, mask, weight_class } = key else { return None };
        let TermSource::Sparse(source) = &self.sources[term as usize] else { return None };
        let mut values = source.class_values(weight_class, mask.members());
        let first = values.next()?;
        values.all(|v| v == first).then_some(first)
    }

    /// Mean square of the slots of a diagonal.
    pub fn energy(&self, id: DiagonalId) -> f64 {
        let origin = &self.origins[id.index()];
        let total = match &self.sources[origin.term as usize] {
            TermSource::Sparse(term) => term.energy(origin.pieces.clone()),
            TermSource::Dense(_) => {
                let mut vector = vec![0.0; self.period];
                self.write(id, Rotation::ZERO, &mut vector);
                vector.iter().map(|v| v * v).sum()
            }
        };
        total / self.period as f64
    }
}

/// Gives an output that nothing reaches one diagonal of zeros, so that every output has a product.
fn add_empty_outputs(found: &mut Vec<(Diagonal, Origin)>, n_outputs: usize) {
    let mut reached = vec![false; n_outputs];
    found.iter().for_each(|(diagonal, _)| reached[diagonal.output as usize] = true);
    for output in (0..n_outputs).filter(|&output| !reached[output]) {
        // A matrix reaches every output, so the first term is one with pieces.
        let diagonal = Diagonal { output: output as u32, input: 0, rotation: Rotation::ZERO };
        found.push((diagonal, Origin { term: 0, first_input: 0, pieces: 0..0 }));
    }
}
