//! How one factor per channel passes an operation: what it is on the other side.
//!
//! Rules of redistribution and the equalization of channels both move factors; what becomes of one is said here only. A single
//! factor stands for every channel and passes everything as it is.

use std::ops::Range;

use fhec_ir::{Pad, Shape, Slice};

use crate::small::{Small, broadcast};

/// After flattening a tensor of `shape`: every position has the factor of its channel.
pub(crate) fn flattened(v: &Small, shape: Shape) -> Small {
    if v.len() == 1 {
        return v.clone();
    }
    v.rebuild(vec![shape.len()], |v| (0..shape.len()).map(|i| v[i / shape.area()]).collect())
}

/// After a slice: the channels that are left.
pub(crate) fn sliced(v: &Small, slice: &Slice) -> Small {
    if v.len() == 1 {
        return v.clone();
    }
    let channels: Vec<usize> = (slice.start[0]..slice.end[0]).step_by(slice.step[0]).collect();
    v.rebuild(vec![channels.len()], |v| channels.iter().map(|&c| v[c]).collect())
}

/// After padding: zeros may be scaled by anything, so by one.
pub(crate) fn padded(v: &Small, pad: &Pad) -> Small {
    if v.len() == 1 {
        return v.clone();
    }
    let (before, after) = (pad.before[0], pad.after[0]);
    v.rebuild(vec![before + v.len() + after], |v| {
        let ones = |n| std::iter::repeat_n(1.0, n);
        ones(before).chain(v.iter().copied()).chain(ones(after)).collect()
    })
}

/// Before padding: the channels that were there.
pub(crate) fn unpadded(v: &Small, pad: &Pad) -> Small {
    part(v, pad.before[0], v.len().saturating_sub(pad.after[0]))
}

/// After a concatenation of two tensors with so many channels.
pub(crate) fn joined([v, w]: [&Small; 2], [left, right]: [usize; 2]) -> Small {
    v.combine(w, vec![left + right], |v, w| {
        let left = (0..left).map(|i| if v.len() == 1 { v[0] } else { v[i] });
        left.chain((0..right).map(|i| if w.len() == 1 { w[0] } else { w[i] })).collect()
    })
}

/// After a concatenation of so many channels, of which these are the factor's own; the others have one.
pub(crate) fn placed(v: &Small, channels: Range<usize>, n: usize) -> Small {
    v.rebuild(vec![n], |v| {
        let factor = |i: usize| {
            if channels.contains(&i) { broadcast(v, i - channels.start, channels.len()) } else { 1.0 }
        };
        (0..n).map(factor).collect()
    })
}

/// Some of the channels.
pub(crate) fn part(v: &Small, from: usize, to: usize) -> Small {
    if v.len() == 1 { v.clone() } else { v.rebuild(vec![to - from], |v| v[from..to].to_vec()) }
}

/// One factor per input of a weight: a dense layer over an image has one channel's factor on all its positions.
pub(crate) fn into_weight(v: &Small, dims: &[usize]) -> Small {
    let n = dims[1];
    if dims.len() == 2 && v.len() > 1 && v.len() < n {
        v.rebuild(vec![n], |v| (0..n).map(|i| broadcast(v, i, n)).collect())
    } else {
        v.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(v: &Small) -> Vec<f64> {
        v.member(0).to_vec()
    }

    #[test]
    fn factors_of_channels_become_those_of_positions() {
        let v = Small::scalar(1.0).rebuild(vec![2], |_| vec![3.0, 5.0]);
        assert_eq!(numbers(&flattened(&v, Shape::new(2, 1, 2))), [3.0, 3.0, 5.0, 5.0]);
        assert_eq!(numbers(&into_weight(&v, &[7, 4])), [3.0, 3.0, 5.0, 5.0]);
        assert_eq!(numbers(&into_weight(&v, &[7, 2, 3, 3])), [3.0, 5.0]);
    }

    #[test]
    fn padding_there_and_back_keeps_factors() {
        let v = Small::scalar(1.0).rebuild(vec![2], |_| vec![3.0, 5.0]);
        let pad = Pad { before: [1, 0, 0], after: [2, 0, 0] };
        assert_eq!(numbers(&padded(&v, &pad)), [1.0, 3.0, 5.0, 1.0, 1.0]);
        assert_eq!(unpadded(&padded(&v, &pad), &pad), v);
    }

    #[test]
    fn factors_of_an_operand_have_their_place_in_a_concatenation() {
        let v = Small::scalar(1.0).rebuild(vec![2], |_| vec![3.0, 5.0]);
        assert_eq!(numbers(&placed(&v, 1..3, 4)), [1.0, 3.0, 5.0, 1.0]);
        assert_eq!(numbers(&placed(&Small::scalar(2.0), 0..2, 3)), [2.0, 2.0, 1.0]);
    }

    #[test]
    fn a_factor_for_all_channels_passes_as_it_is() {
        let v = Small::scalar(3.0);
        let pad = Pad { before: [1, 0, 0], after: [2, 0, 0] };
        assert_eq!(numbers(&flattened(&v, Shape::new(2, 1, 2))), [3.0]);
        assert_eq!(numbers(&padded(&v, &pad)), [3.0]);
        assert_eq!(numbers(&unpadded(&v, &pad)), [3.0]);
        assert_eq!(numbers(&joined([&v, &Small::scalar(2.0)], [1, 2])), [3.0, 2.0, 2.0]);
    }
}
