//! How a score depends on the slots of a value.

/// What a score gains by every slot of a ciphertext: by its real part, and by its imaginary part.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    pub(super) re: Vec<f64>,
    pub(super) im: Vec<f64>,
}

impl Slots {
    /// A score that does not depend on so many slots.
    pub(super) fn zeros(n: usize) -> Self {
        Self { re: vec![0.0; n], im: vec![0.0; n] }
    }

    pub(super) fn len(&self) -> usize {
        self.re.len()
    }

    /// Variance of the score where both parts of every slot have a variance of one, each for itself.
    pub(super) fn squares(&self) -> f64 {
        self.re.iter().chain(&self.im).map(|g| g * g).sum()
    }

    /// Adds what it gains by slots that are moved: slot s becomes slot s + by.
    pub(super) fn add_moved(&mut self, other: &Self, by: i64) {
        let n = self.len();
        let by = by.rem_euclid(n as i64) as usize;
        for (to, from) in [(&mut self.re, &other.re), (&mut self.im, &other.im)] {
            let (low, high) = from.split_at(n - by);
            to[by..].iter_mut().zip(low).for_each(|(a, b)| *a += b);
            to[..by].iter_mut().zip(high).for_each(|(a, b)| *a += b);
        }
    }

    /// The same with slot s as slot s + by.
    pub(super) fn moved(&self, by: i64) -> Self {
        let mut moved = Self::zeros(self.len());
        moved.add_moved(self, by);
        moved
    }

    /// Sums over slots that are a period apart.
    pub(super) fn folded(&self, period: usize) -> Self {
        let mut folded = Self::zeros(period);
        for (to, from) in [(&mut folded.re, &self.re), (&mut folded.im, &self.im)] {
            for chunk in from.chunks(period) {
                to.iter_mut().zip(chunk).for_each(|(a, b)| *a += b);
            }
        }
        folded
    }

    /// Real parts and imaginary parts times a real number per slot.
    pub(super) fn times(&self, numbers: impl Iterator<Item = f64> + Clone) -> Self {
        let product = |part: &[f64]| part.iter().zip(numbers.clone()).map(|(g, x)| g * x).collect();
        Self { re: product(&self.re), im: product(&self.im) }
    }

    /// Adds what is gained by a factor of products with a plaintext of these parts, which repeats, times a number.
    pub(super) fn add_product(&mut self, products: &Self, re: &[f64], im: &[f64], times: f64) {
        let period = re.len();
        let to = self.re.chunks_mut(period).zip(self.im.chunks_mut(period));
        let from = products.re.chunks(period).zip(products.im.chunks(period));
        for ((to_re, to_im), (from_re, from_im)) in to.zip(from) {
            let plain = re.iter().zip(im);
            let gained = from_re
                .iter()
                .zip(from_im)
                .zip(plain)
                .map(|((a, b), (x, y))| (times * (a * x + b * y), times * (b * x - a * y)));
            for ((to_re, to_im), (re, im)) in to_re.iter_mut().zip(to_im).zip(gained) {
                *to_re += re;
                *to_im += im;
            }
        }
    }

    /// The same of a larger ring, whose slots became these as means over those that are so far apart.
    pub(super) fn spread(self, n: usize) -> Self {
        let len = self.len();
        if n <= len {
            return self;
        }
        let share = len as f64 / n as f64;
        let over = |part: &[f64]| (0..n).map(|slot| share * part[slot % len]).collect();
        Self { re: over(&self.re), im: over(&self.im) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(re: &[f64]) -> Slots {
        Slots { re: re.to_vec(), im: vec![0.0; re.len()] }
    }

    #[test]
    fn slots_move_to_the_right_and_around() {
        assert_eq!(slots(&[1.0, 2.0, 3.0, 4.0]).moved(1).re, [4.0, 1.0, 2.0, 3.0]);
        assert_eq!(slots(&[1.0, 2.0, 3.0, 4.0]).moved(-1).re, [2.0, 3.0, 4.0, 1.0]);
    }

    #[test]
    fn means_over_slots_share_what_is_gained() {
        assert_eq!(slots(&[1.0, 3.0]).spread(4).re, [0.5, 1.5, 0.5, 1.5]);
        assert_eq!(slots(&[1.0, 3.0, 5.0, 7.0]).folded(2).re, [6.0, 10.0]);
    }
}
