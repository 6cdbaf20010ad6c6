//! Reads a protobuf tensor into a [`Constant`], trusting none of its lengths.

use std::sync::Arc;

use fhec_onnx::{DataLocation, DataType, TensorProto};

use super::clean::clean;
use super::constant::{Constant, Data};
use super::error::Malformed;
use super::external::ExternalData;
use super::limits::{Budget, MAX_EMPTY_VOLUME, MAX_RANK, product, volume};

/// What a tensor of a model holds.
#[derive(Debug)]
pub(super) enum Read {
    /// Numbers.
    Numbers(Constant),
    /// Strings, which only operators behind the network's result may read.
    Text(Vec<String>),
}

/// Converts and consumes a tensor, so that two copies of its data exist only while it is read.
pub(super) fn read(
    mut proto: TensorProto,
    external: &mut ExternalData,
    budget: &mut Budget,
) -> Result<Read, Malformed> {
    let name = std::mem::take(&mut proto.name);
    let problem = |problem: String| Malformed::Tensor { tensor: name.clone(), problem };
    let dims = extents(&proto.dims).map_err(problem)?;
    let len = product(&dims, usize::MAX >> 4).ok_or_else(|| problem("is too large".into()))?;
    if len == 0 && volume(&dims, MAX_EMPTY_VOLUME).is_none() {
        return Err(problem(format!("has no elements, but extents of {dims:?}")));
    }
    if proto.segment.is_some() {
        return Err(problem("is stored in segments, which nobody writes any more".into()));
    }
    let kind = DataType::try_from(proto.data_type).unwrap_or(DataType::Undefined);
    if kind == DataType::String {
        return match proto.string_data.len() == len {
            true => Ok(Read::Text(proto.string_data.iter().map(|bytes| text(bytes)).collect())),
            false => Err(problem(format!("has {} strings for {len} elements", proto.string_data.len()))),
        };
    }
    let width = width(kind).map_err(problem)?;
    let raw = if proto.data_location == Some(DataLocation::External as i32) {
        let wanted = len.checked_mul(width).ok_or_else(|| problem("is too large".into()))?;
        let bytes = external.read(&proto.external_data, wanted as u64).map_err(problem)?;
        budget.grow(bytes.len());
        Some(bytes)
    } else if proto.raw_data.is_empty() {
        None
    } else {
        Some(std::mem::take(&mut proto.raw_data))
    };
    let data = match raw {
        Some(raw) => from_raw(kind, &raw, len, width),
        None => from_fields(kind, proto, len),
    };
    Ok(Read::Numbers(Constant { dims, data: data.map_err(problem)? }))
}

/// Text of a model as messages may show it.
pub(super) fn text(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    clean(&mut text);
    text
}

fn extents(dims: &[i64]) -> Result<Vec<usize>, String> {
    if dims.len() > MAX_RANK {
        return Err(format!("has rank {}, more than {MAX_RANK}", dims.len()));
    }
    dims.iter().map(|&d| usize::try_from(d).map_err(|_| format!("has a negative extent {d}"))).collect()
}

/// Bytes of an element in raw data.
fn width(kind: DataType) -> Result<usize, String> {
    match kind {
        DataType::Uint8 | DataType::Int8 | DataType::Bool => Ok(1),
        DataType::Uint16 | DataType::Int16 | DataType::Float16 | DataType::Bfloat16 => Ok(2),
        DataType::Float | DataType::Int32 | DataType::Uint32 => Ok(4),
        DataType::Double | DataType::Int64 | DataType::Uint64 => Ok(8),
        other => Err(format!("has element type {other:?}, which is not supported")),
    }
}

fn from_raw(kind: DataType, raw: &[u8], len: usize, width: usize) -> Result<Data, String> {
    let expected = len.checked_mul(width);
    if expected != Some(raw.len()) {
        return Err(format!("has {} bytes of data for {len} elements of {width}", raw.len()));
    }
    fn words<const W: usize>(raw: &[u8]) -> impl Iterator<Item = [u8; W]> {
        raw.as_chunks::<W>().0.iter().copied()
    }
    fn ints(values: impl Iterator<Item = i64>) -> Data {
        Data::Int(values.collect())
    }
    Ok(match kind {
        DataType::Float => Data::F32(words(raw).map(f32::from_le_bytes).collect()),
        DataType::Double => Data::F64(words(raw).map(f64::from_le_bytes).collect()),
        DataType::Float16 => Data::F32(words(raw).map(u16::from_le_bytes).map(half_to_f32).collect()),
        DataType::Bfloat16 => {
            Data::F32(words(raw).map(|w| f32::from_bits(u32::from(u16::from_le_bytes(w)) << 16)).collect())
        }
        DataType::Int8 => ints(raw.iter().map(|&b| i64::from(b as i8))),
        DataType::Uint16 => ints(words(raw).map(|w| i64::from(u16::from_le_bytes(w)))),
        DataType::Int16 => ints(words(raw).map(|w| i64::from(i16::from_le_bytes(w)))),
        DataType::Int32 => ints(words(raw).map(|w| i64::from(i32::from_le_bytes(w)))),
        DataType::Uint32 => ints(words(raw).map(|w| i64::from(u32::from_le_bytes(w)))),
        DataType::Int64 => ints(words(raw).map(i64::from_le_bytes)),
        DataType::Uint64 => Data::Int(signed(words(raw).map(u64::from_le_bytes))?),
        _ => ints(raw.iter().map(|&b| i64::from(b))),
    })
}

fn from_fields(kind: DataType, proto: TensorProto, len: usize) -> Result<Data, String> {
    let counted = |n: usize| {
        if n == len { Ok(()) } else { Err(format!("has {n} values for {len} elements")) }
    };
    match kind {
        DataType::Float => {
            counted(proto.float_data.len())?;
            Ok(Data::F32(proto.float_data.into()))
        }
        DataType::Double => {
            counted(proto.double_data.len())?;
            Ok(Data::F64(proto.double_data.into()))
        }
        DataType::Int64 => {
            counted(proto.int64_data.len())?;
            Ok(Data::Int(proto.int64_data.into()))
        }
        DataType::Uint32 | DataType::Uint64 => {
            counted(proto.uint64_data.len())?;
            Ok(Data::Int(signed(proto.uint64_data.iter().copied())?))
        }
        DataType::Float16 | DataType::Bfloat16 => {
            counted(proto.int32_data.len())?;
            let convert = if kind == DataType::Float16 {
                half_to_f32
            } else {
                |bits| f32::from_bits(u32::from(bits) << 16)
            };
            let bits = proto.int32_data.iter().map(|&x| u16::try_from(x).map(convert));
            let values = bits.collect::<Result<Arc<[f32]>, _>>();
            Ok(Data::F32(values.map_err(|_| "has half-precision numbers of more than 16 bits")?))
        }
        DataType::Int32
        | DataType::Int16
        | DataType::Int8
        | DataType::Uint16
        | DataType::Uint8
        | DataType::Bool => {
            counted(proto.int32_data.len())?;
            Ok(Data::Int(proto.int32_data.iter().map(|&x| i64::from(x)).collect::<Arc<[i64]>>()))
        }
        other => Err(format!("has element type {other:?}, which is not supported")),
    }
}

/// Unsigned integers, if all of them are also signed ones.
fn signed(values: impl Iterator<Item = u64>) -> Result<Arc<[i64]>, String> {
    let values = values
        .map(|v| i64::try_from(v).map_err(|_| format!("holds {v}, which is no 64-bit integer with sign")));
    values.collect()
}

/// IEEE half precision to single, exactly.
fn half_to_f32(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from((bits >> 10) & 0x1f);
    let fraction = f32::from(bits & 0x3ff);
    match exponent {
        0 => sign * fraction * (-24_f32).exp2(),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * ((exponent - 15) as f32).exp2(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_converts_exactly() {
        let cases =
            [(0x3c00, 1.0), (0xc000, -2.0), (0x3555, 0.333_251_95), (0x0001, 5.960_464_5e-8), (0, 0.0)];
        for (bits, expected) in cases {
            assert_eq!(half_to_f32(bits), expected);
        }
    }

    #[test]
    fn short_raw_data_is_an_error() {
        let proto = TensorProto {
            name: "w".into(),
            dims: vec![2, 2],
            data_type: DataType::Float as i32,
            raw_data: vec![0; 15],
            ..Default::default()
        };
        let error = read(proto, &mut ExternalData::new(None), &mut Budget::of_file(0)).unwrap_err();
        assert_eq!(error.to_string(), "tensor `w` has 15 bytes of data for 4 elements of 4");
    }

    fn problem(proto: TensorProto) -> String {
        let read = read(proto, &mut ExternalData::new(None), &mut Budget::of_file(0));
        read.expect_err("a hostile tensor").to_string()
    }

    #[test]
    fn a_tensor_without_elements_has_no_large_extents() {
        let proto =
            TensorProto { name: "w".into(), dims: vec![0, 1 << 50], data_type: 1, ..Default::default() };
        assert_eq!(problem(proto), "tensor `w` has no elements, but extents of [0, 1125899906842624]");
    }

    #[test]
    fn strings_are_counted_and_are_no_numbers() {
        let kind = DataType::String as i32;
        let proto = TensorProto { dims: vec![1 << 40], data_type: kind, ..Default::default() };
        assert!(problem(proto).contains("has 0 strings for 1099511627776 elements"));
        let proto = TensorProto {
            dims: vec![1],
            data_type: kind,
            string_data: vec![b"cat".to_vec()],
            ..Default::default()
        };
        let read = read(proto, &mut ExternalData::new(None), &mut Budget::of_file(0));
        assert!(matches!(read, Ok(Read::Text(_))));
    }

    #[test]
    fn integers_that_do_not_fit_are_an_error() {
        let kind = DataType::Uint64 as i32;
        let proto =
            TensorProto { dims: vec![1], data_type: kind, raw_data: vec![0xff; 8], ..Default::default() };
        assert!(problem(proto).contains("18446744073709551615"));
        let kind = DataType::Float16 as i32;
        let proto =
            TensorProto { dims: vec![1], data_type: kind, int32_data: vec![1 << 16], ..Default::default() };
        assert!(problem(proto).contains("16 bits"));
    }

    #[test]
    fn overflowing_extents_are_an_error() {
        let proto = TensorProto { dims: vec![i64::MAX, i64::MAX], data_type: 1, ..Default::default() };
        assert!(read(proto, &mut ExternalData::new(None), &mut Budget::of_file(0)).is_err());
    }
}
