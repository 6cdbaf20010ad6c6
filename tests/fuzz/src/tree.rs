//! Random changes of structured data, as a tree of JSON values.

use fhec_tests::models::random::Random;
use serde_json::{Number, Value};

use crate::mutate::extreme;

/// One to three random changes somewhere in `tree`.
pub fn change(tree: &mut Value, random: &mut Random) {
    for _ in 0..=random.below(3) {
        walk(tree, random);
    }
}

/// Fields that say how large something is or how often it happens.
const SIZES: [&str; 33] = [
    "channels",
    "height",
    "width",
    "members",
    "slots",
    "gap",
    "phases",
    "blocks",
    "row_stride",
    "block_stride",
    "member_stride",
    "period",
    "kernel",
    "stride",
    "pads",
    "pad",
    "dilation",
    "groups",
    "log_n",
    "digit_size",
    "start",
    "step",
    "rows",
    "columns",
    "count",
    "level",
    "levels",
    "digits",
    "dims",
    "offset",
    "length",
    "inner",
    "classes",
];
/// Sizes around those of real programs, and far beyond them.
const EXTENTS: [u64; 24] = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    15,
    16,
    17,
    31,
    32,
    64,
    128,
    256,
    512,
    1024,
    4096,
    16384,
    32768,
    65535,
    65536,
    1 << 20,
    1 << 31,
];

/// Changes one or more fields that are sizes: shapes, members, kernels, strides, counts.
pub fn resize(tree: &mut Value, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let mut sizes = Vec::new();
        collect_sizes(tree, false, &mut sizes);
        if sizes.is_empty() {
            return;
        }
        let at = random.below(sizes.len());
        *sizes[at] = Value::from(EXTENTS[random.below(EXTENTS.len())]);
    }
}

/// The integers below fields that are sizes.
fn collect_sizes<'t>(value: &'t mut Value, is_size: bool, found: &mut Vec<&'t mut Value>) {
    match value {
        Value::Number(number) if is_size && !number.is_f64() => found.push(value),
        Value::Array(items) => items.iter_mut().for_each(|item| collect_sizes(item, is_size, found)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| {
            collect_sizes(field, SIZES.contains(&name.as_str()), found);
        }),
        _ => {}
    }
}

/// Goes down by random steps, so that a field counts as much as a large table beside it, and changes what it meets.
fn walk(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let field = random.below(fields.len());
            if let Some(inner) = fields.values_mut().nth(field) {
                walk(inner, random);
            }
        }
        Value::Array(items) if !items.is_empty() && random.below(5) != 0 => {
            let item = random.below(items.len());
            walk(&mut items[item], random);
        }
        Value::Array(items) => change_list(items, random),
        Value::Number(number) => *number = changed(number, random),
        Value::Bool(flag) => *flag = !*flag,
        Value::String(text) => match random.below(3) {
            0 => text.clear(),
            1 => text.push('\u{0}'),
            _ => *text = text.repeat(2),
        },
        Value::Null => *value = Value::from(random.below(8)),
        Value::Object(_) => {}
    }
}

fn change_list(items: &mut Vec<Value>, random: &mut Random) {
    let n = items.len();
    if n == 0 {
        items.push(Value::from(random.below(8)));
        return;
    }
    let (a, b) = (random.below(n), random.below(n));
    match random.below(5) {
        0 => drop(items.remove(a)),
        1 => items.insert(b, items[a].clone()),
        2 => items.swap(a, b),
        3 => items[a] = items[b].clone(),
        _ => items.truncate(a),
    }
}

fn changed(number: &Number, random: &mut Random) -> Number {
    let step = 1 + random.below(4) as i64;
    if number.is_f64() {
        let value = number.as_f64().unwrap_or(0.0);
        let values = [
            0.0,
            -value,
            2.0 * value,
            value / 2.0,
            1e300,
            1e-300,
            -1.0,
            value + step as f64,
            f64::from(f32::MAX),
            2f64.powi(40),
        ];
        return Number::from_f64(values[random.below(values.len())]).unwrap_or_else(|| 0.into());
    }
    if let Some(value) = number.as_i64() {
        return match random.below(4) {
            0 => extreme(random).into(),
            1 => value.saturating_mul(2).into(),
            2 => value.saturating_add(step).into(),
            _ => value.saturating_sub(step).into(),
        };
    }
    extreme(random).into()
}
