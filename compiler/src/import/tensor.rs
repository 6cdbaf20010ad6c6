//! Reads a protobuf tensor into a [`Constant`], trusting none of its lengths.

use std::sync::Arc;

use tract_onnx::pb::TensorProto;
use tract_onnx::pb::tensor_proto::{DataLocation, DataType};

use super::constant::{Constant, Data};
use super::error::Malformed;
use super::external::ExternalData;
use super::limits::{MAX_RANK, product};

/// Converts and consumes a tensor, so that two copies of its data exist only while it is read.
pub(super) fn read(mut proto: TensorProto, external: &ExternalData) -> Result<Constant, Malformed> {
    let name = std::mem::take(&mut proto.name);
    let problem = |problem: String| Malformed::Tensor { tensor: name.clone(), problem };
    let dims = extents(&proto.dims).map_err(problem)?;
    let len = product(&dims, usize::MAX >> 4).ok_or_else(|| problem("is too large".into()))?;
    if proto.segment.is_some() {
        return Err(problem("is stored in segments, which nobody writes any more".into()));
    }
    let raw = if proto.data_location == Some(DataLocation::External as i32) {
        Some(external.read(&proto.external_data).map_err(problem)?)
    } else if proto.raw_data.is_empty() {
        None
    } else {
        Some(std::mem::take(&mut proto.raw_data))
    };
    let kind = DataType::try_from(proto.data_type).unwrap_or(DataType::Undefined);
    let data = match raw {
        Some(raw) => from_raw(kind, &raw, len),
        None => from_fields(kind, proto, len),
    };
    Ok(Constant { dims, data: data.map_err(problem)? })
}

fn extents(dims: &[i64]) -> Result<Vec<usize>, String> {
    if dims.len() > MAX_RANK {
        return Err(format!("has rank {}, more than {MAX_RANK}", dims.len()));
    }
    dims.iter().map(|&d| usize::try_from(d).map_err(|_| format!("has a negative extent {d}"))).collect()
}

fn from_raw(kind: DataType, raw: &[u8], len: usize) -> Result<Data, String> {
    let width = match kind {
        DataType::Uint8 | DataType::Int8 | DataType::Bool => 1,
        DataType::Uint16 | DataType::Int16 | DataType::Float16 | DataType::Bfloat16 => 2,
        DataType::Float | DataType::Int32 | DataType::Uint32 => 4,
        DataType::Double | DataType::Int64 | DataType::Uint64 => 8,
        other => return Err(format!("has element type {other:?}, which is not supported")),
    };
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
        DataType::Int64 | DataType::Uint64 => ints(words(raw).map(i64::from_le_bytes)),
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
            Ok(Data::Int(proto.uint64_data.iter().map(|&x| x as i64).collect()))
        }
        DataType::Float16 | DataType::Bfloat16 => {
            counted(proto.int32_data.len())?;
            let convert = if kind == DataType::Float16 {
                half_to_f32
            } else {
                |bits| f32::from_bits(u32::from(bits) << 16)
            };
            Ok(Data::F32(proto.int32_data.iter().map(|&x| convert(x as u16)).collect()))
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
        DataType::String => Ok(Data::Text),
        other => Err(format!("has element type {other:?}, which is not supported")),
    }
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
        let error = read(proto, &ExternalData::new(None)).unwrap_err();
        assert_eq!(error.to_string(), "tensor `w` has 15 bytes of data for 4 elements of 4");
    }

    #[test]
    fn overflowing_extents_are_an_error() {
        let proto = TensorProto { dims: vec![i64::MAX, i64::MAX], data_type: 1, ..Default::default() };
        assert!(read(proto, &ExternalData::new(None)).is_err());
    }
}
