//! Version 1 of the format: the order of sections and fields. Frozen once released.

use super::DecodeError;
use super::wire::{Reader, Wire, Writer};
use crate::constants::{Codebook, Constants, Tensor, TensorData};
use crate::ids::{CodebookId, CtId, CtRange, LayerId, LayoutId, MapId, TensorId};
use crate::layout::{LayoutSpec, Shape};
use crate::linear::{LinearOp, LinearTerm, Pairing};
use crate::params::{Level, ParamsSpec};
use crate::plan::{Plan, Split};
use crate::program::{
    InputSpec, Instruction, LayerSpec, LinearMap, Op, Origin, OutputSpec, Prediction, Preprocessing,
    ProgramSpec, RotationKey,
};
use crate::rotation::Rotation;
use crate::scale::Scale;

macro_rules! sections {
    ($($tag:literal $field:ident)*) => {
        /// Writes the sections in order.
        pub(super) fn write(program: &ProgramSpec, w: &mut Writer) {
            $(w.section($tag, &|w| program.$field.put(w));)*
        }

        /// Reads the sections in order, to the last byte.
        pub(super) fn read(r: &mut Reader<'_>) -> Result<ProgramSpec, DecodeError> {
            let program = ProgramSpec { $($field: r.section($tag, Wire::get)?,)* };
            match r.remaining() {
                0 => Ok(program),
                _ => Err(r.error("bytes after the last section")),
            }
        }
    };
}

sections! {
    b"PARM" params
    b"ORIG" origin
    b"INPT" input
    b"OUTP" output
    b"LAYT" layouts
    b"CNST" constants
    b"MAPS" maps
    b"LAYR" layers
    b"CODE" instructions
    b"ROTK" rotation_keys
    b"RELK" relin_level
    b"CONK" conjugation_level
    b"PRED" prediction
}

macro_rules! structs {
    ($($name:ident { $($field:tt)* })*) => {$(
        impl Wire for $name {
            fn put(&self, w: &mut Writer) {
                structs!(@put self w $($field)*);
            }

            fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                structs!(@get r $name $($field)*)
            }
        }
    )*};
    (@put $self:ident $w:ident 0) => { $self.0.put($w) };
    (@put $self:ident $w:ident $($field:ident)*) => { $($self.$field.put($w);)* };
    (@get $r:ident $name:ident 0) => { Wire::get($r).map($name) };
    (@get $r:ident $name:ident $($field:ident)*) => { Ok($name { $($field: Wire::get($r)?,)* }) };
}

structs! {
    Level { 0 }
    CtId { 0 }
    TensorId { 0 }
    CodebookId { 0 }
    LayoutId { 0 }
    MapId { 0 }
    LayerId { 0 }
    CtRange { first len }
    ParamsSpec { log_n towers special_primes digit_size insecure toy }
    Origin { model producer packing }
    InputSpec { name layout level scale preprocessing }
    Preprocessing { mean std }
    OutputSpec { name layout labels }
    Shape { channels height width }
    LayoutSpec { shape members slots gap phases blocks row_stride block_stride member_stride period }
    Constants { tensors codebooks }
    Tensor { members shape data }
    Codebook { members values }
    LinearMap { terms output pairing plan }
    LinearTerm { op input }
    Plan { splits }
    Split { rotation baby }
    LayerSpec { name seconds error }
    Instruction { layer op }
    RotationKey { rotation level }
    Prediction { seconds encode_seconds key_bytes plaintext_bytes ciphertext_bytes max_abs_error }
}

macro_rules! enums {
    ($($name:ident { $($tag:literal $variant:ident { $($field:ident)* })* })*) => {$(
        impl Wire for $name {
            fn put(&self, w: &mut Writer) {
                match self {
                    $($name::$variant { $($field),* } => {
                        w.raw(&[$tag]);
                        $($field.put(w);)*
                    })*
                }
            }

            fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                match r.byte()? {
                    $($tag => Ok($name::$variant { $($field: Wire::get(r)?),* }),)*
                    _ => Err(r.error("unknown tag")),
                }
            }
        }
    )*};
}

enums! {
    Pairing {
        0 None {}
        1 Halves {}
        2 Outputs {}
    }
    LinearOp {
        0 Conv2d { weight stride pads dilation groups }
        1 Dense { weight }
        2 SumPool { kernel stride pads factor }
        3 Pick { factors channel_offset stride pads }
    }
    Op {
        0 Input { dst }
        1 Linear { dst src map scale }
        2 Square { dst src }
        3 Mul { dst a b }
        4 Add { dst a b }
        5 Sub { dst a b }
        6 AddPlain { dst src tensor }
        7 MulPlain { dst src tensor scale }
        8 MulScalar { dst src value scale }
        9 Rescale { dst src }
        10 Drop { dst src level }
        11 Free { src }
        12 Output { src }
    }
}

impl Wire for Scale {
    fn put(&self, w: &mut Writer) {
        self.value().put(w);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Scale::new(f64::get(r)?).map_err(|_| r.error("not a scale"))
    }
}

impl Wire for Rotation {
    fn put(&self, w: &mut Writer) {
        (self.amount() as i32).put(w);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let amount = i32::get(r)?;
        let rotation = Rotation::new(i64::from(amount), crate::layout::MAX_SLOTS as usize);
        if rotation.amount() == i64::from(amount) { Ok(rotation) } else { Err(r.error("rotation too large")) }
    }
}

/// Dense values as they are; indices packed into as few bits as the largest needs.
impl Wire for TensorData {
    fn put(&self, w: &mut Writer) {
        match self {
            TensorData::Dense(values) => {
                w.raw(&[0]);
                values.put(w);
            }
            TensorData::Clustered { codebooks, indices } => {
                w.raw(&[1]);
                codebooks.put(w);
                put_packed(indices, w);
            }
        }
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.byte()? {
            0 => Ok(TensorData::Dense(Wire::get(r)?)),
            1 => Ok(TensorData::Clustered { codebooks: Wire::get(r)?, indices: get_packed(r)? }),
            _ => Err(r.error("unknown tag")),
        }
    }
}

fn bits_needed(indices: &[u16]) -> u32 {
    (16 - indices.iter().max().map_or(16, |max| max.leading_zeros())).max(1)
}

fn put_packed(indices: &[u16], w: &mut Writer) {
    let bits = bits_needed(indices);
    indices.len().put(w);
    w.raw(&[bits as u8]);
    let (mut pending, mut filled) = (0u32, 0);
    for &index in indices {
        pending |= u32::from(index) << filled;
        filled += bits;
        while filled >= 8 {
            w.raw(&[pending as u8]);
            pending >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        w.raw(&[pending as u8]);
    }
}

fn get_packed(r: &mut Reader<'_>) -> Result<Vec<u16>, DecodeError> {
    let count = r.varint()?;
    let bits = u32::from(r.byte()?);
    if !(1..=16).contains(&bits) {
        return Err(r.error("index of 1 to 16 bits expected"));
    }
    let bytes =
        count.checked_mul(u64::from(bits)).map(|n| n.div_ceil(8)).filter(|&n| n <= r.remaining() as u64);
    let bytes = bytes.ok_or_else(|| r.error("count exceeds the section"))?;
    let mut packed = r.raw(bytes as usize)?.iter();
    let (mut pending, mut filled) = (0u32, 0);
    let mut indices = Vec::with_capacity(count as usize);
    for _ in 0..count {
        while filled < bits {
            pending |= u32::from(packed.next().copied().unwrap_or(0)) << filled;
            filled += 8;
        }
        indices.push((pending & ((1 << bits) - 1)) as u16);
        pending >>= bits;
        filled -= bits;
    }
    // One form per value: no wider than needed, unused bits zero.
    if pending != 0 || bits != bits_needed(&indices) {
        return Err(r.error("indices are not packed tightly"));
    }
    Ok(indices)
}
