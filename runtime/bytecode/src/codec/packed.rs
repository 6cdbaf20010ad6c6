//! Indices of clustered tensors, packed into as few bits as the largest needs.

use super::DecodeError;
use super::wire::{Reader, Wire, Writer};

/// Count, bits per index, then the indices from the least significant bit of the first byte on.
pub(super) struct Indices(pub(super) Vec<u16>);

impl Wire for Indices {
    fn put(&self, w: &mut Writer) {
        put_packed(&self.0, w);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        get_packed(r).map(Indices)
    }
}

fn bits_needed(indices: &[u16]) -> u32 {
    (16 - indices.iter().max().map_or(16, |max| max.leading_zeros())).max(1)
}

fn put_packed(indices: &[u16], w: &mut Writer) {
    let bits = bits_needed(indices);
    indices.len().put(w);
    w.raw(&bits.to_le_bytes()[..1]);
    let (mut pending, mut filled) = (0u32, 0);
    for &index in indices {
        pending |= u32::from(index) << filled;
        filled += bits;
        while filled >= 8 {
            w.raw(&pending.to_le_bytes()[..1]);
            pending >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        w.raw(&pending.to_le_bytes()[..1]);
    }
}

fn get_packed(r: &mut Reader<'_>) -> Result<Vec<u16>, DecodeError> {
    let count = r.varint()?;
    let bits = u32::from(r.byte()?);
    if !(1..=16).contains(&bits) {
        return Err(r.error("index of 1 to 16 bits expected"));
    }
    let bytes = count.checked_mul(u64::from(bits)).map(|n| n.div_ceil(8));
    let fitting = |n: u64| usize::try_from(n).ok().filter(|&n| n <= r.remaining());
    let bytes = bytes.and_then(fitting).ok_or_else(|| r.error("count exceeds the section"))?;
    let mut packed = r.raw(bytes)?.iter();
    let (mut pending, mut filled) = (0u32, 0);
    // At most as many as there are bits.
    let mut indices = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    for _ in 0..count {
        while filled < bits {
            pending |= u32::from(packed.next().copied().unwrap_or(0)) << filled;
            filled += 8;
        }
        let [low, high, ..] = (pending & ((1 << bits) - 1)).to_le_bytes();
        indices.push(u16::from_le_bytes([low, high]));
        pending >>= bits;
        filled -= bits;
    }
    // One form per value: no wider than needed, unused bits zero.
    if pending != 0 || bits != bits_needed(&indices) {
        return Err(r.error("indices are not packed tightly"));
    }
    Ok(indices)
}
