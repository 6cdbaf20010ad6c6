//! Constants of version 2: those of version 1, or numbers in double precision.

use crate::codec::DecodeError;
use crate::codec::frozen::{Frozen, structs};
use crate::codec::v1;
use crate::codec::wire::{Reader, Wire, Writer};
use crate::constants;

structs! {
    Constants for constants::Constants { tensors: Vec<Tensor>, codebooks: Vec<v1::Codebook> }
    Tensor for constants::Tensor { members: u32, shape: Vec<u32>, data: TensorData }
}

/// The values of a tensor.
pub(in crate::codec) enum TensorData {
    /// As in version 1.
    Known(v1::TensorData),
    /// In double precision.
    Exact(Vec<f64>),
}

/// What marks double precision; version 1 has the marks below it.
const EXACT: u8 = 2;

impl Wire for TensorData {
    fn put(&self, w: &mut Writer) {
        match self {
            Self::Known(data) => data.put(w),
            Self::Exact(values) => {
                w.raw(&[EXACT]);
                values.put(w);
            }
        }
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.byte()? {
            EXACT => Ok(Self::Exact(Wire::get(r)?)),
            tag => v1::TensorData::get_tagged(tag, r).map(Self::Known),
        }
    }
}

impl Frozen for TensorData {
    type Live = constants::TensorData;

    fn thaw(self) -> Self::Live {
        match self {
            Self::Known(data) => data.thaw(),
            Self::Exact(values) => Self::Live::Exact(values),
        }
    }

    fn freeze(live: &Self::Live) -> Self {
        match live {
            constants::TensorData::Exact(values) => Self::Exact(values.clone()),
            other => Self::Known(Frozen::freeze(other)),
        }
    }
}
