//! Rows beyond the border of an input that hold zeros.
//!
//! Slots without a coordinate are zero after every instruction, up to noise. Where the rows that a kernel row reads
//! outside the image are such slots, its diagonal may cover all output rows: the products there are zero. Then kernel rows
//! differ by rotation only, and all weights of a kernel column share their mask (paper §5.2).

use crate::layout::Layout;
use std::collections::HashMap;
use std::ops::Range;

/// Knows which offsets read nothing but zeros outside the input.
pub(super) struct FreeRows<'a> {
    input: &'a Layout,
    /// Slots of a period that hold a coordinate; nothing where channels share ciphertexts.
    used: Option<Vec<bool>>,
    known: HashMap<(i64, i64), bool>,
}

impl<'a> FreeRows<'a> {
    pub(super) fn new(input: &'a Layout) -> Self {
        let used = (input.channels_per_ct() == 1).then(|| {
            let mut used = vec![false; input.period()];
            let shape = input.shape();
            for member in 0..input.members() {
                for y in 0..shape.height as usize {
                    for x in 0..shape.width as usize {
                        used[input.slot(member, 0, y, x).1 & (input.period() - 1)] = true;
                    }
                }
            }
            used
        });
        Self { input, used, known: HashMap::new() }
    }

    /// Whether `rows` output rows at columns `xs`, with these strides, read zeros wherever offset (dy, dx) leads outside
    /// the rows of the input.
    pub(super) fn read_zeros(
        &mut self,
        (dy, dx): (i64, i64),
        stride: [usize; 2],
        rows: usize,
        xs: &Range<usize>,
    ) -> bool {
        let Some(used) = &self.used else { return false };
        let input = self.input;
        *self.known.entry((dy, dx)).or_insert_with(|| {
            let height = i64::from(input.shape().height);
            let outside = (0..rows).map(|y| (y * stride[0]) as i64 + dy).filter(|y| !(0..height).contains(y));
            let period = input.period() as i64;
            let is_free = |y: i64, x: usize| {
                let x = (x * stride[1]) as i64 + dx;
                let slot = y * input.y_step() as i64 + x * input.x_step() as i64;
                (0..input.members() as i64).all(|member| {
                    !used[(slot + member * input.member_step() as i64).rem_euclid(period) as usize]
                })
            };
            outside.into_iter().all(|y| xs.clone().all(|x| is_free(y, x)))
        })
    }
}
