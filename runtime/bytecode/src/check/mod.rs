//! The checker: replays a program before anybody runs it.
//!
//! It knows nothing of how a schedule was found and shares no code with the scheduler. What holds after it:
//!
//! 1. the parameters, layouts, constants, linear maps and plans are well formed and fit each other;
//! 2. every source register is defined, every destination free, and nothing is left at the end;
//! 3. runs of registers have the length of their layout, and tensors meet only in equal layouts;
//! 4. levels: operands agree, no rescale below level 0, no drop upwards, the input starts within the chain;
//! 5. scales: sums agree, plaintext scales are at least one, and every scale stays within the modulus;
//! 6. every rotation, relinearization and conjugation has a key of sufficient level, and every key is used;
//! 7. there is one input, before everything that reads, and one output, with nothing after it but frees.
//!
//! Errors are collected, each with the instruction it belongs to.

mod error;
mod header;
mod keys;
mod replay;

use crate::constants::Values;
use crate::ids::{LayoutId, MapId, TensorId};
use crate::layout::Layout;
use crate::linear::{Diagonals, Operand};
use crate::params::{Level, Params};
use crate::plan::ExpandedPlan;
use crate::program::{LinearMap, Prediction, ProgramSpec};
use crate::scale::Scale;

pub use error::{CheckError, CheckErrors, Place};
pub use keys::Keys;
pub use replay::Fact;

/// A linear map with its diagonals and its plan written out.
#[derive(Clone, Debug)]
pub struct CheckedMap {
    /// The diagonals.
    pub diagonals: Diagonals,
    /// What an executor walks through.
    pub plan: ExpandedPlan,
}

/// A program that passed the checker.
#[derive(Clone, Debug)]
pub struct CheckedProgram {
    spec: ProgramSpec,
    params: Params,
    layouts: Vec<Layout>,
    maps: Vec<CheckedMap>,
    facts: Vec<Option<Fact>>,
    output: Fact,
}

impl CheckedProgram {
    /// Checks a program.
    ///
    /// # Errors
    /// Everything that does not hold, with its place.
    pub fn new(spec: ProgramSpec) -> Result<Self, CheckErrors> {
        let Parts { params, layouts, maps } = Parts::new(&spec)?;
        let replayed = replay::replay(&spec, &params, &layouts, &maps)?;
        keys::check_keys(&spec, &replayed.keys)?;
        Ok(Self { spec, params, layouts, maps, facts: replayed.facts, output: replayed.output })
    }

    /// Notes what the compiler expects, which the checker has no opinion about: the whole, and seconds and error
    /// of every layer.
    pub fn set_predictions(&mut self, prediction: Prediction, layers: &[(f64, f64)]) {
        self.spec.prediction = prediction;
        for (layer, (seconds, error)) in self.spec.layers.iter_mut().zip(layers) {
            (layer.seconds, layer.error) = (*seconds, *error);
        }
    }

    /// The program itself.
    pub fn spec(&self) -> &ProgramSpec {
        &self.spec
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// A layout.
    ///
    /// # Panics
    /// When the id is not one of this program's.
    pub fn layout(&self, id: LayoutId) -> &Layout {
        &self.layouts[id.index()]
    }

    /// Layout of the input.
    pub fn input_layout(&self) -> &Layout {
        self.layout(self.spec.input.layout)
    }

    /// Layout of the output.
    pub fn output_layout(&self) -> &Layout {
        self.layout(self.spec.output.layout)
    }

    /// A linear map with diagonals and plan.
    ///
    /// # Panics
    /// When the id is not one of this program's.
    pub fn map(&self, id: MapId) -> &CheckedMap {
        &self.maps[id.index()]
    }

    /// Layout, level and scale of what an instruction defines.
    pub fn fact(&self, instruction: usize) -> Option<&Fact> {
        self.facts.get(instruction).and_then(Option::as_ref)
    }

    /// Level of the output.
    pub fn output_level(&self) -> Level {
        self.output.level
    }

    /// Scale of the output.
    pub fn output_scale(&self) -> Scale {
        self.output.scale
    }

    /// The slot vectors of a plain constant, one per ciphertext of `layout`, replicas included.
    ///
    /// # Errors
    /// When the tensor is missing or fits neither channels nor coordinates nor a single value.
    pub fn plain(&self, tensor: TensorId, layout: LayoutId) -> Result<Vec<Vec<f64>>, String> {
        let values = self.spec.constants.values(tensor).map_err(|e| e.to_string())?;
        let layout = self.layout(layout);
        plain_tensor(&values, layout).map(|tensor| layout.scatter(&tensor))
    }
}

/// The keys that the instructions of a program use: what [`ProgramSpec::rotation_keys`],
/// [`ProgramSpec::relin_level`] and [`ProgramSpec::conjugation_level`] have to say. The keys that the program already lists are ignored.
///
/// # Errors
/// Everything else that does not hold.
pub fn required_keys(spec: &ProgramSpec) -> Result<Keys, CheckErrors> {
    let Parts { params, layouts, maps } = Parts::new(spec)?;
    Ok(replay::replay(spec, &params, &layouts, &maps)?.keys)
}

/// The tables of a program, checked one by one.
struct Parts {
    params: Params,
    layouts: Vec<Layout>,
    maps: Vec<CheckedMap>,
}

impl Parts {
    fn new(spec: &ProgramSpec) -> Result<Self, CheckErrors> {
        let params = Params::new(spec.params.clone())
            .map_err(|error| CheckErrors::new(vec![CheckError::at(Place::Header, error)]))?;
        let mut errors = Vec::new();
        let layouts = collect(&spec.layouts, Place::Layout, &mut errors, |layout| {
            let layout = Layout::new(layout.clone()).map_err(|e| e.to_string())?;
            match layout.slots() == params.slots() {
                true => Ok(layout),
                false => Err(format!("{} slots in a ring of {}", layout.slots(), params.slots())),
            }
        });
        if let Err(error) = spec.constants.check() {
            errors.push(CheckError::at(Place::Constants, error));
        }
        if errors.is_empty() {
            let maps = collect(&spec.maps, Place::Map, &mut errors, |map| checked_map(map, &layouts, spec));
            if errors.is_empty() {
                return Ok(Self { params, layouts, maps });
            }
        }
        Err(CheckErrors::new(errors))
    }
}

fn checked_map(map: &LinearMap, layouts: &[Layout], spec: &ProgramSpec) -> Result<CheckedMap, String> {
    let layout = |id: LayoutId| layouts.get(id.index()).ok_or(format!("layout {id} does not exist"));
    let terms: Vec<Operand<'_>> = map
        .terms
        .iter()
        .map(|term| Ok(Operand { op: &term.op, input: layout(term.input)? }))
        .collect::<Result<_, String>>()?;
    let diagonals = Diagonals::build(&terms, layout(map.output)?, map.pairing, &spec.constants)
        .map_err(|e| e.to_string())?;
    let plan = map.plan.expand(&diagonals).map_err(|e| e.to_string())?;
    Ok(CheckedMap { diagonals, plan })
}

/// A constant spread over the coordinates of a layout, in tensor order.
pub(crate) fn plain_tensor(values: &Values, layout: &Layout) -> Result<Vec<f64>, String> {
    let shape = layout.shape();
    let (members, area) = (layout.members(), shape.height as usize * shape.width as usize);
    let repeat = match values.len() {
        len if len == shape.len() => 1,
        len if len == shape.channels as usize => area,
        1 => shape.len(),
        _ => return Err(format!("constant of shape {:?} does not fit {shape}", values.shape)),
    };
    if values.members != 1 && values.members != members {
        return Err(format!("constant of {} members does not fit {members}", values.members));
    }
    let member = |m: usize| {
        let first = m * values.member_step();
        values.data[first..first + values.len()].iter().flat_map(move |&v| std::iter::repeat_n(v, repeat))
    };
    Ok((0..members).flat_map(member).collect())
}

fn collect<T, U>(
    items: &[T],
    place: impl Fn(usize) -> Place,
    errors: &mut Vec<CheckError>,
    check: impl Fn(&T) -> Result<U, String>,
) -> Vec<U> {
    let mut checked = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match check(item) {
            Ok(item) => checked.push(item),
            Err(error) => errors.push(CheckError::at(place(index), error)),
        }
    }
    checked
}

#[cfg(test)]
mod tests;
