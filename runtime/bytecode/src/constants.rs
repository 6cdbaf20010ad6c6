//! Weights and biases: plain floats, or indices into codebooks (paper §5.2).
//!
//! A tensor belongs to one model or to the members of an ensemble (paper §5.3), each with its own values.
//! A clustered tensor names one codebook for all its positions, or one per position of its last axis, which
//! for convolution weights is the kernel column: a slice. The entries of a codebook are single values, and
//! then every member has its own indices, or rows with one value per member, and then the members share
//! the indices.

use crate::ids::{CodebookId, TensorId};
use serde::{Deserialize, Serialize};

/// More values than any tensor of a program may have.
pub const MAX_VALUES: usize = 1 << 28;
/// Largest number of axes.
pub const MAX_AXES: usize = 6;

/// The distinct values of clustered tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Codebook {
    /// Values per entry: one, or one per member.
    pub members: u32,
    /// Entries one after the other.
    pub values: Vec<f32>,
}

impl Codebook {
    /// Number of entries.
    pub fn n_entries(&self) -> usize {
        self.values.len() / self.members.max(1) as usize
    }
}

/// How the values of a tensor are stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TensorData {
    /// Every value of every member, members outermost, last axis fastest.
    Dense(Vec<f32>),
    /// The same in double precision, for numbers that cancel.
    Exact(Vec<f64>),
    /// Indices into codebooks.
    Clustered {
        /// One codebook, or one per position of the last axis.
        codebooks: Vec<CodebookId>,
        /// In the order of dense values; one set for all members if the codebooks have rows.
        indices: Vec<u16>,
    },
}

/// A constant tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    /// Members with values of their own; one if all share them.
    pub members: u32,
    /// Axes of one member's tensor.
    pub shape: Vec<u32>,
    /// The values.
    pub data: TensorData,
}

impl Tensor {
    /// A dense tensor of a single model.
    pub fn dense(shape: Vec<u32>, values: Vec<f32>) -> Self {
        Self { members: 1, shape, data: TensorData::Dense(values) }
    }

    /// Values of one member, saturating.
    pub fn len(&self) -> usize {
        self.shape.iter().fold(1usize, |n, &axis| n.saturating_mul(axis as usize))
    }

    /// Whether the tensor has no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Why a constant was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConstantError {
    /// The id points outside the table.
    #[error("tensor {0} does not exist")]
    NoTensor(TensorId),
    /// The id points outside the table.
    #[error("codebook {0} does not exist")]
    NoCodebook(CodebookId),
    /// Number of values or indices disagrees with the shape.
    #[error("tensor {tensor} has {found} values, its shape needs {needed}")]
    Count {
        /// The tensor.
        tensor: TensorId,
        /// Values found.
        found: usize,
        /// Values the shape asks for.
        needed: usize,
    },
    /// Too many axes, members or values.
    #[error("tensor {0} is empty or too large")]
    Size(TensorId),
    /// Codebooks are neither one nor one per slice, or disagree about members.
    #[error("the codebooks of tensor {0} do not match its shape and members")]
    Codebooks(TensorId),
    /// An index beyond its codebook.
    #[error("index {index} of tensor {tensor} is beyond its codebook")]
    Index {
        /// The tensor.
        tensor: TensorId,
        /// The index.
        index: u16,
    },
    /// A value that is infinite or not a number.
    #[error("tensor {0} has a value that is not finite")]
    NotFinite(TensorId),
    /// A codebook entry that is infinite or not a number, or an incomplete row.
    #[error("codebook {0} is malformed")]
    BadCodebook(CodebookId),
}

/// The constants of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    /// Tensors by [`TensorId`].
    pub tensors: Vec<Tensor>,
    /// Codebooks by [`CodebookId`].
    pub codebooks: Vec<Codebook>,
}

/// The plain values of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// Members with values of their own.
    pub members: usize,
    /// Axes of one member's tensor.
    pub shape: Vec<usize>,
    /// Members outermost, last axis fastest.
    pub data: Vec<f64>,
}

impl Values {
    /// Values of one member.
    pub fn len(&self) -> usize {
        self.data.len() / self.members.max(1)
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Distance in `data` from a value of one member to the next member's; zero if all share them.
    pub fn member_step(&self) -> usize {
        if self.members > 1 { self.len() } else { 0 }
    }
}

impl Constants {
    /// Appends a tensor.
    pub fn push(&mut self, tensor: Tensor) -> TensorId {
        self.tensors.push(tensor);
        TensorId(self.tensors.len() as u32 - 1)
    }

    /// The tensor itself.
    ///
    /// # Errors
    /// When there is none of that id.
    pub fn tensor(&self, id: TensorId) -> Result<&Tensor, ConstantError> {
        self.tensors.get(id.index()).ok_or(ConstantError::NoTensor(id))
    }

    /// The plain values of a tensor, codebooks resolved.
    ///
    /// # Errors
    /// When the tensor is malformed in any way listed in [`ConstantError`].
    pub fn values(&self, id: TensorId) -> Result<Values, ConstantError> {
        let data = self.mapped(id, |value| value)?;
        let tensor = self.tensor(id)?;
        let shape = tensor.shape.iter().map(|&axis| axis as usize).collect();
        Ok(Values { members: tensor.members as usize, shape, data })
    }

    /// A function of every value of a tensor, in the order of [`Values::data`].
    pub(crate) fn mapped<T>(&self, id: TensorId, map: impl Fn(f64) -> T) -> Result<Vec<T>, ConstantError> {
        let tensor = self.tensor(id)?;
        let books = self.checked(id)?;
        Ok(match &tensor.data {
            TensorData::Dense(values) => values.iter().map(|&v| map(f64::from(v))).collect(),
            TensorData::Exact(values) => values.iter().map(|&v| map(v)).collect(),
            TensorData::Clustered { indices, .. } => {
                let (len, members) = (tensor.len(), tensor.members as usize);
                let rows = books.first().map_or(1, |book| book.members as usize);
                let value = |position: usize, member: usize| {
                    let book = books[position % books.len()];
                    let (index, column) = match rows == members {
                        true => (indices[position], member),
                        false => (indices[member * len + position], 0),
                    };
                    map(f64::from(book.values[usize::from(index) * rows + column]))
                };
                (0..members).flat_map(|m| (0..len).map(move |p| (p, m))).map(|(p, m)| value(p, m)).collect()
            }
        })
    }

    /// The codebooks of a tensor that is well formed; takes as long as the tensor is in a file.
    fn checked(&self, id: TensorId) -> Result<Vec<&Codebook>, ConstantError> {
        let tensor = self.tensor(id)?;
        let (len, members) = (tensor.len(), tensor.members as usize);
        let total = len.saturating_mul(members);
        if total == 0 || total > MAX_VALUES || tensor.shape.len() > MAX_AXES {
            return Err(ConstantError::Size(id));
        }
        match &tensor.data {
            TensorData::Dense(values) => Self::plain(id, values, total, |v| v.is_finite()),
            TensorData::Exact(values) => Self::plain(id, values, total, |v| v.is_finite()),
            TensorData::Clustered { codebooks, indices } => self.books(id, tensor, codebooks, indices),
        }
    }

    /// Checks values that need no codebook.
    fn plain<T>(
        id: TensorId,
        values: &[T],
        needed: usize,
        is_finite: impl Fn(&T) -> bool,
    ) -> Result<Vec<&'static Codebook>, ConstantError> {
        match values.len() == needed {
            false => Err(ConstantError::Count { tensor: id, found: values.len(), needed }),
            true if !values.iter().all(is_finite) => Err(ConstantError::NotFinite(id)),
            true => Ok(Vec::new()),
        }
    }

    fn books(
        &self,
        id: TensorId,
        tensor: &Tensor,
        codebooks: &[CodebookId],
        indices: &[u16],
    ) -> Result<Vec<&Codebook>, ConstantError> {
        let books: Vec<&Codebook> = codebooks
            .iter()
            .map(|&book| self.codebooks.get(book.index()).ok_or(ConstantError::NoCodebook(book)))
            .collect::<Result<_, _>>()?;
        let last_axis = tensor.shape.last().copied().unwrap_or(1) as usize;
        let rows = books.first().map_or(0, |book| book.members);
        let same_rows = books.iter().all(|book| book.members == rows);
        if !(books.len() == 1 || books.len() == last_axis)
            || !same_rows
            || !(rows == 1 || rows == tensor.members)
        {
            return Err(ConstantError::Codebooks(id));
        }
        let needed =
            if rows == tensor.members { tensor.len() } else { tensor.len() * tensor.members as usize };
        if indices.len() != needed {
            return Err(ConstantError::Count { tensor: id, found: indices.len(), needed });
        }
        // The last axis is the fastest, so positions modulo their number find the codebook.
        let is_beyond =
            |(at, index): (usize, &u16)| usize::from(*index) >= books[at % books.len()].n_entries();
        match indices.iter().enumerate().find(|&entry| is_beyond(entry)) {
            Some((_, &index)) => Err(ConstantError::Index { tensor: id, index }),
            None => Ok(books),
        }
    }

    /// The largest magnitude of every tensor, or of what its codebooks hold.
    pub(crate) fn peaks(&self) -> Vec<f64> {
        let largest = |values: &mut dyn Iterator<Item = f64>| values.map(f64::abs).fold(0.0, f64::max);
        let of_books =
            |book: &CodebookId| self.codebooks.get(book.index()).map_or(&[][..], |book| &book.values);
        let of_tensor = |tensor: &Tensor| match &tensor.data {
            TensorData::Dense(values) => largest(&mut values.iter().copied().map(f64::from)),
            TensorData::Exact(values) => largest(&mut values.iter().copied()),
            TensorData::Clustered { codebooks, .. } => {
                largest(&mut codebooks.iter().flat_map(of_books).copied().map(f64::from))
            }
        };
        self.tensors.iter().map(of_tensor).collect()
    }

    /// Checks every codebook and tensor.
    ///
    /// # Errors
    /// The first malformed one.
    pub fn check(&self) -> Result<(), ConstantError> {
        for (i, book) in self.codebooks.iter().enumerate() {
            let whole = book.members > 0 && book.values.len().is_multiple_of(book.members as usize);
            if !whole || book.values.is_empty() || book.values.iter().any(|v| !v.is_finite()) {
                return Err(ConstantError::BadCodebook(CodebookId(i as u32)));
            }
        }
        (0..self.tensors.len()).try_for_each(|i| self.checked(TensorId(i as u32)).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clustered(members: u32, shape: &[u32], books: &[u32], indices: &[u16]) -> Tensor {
        let codebooks = books.iter().map(|&b| CodebookId(b)).collect();
        let data = TensorData::Clustered { codebooks, indices: indices.to_vec() };
        Tensor { members, shape: shape.to_vec(), data }
    }

    fn check(tensor: Tensor, expected: Result<&[f64], &str>) {
        let codebooks = vec![
            Codebook { members: 1, values: vec![0.5, -1.0] },
            Codebook { members: 1, values: vec![2.0, 3.0] },
            Codebook { members: 2, values: vec![1.0, 10.0, 2.0, 20.0] },
        ];
        let constants = Constants { tensors: vec![tensor], codebooks };
        let found = constants.values(TensorId(0)).map(|v| v.data).map_err(|e| e.to_string());
        assert_eq!(found, expected.map(<[f64]>::to_vec).map_err(str::to_owned));
    }

    #[test]
    fn full_clustering_shares_one_codebook() {
        check(clustered(1, &[2, 2], &[0], &[0, 1, 1, 0]), Ok(&[0.5, -1.0, -1.0, 0.5]));
    }

    #[test]
    fn slice_clustering_has_a_codebook_per_kernel_column() {
        check(clustered(1, &[2, 2], &[0, 1], &[0, 1, 1, 0]), Ok(&[0.5, 3.0, -1.0, 2.0]));
    }

    #[test]
    fn joint_rows_share_indices_between_members() {
        check(clustered(2, &[3], &[2], &[0, 1, 1]), Ok(&[1.0, 2.0, 2.0, 10.0, 20.0, 20.0]));
    }

    #[test]
    fn members_may_have_indices_of_their_own() {
        check(clustered(2, &[2], &[0], &[0, 1, 1, 1]), Ok(&[0.5, -1.0, -1.0, -1.0]));
    }

    #[test]
    fn exact_values_keep_double_precision() {
        let values = [1.0 + 1e-15, -3e200];
        let data = TensorData::Exact(values.to_vec());
        check(Tensor { members: 1, shape: vec![2], data }, Ok(&values));
    }

    #[test]
    fn malformed_tensors_are_refused() {
        check(clustered(1, &[2], &[0], &[0, 2]), Err("index 2 of tensor w0 is beyond its codebook"));
        check(clustered(1, &[2], &[9], &[0, 0]), Err("codebook k9 does not exist"));
        check(clustered(1, &[2], &[0], &[0]), Err("tensor w0 has 1 values, its shape needs 2"));
        let unmatched = "the codebooks of tensor w0 do not match its shape and members";
        check(clustered(1, &[3], &[0, 1], &[0, 0, 0]), Err(unmatched));
        check(clustered(3, &[1], &[2], &[0]), Err(unmatched));
        check(clustered(1, &[], &[], &[0]), Err(unmatched));
        check(Tensor::dense(vec![2], vec![1.0]), Err("tensor w0 has 1 values, its shape needs 2"));
        check(Tensor::dense(vec![1], vec![f32::NAN]), Err("tensor w0 has a value that is not finite"));
        let exact = |values: &[f64]| Tensor {
            data: TensorData::Exact(values.to_vec()),
            ..Tensor::dense(vec![2], vec![])
        };
        check(exact(&[1.0]), Err("tensor w0 has 1 values, its shape needs 2"));
        check(exact(&[1.0, f64::INFINITY]), Err("tensor w0 has a value that is not finite"));
        check(Tensor::dense(vec![0], vec![]), Err("tensor w0 is empty or too large"));
        check(Tensor::dense(vec![u32::MAX; 6], vec![]), Err("tensor w0 is empty or too large"));
    }
}
