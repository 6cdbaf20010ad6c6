//! Little-endian fields with a running hash; the reader knows how many bytes are left and never trusts a count.
//!
//! Residues below q are stored in the bits of q - 1 each, lowest bit first; a vector ends on a byte boundary with
//! zero bits.

use std::io::{Read, Write};

use fhe_bytecode::Fingerprint;
use fhe_ring::parallel::*;

use super::error::FormatError;
use fhe_ring::packed::pack;

/// Bytes after the body: its length and the hash.
pub const TRAILER: u64 = TRAILER_LEN as u64;
/// The same, in memory.
pub const TRAILER_LEN: usize = 8 + 32;

/// Writes fields and hashes them on the way.
pub struct BodyWriter<W: Write> {
    inner: W,
    hasher: blake3::Hasher,
    written: u64,
}

impl<W: Write> BodyWriter<W> {
    /// Begins to write to `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, hasher: blake3::Hasher::new(), written: 0 }
    }

    /// What is written to.
    pub fn inner_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// As every function here that writes: if the inner writer refuses.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        self.hasher.update(bytes);
        self.written += bytes.len() as u64;
        Ok(self.inner.write_all(bytes)?)
    }

    /// Writes one byte.
    pub fn u8(&mut self, value: u8) -> Result<(), FormatError> {
        self.bytes(&[value])
    }

    /// Writes two bytes.
    pub fn u16(&mut self, value: u16) -> Result<(), FormatError> {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes four bytes.
    pub fn u32(&mut self, value: u32) -> Result<(), FormatError> {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes a double.
    pub fn f64(&mut self, value: f64) -> Result<(), FormatError> {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes a count; the reader checks it against the bytes left.
    pub fn count(&mut self, count: usize) -> Result<(), FormatError> {
        let count = u32::try_from(count).map_err(|_| bad_field("count", count))?;
        self.u32(count)
    }

    /// Packs residues below `modulus`.
    pub fn residues(&mut self, residues: &[u64], modulus: u64) -> Result<(), FormatError> {
        let bits = residue_bits(modulus);
        let mut packed = vec![0; size(packed_len(residues.len() as u64, bits))?];
        pack(&mut packed, residues, bits as usize);
        self.bytes(&packed)
    }

    /// Packs the towers of a polynomial, one after the other.
    pub fn poly(&mut self, residues: &[u64], moduli: &[u64]) -> Result<(), FormatError> {
        let n = residues.len() / moduli.len().max(1);
        residues.chunks_exact(n.max(1)).zip(moduli).try_for_each(|(tower, &q)| self.residues(tower, q))
    }

    /// Writes body length and hash, and gives the inner writer back.
    pub fn finish(self) -> Result<W, FormatError> {
        self.seal().map(|(inner, _)| inner)
    }

    /// As [`BodyWriter::finish`], with the hash.
    pub fn seal(mut self) -> Result<(W, Fingerprint), FormatError> {
        let length = self.written;
        self.bytes(&length.to_le_bytes())?;
        let hash = self.hasher.finalize();
        self.inner.write_all(hash.as_bytes())?;
        self.inner.flush()?;
        Ok((self.inner, Fingerprint(*hash.as_bytes())))
    }
}

/// Reads fields, at most as many bytes as there are, and hashes them on the way.
pub struct BodyReader<R: Read> {
    inner: R,
    hasher: blake3::Hasher,
    body_len: u64,
    remaining: u64,
}

impl<R: Read> BodyReader<R> {
    /// Reads from `inner`, which holds `total_len` bytes in all.
    pub fn new(inner: R, total_len: u64) -> Result<Self, FormatError> {
        let body_len = total_len
            .checked_sub(TRAILER)
            .ok_or(FormatError::Truncated { needed: TRAILER, remaining: total_len })?;
        Ok(Self { inner, hasher: blake3::Hasher::new(), body_len, remaining: body_len })
    }

    /// Fails unless `needed` more bytes are there. To be called before any allocation for them.
    pub fn expect(&self, needed: u64) -> Result<(), FormatError> {
        match needed <= self.remaining {
            true => Ok(()),
            false => Err(FormatError::Truncated { needed, remaining: self.remaining }),
        }
    }

    /// Fills `bytes`.
    ///
    /// # Errors
    /// As every function here that reads: if not enough bytes are left, or the inner reader refuses.
    pub fn fill(&mut self, bytes: &mut [u8]) -> Result<(), FormatError> {
        self.expect(bytes.len() as u64)?;
        self.inner.read_exact(bytes)?;
        self.hasher.update(bytes);
        self.remaining -= bytes.len() as u64;
        Ok(())
    }

    /// Reads so many bytes.
    pub fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], FormatError> {
        let mut bytes = [0; LEN];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// Reads two bytes.
    pub fn u16(&mut self) -> Result<u16, FormatError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Reads four bytes.
    pub fn u32(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Reads a double.
    pub fn f64(&mut self) -> Result<f64, FormatError> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// Reads a count of items that take at least `item_bytes` each; more than can follow is refused.
    pub fn count(&mut self, item_bytes: u64) -> Result<usize, FormatError> {
        let count = self.u32()?;
        self.expect(u64::from(count).saturating_mul(item_bytes.max(1)))?;
        Ok(count as usize)
    }

    /// Reads so many bytes, if they are there.
    pub fn bytes(&mut self, n_bytes: u64) -> Result<Vec<u8>, FormatError> {
        self.expect(n_bytes)?;
        let mut bytes = vec![0; size(n_bytes)?];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the towers of a polynomial of `n` coefficients; unpacks them in parallel.
    pub fn poly(&mut self, n: usize, moduli: &[u64]) -> Result<Vec<u64>, FormatError> {
        let packed = self.bytes(moduli.iter().map(|&q| residue_bytes(n, q)).sum())?;
        unpack_poly(&packed, n, moduli)
    }

    /// Fails unless exactly `len` bytes of the body are left. To be called before they are read.
    pub fn expect_exactly(&self, len: u64) -> Result<(), FormatError> {
        self.expect(len)?;
        match self.remaining - len {
            0 => Ok(()),
            n_bytes => Err(FormatError::TrailingBytes { n_bytes }),
        }
    }

    /// Reads to the end of the body and keeps nothing but the hash.
    pub fn skip(&mut self) -> Result<(), FormatError> {
        let mut chunk = vec![0; 1 << 16];
        while self.remaining > 0 {
            let len = usize::try_from(self.remaining).map_or(chunk.len(), |left| left.min(chunk.len()));
            self.fill(&mut chunk[..len])?;
        }
        Ok(())
    }

    /// Checks that the body is used up, and its length and hash; gives the hash.
    pub fn finish(mut self) -> Result<Fingerprint, FormatError> {
        if self.remaining != 0 {
            return Err(FormatError::TrailingBytes { n_bytes: self.remaining });
        }
        let mut length = [0; 8];
        self.inner.read_exact(&mut length)?;
        self.hasher.update(&length);
        let mut hash = [0; 32];
        self.inner.read_exact(&mut hash)?;
        // The comparison of blake3 hashes is constant-time.
        if u64::from_le_bytes(length) != self.body_len || self.hasher.finalize() != blake3::Hash::from(hash) {
            return Err(FormatError::WrongHash);
        }
        match self.inner.read(&mut [0; 1])? {
            0 => Ok(Fingerprint(hash)),
            n => Err(FormatError::TrailingBytes { n_bytes: n as u64 }),
        }
    }
}

/// Unpacks the towers of a polynomial of `n` coefficients, in parallel; `packed` has the bytes of these and no more.
pub fn unpack_poly(packed: &[u8], n: usize, moduli: &[u64]) -> Result<Vec<u64>, FormatError> {
    let mut towers = Vec::with_capacity(moduli.len());
    let mut rest = packed;
    for &q in moduli {
        let (tower, next) = rest.split_at(size(residue_bytes(n, q))?);
        towers.push((tower, q));
        rest = next;
    }
    let mut residues = vec![0; n * moduli.len()];
    residues
        .par_chunks_exact_mut(n.max(1))
        .zip(towers)
        // Not worth a thread below a few thousand residues.
        .with_min_len(((1 << 14) / n.max(1)).max(1))
        .try_for_each(|(residues, (packed, q))| unpack(packed, q, residues))?;
    Ok(residues)
}

/// The lower half of a word of two.
#[cfg_attr(not(test), expect(clippy::cast_possible_truncation))]
fn low(word: u128) -> u64 {
    word as u64
}

/// Unpacks residues and checks that each is below `modulus`, and that the bits behind the last are zero.
fn unpack(packed: &[u8], modulus: u64, residues: &mut [u64]) -> Result<(), FormatError> {
    let bits = residue_bits(modulus);
    let mut words = packed.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let mask = u64::MAX >> (64 - bits);
    let (mut pending, mut n_pending) = (0u128, 0u32);
    for residue in residues {
        if n_pending < bits {
            pending |= u128::from(words.next().unwrap_or(0)) << n_pending;
            n_pending += 64;
        }
        *residue = low(pending) & mask;
        if *residue >= modulus {
            return Err(bad_field("residue", format_args!("{residue}, not below {modulus}")));
        }
        pending >>= bits;
        n_pending -= bits;
    }
    match pending != 0 || words.any(|word| word != 0) {
        true => Err(bad_field("padding", "not zero")),
        false => Ok(()),
    }
}

/// Bytes that `n` residues below `modulus` take.
pub fn residue_bytes(n: usize, modulus: u64) -> u64 {
    packed_len(n as u64, residue_bits(modulus))
}

/// The error for a field with a value that cannot be.
pub fn bad_field(field: &'static str, value: impl ToString) -> FormatError {
    FormatError::BadField { field, value: value.to_string() }
}

/// Bytes that are to be held in memory; a machine of 32 bits cannot hold all that a file can.
fn size(n_bytes: u64) -> Result<usize, FormatError> {
    usize::try_from(n_bytes).map_err(|_| bad_field("length", n_bytes))
}

fn residue_bits(modulus: u64) -> u32 {
    64 - modulus.saturating_sub(1).max(1).leading_zeros()
}

fn packed_len(n: u64, bits: u32) -> u64 {
    (n * u64::from(bits)).div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(residues: &[u64], modulus: u64) -> Vec<u64> {
        let mut writer = BodyWriter::new(Vec::new());
        writer.residues(residues, modulus).unwrap();
        let data = writer.finish().unwrap();
        let mut reader = BodyReader::new(&data[..], data.len() as u64).unwrap();
        let read = reader.poly(residues.len(), &[modulus]).unwrap();
        reader.finish().unwrap();
        read
    }

    #[test]
    fn residues_of_any_width_survive() {
        // Under Miri a byte is dear.
        for bits in (1..=61u32).step_by(if cfg!(miri) { 12 } else { 1 }) {
            let modulus = (1u64 << bits) + 1;
            for n in [0usize, 1, 7, 64, 129] {
                let residues: Vec<u64> = (0..n as u64).map(|i| (modulus - 1) - (i * i) % modulus).collect();
                assert_eq!(round_trip(&residues, modulus), residues, "{bits} bits, {n} residues");
            }
        }
    }

    #[test]
    fn residue_not_below_its_modulus_is_refused() {
        let mut writer = BodyWriter::new(Vec::new());
        writer.residues(&[6], 8).unwrap();
        let data = writer.finish().unwrap();
        let mut reader = BodyReader::new(&data[..], data.len() as u64).unwrap();
        let error = reader.poly(1, &[6]).unwrap_err().to_string();
        assert_eq!(error, "is damaged: residue is 6, not below 6");
    }

    #[test]
    fn words_behind_the_last_residue_are_zero() {
        let mut packed = [0; 17];
        assert!(unpack(&packed, 64, &mut [0; 3]).is_ok());
        for at in [8, 15, 16] {
            packed[at] = 1;
            assert!(unpack(&packed, 64, &mut [0; 3]).is_err(), "byte {at}");
            packed[at] = 0;
        }
    }

    #[test]
    fn count_beyond_the_bytes_left_is_refused() {
        let mut writer = BodyWriter::new(Vec::new());
        writer.count(1000).unwrap();
        let data = writer.finish().unwrap();
        let mut reader = BodyReader::new(&data[..], data.len() as u64).unwrap();
        assert!(matches!(reader.count(8), Err(FormatError::Truncated { needed: 8000, remaining: 0 })));
    }
}
