//! The scheme's own primitives: ids, levels, scales, rotations.

use super::DecodeError;
use super::frozen::primitives;
use super::wire::{Reader, Wire, Writer};
use crate::ids::{CodebookId, CtId, LayerId, LayoutId, MapId, TensorId};
use crate::params::{Level, TowerIdx};
use crate::rotation::Rotation;
use crate::scale::Scale;

macro_rules! numbers {
    ($($name:ident)*) => {$(
        impl Wire for $name {
            fn put(&self, w: &mut Writer) {
                self.0.put(w);
            }

            fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Wire::get(r).map($name)
            }
        }
    )*};
}

numbers! { Level TowerIdx CtId TensorId CodebookId LayoutId MapId LayerId }
primitives! { Level TowerIdx CtId TensorId CodebookId LayoutId MapId LayerId Scale Rotation }

impl Wire for Scale {
    const MIN_BYTES: usize = 8;

    fn put(&self, w: &mut Writer) {
        self.value().put(w);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Scale::new(f64::get(r)?).map_err(|_| r.error("not a scale"))
    }
}

impl Wire for Rotation {
    fn put(&self, w: &mut Writer) {
        self.small().put(w);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let amount = i32::get(r)?;
        let rotation = Rotation::new(i64::from(amount), crate::layout::MAX_SLOTS as usize);
        if rotation.amount() == i64::from(amount) { Ok(rotation) } else { Err(r.error("rotation too large")) }
    }
}
