//! Inputs of a model that are made one by one, so that a data set need not be in memory as numbers.

/// Inputs that can be counted, and made in any order.
pub trait Inputs: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them, as the model takes it: in (channel, y, x) order, normalized.
    fn input(&self, index: usize) -> Vec<f64>;

    /// What the model gives for it, if that is known: else the program tells, evaluated without noise.
    fn results(&self, _index: usize) -> Option<&[f64]> {
        None
    }

    /// Its true class, if that is known.
    fn class(&self, _index: usize) -> Option<usize> {
        None
    }
}

impl Inputs for Vec<Vec<f64>> {
    fn len(&self) -> usize {
        self.len()
    }

    fn input(&self, index: usize) -> Vec<f64> {
        self[index].clone()
    }
}

/// Inputs with their true classes, where these are known.
impl Inputs for Vec<(Vec<f64>, Option<usize>)> {
    fn len(&self) -> usize {
        self.len()
    }

    fn input(&self, index: usize) -> Vec<f64> {
        self[index].0.clone()
    }

    fn class(&self, index: usize) -> Option<usize> {
        self[index].1
    }
}
