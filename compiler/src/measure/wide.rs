//! What all inputs say, where a few are enough for the means: how far values reach, what the results are, and which inputs lead
//! furthest.

use std::collections::BTreeMap;

use fhec_ir::MemberIdx;
use rayon::prelude::*;

use super::extent::Extent;
use super::rows::Rows;
use super::stats::{Case, LARGEST, Overflow, Single, Stats};
use super::strays::strays;
use crate::lower::eval::{self, combined};
use crate::lower::{Circuit, ValueId};
use crate::simulate::Inputs;

/// Inputs between two reports of progress.
const CHUNK: usize = 64;
/// Inputs that lead furthest and are looked at like the samples.
const EXTREMES: usize = 8;

/// One input.
struct Seen {
    extent: Extent,
    /// Averaged over the members.
    results: Vec<f64>,
}

impl Seen {
    fn new(circuit: &Circuit, input: &[f64]) -> Self {
        let output = circuit.outputs[0].index();
        let (mut extent, mut results) = (None::<Extent>, Vec::new());
        for member in 0..circuit.n_members as u32 {
            let mut trace = eval::trace(circuit, &[input], MemberIdx(member));
            let found = Extent::new(circuit, &mut trace);
            extent = Some(match extent {
                None => found,
                Some(other) => other.joined(&found),
            });
            results.push(std::mem::take(&mut trace.values[output]));
        }
        Self::joined(circuit, extent, &results)
    }

    /// The same from what every member says.
    fn of_members(circuit: &Circuit, members: &[Single]) -> Self {
        let extent = members.iter().map(|single| single.extent.clone()).reduce(|a, b| a.joined(&b));
        Self::joined(circuit, extent, &members.iter().map(|s| s.result.clone()).collect::<Vec<_>>())
    }

    fn joined(circuit: &Circuit, extent: Option<Extent>, results: &[Vec<f64>]) -> Self {
        let extent = extent.unwrap_or_else(|| Extent::none(circuit.values.len()));
        Self { extent, results: combined(circuit, results) }
    }
}

impl Stats {
    /// Runs the circuit on some inputs for what is a mean, and on all of them for what is a maximum; inputs may have numbers of a
    /// range, too.
    ///
    /// # Errors
    /// When the numbers of a value grow beyond all bounds.
    pub(crate) fn measure(
        circuit: &Circuit,
        probes: &[Vec<f64>],
        all: &dyn Inputs,
        range: Option<[f64; 2]>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, Overflow> {
        let rows: Vec<Rows> =
            (0..circuit.n_members as u32).map(|member| Rows::new(circuit, MemberIdx(member))).collect();
        let single = Single::of_each(circuit, &rows, probes);
        if let Some(overflow) = single.iter().find_map(Single::overflow) {
            return Err(overflow);
        }
        let stats = Self::summed_up(circuit, &single.iter().collect::<Vec<_>>());
        // Few inputs are all among those for the means.
        let is_all = probes.len() == all.len() && (0..all.len()).all(|i| all.input(i) == probes[i]);
        let seen = if is_all { &single[..] } else { &[] };
        let mut stats = stats.widened(circuit, (&rows, seen), all, progress)?;
        if let Some(range) = range {
            stats.extent = stats.extent.with_input(circuit, range);
        }
        let strays = strays(probes, stats.extent.input);
        Ok(stats.covering(circuit, &rows, &strays))
    }

    /// The same with the results and the largest numbers of all inputs, and with what an error does where these lead furthest.
    /// Gains and energies are means, for which few inputs do; a maximum needs every one. Members that were seen already are not
    /// looked at again.
    fn widened(
        mut self,
        circuit: &Circuit,
        (rows, seen): (&[Rows], &[Single]),
        inputs: &dyn Inputs,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, Overflow> {
        // The input that leads furthest, value by value.
        let mut furthest: Vec<(f64, usize)> = vec![(0.0, 0); circuit.values.len()];
        for start in (0..inputs.len()).step_by(CHUNK) {
            let chunk = start..(start + CHUNK).min(inputs.len());
            let of_input = |index: usize| match seen.chunks(circuit.n_members.max(1)).nth(index) {
                Some(members) => Seen::of_members(circuit, members),
                None => Seen::new(circuit, &inputs.input(index)),
            };
            let seen: Vec<Seen> = chunk.clone().into_par_iter().map(of_input).collect();
            for (index, Seen { mut extent, results }) in chunk.clone().zip(seen) {
                if let Some(value) = extent.peak.iter().position(|size| *size > LARGEST) {
                    return Err(Overflow { value: ValueId(value as u32), size: extent.peak[value] });
                }
                for (most, &peak) in furthest.iter_mut().zip(&extent.peak) {
                    if peak > most.0 {
                        *most = (peak, index);
                    }
                }
                if circuit.merged {
                    extent = extent.merged(circuit);
                }
                self.extent = self.extent.joined(&extent);
                self.results.push(results);
            }
            progress(chunk.end, inputs.len());
        }
        let extremes: Vec<Vec<f64>> = extremes(&furthest).into_iter().map(|i| inputs.input(i)).collect();
        self.cases.extend(cases(circuit, rows, &extremes, |_| true));
        Ok(self)
    }

    /// The same with what an error does to inputs unlike those measured on, if they give results like theirs: then nobody can
    /// tell, and the bound has to be for them too.
    fn covering(mut self, circuit: &Circuit, rows: &[Rows], strays: &[Vec<f64>]) -> Self {
        let [low, high] = self.extent.output;
        let is_like = |extent: &Extent| extent.output[0] >= low && extent.output[1] <= high;
        self.strays = cases(circuit, rows, strays, is_like);
        self
    }
}

/// The inputs that lead furthest for most values.
fn extremes(furthest: &[(f64, usize)]) -> Vec<usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    furthest.iter().for_each(|(_, index)| *counts.entry(*index).or_default() += 1);
    let mut all: Vec<(usize, usize)> = counts.into_iter().collect();
    all.sort_by_key(|&(index, count)| (std::cmp::Reverse(count), index));
    all.into_iter().take(EXTREMES).map(|(index, _)| index).collect()
}

/// What single results say, of those inputs whose numbers are as wanted.
fn cases(
    circuit: &Circuit,
    rows: &[Rows],
    inputs: &[Vec<f64>],
    is_wanted: impl Fn(&Extent) -> bool,
) -> Vec<Case> {
    let merged = |extent: &Extent| match circuit.merged {
        true => extent.clone().merged(circuit),
        false => extent.clone(),
    };
    let single = Single::of_each(circuit, rows, inputs).into_iter();
    let wanted = single.filter(|s| s.overflow().is_none() && is_wanted(&merged(&s.extent)));
    let cases = wanted.flat_map(|s| s.cases);
    cases.map(|case| if circuit.merged { case.merged(circuit) } else { case }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_those_of_most_values() {
        let furthest = [(1.0, 7), (2.0, 3), (0.5, 7), (9.0, 4)];
        assert_eq!(extremes(&furthest), [7, 3, 4]);
    }
}
