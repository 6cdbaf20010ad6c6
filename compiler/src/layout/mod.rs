//! The placed circuit: where the values of a timed circuit live, and what its maps are there.
//!
//! What holds ([`Placed::judge`]):
//!
//! 1. every value has a layout of its extent, and all layouts have one number of slots;
//! 2. factors share the layout of their product, and summands that are added as they are that of their sum;
//! 3. the multiplied summands of a sum are exactly those that the timed circuit multiplies, each in one part;
//! 4. a map has diagonals for the ciphertexts of its operands and of its value, and every constant is in the table.
//!
//! Layouts know times (a summand that is ready is added as it is) and nothing of what comes later.
//!
//! Values that meet without a rotation (factors of a product, summands that are not moved) share a layout. Such a family
//! takes the layout that its first value gets from the operand of its first map: the same slot grid with a wider gap after
//! a stride, or a dense one where the grid is too small or the result is a vector.

mod judge;
mod place;
mod text;

use fhe_bytecode::{Derived, Layout, LayoutError, Packing, Shape};

use crate::lower::{Circuit, CircuitOp, Conv, Map, ValueId};

pub(crate) use place::MOST_EXACT;
pub use place::{Acting, Part, Placed, PlacedMap, PlacedTerm, PlacedValue};
pub(crate) use text::{end_lines, map_line, part_line};

/// The layout of every value. With clustered weights, `hw` layouts keep rows free so that kernel rows share plaintexts.
///
/// # Errors
/// When one channel of a value does not fit one ciphertext.
pub fn assign(circuit: &Circuit, packing: Packing, slots: u32) -> Result<Vec<Layout>, LayoutError> {
    let members = vec![circuit.n_members as u32; circuit.values.len()];
    with_members(circuit, packing, slots, &members, &|layout| Ok(layout))
}

/// The layout of every value of a batch: where a value leaves slots free, several inputs, `most` at most, share its ciphertexts
/// as members do, and no later value has fewer of them, so that they only ever come together.
///
/// # Errors
/// When one channel of a value does not fit one ciphertext.
pub fn assign_batch(
    circuit: &Circuit,
    packing: Packing,
    slots: u32,
    most: u32,
) -> Result<Vec<Layout>, LayoutError> {
    let alone = assign(circuit, packing, slots)?;
    let room = |layout: &Layout| match layout.n_cts() == 1 || packing == Packing::Hw {
        true => most.min(slots / layout.period() as u32),
        false => 1,
    };
    let families = families(circuit);
    let mut members: Vec<u32> = alone.iter().map(room).collect();
    loop {
        let before = members.clone();
        for id in circuit.ids().rev() {
            let mut lower = |of: ValueId, to: u32| members[of.index()] = to.min(members[of.index()]);
            let (own, family) = (before[id.index()], families[id.index()]);
            lower(family, own);
            lower(id, before[family.index()]);
            circuit.value(id).op.sources().into_iter().for_each(|source| lower(source, own));
        }
        if members == before {
            // A rotation between channel blocks then wraps around the period for all members at once.
            return with_members(circuit, packing, slots, &members, &|layout| layout.interleaved());
        }
    }
}

/// The layout of every value with so many members.
fn with_members(
    circuit: &Circuit,
    packing: Packing,
    slots: u32,
    members: &[u32],
    arranged: &dyn Fn(Layout) -> Result<Layout, LayoutError>,
) -> Result<Vec<Layout>, LayoutError> {
    let families = families(circuit);
    let guards = packing == Packing::Hw && circuit.is_clustered();
    let mut layouts: Vec<Option<Layout>> = vec![None; circuit.values.len()];
    for id in circuit.ids() {
        let (family, members) = (families[id.index()], members[id.index()]);
        if layouts[family.index()].is_none() {
            let layout = match first_map(circuit, id) {
                None if guards => Layout::guarded(shape(circuit.value(id).shape), members, slots)?,
                None => Layout::fresh(packing, shape(circuit.value(id).shape), members, slots)?,
                Some((source, conv)) => {
                    let from =
                        layouts[families[source.index()].index()].as_ref().expect("operands come first");
                    let merged = circuit.merged && circuit.outputs.contains(&id);
                    derived(from, conv, packing, guards, if merged { 1 } else { members }, slots)?
                }
            };
            layouts[family.index()] = Some(arranged(layout)?);
        }
    }
    let of = |id: ValueId| layouts[families[id.index()].index()].clone().expect("every family has a layout");
    Ok(circuit.ids().map(of).collect())
}

/// The extents of a circuit value as a program states them.
#[must_use]
pub fn shape(shape: fhec_ir::Shape) -> Shape {
    Shape::new(shape.c as u32, shape.h as u32, shape.w as u32)
}

fn derived(
    from: &Layout,
    conv: &Conv,
    packing: Packing,
    guards: bool,
    members: u32,
    slots: u32,
) -> Result<Layout, LayoutError> {
    if conv.output.is_vector() {
        return Layout::vector(packing, conv.output.c as u32, members, slots);
    }
    let stride = conv.stride.map(|s| s as u32);
    match from.after_with(packing, shape(conv.output), stride, members)? {
        (_, Derived::Fresh) if guards => Layout::guarded(shape(conv.output), members, slots),
        (layout, _) => Ok(layout),
    }
}

/// The first convolution that makes a value.
fn first_map(circuit: &Circuit, id: ValueId) -> Option<(ValueId, &Conv)> {
    let CircuitOp::Affine(affine) = &circuit.value(id).op else { return None };
    affine.terms.iter().find_map(|t| match &t.map {
        Map::Conv(conv) => Some((t.source, conv)),
        Map::Identity | Map::Diagonal(_) => None,
    })
}

/// For every value the first value of its family.
fn families(circuit: &Circuit) -> Vec<ValueId> {
    let mut parent: Vec<ValueId> = circuit.ids().collect();
    for id in circuit.ids() {
        let sources = match &circuit.value(id).op {
            CircuitOp::Input => Vec::new(),
            CircuitOp::Product(factors) => factors.to_vec(),
            CircuitOp::Affine(affine) => {
                let still = affine.terms.iter().filter(|t| !matches!(t.map, Map::Conv(_)));
                still.map(|t| t.source).collect()
            }
        };
        for source in sources {
            let (a, b) = (root(&parent, id), root(&parent, source));
            parent[a.max(b).index()] = a.min(b);
        }
    }
    circuit.ids().map(|id| root(&parent, id)).collect()
}

fn root(parent: &[ValueId], mut id: ValueId) -> ValueId {
    while parent[id.index()] != id {
        id = parent[id.index()];
    }
    id
}
