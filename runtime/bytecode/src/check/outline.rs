//! What the checker needs to know of a linear map, found without listing its diagonals.

use crate::ids::LayoutId;
use crate::layout::Layout;
use crate::linear::{Diagonals, Frame, Operand, Pairing, distinct_rotations, steps_of};
use crate::program::{LinearMap, ProgramSpec};
use crate::rotation::Rotation;

use super::CheckedMap;

/// A linear map whose plan fits its rotations.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    /// What the imaginary parts of its sums are.
    pub(super) pairing: Pairing,
    /// The distinct rotations that need a key, sorted.
    pub(super) rotations: Vec<Rotation>,
}

/// Steps of checking a map whose layouts go together.
pub(super) fn steps(map: &LinearMap, layouts: &[Layout], spec: &ProgramSpec) -> Result<u64, String> {
    let (terms, output) = operands(map, layouts)?;
    Frame::new(&terms, output, map.pairing).map_err(|e| e.to_string())?;
    steps_of(&terms, output, &spec.constants).map_err(|e| e.to_string())
}

/// Checks that a map is well formed and that its plan is one of its rotations.
pub(super) fn outline(map: &LinearMap, layouts: &[Layout], spec: &ProgramSpec) -> Result<Outline, String> {
    let (terms, output) = operands(map, layouts)?;
    let frame = Frame::new(&terms, output, map.pairing).map_err(|e| e.to_string())?;
    let found =
        distinct_rotations(&terms, output, map.pairing, &spec.constants).map_err(|e| e.to_string())?;
    map.plan.check(&found, frame.slots).map_err(|e| e.to_string())?;
    let end = frame.folds().into_iter().chain(frame.half_rotation());
    let rotations = map.plan.keyed(frame.period, end);
    Ok(Outline { pairing: map.pairing, rotations })
}

/// The diagonals and the plan of a map that has an outline.
pub(super) fn checked_map(
    map: &LinearMap,
    layouts: &[Layout],
    spec: &ProgramSpec,
) -> Result<CheckedMap, String> {
    let (terms, output) = operands(map, layouts)?;
    let diagonals =
        Diagonals::build(&terms, output, map.pairing, &spec.constants).map_err(|e| e.to_string())?;
    let plan = map.plan.expand(&diagonals).map_err(|e| e.to_string())?;
    let working_pairs = plan.working_pairs(0);
    Ok(CheckedMap { diagonals, plan, working_pairs })
}

fn operands<'a>(map: &'a LinearMap, layouts: &'a [Layout]) -> Result<(Vec<Operand<'a>>, &'a Layout), String> {
    let layout = |id: LayoutId| layouts.get(id.index()).ok_or(format!("layout {id} does not exist"));
    let terms = map.terms.iter().map(|term| Ok(Operand { op: &term.op, input: layout(term.input)? }));
    Ok((terms.collect::<Result<_, String>>()?, layout(map.output)?))
}
