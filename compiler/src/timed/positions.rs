//! Positions: the multiplications of a circuit in their order, and the rescales between them (paper §4.3).
//!
//! With l sublevels a rescale follows the last position and every l-th before it, so the number of levels is ⌈depth / l⌉.
//! A level whose stretch would take more bits than are worth one rescale may have further rescales inside. That rule is
//! applied here and nowhere else: what follows is looked up, position by position.

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

impl std::fmt::Display for Rung {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// What is true of every value at a position, after its rescale if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Levels still to come.
    pub(super) level: u32,
    /// Which multiplication of its level comes next, from one.
    pub(super) sublevel: u32,
    /// Rescales still to come.
    pub(super) rung: Rung,
}

/// The positions of a circuit.
#[derive(Clone, Debug, PartialEq)]
pub struct Positions {
    /// Kind of the multiplications at positions 1, 2, ….
    steps: Vec<Step>,
    sublevels: u32,
    /// Levels and rescales after each position, from position 0 on.
    marks: Vec<Mark>,
}

impl Positions {
    /// Positions with these multiplications, `sublevels` of them per level.
    pub(super) fn new(steps: Vec<Step>, sublevels: u32) -> Self {
        let positions = Self { steps, sublevels, marks: Vec::new() };
        positions.with_rescales(|_| false)
    }

    /// The same positions with a rescale at the end of every level and wherever else it is asked for.
    fn with_rescales(mut self, inside: impl Fn(u32) -> bool) -> Self {
        let (mut level, mut rung) = (0, 0);
        let mut marks: Vec<Mark> = Vec::with_capacity(self.steps.len() + 1);
        for position in (0..=self.depth()).rev() {
            marks.push(Mark { level, sublevel: 1, rung: Rung(rung) });
            let ends = self.ends_level(position);
            level += u32::from(ends);
            rung += u16::from(ends || (position > 0 && inside(position)));
        }
        marks.reverse();
        for position in 1..marks.len() {
            if marks[position].level == marks[position - 1].level {
                marks[position].sublevel = marks[position - 1].sublevel + 1;
            }
        }
        self.marks = marks;
        self
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

    /// Kind of the multiplications at a position from 1 on.
    #[must_use]
    pub fn step(&self, position: u32) -> Step {
        self.steps[position as usize - 1]
    }

    /// Whether a level ends with the multiplication at this position.
    fn ends_level(&self, position: u32) -> bool {
        let left = self.depth() - position;
        position > 0 && (left == 0 || left.is_multiple_of(self.sublevels))
    }

    /// Whether values are rescaled after the multiplication at this position.
    #[must_use]
    pub fn is_boundary(&self, position: u32) -> bool {
        position > 0 && self.rung(position - 1) > self.rung(position)
    }

    /// What is true of every value at a position.
    pub(super) fn mark(&self, position: u32) -> Mark {
        self.marks[position as usize]
    }

    /// Level of a value at a position, after its rescale if there is one.
    #[must_use]
    pub fn level(&self, position: u32) -> u32 {
        self.mark(position).level
    }

    /// Rescales still to come for a value at a position, after its own if there is one.
    #[must_use]
    pub fn rung(&self, position: u32) -> Rung {
        self.mark(position).rung
    }

    /// Rescales still to come when the multiplication of a position happens.
    #[must_use]
    pub fn working_rung(&self, position: u32) -> Rung {
        self.rung(position.saturating_sub(1))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Positions of a chain of multiplications, `p` for products and `l` for linear maps.
    pub(crate) fn chain(kinds: &str, sublevels: u32) -> Positions {
        let steps = kinds.chars().map(|c| if c == 'p' { Step::Product } else { Step::Linear }).collect();
        Positions::new(steps, sublevels)
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
        let positions = chain("lplplpl", 3);
        for position in 0..=7 {
            let to_come = (position + 1..=7).filter(|&p| positions.is_boundary(p)).count() as u32;
            assert_eq!(positions.level(position), to_come, "at {position}");
            assert_eq!(u32::from(positions.rung(position).0), to_come, "at {position}");
        }
    }

    #[test]
    fn rescales_inside_levels_are_no_levels() {
        let positions = chain("lpplpp", 2).rescaled_before_products(|step| step == Step::Product);
        assert_eq!((positions.n_levels(), positions.n_rescales()), (3, 4));
        let boundaries: Vec<u32> = (0..=6).filter(|&p| positions.is_boundary(p)).collect();
        assert_eq!(boundaries, [2, 4, 5, 6]);
    }

    #[test]
    fn labels_count_sublevels_from_one() {
        let positions = chain("lplpl", 2);
        let label = |p| format!("L{}.{}", positions.mark(p).level, positions.mark(p).sublevel);
        let labels: Vec<String> = (0..=5).map(label).collect();
        assert_eq!(labels, ["L3.1", "L2.1", "L2.2", "L1.1", "L1.2", "L0.1"]);
    }
}
