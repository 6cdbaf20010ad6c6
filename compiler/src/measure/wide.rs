//! What all inputs say, where a few are enough for the means: how far values reach, what the results are, and which inputs lead
//! furthest.

use std::collections::BTreeMap;

use fhec_ir::MemberIdx;
use rayon::prelude::*;

use super::extent::Extent;
use super::stats::{Case, LARGEST, Overflow, Single, Stats};
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
        let extent = extent.unwrap_or_else(|| Extent::none(circuit.values.len()));
        Self { extent, results: combined(circuit, &results) }
    }
}

impl Stats {
    /// The same with the results and the largest numbers of all inputs, and with what an error does where these lead furthest.
    /// Gains and energies are means, for which few inputs do; a maximum needs every one.
    ///
    /// # Errors
    /// When the numbers of a value grow beyond all bounds for some input.
    pub(crate) fn widened(
        mut self,
        circuit: &Circuit,
        inputs: &dyn Inputs,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, Overflow> {
        // The input that leads furthest, value by value.
        let mut furthest: Vec<(f64, usize)> = vec![(0.0, 0); circuit.values.len()];
        for start in (0..inputs.len()).step_by(CHUNK) {
            let chunk = start..(start + CHUNK).min(inputs.len());
            let of_input = |index: usize| Seen::new(circuit, &inputs.input(index));
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
        self.cases.extend(cases(circuit, &extremes, |_| true));
        Ok(self)
    }

    /// The same for inputs that may have these numbers.
    pub(crate) fn with_input_range(mut self, circuit: &Circuit, range: [f64; 2]) -> Self {
        self.extent = self.extent.with_input(circuit, range);
        self
    }

    /// The same with what an error does to inputs unlike those measured on, if they give results like theirs: then nobody can
    /// tell, and the bound has to be for them too.
    pub(crate) fn covering(mut self, circuit: &Circuit, strays: &[Vec<f64>]) -> Self {
        let [low, high] = self.extent.output;
        let is_like = |extent: &Extent| extent.output[0] >= low && extent.output[1] <= high;
        self.strays = cases(circuit, strays, is_like);
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
fn cases(circuit: &Circuit, inputs: &[Vec<f64>], is_wanted: impl Fn(&Extent) -> bool) -> Vec<Case> {
    let merged = |extent: &Extent| match circuit.merged {
        true => extent.clone().merged(circuit),
        false => extent.clone(),
    };
    let single = Single::of_each(circuit, inputs).into_iter();
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
