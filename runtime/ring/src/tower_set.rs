//! Sets of towers of a chain.

/// Towers of a chain, by their index in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TowerSet([u64; TowerSet::CAPACITY / 64]);

impl TowerSet {
    /// Most towers that a chain may have.
    pub const CAPACITY: usize = 256;

    /// The first `n` towers.
    pub fn first(n: usize) -> Self {
        (0..n).collect()
    }

    /// Number of towers.
    pub fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == [0; Self::CAPACITY / 64]
    }

    /// Whether tower `index` is in it.
    pub fn contains(self, index: usize) -> bool {
        index < Self::CAPACITY && self.0[index / 64] >> (index % 64) & 1 == 1
    }

    /// How many of its towers come before tower `index`.
    pub fn rank(self, index: usize) -> usize {
        let below = |(k, word): (usize, u64)| match index.saturating_sub(64 * k) {
            0 => 0,
            bits if bits >= 64 => word.count_ones(),
            bits => (word & (u64::MAX >> (64 - bits))).count_ones(),
        };
        self.0.into_iter().enumerate().map(below).sum::<u32>() as usize
    }

    /// The index of the tower at position `i`.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn nth(self, i: usize) -> usize {
        self.iter().nth(i).expect("a position is below the number of towers")
    }

    /// The indices, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(k, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(64 * k + bit)
            })
        })
    }

    /// Whether every tower is in `other` too.
    pub fn is_subset(self, other: Self) -> bool {
        self.0.iter().zip(other.0).all(|(a, b)| a & !b == 0)
    }
}

impl FromIterator<usize> for TowerSet {
    /// # Panics
    /// When an index is beyond [`TowerSet::CAPACITY`].
    fn from_iter<T: IntoIterator<Item = usize>>(indices: T) -> Self {
        let mut set = Self::default();
        indices.into_iter().for_each(|index| set.0[index / 64] |= 1 << (index % 64));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_indices_are_inverse() {
        for indices in [vec![], vec![0], vec![0, 63, 64, 65, 130, 255], (0..256).collect::<Vec<_>>()] {
            let set: TowerSet = indices.iter().copied().collect();
            assert_eq!(set.iter().collect::<Vec<_>>(), indices);
            assert_eq!((set.len(), set.is_empty()), (indices.len(), indices.is_empty()));
            for (i, &index) in indices.iter().enumerate() {
                assert!(set.contains(index));
                assert_eq!((set.nth(i), set.rank(index)), (index, i));
            }
        }
        assert_eq!(TowerSet::first(70).rank(256), 70);
        assert!(!TowerSet::first(70).contains(70) && !TowerSet::first(70).contains(999));
    }

    #[test]
    fn subsets_are_told_from_others() {
        let set: TowerSet = [1, 5, 200].into_iter().collect();
        assert!(set.is_subset(set) && TowerSet::default().is_subset(set));
        assert!(!set.is_subset(TowerSet::first(200)) && set.is_subset(TowerSet::first(201)));
    }
}
