//! Linear maps: from the plan of a program to that of the CKKS executor, and plaintexts on demand.
//!
//! Equal plaintexts of a map are encoded once: in the `hw` layout a diagonal is one weight over one mask, and
//! clustered weights (paper §5.2) make these few. Then the executor asks for each plaintext once, and adds the inputs
//! that share it before it multiplies.

use std::collections::HashMap;

use fhe_bytecode::{CheckedMap, DiagonalId, Diagonals, Level, Pairing, PlaintextKey, Rotation, Scale};

use super::cache::{Demand, Meter, PlaintextSet, Share};
use super::progress::Ticker;
use fhe_ckks::linear::{Diagonal, Hop, LinearGroup, LinearPlan, LinearTerm, Parts, PlaintextSource};
use fhe_ckks::{CkksError, Context};

/// One plaintext of a map: a diagonal rotated back by its giant step, at the scale of its term.
#[derive(Debug, Clone, Copy)]
struct Named {
    diagonal: DiagonalId,
    giant: Rotation,
    scale: Scale,
}

/// A linear instruction, ready to run.
#[derive(Debug)]
pub(crate) struct LinearStep {
    plan: LinearPlan,
    names: Vec<Named>,
    demand: Demand,
}

impl LinearStep {
    /// Prepares `map` at `level`; `weight_scales` has the plaintext scale of each term of the map.
    pub(crate) fn new(context: &Context, map: &CheckedMap, level: Level, weight_scales: &[Scale]) -> Self {
        let diagonals = &map.diagonals;
        let mut names = Vec::new();
        let mut index_of: HashMap<(PlaintextKey, Rotation), usize> = HashMap::new();
        let mut n_uses = 0;
        let groups = map.plan.groups.iter().map(|group| {
            let terms = group.terms.iter().map(|term| {
                n_uses += 1;
                let index =
                    *index_of.entry((diagonals.key(term.diagonal), group.giant)).or_insert_with(|| {
                        let scale = weight_scales[diagonals.term(term.diagonal)];
                        names.push(Named { diagonal: term.diagonal, giant: group.giant, scale });
                        names.len() - 1
                    });
                let baby = map.plan.babies[term.baby as usize];
                LinearTerm { input: term.input as usize, baby: rotation(context, baby), diagonal: index }
            });
            let terms = terms.collect();
            LinearGroup { output: group.sum as usize, giant: rotation(context, group.giant), terms }
        });
        let groups = groups.collect();
        let hops = map.plan.hops.iter().map(|hop| Hop {
            from: rotation(context, hop.from),
            to: rotation(context, hop.to),
            by: rotation(context, hop.by),
        });
        let hops = hops.collect();
        let fold = map.plan.folds.iter().map(|&fold| rotation(context, fold)).collect();
        let parts = match (diagonals.pairing(), diagonals.half()) {
            (Pairing::None, _) => Parts::Real,
            (Pairing::Outputs, _) => Parts::Outputs(diagonals.n_outputs()),
            (Pairing::Halves, half) => Parts::Rotated(rotation(context, half.unwrap_or(Rotation::ZERO))),
        };
        let plan = LinearPlan { n_outputs: diagonals.n_sums(), groups, hops, parts, fold };
        if plan.adds_first() {
            n_uses = names.len();
        }
        let coeff_bytes = 2 * 8 * diagonals.period() as u64;
        let n_towers = context.key_basis(level).len() as u64;
        let demand =
            Demand { n_plaintexts: names.len(), n_uses, coeff_bytes, residue_bytes: coeff_bytes * n_towers };
        Self { plan, names, demand }
    }

    /// What its plaintexts take.
    pub(crate) fn demand(&self) -> Demand {
        self.demand
    }

    /// The plan for the executor.
    pub(crate) fn plan(&self) -> &LinearPlan {
        &self.plan
    }

    /// An empty set for its plaintexts.
    pub(crate) fn plaintext_set(&self, context: &Context, level: Level, share: Share) -> PlaintextSet {
        PlaintextSet::new(share, context.key_basis(level))
    }
}

/// Gives the executor the plaintexts of one map.
pub(crate) struct MapSource<'a> {
    pub context: &'a Context,
    pub step: &'a LinearStep,
    pub diagonals: &'a Diagonals,
    pub set: &'a PlaintextSet,
    pub meter: &'a Meter,
    pub ticker: Ticker<'a>,
}

impl PlaintextSource for MapSource<'_> {
    fn diagonal(&self, index: usize) -> Result<Diagonal, CkksError> {
        if self.ticker.cancel.is_cancelled() {
            return Err(CkksError::Cancelled);
        }
        self.ticker.tick();
        let named = self.step.names.get(index).ok_or(CkksError::Plan("a diagonal has no name"))?;
        self.set.get(self.context, self.meter, index, || {
            let mut values = vec![0.0; self.diagonals.period()];
            let mut imaginary = values.clone();
            self.diagonals.write(named.diagonal, named.giant, &mut values, &mut imaginary);
            self.context.encoder().round_complex(&values, &imaginary, named.scale)
        })
    }
}

/// A rotation of the program as the scheme knows it.
fn rotation(context: &Context, rotation: Rotation) -> fhe_ckks::Rotation {
    fhe_ckks::Rotation::new(rotation.amount(), context)
}
