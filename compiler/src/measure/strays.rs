//! Inputs unlike those that a program is calibrated on, although each of their numbers could be one of theirs.

use fhec_ir::spec::Uniform;

/// Inputs of every kind.
const EACH: usize = 2;

/// Uniform noise between the smallest and the largest number of the samples, and the numbers of a sample in any order.
#[must_use]
pub(super) fn strays(samples: &[Vec<f64>], [low, high]: [f64; 2]) -> Vec<Vec<f64>> {
    let Some(n) = samples.first().map(Vec::len) else { return Vec::new() };
    let noise = |seed: usize| {
        let mut stream = Uniform::new(0x57a7 + seed as u64);
        (0..n).map(|_| stream.between(low, high)).collect::<Vec<f64>>()
    };
    let shuffled = |(seed, sample): (usize, &Vec<f64>)| {
        let mut stream = Uniform::new(0x5f1e + seed as u64);
        let mut numbers = sample.clone();
        (1..n).rev().for_each(|i| numbers.swap(i, stream.below(i + 1)));
        numbers
    };
    let each = samples.len().div_ceil(EACH).max(1);
    (0..EACH).map(noise).chain(samples.iter().step_by(each).enumerate().map(shuffled)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_samples() {
        let samples: Vec<Vec<f64>> =
            (0..5).map(|s| (0..9).map(|i| f64::from(s * 10 + i)).collect()).collect();
        let strays = strays(&samples, [0.0, 48.0]);
        assert_eq!(strays.len(), 4);
        assert!(strays.iter().flatten().all(|x| (0.0..=48.0).contains(x)));
        let sorted = |numbers: &Vec<f64>| {
            let mut sorted = numbers.clone();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        assert_eq!(sorted(&strays[2]), samples[0]);
        assert_ne!(strays[2], samples[0]);
        assert_eq!(sorted(&strays[3]), samples[3]);
    }
}
