//! Little-endian primitives: writing, and reading that never trusts a length.

use super::DecodeError;

/// Collects bytes.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// An unsigned number in 7-bit groups, least significant first, without superfluous groups.
    pub(super) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Walks through bytes; every read is bounded by what is left.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes of the file before these.
    before: usize,
    section: [u8; 4],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, before: 0, section: *b"HEAD" }
    }

    /// Walks through a part of a file that begins at byte `before`.
    pub(super) fn after(bytes: &'a [u8], before: usize) -> Self {
        Self { bytes, at: 0, before, section: *b"HEAD" }
    }

    pub(super) fn error(&self, what: &'static str) -> DecodeError {
        let section = String::from_utf8_lossy(&self.section).into_owned();
        DecodeError::Malformed { section, offset: self.before.saturating_add(self.at), what }
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn raw(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        if count > self.remaining() {
            return Err(self.error("unexpected end"));
        }
        let bytes = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(bytes)
    }

    pub(super) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], DecodeError> {
        let mut array = [0; LEN];
        array.copy_from_slice(self.raw(LEN)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..).step_by(7) {
            let byte = self.byte()?;
            let group = u64::from(byte & 0x7F);
            if shift > 63 || group << shift >> shift != group {
                return Err(self.error("number too large"));
            }
            value |= group << shift;
            if byte & 0x80 == 0 {
                if byte == 0 && shift > 0 {
                    return Err(self.error("superfluous zero group"));
                }
                break;
            }
        }
        Ok(value)
    }

    /// A count of items that take at least so many bytes each.
    pub(super) fn count(&mut self, min_bytes: usize) -> Result<usize, DecodeError> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count.saturating_mul(min_bytes.max(1)) <= self.remaining() => Ok(count),
            _ => Err(self.error("count exceeds the section")),
        }
    }

    /// Reads one section completely.
    pub(super) fn section<T>(
        &mut self,
        tag: &[u8; 4],
        content: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        self.section = *tag;
        if self.array::<4>()? != *tag {
            return Err(self.error("wrong section tag"));
        }
        let length = u64::from_le_bytes(self.array()?);
        let length = usize::try_from(length).ok().filter(|&n| n <= self.remaining());
        let length = length.ok_or_else(|| self.error("section exceeds the file"))?;
        let end = self.at + length;
        let mut inner = Reader { bytes: &self.bytes[..end], section: *tag, ..*self };
        let value = content(&mut inner)?;
        if inner.remaining() != 0 {
            return Err(inner.error("bytes left over"));
        }
        self.at = end;
        Ok(value)
    }
}

/// A value with one binary form.
pub(super) trait Wire: Sized {
    /// No value takes fewer bytes, so that counts can be held against the bytes that are left.
    const MIN_BYTES: usize = 1;

    fn put(&self, w: &mut Writer);
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

impl Wire for u64 {
    fn put(&self, w: &mut Writer) {
        w.varint(*self);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.varint()
    }
}

macro_rules! small_integers {
    ($($type:ty)*) => {$(
        impl Wire for $type {
            fn put(&self, w: &mut Writer) {
                w.varint(*self as u64);
            }

            fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                <$type>::try_from(r.varint()?).map_err(|_| r.error("number too large"))
            }
        }
    )*};
}
small_integers! { u8 u16 u32 usize }

/// Signed numbers alternate: 0, -1, 1, -2, …
impl Wire for i32 {
    fn put(&self, w: &mut Writer) {
        ((*self << 1) ^ (*self >> 31)).cast_unsigned().put(w);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let folded = u32::get(r)?;
        Ok((folded >> 1).cast_signed() ^ -((folded & 1).cast_signed()))
    }
}

impl Wire for bool {
    fn put(&self, w: &mut Writer) {
        w.raw(&[u8::from(*self)]);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(r.error("neither true nor false")),
        }
    }
}

impl Wire for f64 {
    const MIN_BYTES: usize = 8;

    fn put(&self, w: &mut Writer) {
        w.raw(&self.to_le_bytes());
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(f64::from_le_bytes)
    }
}

impl Wire for f32 {
    const MIN_BYTES: usize = 4;

    fn put(&self, w: &mut Writer) {
        w.raw(&self.to_le_bytes());
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(f32::from_le_bytes)
    }
}

impl Wire for String {
    fn put(&self, w: &mut Writer) {
        self.len().put(w);
        w.raw(self.as_bytes());
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = r.count(1)?;
        let bytes = r.raw(count)?.to_vec();
        String::from_utf8(bytes).map_err(|_| r.error("text is not UTF-8"))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, w: &mut Writer) {
        self.len().put(w);
        self.iter().for_each(|item| item.put(w));
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = r.count(T::MIN_BYTES)?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(T::get(r)?);
        }
        Ok(items)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, w: &mut Writer) {
        self.is_some().put(w);
        self.iter().for_each(|item| item.put(w));
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(if bool::get(r)? { Some(T::get(r)?) } else { None })
    }
}

impl<T: Wire + Copy> Wire for [T; 2] {
    const MIN_BYTES: usize = 2 * T::MIN_BYTES;

    fn put(&self, w: &mut Writer) {
        self.iter().for_each(|item| item.put(w));
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok([T::get(r)?, T::get(r)?])
    }
}
