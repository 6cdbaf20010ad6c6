//! The diagonals of a map, listed once and written out on demand.

use super::dense::DenseTerm;
use super::pairing::{Pairing, Placement};
use super::shares::KnownShares;
use super::sparse::{Mask, SparseTerm};
use super::{LinearError, Operand, ResolvedOp};
use crate::constants::Constants;
use crate::layout::Layout;
use crate::rotation::Rotation;
use crate::scale::Scale;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

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

/// One non-empty diagonal: `sum[s] += d[s]·x_input[s + rotation]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagonal {
    /// The sum it belongs to: an output ciphertext, or a pair of them.
    pub sum: u32,
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

/// What all terms of a map share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) slots: usize,
    pub(crate) n_outputs: usize,
    pub(crate) input_period: usize,
    pub(crate) period: usize,
    output_period: usize,
    pairing: Pairing,
    /// Slots between the parts of a sum, for [`Pairing::Halves`].
    pub(crate) half: Option<usize>,
}

impl Frame {
    /// Checks that the layouts go together and that there is something to pair.
    pub(crate) fn new(terms: &[Operand<'_>], output: &Layout, pairing: Pairing) -> Result<Self, LinearError> {
        let (slots, n_outputs, output_period) = (output.slots(), output.n_cts(), output.period());
        let input_period = terms.iter().map(|t| t.input.period()).max().ok_or(LinearError::NoTerms)?;
        if let Some(term) = terms.iter().find(|term| term.input.slots() != slots) {
            return Err(LinearError::Slots { input: term.input.slots(), output: slots });
        }
        let half = (pairing == Pairing::Halves).then_some(input_period.min(output_period) / 2);
        if half == Some(0) || (pairing == Pairing::Outputs && n_outputs < 2) {
            return Err(LinearError::Pairing(pairing));
        }
        let period = output_period.max(input_period);
        Ok(Self { slots, n_outputs, input_period, period, output_period, pairing, half })
    }

    /// Sums before the two parts are taken apart.
    pub(crate) fn n_sums(&self) -> usize {
        if self.pairing == Pairing::Outputs { self.n_outputs.div_ceil(2) } else { self.n_outputs }
    }

    /// Rotations to add up at the end.
    pub(crate) fn folds(&self) -> Vec<Rotation> {
        std::iter::successors(Some(self.output_period), |f| Some(2 * f))
            .take_while(|&f| f < self.period)
            .map(|f| Rotation::new(f as i64, self.slots))
            .collect()
    }

    /// The rotation that brings the imaginary part of a sum to the output.
    pub(crate) fn half_rotation(&self) -> Option<Rotation> {
        self.half.map(|half| Rotation::new(half as i64, self.slots))
    }
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
    pairing: Pairing,
    half: Option<Rotation>,
    /// What the numbers of a result have of each other, once someone asked.
    pub(super) known_shares: OnceLock<KnownShares>,
}

impl Diagonals {
    /// Finds the diagonals of Σ op(input) into `output`.
    ///
    /// # Errors
    /// When an operation does not fit its weights or layouts, or there is nothing to pair.
    pub fn build(
        terms: &[Operand<'_>],
        output: &Layout,
        pairing: Pairing,
        constants: &Constants,
    ) -> Result<Self, LinearError> {
        let frame = Frame::new(terms, output, pairing)?;
        let Frame { slots, n_outputs, input_period, period, half, .. } = frame;
        let mut found: Vec<(Diagonal, Origin)> = Vec::new();
        let (mut sources, mut n_inputs) = (Vec::new(), 0);
        for (index, term) in terms.iter().enumerate() {
            let op = ResolvedOp::new(term.op, term.input.shape(), output.shape(), constants)?;
            let placement = Placement::new(term.input, output, pairing, half);
            let mut push = |(sum, input, rotation): (u32, u32, Rotation), pieces| {
                let diagonal = Diagonal { sum, input: n_inputs + input, rotation };
                found.push((diagonal, Origin { term: index as u32, first_input: n_inputs, pieces }));
            };
            if op.is_dense() {
                let (source, diagonals) = DenseTerm::build(op, term.input, output, placement)?;
                diagonals.into_iter().for_each(|key| push(key, 0..0));
                sources.push(TermSource::Dense(source));
            } else {
                let (source, diagonals) = SparseTerm::build(op, term.input, output, placement)?;
                diagonals.into_iter().for_each(|d| push((d.sum, d.input, d.rotation), d.pieces));
                sources.push(TermSource::Sparse(source));
            }
            n_inputs += term.input.n_cts() as u32;
        }
        add_empty_sums(&mut found, frame.n_sums());
        found.sort_by_key(|(diagonal, _)| *diagonal);
        let (list, origins) = found.into_iter().unzip();
        Ok(Self {
            list,
            origins,
            sources,
            period,
            input_period,
            folds: frame.folds(),
            slots,
            n_inputs: n_inputs as usize,
            n_outputs,
            pairing,
            half: frame.half_rotation(),
            known_shares: OnceLock::new(),
        })
    }

    /// The diagonals under the pairing that suits the map, if results depend on numbers of so large squared weights.
    ///
    /// # Errors
    /// When an operation does not fit its weights or layouts.
    pub fn best(
        terms: &[Operand<'_>],
        output: &Layout,
        constants: &Constants,
        acting: f64,
    ) -> Result<Self, LinearError> {
        let plain = Self::build(terms, output, Pairing::None, constants)?;
        match Pairing::suggested(plain.list.len(), plain.n_plaintexts(), plain.n_outputs) {
            Pairing::None => Ok(plain),
            // Many terms of one slot have one rotation, and it has no other half.
            Pairing::Halves if plain.input_period.min(output.period()) < 2 => Ok(plain),
            pairing => {
                let paired = Self::build(terms, output, pairing, constants)?;
                Ok(if paired.is_uneven(output, acting) { plain } else { paired })
            }
        }
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

    /// Sums before the two parts are taken apart: as many as outputs, or half as many.
    pub fn n_sums(&self) -> usize {
        if self.pairing == Pairing::Outputs { self.n_outputs.div_ceil(2) } else { self.n_outputs }
    }

    /// What the imaginary parts of the sums are.
    pub fn pairing(&self) -> Pairing {
        self.pairing
    }

    /// The rotation that brings the imaginary part of a sum to the output, for [`Pairing::Halves`].
    pub fn half(&self) -> Option<Rotation> {
        self.half
    }

    /// Scale that the weights of a term are encoded at, from the scales of result and source.
    pub fn weight_scale(&self, result: Scale, source: Scale) -> Scale {
        self.pairing.weight_scale(result, source)
    }

    /// Number of terms of the map.
    pub fn n_terms(&self) -> usize {
        self.sources.len()
    }

    /// The term that a diagonal belongs to.
    pub fn term(&self, id: DiagonalId) -> usize {
        self.origins[id.index()].term as usize
    }

    /// Writes one period of `rot(d, -giant)`: the vector that a term under that giant step multiplies with,
    /// real part into `re` and imaginary part into `im`. The diagonals of an unpaired map are real; then `im`
    /// may be empty.
    ///
    /// # Panics
    /// When a part does not have [`Self::period`] slots or the diagonal does not exist.
    pub fn write(&self, id: DiagonalId, giant: Rotation, re: &mut [f64], im: &mut [f64]) {
        self.write_part(id, giant, false, re);
        if !(im.is_empty() && self.pairing == Pairing::None) {
            self.write_part(id, giant, true, im);
        }
    }

    fn write_part(&self, id: DiagonalId, giant: Rotation, imaginary: bool, out: &mut [f64]) {
        assert_eq!(out.len(), self.period, "a diagonal is written over one period");
        out.fill(0.0);
        let (diagonal, origin) = (&self.list[id.index()], &self.origins[id.index()]);
        let shift = giant.left(self.period);
        match &self.sources[origin.term as usize] {
            TermSource::Sparse(term) => term.write(origin.pieces.clone(), imaginary, shift, out),
            TermSource::Dense(term) => {
                let input = diagonal.input - origin.first_input;
                term.write((diagonal.sum, input, diagonal.rotation), imaginary, shift, out);
            }
        }
    }

    /// Adds the squares of a diagonal made of pieces to those of its sum, real and imaginary parts; says whether it is one.
    pub(super) fn add_squares(&self, id: DiagonalId, parts: &mut [Vec<Vec<f64>>; 2], sum: usize) -> bool {
        let origin = &self.origins[id.index()];
        let TermSource::Sparse(term) = &self.sources[origin.term as usize] else { return false };
        for (imaginary, squares) in [false, true].into_iter().zip(parts) {
            term.add(origin.pieces.clone(), imaginary, 0, &mut squares[sum], |weight| weight * weight);
        }
        true
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

    /// Number of distinct plaintexts under a plan without giant steps.
    pub fn n_plaintexts(&self) -> usize {
        let ids = (0..self.list.len() as u32).map(DiagonalId);
        ids.map(|id| self.key(id)).collect::<HashSet<PlaintextKey>>().len()
    }

    /// Whether a plaintext serves more than two diagonals on average, so that adding inputs before multiplying pays.
    pub fn is_shared(&self) -> bool {
        2 * self.n_plaintexts() < self.list.len()
    }

    /// Whether another map has diagonals at the same places, whatever is in them.
    pub fn is_like(&self, other: &Self) -> bool {
        self.list == other.list && self.frame() == other.frame()
    }

    /// What plans depend on besides the list.
    fn frame(&self) -> (usize, usize, usize, &[Rotation], usize, Pairing, Option<Rotation>) {
        let Self { period, input_period, slots, folds, n_outputs, pairing, half, .. } = self;
        (*slots, *period, *input_period, folds, *n_outputs, *pairing, *half)
    }

    /// How many independent roundings weigh as much on a sum of these diagonals. A plaintext that multiplies t inputs brings
    /// one rounding t times: like t roundings if the inputs are independent, like t² if they are equal. Inputs are
    /// neighbouring pixels and squares, so this takes the mean.
    pub fn roundings(&self, diagonals: impl IntoIterator<Item = DiagonalId>) -> f64 {
        let mut uses: HashMap<PlaintextKey, f64> = HashMap::new();
        diagonals.into_iter().for_each(|id| *uses.entry(self.key(id)).or_default() += 1.0);
        // Whole numbers: the order of the sum does not matter.
        uses.values().map(|t| t * (t + 1.0) / 2.0).sum()
    }

    /// Mean square of the slots of a diagonal, both parts together.
    pub fn energy(&self, id: DiagonalId) -> f64 {
        let origin = &self.origins[id.index()];
        let total = match &self.sources[origin.term as usize] {
            TermSource::Sparse(term) => term.energy(origin.pieces.clone()),
            TermSource::Dense(_) => {
                let (mut re, mut im) = (vec![0.0; self.period], vec![0.0; self.period]);
                self.write(id, Rotation::ZERO, &mut re, &mut im);
                re.iter().chain(&im).map(|v| v * v).sum()
            }
        };
        total / self.period as f64
    }
}

/// Gives a sum that nothing reaches one diagonal of zeros, so that every output has a product.
fn add_empty_sums(found: &mut Vec<(Diagonal, Origin)>, n_sums: usize) {
    let mut reached = vec![false; n_sums];
    found.iter().for_each(|(diagonal, _)| reached[diagonal.sum as usize] = true);
    for sum in (0..n_sums).filter(|&sum| !reached[sum]) {
        // A matrix reaches every sum, so the first term is one with pieces.
        let diagonal = Diagonal { sum: sum as u32, input: 0, rotation: Rotation::ZERO };
        found.push((diagonal, Origin { term: 0, first_input: 0, pieces: 0..0 }));
    }
}
