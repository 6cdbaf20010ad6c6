//! A look at the raw protobuf before it is decoded.
//!
//! Decoding turns a record of two bytes into a structure of hundreds, so a small file could fill the memory. This walk
//! touches every record once, allocates nothing, and counts.

use super::error::Malformed;
use super::limits::{MAX_NESTING, MAX_RECORDS};

/// The messages that hold other messages or strings, by the field numbers of the ONNX schema.
#[derive(Clone, Copy)]
enum Message {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    ValueInfo,
    /// Strings and messages without repeated parts.
    Leaf,
}

impl Message {
    fn child(self, field: u64) -> Self {
        match (self, field) {
            (Self::Model, 7) => Self::Graph,
            // training_info and functions hold graphs and nodes.
            (Self::Model, 20) => Self::Model,
            (Self::Model, 25) => Self::Attribute,
            (Self::Graph, 1) => Self::Node,
            (Self::Graph, 5) => Self::Tensor,
            (Self::Graph, 11..=13) => Self::ValueInfo,
            (Self::Graph, 15) => Self::Attribute,
            (Self::Node, 5) => Self::Attribute,
            (Self::Attribute, 5 | 10) => Self::Tensor,
            (Self::Attribute, 6 | 11) => Self::Graph,
            (Self::Attribute, 7) => Self::Node,
            (Self::Attribute, 22 | 23) => Self::Attribute,
            (Self::ValueInfo, _) => Self::ValueInfo,
            _ => Self::Leaf,
        }
    }
}

/// Refuses bytes with too many records or too deep a nesting. What it cannot walk is left to the decoder to refuse.
pub(super) fn check(bytes: &[u8]) -> Result<(), Malformed> {
    let mut records = 0;
    walk(bytes, Message::Model, 0, &mut records)
}

fn walk(mut bytes: &[u8], message: Message, depth: usize, records: &mut usize) -> Result<(), Malformed> {
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
                *records += 1;
                if *records > MAX_RECORDS {
                    return Err(Malformed::TooManyRecords { limit: MAX_RECORDS });
                }
                match message.child(key >> 3) {
                    Message::Leaf => {}
                    inner => walk(body, inner, depth + 1, records)?,
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

    #[test]
    fn empty_nodes_are_counted_before_they_are_decoded() {
        // Field 7 (graph) of a model with a million and one empty nodes (field 1).
        let body: Vec<u8> = [0x0a, 0x00].repeat(MAX_RECORDS + 1);
        let mut bytes = vec![0x3a];
        let mut len = body.len();
        while len >= 0x80 {
            bytes.push((len & 0x7f) as u8 | 0x80);
            len >>= 7;
        }
        bytes.push(len as u8);
        bytes.extend(body);
        assert_eq!(check(&bytes), Err(Malformed::TooManyRecords { limit: MAX_RECORDS }));
    }

    #[test]
    fn truncated_bytes_are_left_to_the_decoder() {
        assert_eq!(check(&[0x3a, 0x7f, 0x0a]), Ok(()));
        assert_eq!(check(&[0xff; 12]), Ok(()));
    }
}
