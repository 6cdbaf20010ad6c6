//! One array in NumPy's own format: a header of one line, then the values.
//!
//! The header is a Python dictionary of three entries. Only what NumPy writes for arrays of plain numbers is read: there is
//! no nesting to follow, and what the shape promises must be in the file before room is made for it.

use crate::InputErrorKind;
use crate::samples::Values;

/// Longest header accepted; NumPy writes about a hundred bytes.
const MAX_HEADER: usize = 4096;
/// Most dimensions of an array.
const MAX_RANK: usize = 8;
/// Bytes that hold any accepted header.
pub(crate) const MAX_HEAD: usize = MAX_HEADER + 12;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kind {
    letter: u8,
    width: usize,
    is_big_endian: bool,
}

/// What the first bytes of a file say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    /// Extents, outermost first.
    pub(crate) dims: Vec<usize>,
    kind: Kind,
    /// Where the values start.
    body: usize,
}

fn damaged(reason: impl ToString) -> InputErrorKind {
    InputErrorKind::damaged("npy", reason)
}

impl Header {
    /// Reads a header; `head` may end behind it.
    pub(crate) fn parse(head: &[u8]) -> Result<Self, InputErrorKind> {
        let (start, len) = match head {
            [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _, a, b, ..] => {
                (10, usize::from(u16::from_le_bytes([*a, *b])))
            }
            [0x93, b'N', b'U', b'M', b'P', b'Y', 2 | 3, _, a, b, c, d, ..] => {
                (12, u32::from_le_bytes([*a, *b, *c, *d]) as usize)
            }
            _ => return Err(damaged("no known version")),
        };
        if len > MAX_HEADER {
            return Err(damaged(format!("header of {len} bytes")));
        }
        let text = head.get(start..start + len).ok_or_else(|| damaged("ends in its header"))?;
        let text = std::str::from_utf8(text).map_err(|_| damaged("a header that is no text"))?;
        let fields = Fields::parse(text).ok_or_else(|| damaged("a header that NumPy does not write"))?;
        if fields.is_fortran {
            return Err(damaged("Fortran order: save with numpy.ascontiguousarray"));
        }
        let kind = Kind::parse(fields.descr)
            .ok_or_else(|| InputErrorKind::NumberKind { found: kind_name(fields.descr) })?;
        Ok(Self { dims: fields.dims, kind, body: start + len })
    }

    /// The values, which must be all of the file behind the header.
    pub(crate) fn values(&self, file: &[u8]) -> Result<Values, InputErrorKind> {
        let body = file.get(self.body..).unwrap_or_default();
        let n = self.dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let n_bytes = n.and_then(|n| n.checked_mul(self.kind.width));
        let Some(body) = n_bytes.and_then(|n| body.get(..n)) else {
            return Err(damaged(format!("shape {:?} is larger than the file", self.dims)));
        };
        if self.kind.letter == b'u' {
            return Ok(Values::Pixels(body.to_vec()));
        }
        let numbers: Vec<f64> =
            body.chunks_exact(self.kind.width).map(|word| self.kind.number(word)).collect();
        match numbers.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(InputErrorKind::NotFinite { number: *x }),
            None => Ok(Values::Numbers(numbers)),
        }
    }
}

impl Kind {
    fn parse(descr: &str) -> Option<Self> {
        let [order, letter, width] = *descr.as_bytes() else { return None };
        let (is_big_endian, width) = (order == b'>', usize::from(width.checked_sub(b'0')?));
        let is_known = match order {
            b'|' => (letter, width) == (b'u', 1),
            b'<' | b'>' => matches!((letter, width), (b'u', 1) | (b'f' | b'i', 4 | 8)),
            _ => false,
        };
        is_known.then_some(Self { letter, width, is_big_endian })
    }

    /// A number of four or eight bytes.
    fn number(self, word: &[u8]) -> f64 {
        let mut bits = [0u8; 8];
        for (i, byte) in word.iter().enumerate() {
            let place = if self.is_big_endian { word.len() - 1 - i } else { i };
            bits[place] = *byte;
        }
        let low = [bits[0], bits[1], bits[2], bits[3]];
        match (self.letter, self.width) {
            (b'f', 4) => f64::from(f32::from_le_bytes(low)),
            (b'f', _) => f64::from_le_bytes(bits),
            (_, 4) => f64::from(i32::from_le_bytes(low)),
            _ => i64::from_le_bytes(bits) as f64,
        }
    }
}

/// The three entries of a header.
struct Fields<'t> {
    descr: &'t str,
    is_fortran: bool,
    dims: Vec<usize>,
}

impl<'t> Fields<'t> {
    /// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, its entries in any order.
    fn parse(text: &'t str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        let (mut descr, mut is_fortran, mut dims) = (None, None, None);
        while !rest.is_empty() {
            let (key, after) = quoted(rest)?;
            let value = after.trim_start().strip_prefix(':')?.trim_start();
            rest = match key {
                "descr" if descr.is_none() => {
                    let (value, after) = quoted(value)?;
                    descr = Some(value);
                    after
                }
                "fortran_order" if is_fortran.is_none() => {
                    let (value, after) = [("True", true), ("False", false)]
                        .into_iter()
                        .find_map(|(word, is_true)| value.strip_prefix(word).map(|after| (is_true, after)))?;
                    is_fortran = Some(value);
                    after
                }
                "shape" if dims.is_none() => {
                    let (inner, after) = value.strip_prefix('(')?.split_once(')')?;
                    dims = Some(extents(inner)?);
                    after
                }
                _ => return None,
            };
            rest = rest.trim_start();
            match rest.strip_prefix(',') {
                Some(after) => rest = after.trim_start(),
                None if rest.is_empty() => {}
                None => return None,
            }
        }
        Some(Self { descr: descr?, is_fortran: is_fortran?, dims: dims? })
    }
}

/// A string in single or double quotes, without escapes, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

/// `2, 3` or `2,` or nothing.
fn extents(text: &str) -> Option<Vec<usize>> {
    let text = text.trim();
    let text = text.strip_suffix(',').unwrap_or(text);
    if text.is_empty() {
        return Some(Vec::new());
    }
    let dims: Option<Vec<usize>> = text.split(',').map(|d| d.trim().parse().ok()).collect();
    dims.filter(|dims| dims.len() <= MAX_RANK)
}

/// What NumPy calls a kind of numbers.
fn kind_name(descr: &str) -> String {
    let name = match descr.trim_start_matches(['<', '>', '|', '=']) {
        "b1" => "booleans",
        "i1" => "int8 numbers",
        "i2" => "int16 numbers",
        "u2" => "uint16 numbers",
        "u4" => "uint32 numbers",
        "u8" => "uint64 numbers",
        "f2" => "float16 numbers",
        "c8" | "c16" => "complex numbers",
        text if text.starts_with(['U', 'S']) => "texts",
        _ => return format!("values of kind `{}`", descr.escape_debug()),
    };
    name.to_owned()
}
