//! Constants of a circuit: one tensor per member, or one that all members share.

use fhe_bytecode::Codebook;
use fhec_ir::{MemberIdx, Shape, Tensor, TensorData};

/// A constant with one value per member of the ensemble, or a single one for all.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    members: Vec<Tensor>,
    codes: Option<Codes>,
}

/// The numbers of a clustered constant as codebooks and indices (paper §5.2).
#[derive(Clone, Debug, PartialEq)]
pub struct Codes {
    /// One codebook, or one per position of the last axis.
    pub codebooks: Vec<Codebook>,
    /// One index per number of a member; members share them.
    pub indices: Vec<u16>,
}

impl Constant {
    /// A constant from its members' tensors, which have equal extents.
    ///
    /// # Panics
    /// When there is no tensor; the tensor graph never holds an empty constant.
    #[must_use]
    pub fn new(members: Vec<Tensor>) -> Self {
        assert!(!members.is_empty(), "a constant has at least one member");
        Self { members, codes: None }
    }

    /// The same numbers, known to be entries of codebooks. Numbers computed from them are not.
    #[must_use]
    pub fn with_codes(mut self, codes: Codes) -> Self {
        self.codes = Some(codes);
        self
    }

    /// Codebooks and indices of a clustered constant.
    #[must_use]
    pub fn codes(&self) -> Option<&Codes> {
        self.codes.as_ref()
    }

    /// The tensors, one per member or one in all.
    #[must_use]
    pub fn members(&self) -> &[Tensor] {
        &self.members
    }

    /// The tensor of a member.
    #[must_use]
    pub fn of(&self, member: MemberIdx) -> &Tensor {
        self.members.get(member.index()).unwrap_or(&self.members[0])
    }

    /// Extents of the tensors.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        self.members[0].dims()
    }

    /// Whether every number of every member is `value`.
    #[must_use]
    pub fn is_all(&self, value: f64) -> bool {
        self.members.iter().all(|t| t.is_all(value))
    }

    /// The same extents or other ones of equal size, with numbers computed per member.
    ///
    /// # Panics
    /// When `compute` gives another number of values than `dims` ask for.
    #[must_use]
    pub fn map(&self, dims: &[usize], compute: impl Fn(&Tensor) -> Vec<f64>) -> Self {
        let tensor = |t: &Tensor| {
            Tensor::from_f64(dims.to_vec(), compute(t))
                .expect("the caller computes as many values as it says")
        };
        Self::new(self.members.iter().map(tensor).collect())
    }

    /// Numbers computed from two constants, member by member.
    ///
    /// # Panics
    /// When `compute` gives another number of values than `dims` ask for.
    #[must_use]
    pub fn zip(&self, other: &Self, dims: &[usize], compute: impl Fn(&Tensor, &Tensor) -> Vec<f64>) -> Self {
        let n = self.members.len().max(other.members.len());
        let tensor = |m: usize| {
            let member = MemberIdx(m as u32);
            let values = compute(self.of(member), other.of(member));
            Tensor::from_f64(dims.to_vec(), values).expect("the caller computes as many values as it says")
        };
        Self::new((0..n).map(tensor).collect())
    }

    /// The same numbers as they are computed with, not as they are stored.
    #[must_use]
    pub(crate) fn at_hand(&self) -> Self {
        let tensor = |t: &Tensor| match t.data() {
            TensorData::F64(_) => t.clone(),
            TensorData::F32(_) | TensorData::Scaled(_) => {
                Tensor::from_f64(t.dims().to_vec(), t.to_f64()).expect("as many numbers as before")
            }
        };
        Self { members: self.members.iter().map(tensor).collect(), codes: self.codes.clone() }
    }

    /// The constant spread over a tensor of `shape`: `[1]` and `[C]` become one number per channel, anything larger one
    /// per element.
    #[must_use]
    pub fn spread(&self, shape: Shape) -> Self {
        let dims =
            if self.members[0].len() <= shape.c { vec![shape.c] } else { vec![shape.c, shape.h, shape.w] };
        let n: usize = dims.iter().product();
        self.map(&dims, |t| if t.len() == 1 { vec![t.get(0); n] } else { t.iter().collect() })
    }

    /// The sum of two constants over a tensor of `shape`.
    #[must_use]
    pub fn plus(&self, other: &Self, shape: Shape) -> Self {
        let (a, b) = (self.spread(shape), other.spread(shape));
        let dims = if a.dims().len() > b.dims().len() { a.dims() } else { b.dims() }.to_vec();
        let n: usize = dims.iter().product();
        let area = shape.area();
        let at = |t: &Tensor, i: usize| if t.len() == n { t.get(i) } else { t.get(i / area) };
        a.zip(&b, &dims, |x, y| (0..n).map(|i| at(x, i) + at(y, i)).collect())
    }

    /// The number at a flat position of a tensor of `shape`.
    #[must_use]
    pub fn at(&self, member: MemberIdx, shape: Shape, flat: usize) -> f64 {
        let t = self.of(member);
        match t.len() {
            1 => t.get(0),
            n if n == shape.c => t.get(flat / shape.area()),
            _ => t.get(flat),
        }
    }

    /// The same for all positions in order.
    pub(crate) fn over(&self, member: MemberIdx, shape: Shape) -> Vec<f64> {
        let t = self.of(member);
        match t.len() {
            1 => vec![t.get(0); shape.len()],
            n if n == shape.c => {
                let mut all = Vec::with_capacity(shape.len());
                t.iter().for_each(|x| all.resize(all.len() + shape.area(), x));
                all
            }
            _ => t.to_f64().into_owned(),
        }
    }
}
