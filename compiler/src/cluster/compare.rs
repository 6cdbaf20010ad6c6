//! What the same circuit would need without clustering.

use fhe_bytecode::{Constants, TensorData};

use crate::layout::{MOST_EXACT, Placed};

/// Distinct plaintexts of a circuit under plans without giant steps.
#[must_use]
pub fn distinct_plaintexts(placed: &Placed) -> usize {
    placed.maps().map(|(_, map)| map.diagonals.n_plaintexts()).sum()
}

/// Bytes of a program of `bytes` bytes if clustered weights were stored as plain numbers.
#[must_use]
pub fn unclustered_bytes(bytes: usize, constants: &Constants) -> usize {
    let mut total = bytes;
    for tensor in &constants.tensors {
        if let TensorData::Clustered { codebooks, indices } = &tensor.data {
            let dense = tensor.len() * tensor.members as usize;
            let bits = indices.iter().max().map_or(1, |&most| (16 - most.leading_zeros()).max(1) as usize);
            let packed = 1 + (indices.len() * bits).div_ceil(8);
            let ids: usize =
                codebooks.iter().map(|id| varint(id.index())).sum::<usize>() + varint(codebooks.len());
            total += varint(dense) + bytes_each(dense) * dense;
            total -= varint(indices.len()) + packed + ids;
        }
    }
    for book in &constants.codebooks {
        total -= varint(book.members as usize) + varint(book.values.len()) + 4 * book.values.len();
    }
    total
}

/// Bytes of every number of a tensor with so many: short ones have double precision.
fn bytes_each(n: usize) -> usize {
    if n > MOST_EXACT { 4 } else { 8 }
}

/// Bytes of a number in groups of seven bits.
fn varint(n: usize) -> usize {
    (usize::BITS - n.leading_zeros()).div_ceil(7).max(1) as usize
}
