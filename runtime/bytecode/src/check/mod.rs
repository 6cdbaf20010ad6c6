//! The checker: replays a program before anybody runs it.
//!
//! It knows nothing of how a schedule was found and shares no code with the scheduler. What holds after it:
//!
//! 1. the parameters, layouts, constants, linear maps and plans are well formed and fit each other;
//! 2. every source register is defined, every destination free, and nothing is left at the end;
//! 3. runs of registers have the length of their layout, or of several lanes of it, and tensors meet only in equal layouts;
//! 4. levels: operands agree, no rescale below level 0, no drop upwards, the input starts within the chain;
//! 5. scales: sums agree, plaintext scales are at least one, and every scale is at least one and within the modulus; no constant
//!    leaves the range of doubles at the scale that it is encoded at;
//! 6. values of a layer whose peak is known stay below half the modulus, with 1.5 bits to spare; ranges are ordered;
//! 7. every rotation, relinearization and conjugation has a key of sufficient level, and every key is used;
//! 8. there is one input, before everything that reads, and one output, with nothing after it but frees.
//!
//! Errors are collected, each with the instruction it belongs to. The work is in proportion to the program's size
//! ([`budget`]), and no memory grows with its maps before everything else holds.
// Numbers come from files: none may lose a part of itself.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod budget;
mod error;
mod header;
mod interface;
mod keys;
mod outline;
mod registers;
mod replay;
mod steps;

use crate::constants::Values;
use crate::ids::{LayoutId, MapId, TensorId};
use crate::layout::{Layout, LayoutSpec};
use crate::linear::Diagonals;
use crate::params::{Fingerprint, Level, Params};
use crate::plan::ExpandedPlan;
use crate::program::{Prediction, ProgramSpec, batch};
use crate::scale::Scale;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use budget::Budget;
use outline::Outline;

pub use error::{CheckError, CheckErrors, Place};
pub(crate) use interface::check_interface;
pub use keys::Keys;
pub use replay::Fact;
pub use steps::Step;
use steps::Trace;

/// Errors after which the checker stops looking for more.
const MAX_ERRORS: usize = 64;

/// A linear map with its diagonals and its plan written out.
#[derive(Clone, Debug)]
pub struct CheckedMap {
    /// The diagonals.
    pub diagonals: Diagonals,
    /// What an executor walks through.
    pub plan: ExpandedPlan,
    /// Pairs of polynomials that an executor holds at most, digits aside.
    working_pairs: usize,
}

/// What a compiler expects of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expectation {
    /// Of the whole.
    pub prediction: Prediction,
    /// Seconds of every layer on one core.
    pub layer_seconds: Vec<f64>,
}

/// A program that passed the checker. Clones share what is large.
#[derive(Clone, Debug)]
pub struct CheckedProgram {
    spec: Arc<ProgramSpec>,
    params: Params,
    layouts: Vec<Layout>,
    maps: Arc<[CheckedMap]>,
    trace: Trace,
    /// Live and working bytes of every instruction.
    memory: Vec<(u64, u64)>,
    output: Fact,
    /// Of the file, once it is known.
    pub(crate) fingerprint: OnceLock<Fingerprint>,
}

impl CheckedProgram {
    /// Checks a program.
    ///
    /// # Errors
    /// Everything that does not hold, with its place.
    pub fn new(spec: ProgramSpec) -> Result<Self, CheckErrors> {
        let parts = Parts::new(&spec)?;
        let replayed = replay::replay(&spec, &parts)?;
        keys::check_keys(&spec, &replayed.keys)?;
        // Nothing can be refused any more: now the diagonals may take the memory that they take.
        let Parts { params, layouts, .. } = parts;
        let mut errors = Vec::new();
        let built = in_parallel(&spec.maps, |map| outline::checked_map(map, &layouts, &spec));
        let maps = sorted_out(built, Place::Map, &mut errors);
        if !errors.is_empty() {
            return Err(CheckErrors::new(errors));
        }
        let memory = steps::memory(&spec, &params, &maps, &replayed.trace);
        let (trace, output) = (replayed.trace, replayed.output);
        let (spec, maps) = (Arc::new(spec), maps.into());
        Ok(Self { spec, params, layouts, maps, trace, memory, output, fingerprint: OnceLock::new() })
    }

    /// Checks a program and states what its compiler expects of it, which may follow from what the checker found:
    /// levels, plans and bytes. What the program says about that itself is replaced.
    ///
    /// # Errors
    /// Everything that does not hold, with its place.
    pub fn with_prediction(
        spec: ProgramSpec,
        predict: impl FnOnce(&Self) -> Expectation,
    ) -> Result<Self, CheckErrors> {
        let checked = Self::new(spec)?;
        let Expectation { prediction, layer_seconds } = predict(&checked);
        let mut spec = Arc::unwrap_or_clone(checked.spec);
        spec.prediction = prediction;
        for (layer, seconds) in spec.layers.iter_mut().zip(layer_seconds) {
            layer.seconds = seconds;
        }
        Ok(Self { spec: Arc::new(spec), fingerprint: OnceLock::new(), ..checked })
    }

    /// The program with a larger error that no result is expected to exceed.
    #[must_use]
    pub fn with_wider_bound(mut self, by: f64) -> Self {
        Arc::make_mut(&mut self.spec).prediction.max_abs_error += by;
        Self { fingerprint: OnceLock::new(), ..self }
    }

    /// The program with this as the error that no result is expected to exceed.
    #[must_use]
    pub fn with_bound(mut self, bound: f64) -> Self {
        Arc::make_mut(&mut self.spec).prediction.max_abs_error = bound;
        Self { fingerprint: OnceLock::new(), ..self }
    }

    /// The program as read from a file with this fingerprint.
    pub(crate) fn with_fingerprint(self, fingerprint: Fingerprint) -> Self {
        Self { fingerprint: OnceLock::from(fingerprint), ..self }
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

    /// Inputs that one evaluation takes, and results it gives; one unless the program was built for a batch.
    pub fn batch(&self) -> usize {
        batch(&self.spec.input.ports, self.input_layout().shape().len())
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
        self.trace.results.get(instruction).and_then(Option::as_ref)
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
/// [`ProgramSpec::relin_level`] and [`ProgramSpec::conjugation_level`] have to say. The keys that the program
/// already lists are ignored.
///
/// # Errors
/// Everything else that does not hold.
pub fn required_keys(spec: &ProgramSpec) -> Result<Keys, CheckErrors> {
    Ok(replay::replay(spec, &Parts::new(spec)?)?.keys)
}

/// The tables of a program, checked one by one.
struct Parts {
    params: Params,
    layouts: Vec<Layout>,
    maps: Vec<Outline>,
}

impl Parts {
    fn new(spec: &ProgramSpec) -> Result<Self, CheckErrors> {
        let params = Params::new(spec.params.clone())
            .map_err(|error| CheckErrors::new(vec![CheckError::at(Place::Header, error)]))?;
        let mut errors = Vec::new();
        let layouts = checked_layouts(&spec.layouts, &params, &mut errors);
        if let Err(error) = spec.constants.check() {
            errors.push(CheckError::at(Place::Constants, error));
        }
        let mut maps = Vec::new();
        if errors.is_empty() {
            let mut budget = Budget::of(spec);
            for (index, map) in spec.maps.iter().enumerate() {
                let steps = outline::steps(map, &layouts, spec);
                let charged = steps.and_then(|steps| budget.charge(steps).map_err(|e| e.to_string()));
                if let Err(error) = charged {
                    errors.push(CheckError::at(Place::Map(index), error));
                }
                if errors.len() >= MAX_ERRORS {
                    break;
                }
            }
        }
        if errors.is_empty() {
            let outlines = in_parallel(&spec.maps, |map| outline::outline(map, &layouts, spec));
            maps = sorted_out(outlines, Place::Map, &mut errors);
        }
        if errors.is_empty() { Ok(Self { params, layouts, maps }) } else { Err(CheckErrors::new(errors)) }
    }
}

/// The layouts that are well formed and of the ring's size.
fn checked_layouts(specs: &[LayoutSpec], params: &Params, errors: &mut Vec<CheckError>) -> Vec<Layout> {
    let checked = |layout: &LayoutSpec| {
        let layout = Layout::new(layout.clone()).map_err(|e| e.to_string())?;
        match layout.slots() == params.slots() {
            true => Ok(layout),
            false => Err(format!("{} slots in a ring of {}", layout.slots(), params.slots())),
        }
    };
    sorted_out(specs.iter().map(checked).collect(), Place::Layout, errors)
}

/// How often each value of a constant stands in a layout, if it fits there at all: once, for every coordinate of a channel, or
/// for all coordinates.
pub(crate) fn plain_repeat(
    members: usize,
    len: usize,
    shape: &[impl std::fmt::Debug],
    layout: &Layout,
) -> Result<usize, String> {
    let to = layout.shape();
    let repeat = match len {
        len if len == to.len() => 1,
        len if len == to.channels as usize => to.height as usize * to.width as usize,
        1 => to.len(),
        _ => return Err(format!("constant of shape {shape:?} does not fit {to}")),
    };
    if members != 1 && members != layout.members() {
        return Err(format!("constant of {members} members does not fit {}", layout.members()));
    }
    Ok(repeat)
}

/// A constant spread over the coordinates of a layout, in tensor order.
pub(crate) fn plain_tensor(values: &Values, layout: &Layout) -> Result<Vec<f64>, String> {
    let repeat = plain_repeat(values.members, values.len(), &values.shape, layout)?;
    let member = |m: usize| {
        let first = m * values.member_step();
        values.data[first..first + values.len()].iter().flat_map(move |&v| std::iter::repeat_n(v, repeat))
    };
    Ok((0..layout.members()).flat_map(member).collect())
}

/// The good results in order; the errors go to `errors` with their place.
fn sorted_out<T>(
    results: Vec<Result<T, String>>,
    place: impl Fn(usize) -> Place,
    errors: &mut Vec<CheckError>,
) -> Vec<T> {
    let mut good = Vec::with_capacity(results.len());
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Ok(item) => good.push(item),
            Err(error) if errors.len() < MAX_ERRORS => errors.push(CheckError::at(place(index), error)),
            Err(_) => {}
        }
    }
    good
}

/// Applies `check` to every item on all cores; the results are in order.
fn in_parallel<T: Sync, U: Send>(items: &[T], check: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return done };
            done.push((index, check(item)));
        }
    };
    let mut all: Vec<(usize, U)> = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..n_threads).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for helper in helpers {
            all.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod edge_tests;
#[cfg(test)]
mod tests;
