//! Evaluation key files: what a server needs to relinearize and rotate, half of each key as a seed.
//!
//! ```text
//! keys u32 | use u32 (0 relinearize, else rotation steps), level u16 of every key | keys
//! key: seed 32 | one polynomial per digit
//! ```
//! Version 1 has use and level of a key before its seed. Segments and, in each, uses are strictly ascending: what a file holds,
//! and how long it is, is known before the first residue is read. A polynomial has the towers of all levels up to
//! the key's, then the special primes of its segment, in the ring of its segment; that of the way into a smaller ring has the
//! degree of the ring above.

use std::collections::VecDeque;
use std::io::{Read, Write};

use fhe_bytecode::{KeyPlace, Level, Params};
use fhe_ring::parallel::*;

use super::codec::{BodyReader, BodyWriter, TRAILER, bad_field, residue_bytes, unpack_poly};
use super::error::FormatError;
use super::header::{HEADER_LEN, Header, Kind};
use fhe_ckks::{
    Context, EvaluationKeys, Galois, KeyId, KeyRequest, KeySwitchKey, KeyUse, PublicSeed, UncheckedKey,
};

const COUNT_BYTES: u64 = 4;
const ENTRY_BYTES: u64 = 4 + 2;
const SEED_BYTES: u64 = 32;
/// Keys that are read before all threads check them.
const TOGETHER: usize = 4;

/// Writes evaluation keys one at a time, so that only one has to be in memory.
pub struct EvaluationKeysWriter<W: Write> {
    writer: BodyWriter<W>,
    rest: VecDeque<(KeyUse, Level)>,
}

/// Bytes of a file with keys that live there, in either version. Needs no tables of the parameters: it may be asked
/// before they are made.
pub fn evaluation_keys_len(params: &Params, places: impl IntoIterator<Item = KeyPlace>) -> u64 {
    let sizes = places.into_iter().map(|place| ENTRY_BYTES + SEED_BYTES + key_bytes(params, place));
    HEADER_LEN as u64 + COUNT_BYTES + sizes.sum::<u64>() + TRAILER
}

impl<W: Write> EvaluationKeysWriter<W> {
    /// Begins a file of the keys of `request`, which belong to the secret key `id`.
    ///
    /// # Errors
    /// If `to` cannot be written.
    pub fn new(to: W, context: &Context, id: KeyId, request: &KeyRequest) -> Result<Self, FormatError> {
        let mut writer = BodyWriter::new(to);
        Header::of(Kind::EvaluationKeys, context.params(), id).write(&mut writer)?;
        writer.count(request.len())?;
        for (key_use, level) in request.iter() {
            writer.u32(code(context, (key_use, level))?)?;
            writer.u16(level.0)?;
        }
        Ok(Self { writer, rest: request.iter().collect() })
    }

    /// Writes the next key, one digit after the other; keys come in the order of the request.
    ///
    /// # Errors
    /// If it is another key than the next, or cannot be written.
    pub fn write<D: AsRef<[u64]>>(
        &mut self,
        context: &Context,
        (key_use, level): (KeyUse, Level),
        seed: PublicSeed,
        digits: impl IntoIterator<Item = D>,
    ) -> Result<(), FormatError> {
        match self.rest.pop_front() {
            Some(next) if next == (key_use, level) => {}
            _ => return Err(FormatError::KeyNotAsked { key_use, level }),
        }
        self.writer.bytes(&seed.0)?;
        let moduli = context.of_key(key_use, level).params().key_primes(level);
        digits.into_iter().try_for_each(|digit| self.writer.poly(digit.as_ref(), &moduli))
    }

    /// The key to be written next; none at the end.
    pub fn next_key(&self) -> Option<(KeyUse, Level)> {
        self.rest.front().copied()
    }

    /// What is written to.
    pub fn inner_mut(&mut self) -> &mut W {
        self.writer.inner_mut()
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If a key is missing, or the end cannot be written.
    pub fn finish(self) -> Result<W, FormatError> {
        match self.next_key() {
            Some((key_use, level)) => Err(FormatError::KeyMissing { key_use, level }),
            None => self.writer.finish(),
        }
    }
}

/// Writes a set of keys.
///
/// # Errors
/// If `to` cannot be written.
pub fn encode_evaluation_keys(
    to: impl Write,
    context: &Context,
    keys: &EvaluationKeys,
) -> Result<(), FormatError> {
    let mut request = KeyRequest::default();
    for (key_use, key) in keys.iter() {
        request.add_in(context.params().segment(key.level()), key_use, key.level());
    }
    let mut writer = EvaluationKeysWriter::new(to, context, keys.id(), &request)?;
    for (key_use, key) in keys.iter() {
        writer.write(context, (key_use, key.level()), *key.seed(), key.residues())?;
    }
    writer.finish().map(drop)
}

/// Reads keys for the parameters of `context` from a file of `len` bytes.
///
/// # Errors
/// If the file is damaged or for other parameters.
pub fn decode_evaluation_keys(
    from: impl Read,
    len: u64,
    context: &Context,
) -> Result<EvaluationKeys, FormatError> {
    decode(from, len, context, None)
}

/// As [`decode_evaluation_keys`], exactly the keys of `request`: others are refused before a residue of them is read.
///
/// # Errors
/// If the file is damaged or for other parameters, lacks a key, or has one that is not asked for.
pub fn decode_requested_keys(
    from: impl Read,
    len: u64,
    context: &Context,
    request: &KeyRequest,
) -> Result<EvaluationKeys, FormatError> {
    decode(from, len, context, Some(request))
}

fn decode(
    from: impl Read,
    len: u64,
    context: &Context,
    request: Option<&KeyRequest>,
) -> Result<EvaluationKeys, FormatError> {
    let mut reader = BodyReader::new(from, len)?;
    let header = Header::read(&mut reader, Kind::EvaluationKeys)?;
    header.check_parameters(context.params())?;
    let n_keys = reader.count(key_bytes(context.params(), Level(0).into()))?;
    let wanted = request.map(|request| request.iter().collect());
    let mut order = Order { params: context.params(), wanted, last: None };
    let keys = match header.version {
        1 => decode_v1(&mut reader, context, n_keys, &mut order)?,
        _ => decode_v2(&mut reader, context, n_keys, &mut order)?,
    };
    reader.finish()?;
    Ok(EvaluationKeys::from_parts(context, header.key_id, keys))
}

type Keys = Vec<(KeyUse, KeySwitchKey)>;

/// Use and level stand before every key.
fn decode_v1<R: Read>(
    reader: &mut BodyReader<R>,
    context: &Context,
    n_keys: usize,
    order: &mut Order<'_>,
) -> Result<Keys, FormatError> {
    let mut keys = Keys::new();
    for _ in 0..n_keys {
        let wanted = order.next(entry(reader, context)?)?;
        keys.push((wanted.0, unpacked(context, wanted, packed(reader, context, wanted)?)?));
    }
    order.end().map(|()| keys)
}

/// Use and level of all keys stand in front.
fn decode_v2<R: Read>(
    reader: &mut BodyReader<R>,
    context: &Context,
    n_keys: usize,
    order: &mut Order<'_>,
) -> Result<Keys, FormatError> {
    let entries = (0..n_keys).map(|_| order.next(entry(reader, context)?)).collect::<Result<Vec<_>, _>>()?;
    order.end()?;
    let rest = entries.iter().map(|&entry| SEED_BYTES + key_bytes(context.params(), place(entry)));
    reader.expect_exactly(rest.fold(0, u64::saturating_add))?;
    let mut keys = Keys::new();
    for some in entries.chunks(TOGETHER) {
        // The file is read and hashed in order; what it says is checked, and the other halves grow, on all threads.
        let packed = some.iter().map(|&wanted| packed(reader, context, wanted));
        let packed = packed.collect::<Result<Vec<_>, _>>()?;
        let unpacked = some
            .par_iter()
            .zip(packed)
            .map(|(&wanted, packed)| Ok((wanted.0, unpacked(context, wanted, packed)?)));
        keys.extend(unpacked.collect::<Result<Vec<_>, FormatError>>()?);
    }
    Ok(keys)
}

/// Segments and, in each, uses are strictly ascending and, if they are known, those that are wanted.
struct Order<'a> {
    params: &'a Params,
    wanted: Option<VecDeque<(KeyUse, Level)>>,
    last: Option<(usize, KeyUse)>,
}

impl Order<'_> {
    fn next(&mut self, (key_use, level): (KeyUse, Level)) -> Result<(KeyUse, Level), FormatError> {
        let rank = |(key_use, level): (KeyUse, Level)| (self.params.segment(level), key_use);
        let own = rank((key_use, level));
        if self.last.is_some_and(|last| last >= own) {
            return Err(bad_field("use of a key", "not in order"));
        }
        self.last = Some(own);
        match self.wanted.as_mut().map(VecDeque::pop_front) {
            Some(Some(next)) if next == (key_use, level) => {}
            Some(Some(next)) if rank(next) < own || rank(next) == own && next.1 > level => {
                return Err(FormatError::KeyMissing { key_use: next.0, level: next.1 });
            }
            Some(_) => return Err(FormatError::KeyNotAsked { key_use, level }),
            None => {}
        }
        Ok((key_use, level))
    }

    fn end(&self) -> Result<(), FormatError> {
        match self.wanted.as_ref().and_then(VecDeque::front) {
            Some(&(key_use, level)) => Err(FormatError::KeyMissing { key_use, level }),
            None => Ok(()),
        }
    }
}

fn entry<R: Read>(reader: &mut BodyReader<R>, whole: &Context) -> Result<(KeyUse, Level), FormatError> {
    let (code, level) = (reader.u32()?, Level(reader.u16()?));
    whole.check_level(level).map_err(|_| bad_field("level", level))?;
    let context = whole.at(level);
    // Only a segment with a ring of its own has a way into it.
    let is_entered = whole.of_key(KeyUse::Enter, level).params().n() > context.params().n();
    let key_use = match code {
        0 => KeyUse::Relinearize,
        steps if (steps as usize) < context.slots() => KeyUse::rotation(i64::from(steps), context),
        steps if steps as usize == context.slots() => KeyUse::Move(Galois::Conjugation),
        steps if steps as usize == context.slots() + 1 && is_entered => KeyUse::Enter,
        steps => return Err(bad_field("rotation", steps)),
    };
    Ok((key_use, level))
}

/// A key as the file has it.
enum Packed {
    /// What memory has, too.
    AsInMemory(UncheckedKey),
    /// Its seed, and the bytes of all its polynomials: a prime is so large that memory has whole words.
    Bytes(PublicSeed, Vec<u8>),
}

fn packed<R: Read>(
    reader: &mut BodyReader<R>,
    whole: &Context,
    wanted: (KeyUse, Level),
) -> Result<Packed, FormatError> {
    let (context, level) = (whole.of_key(wanted.0, wanted.1), wanted.1);
    let seed = PublicSeed(reader.array()?);
    let len = key_bytes(whole.params(), place(wanted));
    if !UncheckedKey::is_possible(context, level) {
        return Ok(Packed::Bytes(seed, reader.bytes(len)?));
    }
    reader.expect(len)?;
    UncheckedKey::read(context, level, seed, |bytes| reader.fill(bytes)).map(Packed::AsInMemory)
}

fn unpacked(
    whole: &Context,
    (key_use, level): (KeyUse, Level),
    packed: Packed,
) -> Result<KeySwitchKey, FormatError> {
    let context = whole.of_key(key_use, level);
    let key = match packed {
        Packed::AsInMemory(key) => key.checked(context),
        Packed::Bytes(seed, packed) => {
            let (n, moduli) = (context.params().n(), context.params().key_primes(level));
            let len = packed.len() / context.params().key_digits(level).len().max(1);
            let digits = packed.chunks_exact(len.max(1)).map(|digit| unpack_poly(digit, n, &moduli));
            let digits = digits.collect::<Result<Vec<_>, _>>()?;
            KeySwitchKey::from_residues(context, level, seed, &digits)
        }
    };
    key.map_err(|e| bad_field("evaluation key", e))
}

/// How the file names a key: zero, the steps of a rotation, as many as its ring has slots for the conjugation, or one more for
/// the way into its ring.
fn code(context: &Context, (key_use, level): (KeyUse, Level)) -> Result<u32, FormatError> {
    let slots = context.at(level).slots();
    let code = match key_use {
        KeyUse::Relinearize => 0,
        KeyUse::Move(Galois::Rotation(rotation)) => rotation.steps(),
        KeyUse::Move(Galois::Conjugation) => slots,
        KeyUse::Enter => slots + 1,
    };
    u32::try_from(code).map_err(|_| bad_field("rotation", code))
}

fn place((key_use, level): (KeyUse, Level)) -> KeyPlace {
    KeyPlace { level, enters: key_use == KeyUse::Enter }
}

fn key_bytes(params: &Params, place: KeyPlace) -> u64 {
    let own = params.of_key(place);
    let poly: u64 = own.key_primes(place.level).iter().map(|&q| residue_bytes(own.n(), q)).sum();
    poly * own.key_digits(place.level).len() as u64
}

#[cfg(test)]
mod tests {

    use super::super::testing::{check_damage, toy_context, toy_key};
    use super::*;
    use fhe_fixed_seeds::fixed_seeds;

    fn request(context: &Context) -> KeyRequest {
        let mut request = KeyRequest::default();
        request.add(KeyUse::Relinearize, Level(2));
        request.add(KeyUse::rotation(-1, context), Level(0));
        request.add(KeyUse::rotation(3, context), Level(1));
        request
    }

    fn keys(context: &Context) -> EvaluationKeys {
        let mut seeds = fixed_seeds(2);
        toy_key(context, 1).evaluation_keys(context, &request(context), &mut seeds).unwrap()
    }

    #[test]
    fn keys_survive_the_file() {
        let context = toy_context();
        let mut data = Vec::new();
        encode_evaluation_keys(&mut data, &context, &keys(&context)).unwrap();
        assert_eq!(data.len() as u64, evaluation_keys_len(context.params(), request(&context).places()));
        let read = decode_evaluation_keys(&data[..], data.len() as u64, &context).unwrap();
        assert!(read == keys(&context));
    }

    #[test]
    fn exactly_the_keys_that_are_asked_for_are_read() {
        let context = toy_context();
        let mut data = Vec::new();
        encode_evaluation_keys(&mut data, &context, &keys(&context)).unwrap();
        assert_eq!(data.len() as u64, evaluation_keys_len(context.params(), request(&context).places()));
        let error = |request: &KeyRequest| {
            // Not a residue is there: what is refused is refused before.
            let front = &data[..HEADER_LEN + 4 + 3 * 6];
            let read = decode_requested_keys(front, data.len() as u64, &context, request);
            read.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let mut more = request(&context);
        more.add(KeyUse::rotation(2, &context), Level(0));
        assert_eq!(error(&more), "has no key for rotation by 2 up to level L0, which the program asks for");
        let mut higher = request(&context);
        higher.add(KeyUse::Relinearize, Level(3));
        assert_eq!(
            error(&higher),
            "has no key for relinearization up to level L3, which the program asks for"
        );
        let none = KeyRequest::default();
        let message = "has a key for relinearization up to level L2, which the program does not ask for";
        assert_eq!(error(&none), message);
        let len = data.len() as u64;
        assert!(decode_requested_keys(&data[..], len, &context, &request(&context)).is_ok());
        // A length that is not that of these keys is seen in front, too.
        let read = decode_requested_keys(&data[..], len + 1, &context, &request(&context));
        assert!(matches!(read, Err(FormatError::TrailingBytes { n_bytes: 1 })));
    }

    #[test]
    fn missing_and_truncated_keys_are_found() {
        let context = toy_context();
        let keys = keys(&context);
        let mut request = request(&context);
        assert_eq!(keys.missing(&request), None);
        request.add(KeyUse::rotation(3, &context), Level(2));
        assert_eq!(keys.missing(&request), Some((KeyUse::rotation(3, &context), Level(2))));
    }

    #[test]
    fn any_change_is_refused() {
        let context = toy_context();
        let mut data = Vec::new();
        encode_evaluation_keys(&mut data, &context, &keys(&context)).unwrap();
        check_damage(&data, |data| decode_evaluation_keys(data, data.len() as u64, &context).map(drop));
    }

    #[test]
    fn keys_with_a_prime_that_memory_has_whole_words_for_survive_the_file() {
        let whole = toy_context();
        let mut spec = whole.params().spec().clone();
        spec.special_primes =
            fhe_bytecode::params::ntt_primes_below(60, spec.log_n, 1, &spec.towers).unwrap();
        let context = Context::new(Params::new(spec).unwrap()).unwrap();
        let keys = toy_key(&context, 1).evaluation_keys(&context, &request(&context), &mut fixed_seeds(2));
        let mut data = Vec::new();
        encode_evaluation_keys(&mut data, &context, keys.as_ref().unwrap()).unwrap();
        let len = data.len() as u64;
        let read = decode_requested_keys(&data[..], len, &context, &request(&context)).unwrap();
        assert!(read == keys.unwrap());
        check_damage(&data, |data| decode_evaluation_keys(data, data.len() as u64, &context).map(drop));
    }

    #[test]
    fn keys_of_smaller_rings_survive_the_file() {
        let whole = toy_context();
        let special_primes =
            fhe_bytecode::params::ntt_primes_below(34, 6, 2, whole.params().towers()).unwrap();
        let segment =
            fhe_bytecode::SegmentSpec { log_n: 5, level: Level(1), special_primes, digits: vec![2] };
        let towers = fhe_bytecode::params::ntt_primes_below(30, 6, 3, &[]).unwrap();
        let special = fhe_bytecode::params::ntt_primes_below(33, 6, 1, &towers).unwrap();
        let mut spec = whole.params().spec().clone();
        (spec.log_n, spec.towers, spec.special_primes, spec.lower) = (6, towers, special, vec![segment]);
        let context = Context::new(Params::new(spec).unwrap()).unwrap();
        let mut request = KeyRequest::default();
        request.add(KeyUse::Relinearize, Level(2));
        request.add(KeyUse::rotation(3, &context), Level(2));
        let lower = context.at(Level(1));
        request.add_in(1, KeyUse::Relinearize, Level(1));
        request.add_in(1, KeyUse::rotation(3, lower), Level(0));
        request.add_in(1, KeyUse::Move(Galois::Conjugation), Level(0));
        request.add_in(1, KeyUse::Enter, Level(1));
        let keys = toy_key(&context, 1).evaluation_keys(&context, &request, &mut fixed_seeds(2)).unwrap();
        let mut data = Vec::new();
        encode_evaluation_keys(&mut data, &context, &keys).unwrap();
        assert_eq!(data.len() as u64, evaluation_keys_len(context.params(), request.places()));
        let read = decode_requested_keys(&data[..], data.len() as u64, &context, &request).unwrap();
        assert!(read == keys);
        check_damage(&data, |data| decode_evaluation_keys(data, data.len() as u64, &context).map(drop));
    }
}
