//! Moving tensors into slots and back.
//!
//! A tensor is a flat vector in (member, channel, y, x) order.

use super::Layout;

impl Layout {
    /// Slot vectors of a tensor, replicas included; slots without a coordinate are zero.
    pub fn scatter(&self, tensor: &[f64]) -> Vec<Vec<f64>> {
        let mut cts = vec![vec![0.0; self.slots()]; self.n_cts()];
        let period = self.period();
        let mut values = tensor.iter();
        self.for_each_slot(|ct, slot| cts[ct][slot] = values.next().copied().unwrap_or(0.0));
        for ct in &mut cts {
            let (first, rest) = ct.split_at_mut(period);
            rest.chunks_mut(period).for_each(|replica| replica.copy_from_slice(first));
        }
        cts
    }

    /// The tensor held in slot vectors, read from the first replica.
    pub fn gather<T: AsRef<[f64]>>(&self, cts: &[T]) -> Vec<f64> {
        let mut tensor = Vec::with_capacity(self.members() * self.shape().len());
        self.for_each_slot(|ct, slot| tensor.push(cts[ct].as_ref()[slot]));
        tensor
    }

    /// Visits the slot of every coordinate, in tensor order.
    fn for_each_slot(&self, mut visit: impl FnMut(usize, usize)) {
        let shape = self.shape();
        for member in 0..self.members() {
            for channel in 0..shape.channels as usize {
                let (ct, origin) = self.channel_origin(channel);
                let origin = origin + member * self.member_step();
                for y in 0..shape.height as usize {
                    for x in 0..shape.width as usize {
                        visit(ct, origin + y * self.y_step() + x * self.x_step());
                    }
                }
            }
        }
    }
}
