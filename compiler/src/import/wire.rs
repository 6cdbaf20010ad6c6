//! A look at the raw protobuf before it is decoded.
//!
//! Decoding turns a record of two bytes into a structure of hundreds, so a small file could fill the memory. This walk
//! touches every record once, allocates nothing, and adds up what the decoded structures will take.

use std::mem::size_of;

use fhec_onnx as pb;

use super::error::Malformed;
use super::limits::MAX_NESTING;

/// Bytes that the structures of any file may take,
const FREE_BYTES: usize = 4 << 20;
/// and for every byte of the file. A short attribute of a real model takes about thirty.
const BYTES_PER_BYTE: usize = 64;

/// The messages that hold other messages or strings, by the field numbers of the ONNX schema.
#[derive(Clone, Copy)]
enum Message {
    Model,
    Training,
    Graph,
    Node,
    Attribute,
    Tensor,
    Sparse,
    ValueInfo,
    Function,
    /// Strings and messages without repeated parts.
    Leaf,
}

impl Message {
    fn child(self, field: u64) -> Self {
        match (self, field) {
            (Self::Model, 7) | (Self::Training, 1 | 2) => Self::Graph,
            (Self::Model, 20) => Self::Training,
            (Self::Model, 25) => Self::Function,
            (Self::Graph, 1) | (Self::Function, 7) => Self::Node,
            (Self::Graph, 5) | (Self::Sparse, 1 | 2) => Self::Tensor,
            (Self::Graph, 11..=14) => Self::ValueInfo,
            (Self::Graph, 15) | (Self::Attribute, 22 | 23) => Self::Sparse,
            (Self::Node, 5) => Self::Attribute,
            (Self::Attribute, 5 | 10) => Self::Tensor,
            (Self::Attribute, 6 | 11) => Self::Graph,
            (Self::Attribute, 14 | 15) => Self::ValueInfo,
            (Self::ValueInfo, _) => Self::ValueInfo,
            _ => Self::Leaf,
        }
    }

    /// Bytes of the decoded structure.
    fn size(self) -> usize {
        match self {
            Self::Model => size_of::<pb::ModelProto>(),
            Self::Training => size_of::<pb::TrainingInfoProto>(),
            Self::Graph => size_of::<pb::GraphProto>(),
            Self::Node => size_of::<pb::NodeProto>(),
            Self::Attribute => size_of::<pb::AttributeProto>(),
            Self::Tensor => size_of::<pb::TensorProto>(),
            Self::Sparse => size_of::<pb::SparseTensorProto>(),
            Self::ValueInfo => size_of::<pb::ValueInfoProto>(),
            Self::Function => size_of::<pb::FunctionProto>(),
            Self::Leaf => size_of::<pb::StringStringEntryProto>(),
        }
    }
}

/// Refuses bytes whose structures would take much more than they do themselves, or nest too deep. What it cannot walk is
/// left to the decoder to refuse.
pub(super) fn check(bytes: &[u8]) -> Result<(), Malformed> {
    let limit = bytes.len().saturating_mul(BYTES_PER_BYTE).saturating_add(FREE_BYTES);
    let mut left = limit;
    walk(bytes, Message::Model, 0, &mut left, limit)
}

fn walk(
    mut bytes: &[u8],
    message: Message,
    depth: usize,
    left: &mut usize,
    limit: usize,
) -> Result<(), Malformed> {
    if depth > MAX_NESTING {
        return Err(Malformed::Decode(format!("messages nest deeper than {MAX_NESTING}")));
    }
    while let Some((key, rest)) = varint(bytes) {
        bytes = rest;
        let skip = match key & 7 {
            0 => match varint(bytes) {
                Some((_, rest)) => bytes.len() - rest.len(),
                None => return Ok(()),
            },
            1 => 8,
            5 => 4,
            2 => {
                let Some((len, rest)) = varint(bytes) else { return Ok(()) };
                let Some(body) = usize::try_from(len).ok().and_then(|n| rest.get(..n)) else { return Ok(()) };
                let child = message.child(key >> 3);
                *left = left.checked_sub(child.size()).ok_or(Malformed::TooManyRecords { limit })?;
                match child {
                    Message::Leaf => {}
                    inner => walk(body, inner, depth + 1, left, limit)?,
                }
                bytes = &rest[body.len()..];
                continue;
            }
            _ => return Ok(()),
        };
        let Some(rest) = bytes.get(skip..) else { return Ok(()) };
        bytes = rest;
    }
    Ok(())
}

/// A variable-length integer and the bytes after it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[i + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes.
    fn field(number: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2];
        let mut len = body.len();
        while len >= 0x80 {
            bytes.push((len & 0x7f) as u8 | 0x80);
            len >>= 7;
        }
        bytes.push(len as u8);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn empty_structures_are_counted_before_they_are_decoded() {
        let nodes = [0x0a, 0x00].repeat(1_000_000);
        let training = field(2, &nodes);
        // A graph (7) of empty nodes, and the same as the algorithm (2) of a training (20).
        let mut hidden = vec![0xa2, 0x01];
        hidden.extend(&field(0, &training)[1..]);
        for bytes in [field(7, &nodes), hidden] {
            assert!(matches!(check(&bytes), Err(Malformed::TooManyRecords { .. })));
        }
    }

    #[test]
    fn truncated_bytes_are_left_to_the_decoder() {
        assert_eq!(check(&[0x3a, 0x7f, 0x0a]), Ok(()));
        assert_eq!(check(&[0xff; 12]), Ok(()));
    }
}
