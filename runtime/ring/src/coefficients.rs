//! Integral coefficients before any modulus, in as few bytes as they need.

use zeroize::Zeroize;

/// Coefficients of a polynomial, integers.
#[derive(Clone, Debug, PartialEq)]
pub struct Coefficients {
    values: Values,
    max: f64,
}

/// The integers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    /// Those of weights: they are read again for every tower, and memory is what a core has least of.
    Narrow(Vec<i32>),
    /// Any others.
    Wide(Vec<f64>),
}

impl Coefficients {
    /// Integral doubles, unless one is not finite. They may be a secret: what is not kept is erased.
    pub fn new(mut values: Vec<f64>) -> Option<Self> {
        let max = largest(&values);
        if !f64::is_finite(max) {
            values.zeroize();
            return None;
        }
        if max > f64::from(i32::MAX) {
            return Some(Self { values: Values::Wide(values), max });
        }
        let narrow = values.iter().map(|&c| c as i32).collect();
        values.zeroize();
        Some(Self { values: Values::Narrow(narrow), max })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Narrow(values) => values.len(),
            Values::Wide(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        match &self.values {
            Values::Narrow(values) => size_of_val(&values[..]),
            Values::Wide(values) => size_of_val(&values[..]),
        }
    }

    /// Largest magnitude.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// All of them as doubles.
    pub fn to_vec(&self) -> Vec<f64> {
        match &self.values {
            Values::Narrow(values) => values.iter().map(|&c| f64::from(c)).collect(),
            Values::Wide(values) => values.clone(),
        }
    }

    pub(crate) fn values(&self) -> &Values {
        &self.values
    }
}

/// The largest magnitude; no number if one value is not finite. Eight at a time, since a maximum waits for the one before it.
fn largest(values: &[f64]) -> f64 {
    let (eights, rest) = values.as_chunks::<8>();
    let mut max = [0.0f64; 8];
    let mut wrong = [0.0f64; 8];
    for eight in eights {
        for ((max, wrong), c) in max.iter_mut().zip(&mut wrong).zip(eight) {
            let c = c.abs();
            *max = if c > *max { c } else { *max };
            // Zero for a finite number, else none at all.
            *wrong += c * 0.0;
        }
    }
    let wrong = wrong.into_iter().chain(rest.iter().map(|c| c * 0.0)).sum::<f64>();
    wrong + max.into_iter().chain(rest.iter().map(|c| c.abs())).fold(0.0, f64::max)
}

impl Zeroize for Coefficients {
    fn zeroize(&mut self) {
        match &mut self.values {
            Values::Narrow(values) => values.zeroize(),
            Values::Wide(values) => values.zeroize(),
        }
        self.max.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_integers_take_half_the_bytes_and_none_is_changed() {
        let edge = f64::from(i32::MAX);
        for (values, bytes) in [(vec![0.0, -edge, edge], 12), (vec![1.0, edge + 1.0, -3.0], 24)] {
            let found = Coefficients::new(values.clone()).unwrap();
            assert_eq!((found.to_vec(), found.bytes(), found.len()), (values, bytes, 3));
        }
        assert_eq!(Coefficients::new(vec![1.0, f64::NAN]), None);
        assert_eq!(Coefficients::new(vec![f64::NEG_INFINITY]), None);
        for (place, wrong) in [(3, f64::NAN), (9, f64::INFINITY), (17, f64::NEG_INFINITY), (18, f64::NAN)] {
            let mut values = vec![7.0; 19];
            values[place] = wrong;
            assert_eq!(Coefficients::new(values), None, "{wrong} at {place}");
        }
    }
}
