//! Views: how concatenations, slices, padding and flattening look at circuit values without computing anything.
//!
//! A view is a list of pieces along the channels. A piece is a block of zeros or a strided window of one value; positions
//! of the window outside the value are zero. Flattening only changes the extent, because pieces keep channel, row, column
//! order.

use fhec_ir::{Pad, Shape, Slice};

use super::circuit::ValueId;

/// A tensor made of parts of circuit values.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Extent of the tensor.
    pub(super) shape: Shape,
    /// The parts, in order of channels.
    pub(super) pieces: Vec<Piece>,
}

/// A part of a view.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Its extent before any flattening.
    pub(super) shape: Shape,
    /// Where its numbers come from; nothing for zeros.
    pub(super) window: Option<Window>,
}

/// Every `step`-th channel, row and column of a value, from `start` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The value.
    pub(super) source: ValueId,
    /// Extent of the value.
    pub(super) extent: Shape,
    /// First channel, row, column; rows and columns may start before the value.
    pub(super) start: [i64; 3],
    /// Distance between channels, rows, columns.
    pub(super) step: [usize; 3],
}

impl Window {
    /// Whether positions below zero and from `n` on are zero along an axis, so that the window may be widened there.
    pub(super) fn may_widen(&self, axis: usize, n: usize, below: bool, above: bool) -> bool {
        let (step, extent) = (self.step[axis] as i64, self.extent.dims()[axis] as i64);
        (!below || self.start[axis] - step < 0) && (!above || n as i64 * step + self.start[axis] >= extent)
    }
}

impl Piece {
    /// Whether the piece is one value and nothing else.
    pub(super) fn whole(&self) -> Option<ValueId> {
        let window = self.window.as_ref()?;
        let whole = window.start == [0; 3] && window.step == [1; 3] && window.extent == self.shape;
        whole.then_some(window.source)
    }
}

impl View {
    /// The view of a whole value.
    pub(super) fn of(source: ValueId, extent: Shape) -> Self {
        let window = Window { source, extent, start: [0; 3], step: [1; 3] };
        Self { shape: extent, pieces: vec![Piece { shape: extent, window: Some(window) }] }
    }

    /// The value behind the view, if it is one value and nothing else.
    pub(super) fn whole(&self) -> Option<ValueId> {
        match &self.pieces[..] {
            [piece] => piece.whole(),
            _ => None,
        }
    }

    /// The values behind the pieces, if every piece is a whole value.
    pub(super) fn whole_pieces(&self) -> Option<Vec<ValueId>> {
        self.pieces.iter().map(Piece::whole).collect()
    }

    /// Whether the pieces of two views have the same extents.
    pub(super) fn is_cut_like(&self, other: &Self) -> bool {
        self.pieces.iter().map(|p| p.shape).eq(other.pieces.iter().map(|p| p.shape))
    }

    /// Whether pieces have rows and columns that the view's extent does not show.
    pub(super) fn is_flattened(&self) -> bool {
        self.pieces.iter().any(|p| p.shape.area() != self.shape.area())
    }

    /// The same numbers as a vector.
    pub(super) fn flattened(mut self) -> Self {
        self.shape = Shape::vector(self.shape.len());
        self
    }

    /// Views one after another along the channels.
    pub(super) fn concatenated(views: Vec<Self>, shape: Shape) -> Self {
        Self { shape, pieces: views.into_iter().flat_map(|v| v.pieces).collect() }
    }

    /// Part of the view; nothing if the view must be computed first.
    pub(super) fn sliced(&self, slice: &Slice, shape: Shape) -> Option<Self> {
        if self.is_flattened() {
            return None;
        }
        let mut pieces = Vec::new();
        let mut first = 0;
        for piece in &self.pieces {
            let end = first + piece.shape.c;
            let skipped = first.saturating_sub(slice.start[0]).div_ceil(slice.step[0]);
            let start = slice.start[0] + skipped * slice.step[0];
            let stop = end.min(slice.end[0]);
            if start < stop {
                let part = Shape::new((stop - start).div_ceil(slice.step[0]), shape.h, shape.w);
                let from = [start - first, slice.start[1], slice.start[2]];
                let window = piece.window.map(|w| Window {
                    start: [0, 1, 2].map(|a| w.start[a] + (from[a] * w.step[a]) as i64),
                    step: [0, 1, 2].map(|a| w.step[a] * slice.step[a]),
                    ..w
                });
                pieces.push(Piece { shape: part, window });
            }
            first = end;
        }
        Some(Self { shape, pieces })
    }

    /// The view with zeros around it; nothing if the view must be computed first.
    pub(super) fn padded(&self, pad: &Pad, shape: Shape) -> Option<Self> {
        if self.is_flattened() {
            return None;
        }
        let zeros =
            |c: usize| (c > 0).then_some(Piece { shape: Shape::new(c, shape.h, shape.w), window: None });
        let mut pieces: Vec<Piece> = zeros(pad.before[0]).into_iter().collect();
        for piece in &self.pieces {
            let window = match piece.window {
                None => None,
                Some(w) => {
                    let n = piece.shape.dims();
                    if !(1..3).all(|a| w.may_widen(a, n[a], pad.before[a] > 0, pad.after[a] > 0)) {
                        return None;
                    }
                    let moved = |a: usize| w.start[a] - (pad.before[a] * w.step[a]) as i64;
                    Some(Window { start: [w.start[0], moved(1), moved(2)], ..w })
                }
            };
            pieces.push(Piece { shape: Shape::new(piece.shape.c, shape.h, shape.w), window });
        }
        pieces.extend(zeros(pad.after[0]));
        Some(Self { shape, pieces })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slice_over_two_pieces_keeps_the_channel_step() {
        let (a, b) = (View::of(ValueId(0), Shape::new(5, 4, 4)), View::of(ValueId(1), Shape::new(4, 4, 4)));
        let both = View::concatenated(vec![a, b], Shape::new(9, 4, 4));
        let slice = Slice { start: [1, 0, 1], end: [9, 4, 4], step: [3, 1, 2] };
        let view = both.sliced(&slice, Shape::new(3, 4, 2)).unwrap();
        let starts: Vec<_> = view.pieces.iter().map(|p| (p.shape.c, p.window.unwrap().start)).collect();
        assert_eq!(starts, [(2, [1, 0, 1]), (1, [2, 0, 1])]);
    }

    #[test]
    fn padding_a_cropped_view_is_refused() {
        let view = View::of(ValueId(0), Shape::new(1, 4, 4));
        let slice = Slice { start: [0, 1, 0], end: [1, 4, 4], step: [1, 1, 1] };
        let cropped = view.sliced(&slice, Shape::new(1, 3, 4)).unwrap();
        let pad = Pad { before: [0, 1, 0], after: [0, 0, 0] };
        assert!(cropped.padded(&pad, Shape::new(1, 4, 4)).is_none());
        assert!(view.padded(&pad, Shape::new(1, 5, 4)).is_some());
    }
}
