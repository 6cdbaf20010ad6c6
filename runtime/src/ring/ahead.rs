//! Memory that will be read soon.

/// Bytes to ask for while a transform computes: they come from memory, and a transform leaves that idle.
#[derive(Clone, Debug, Default)]
pub struct Ahead<'a> {
    slices: Vec<&'a [u8]>,
    /// The slice to go on with, and how many of its bytes were asked for.
    at: (usize, usize),
}

impl<'a> Ahead<'a> {
    /// Bytes that will be read in this order.
    pub fn new(slices: Vec<&'a [u8]>) -> Self {
        Self { slices, at: (0, 0) }
    }

    /// Nothing to ask for.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// The next bytes, at most `len`; none when all were taken.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let slice = *self.slices.get(self.at.0)?;
        let end = (self.at.1 + len).min(slice.len());
        let bytes = &slice[self.at.1..end];
        self.at = if end == slice.len() { (self.at.0 + 1, 0) } else { (self.at.0, end) };
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_taken_once_and_in_order() {
        let bytes: Vec<u8> = (0..100).collect();
        for len in [1, 7, 32, 64] {
            let mut ahead = Ahead::new(vec![&bytes[..32], &bytes[32..33], &bytes[33..]]);
            let mut taken = Vec::new();
            while let Some(next) = ahead.take(len) {
                assert!(next.len() <= len);
                taken.extend_from_slice(next);
            }
            assert_eq!(taken, bytes);
        }
    }
}
