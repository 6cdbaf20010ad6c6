//! Positions: how many multiplications lie before each value once the schedule is fixed (paper §4.3).
//!
//! Every value is computed as late as its readers allow, because later means fewer towers. With l sublevels a rescale
//! follows the last position and every l-th before it, so the number of levels is ⌈depth / l⌉. A level whose stretch would
//! take more bits than are worth one rescale may have further rescales inside.

use crate::lower::{Affine, Circuit, CircuitOp, Map, Term, Value, ValueId};

/// What the multiplications at a position are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Products with constants only, whose scale is free.
    Linear,
    /// At least one product of two encrypted values, whose scale is not.
    Product,
}

/// Number of rescales that a value still has before it, those inside levels included; counts down to 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rung(pub u16);

impl Rung {
    /// Position in a table of all rungs.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Where every value of a circuit is computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Positions {
    of_value: Vec<u32>,
    /// Kind of the multiplications at positions 1, 2, ….
    steps: Vec<Step>,
    sublevels: u32,
    /// Multiplications that the last level is short of.
    shift: u32,
    /// Rescales after each position, from position 0 on.
    rungs: Vec<Rung>,
}

impl Positions {
    /// Places the values of a circuit, with `sublevels` multiplications per level.
    #[must_use]
    pub fn new(circuit: &Circuit, sublevels: u32) -> Self {
        let of_value = latest(circuit);
        let depth = of_value.iter().copied().max().unwrap_or(0);
        let mut steps = vec![Step::Linear; depth as usize];
        for (value, &position) in circuit.values.iter().zip(&of_value) {
            if matches!(value.op, CircuitOp::Product(_)) {
                steps[position as usize - 1] = Step::Product;
            }
        }
        Self::made_of(of_value, steps, sublevels)
    }

    fn made_of(of_value: Vec<u32>, steps: Vec<Step>, sublevels: u32) -> Self {
        let positions = Self { of_value, steps, sublevels, shift: 0, rungs: Vec::new() };
        positions.with_rescales(|_| false)
    }

    /// The same positions with a rescale at the end of every level and wherever else it is asked for.
    fn with_rescales(mut self, inside: impl Fn(u32) -> bool) -> Self {
        let mut rung = 0;
        let mut rungs = vec![Rung(0); self.depth() as usize + 1];
        for position in (0..=self.depth()).rev() {
            rungs[position as usize] = Rung(rung);
            rung += u16::from(self.ends_level(position) || (position > 0 && inside(position)));
        }
        self.rungs = rungs;
        self
    }

    /// The same positions with the last level `shift` multiplications short, which moves all rescales: one level more at
    /// most, but stretches may begin with products instead of ending with them.
    #[must_use]
    pub fn shifted(&self, shift: u32) -> Self {
        Self { shift: shift % self.sublevels, ..self.clone() }.with_rescales(|_| false)
    }

    /// The same positions with a rescale before every product whose factors had a multiplication of this kind since their
    /// last rescale: the product squares what it finds, so the levels take fewer bits for one more rounding.
    #[must_use]
    pub fn rescaled_before_products(&self, after: impl Fn(Step) -> bool) -> Self {
        let rescales = |p: u32| p < self.depth() && self.step(p + 1) == Step::Product && after(self.step(p));
        self.clone().with_rescales(rescales)
    }

    /// Multiplications on the longest path.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.steps.len() as u32
    }

    /// Multiplications per level.
    #[must_use]
    pub fn sublevels(&self) -> u32 {
        self.sublevels
    }

    /// Levels on the longest path.
    #[must_use]
    pub fn n_levels(&self) -> u32 {
        self.level(0)
    }

    /// Rescales on the longest path.
    #[must_use]
    pub fn n_rescales(&self) -> u32 {
        u32::from(self.rung(0).0)
    }

    /// The position of a value.
    #[must_use]
    pub fn of(&self, id: ValueId) -> u32 {
        self.of_value[id.index()]
    }

    /// Kind of the multiplications at a position from 1 on.
    #[must_use]
    pub fn step(&self, position: u32) -> Step {
        self.steps[position as usize - 1]
    }

    /// Whether a level ends with the multiplication at this position.
    fn ends_level(&self, position: u32) -> bool {
        let left = self.depth() - position;
        position > 0 && (left == 0 || (left + self.shift).is_multiple_of(self.sublevels))
    }

    /// Whether values are rescaled after the multiplication at this position.
    #[must_use]
    pub fn is_boundary(&self, position: u32) -> bool {
        position > 0 && self.rung(position - 1) > self.rung(position)
    }

    /// Level of a value at a position, after its rescale if there is one.
    #[must_use]
    pub fn level(&self, position: u32) -> u32 {
        let left = self.depth() - position;
        let whole = (left + self.shift).div_ceil(self.sublevels);
        // The short last level counts once, and not for the output itself.
        if left == 0 { 0 } else { whole }
    }

    /// Rescales still to come for a value at a position, after its own if there is one.
    #[must_use]
    pub fn rung(&self, position: u32) -> Rung {
        self.rungs[position as usize]
    }

    /// Rescales still to come when the multiplication of a position happens.
    #[must_use]
    pub fn working_rung(&self, position: u32) -> Rung {
        self.rung(position.saturating_sub(1))
    }

    /// Level and sublevel of a position, as `L5.1`: the sublevel counts the multiplications since the last rescale, from one.
    #[must_use]
    pub fn label(&self, position: u32) -> String {
        let into = (0..=position).rev().take_while(|&p| p == position || !self.ends_level(p + 1)).count();
        let since = if self.ends_level(position) { 1 } else { into };
        format!("L{}.{since}", self.level(position))
    }

    /// Whether a summand reaches its sum without a multiplication: it is neither changed nor computed earlier.
    #[must_use]
    pub fn is_still(&self, term: &Term, sum: ValueId) -> bool {
        matches!(term.map, Map::Identity) && self.of(term.source) == self.of(sum)
    }
}

/// The circuit with both factors of every product at the position before it: a factor that is ready earlier is multiplied
/// by one on the way, in the slack of its path.
#[must_use]
pub fn with_lifted_factors(mut circuit: Circuit) -> Circuit {
    let positions = latest(&circuit);
    let values = std::mem::take(&mut circuit.values);
    let outputs = std::mem::take(&mut circuit.outputs);
    let mut lifted = circuit;
    let mut renamed: Vec<ValueId> = Vec::with_capacity(values.len());
    for (i, mut value) in values.into_iter().enumerate() {
        if let CircuitOp::Product(factors) = &value.op {
            let mut raised = *factors;
            for factor in &mut raised {
                let early = positions[factor.index()] + 1 < positions[i];
                *factor = renamed[factor.index()];
                if early {
                    let source = *factor;
                    let terms = vec![Term { source, map: Map::Identity }];
                    let op = CircuitOp::Affine(Affine { terms, bias: None });
                    *factor = lifted.push(Value { op, ..value.clone() });
                }
            }
            value.op = CircuitOp::Product(raised);
        } else {
            value.op.rename(|source| renamed[source.index()]);
        }
        renamed.push(lifted.push(value));
    }
    lifted.outputs = outputs.iter().map(|o| renamed[o.index()]).collect();
    lifted
}

/// The latest position of every value; inputs come first of all.
fn latest(circuit: &Circuit) -> Vec<u32> {
    let mut earliest = vec![0; circuit.values.len()];
    for id in circuit.ids() {
        let sources = circuit.value(id).op.sources_with_depth();
        earliest[id.index()] = sources.into_iter().map(|(s, d)| earliest[s.index()] + d).max().unwrap_or(0);
    }
    let depth = earliest.iter().copied().max().unwrap_or(0);
    let mut latest = vec![depth; circuit.values.len()];
    for id in circuit.ids().rev() {
        for (source, d) in circuit.value(id).op.sources_with_depth() {
            latest[source.index()] = latest[source.index()].min(latest[id.index()] - d);
        }
        if matches!(circuit.value(id).op, CircuitOp::Input) {
            latest[id.index()] = 0;
        }
    }
    latest
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Positions of a chain of multiplications, `p` for products and `l` for linear maps.
    pub(crate) fn chain(kinds: &str, sublevels: u32) -> Positions {
        let steps = kinds.chars().map(|c| if c == 'p' { Step::Product } else { Step::Linear }).collect();
        Positions::made_of(Vec::new(), steps, sublevels)
    }

    #[test]
    fn levels_are_depth_over_sublevels_rounded_up() {
        for (depth, sublevels, levels) in
            [(39, 2, 20), (31, 2, 16), (35, 2, 18), (63, 2, 32), (39, 1, 39), (7, 3, 3)]
        {
            let positions = chain(&"l".repeat(depth), sublevels);
            assert_eq!(positions.n_levels(), levels, "depth {depth} sublevels {sublevels}");
        }
    }

    #[test]
    fn level_counts_the_rescales_still_to_come() {
        for shift in 0..3 {
            let positions = chain("lplplpl", 3).shifted(shift);
            for position in 0..=7 {
                let to_come = (position + 1..=7).filter(|&p| positions.is_boundary(p)).count() as u32;
                assert_eq!(positions.level(position), to_come, "shift {shift} at {position}");
                assert_eq!(u32::from(positions.rung(position).0), to_come, "shift {shift} at {position}");
            }
        }
    }

    #[test]
    fn rescales_inside_levels_are_no_levels() {
        let positions = chain("lpplpp", 2).rescaled_before_products(|step| step == Step::Product);
        assert_eq!((positions.n_levels(), positions.n_rescales()), (3, 4));
        let boundaries: Vec<u32> = (0..=6).filter(|&p| positions.is_boundary(p)).collect();
        assert_eq!(boundaries, [2, 4, 5, 6]);
        assert_eq!(positions.shifted(0).n_rescales(), 3);
    }

    #[test]
    fn labels_count_sublevels_from_one() {
        let positions = chain("lplpl", 2);
        let labels: Vec<String> = (0..=5).map(|p| positions.label(p)).collect();
        assert_eq!(labels, ["L3.1", "L2.1", "L2.2", "L1.1", "L1.2", "L0.1"]);
    }
}
