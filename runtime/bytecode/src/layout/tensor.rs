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

    /// Runs of ciphertexts, each a tensor of this layout, that hold a batch of so many inputs; one input is repeated for
    /// every member.
    pub fn lanes(&self, batch: usize) -> usize {
        if batch > 1 { batch.div_ceil(self.members()) } else { 1 }
    }

    /// Slot vectors of a batch of tensors, one lane after the other. Neighbours are in neighbouring lanes: of L lanes,
    /// input i is member i / L of lane i mod L. A single input is that of every member.
    pub fn scatter_batch(&self, inputs: &[f64], batch: usize) -> Vec<Vec<f64>> {
        if batch <= 1 {
            return self.scatter(&inputs.repeat(self.members()));
        }
        let (lanes, len) = (self.lanes(batch), self.shape().len());
        let lane = |lane: usize| {
            let of_lane = inputs.chunks(len).skip(lane).step_by(lanes);
            self.scatter(&of_lane.flatten().copied().collect::<Vec<f64>>())
        };
        (0..lanes).flat_map(lane).collect()
    }

    /// The tensors of a batch held in slot vectors, in the order of the inputs; of a single one all members.
    pub fn gather_batch<T: AsRef<[f64]>>(&self, cts: &[T], batch: usize) -> Vec<f64> {
        if batch <= 1 {
            return self.gather(cts);
        }
        let (lanes, len) = (self.lanes(batch), self.shape().len());
        let by_lane: Vec<Vec<f64>> = cts.chunks(self.n_cts()).map(|cts| self.gather(cts)).collect();
        (0..batch).flat_map(|i| by_lane[i % lanes][i / lanes * len..][..len].iter().copied()).collect()
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
