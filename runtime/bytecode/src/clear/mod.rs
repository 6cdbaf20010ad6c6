//! A clear interpreter: runs a program on slots of plain numbers.
//!
//! Same registers and instructions as the encrypted evaluation, without noise: the oracle of the tests. A
//! [`Hook`] sees every result before it is stored, with its level and scale, and may disturb it: that is how
//! a simulation adds the noise model. Linear maps run straight over tensor coordinates, which gives what
//! their diagonals give at a fraction of the work.

mod linear;
pub mod rows;

use crate::check::{CheckedProgram, Fact, Step};
use crate::ids::{CtRange, MapId};
use crate::noise::Row;
use crate::program::{Numbers, Op, Pair};
use linear::ClearMap;

/// A result as a hook sees it.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Index of the instruction.
    pub instruction: usize,
    /// The instruction.
    pub op: &'a Op,
    /// Layout, level and scale of the result.
    pub fact: &'a Fact,
}

/// Sees, and may change, every result of an instruction: one vector of slots per ciphertext.
pub trait Hook {
    /// Called once per defining instruction.
    fn result(&mut self, event: Event<'_>, cts: &mut [Vec<f64>]);
}

/// Changes nothing.
impl Hook for () {
    fn result(&mut self, _: Event<'_>, _: &mut [Vec<f64>]) {}
}

/// The wrong number of input values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input of {found} values, the program takes {needed}")]
pub struct InputError {
    /// Values given.
    pub found: usize,
    /// Values of the input shape.
    pub needed: usize,
}

/// A program made ready for many evaluations in the clear.
#[derive(Debug)]
pub struct ClearProgram<'a> {
    program: &'a CheckedProgram,
    maps: Vec<ClearMap>,
    /// Slot vectors of the plain constants, by instruction.
    plains: Vec<Option<Vec<Vec<f64>>>>,
}

impl<'a> ClearProgram<'a> {
    /// Resolves weights and constants once.
    ///
    /// # Panics
    /// Never for a program that passed the checker, which made the same look-ups.
    pub fn new(program: &'a CheckedProgram) -> Self {
        let spec = program.spec();
        let maps = spec.maps.iter().map(|map| ClearMap::new(map, program)).collect();
        let plain = |step: Step<'_>| match step.op().numbers() {
            Numbers::WithConstant(tensor, _) => {
                let layout = step.sources[0].layout;
                Some(program.plain(tensor, layout).expect("the checker resolved this constant"))
            }
            Numbers::Input
            | Numbers::Map(_)
            | Numbers::Times(_)
            | Numbers::Pairs(_)
            | Numbers::Output
            | Numbers::Free => None,
        };
        let plains = program.steps().map(plain).collect();
        Self { program, maps, plains }
    }

    /// The program.
    pub fn program(&self) -> &'a CheckedProgram {
        self.program
    }

    /// The constant that an instruction adds or multiplies by, in slots; nothing where it has none.
    pub fn constant(&self, instruction: usize) -> &[Vec<f64>] {
        self.plains.get(instruction).and_then(Option::as_deref).unwrap_or_default()
    }

    /// What every number of a map's result is computed from, term by term, if the numbers of its operands have these mean
    /// squares.
    pub fn rows(&self, map: MapId, squares: &[&[f64]]) -> Vec<Vec<Row>> {
        self.maps[map.index()].rows(squares)
    }

    /// Variances of the numbers of a map's operands, carried to every number of its result, term by term.
    pub fn carried(&self, map: MapId, variances: &[&[f64]]) -> Vec<Vec<f64>> {
        self.maps[map.index()].carried(variances)
    }

    /// Evaluates one input, in (channel, y, x) order, already preprocessed; every member gets it. The result
    /// is in (member, channel, y, x) order. A batch is so many inputs one after the other, and so are its results.
    ///
    /// # Errors
    /// When the input has the wrong number of values.
    pub fn run(&self, input: &[f64], hook: &mut dyn Hook) -> Result<Vec<f64>, InputError> {
        let (layout, batch) = (self.program.input_layout(), self.program.batch());
        let needed = batch * layout.shape().len();
        if input.len() != needed {
            return Err(InputError { found: input.len(), needed });
        }
        let mut machine = Machine { clear: self, registers: Vec::new(), output: Vec::new() };
        let mut fresh = Some(layout.scatter_batch(input, batch));
        for step in self.program.steps() {
            let result = machine.step(step.index, step.op(), &mut fresh);
            if let (Some(mut cts), Some(dst), Some(fact)) = (result, step.op().dst(), step.result) {
                hook.result(Event { instruction: step.index, op: step.op(), fact }, &mut cts);
                machine.store(dst, cts);
            }
        }
        Ok(machine.output)
    }
}

struct Machine<'a> {
    clear: &'a ClearProgram<'a>,
    registers: Vec<Vec<f64>>,
    output: Vec<f64>,
}

impl Machine<'_> {
    fn step(&mut self, index: usize, op: &Op, fresh: &mut Option<Vec<Vec<f64>>>) -> Option<Vec<Vec<f64>>> {
        let sources = op.sources();
        let [first, last] = [sources.first(), sources.last()].map(|range| self.read(range.copied()));
        match op.numbers() {
            Numbers::Input => fresh.take(),
            Numbers::Map(map) => {
                let inputs: Vec<&[Vec<f64>]> = sources.iter().map(|range| self.read(Some(*range))).collect();
                let map = &self.clear.maps[map.index()];
                Some(map.lanes(&inputs).into_iter().flat_map(|lane| map.apply(&lane)).collect())
            }
            Numbers::Times(factor) => {
                Some(first.iter().map(|ct| ct.iter().map(|v| v * factor).collect()).collect())
            }
            Numbers::Pairs(pair) => Some(paired(first, last, pair)),
            Numbers::WithConstant(_, pair) => Some(paired(first, self.clear.plains[index].as_ref()?, pair)),
            Numbers::Output => {
                self.output =
                    self.clear.program.output_layout().gather_batch(first, self.clear.program.batch());
                self.free(&sources);
                None
            }
            Numbers::Free => {
                self.free(&sources);
                None
            }
        }
    }

    /// What a run of registers holds; nothing where there is no run.
    fn read(&self, range: Option<CtRange>) -> &[Vec<f64>] {
        range.map_or(&[], |range| &self.registers[range.first.index()..range.first.index() + range.len()])
    }

    fn store(&mut self, range: CtRange, cts: Vec<Vec<f64>>) {
        let end = range.first.index() + range.len();
        if self.registers.len() < end {
            self.registers.resize(end, Vec::new());
        }
        for (register, ct) in range.iter().zip(cts) {
            self.registers[register.index()] = ct;
        }
    }

    fn free(&mut self, runs: &[CtRange]) {
        let registers = runs.iter().flat_map(|run| run.iter());
        registers.for_each(|register| self.registers[register.index()] = Vec::new());
    }
}

fn paired(a: &[Vec<f64>], b: &[Vec<f64>], pair: Pair) -> Vec<Vec<f64>> {
    match pair {
        Pair::Sum => zip(a, b, |x, y| x + y),
        Pair::Difference => zip(a, b, |x, y| x - y),
        Pair::Product => zip(a, b, |x, y| x * y),
    }
}

fn zip(a: &[Vec<f64>], b: &[Vec<f64>], f: impl Fn(f64, f64) -> f64) -> Vec<Vec<f64>> {
    // A constant is that of every lane.
    a.iter().zip(b.iter().cycle()).map(|(a, b)| a.iter().zip(b).map(|(&x, &y)| f(x, y)).collect()).collect()
}

#[cfg(test)]
mod tests;
