//! The edges of every format: one thing is wrong, the hash is right, and the message is the one for it.

use std::sync::Arc;

use fhe_bytecode::params::ntt_primes_below;
use fhe_bytecode::{Level, Params, SegmentSpec};
use fhe_ckks::{Context, EvaluationKeys, Galois, KeyRequest, KeyUse};
use fhe_fixed_seeds::fixed_seeds;

use crate::codec::{BodyReader, BodyWriter, TRAILER_LEN, residue_bytes};
use crate::testing::{toy_context, toy_key};
use crate::{
    EvaluationKeysWriter, FormatError, HEADER_LEN, Header, Kind, VERSION, count_evaluation_keys,
    decode_evaluation_keys, decode_header, decode_requested_keys, encode_evaluation_keys,
};

/// Where the header has its version, its flags and the fingerprint.
const VERSION_AT: usize = 8;
const FLAGS_AT: usize = 10;
const FINGERPRINT_AT: usize = 12;
/// Where the list of keys begins, and the bytes of one of its entries.
const ENTRIES_AT: usize = HEADER_LEN + 4;
const ENTRY: usize = 6;

/// A body with the length and the hash that it should have.
fn sealed(body: &[u8]) -> Vec<u8> {
    let mut writer = BodyWriter::new(Vec::new());
    writer.bytes(body).unwrap();
    writer.finish().unwrap()
}

fn body(file: &[u8]) -> Vec<u8> {
    file[..file.len() - TRAILER_LEN].to_vec()
}

/// The file with a change of its body, and the message of who reads its keys.
fn refused(context: &Context, file: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut body = body(file);
    change(&mut body);
    let data = sealed(&body);
    let read = decode_evaluation_keys(&data[..], data.len() as u64, context);
    read.err().map_or_else(|| "accepted".to_owned(), |error| error.to_string())
}

fn request(context: &Context) -> KeyRequest {
    let mut request = KeyRequest::default();
    request.add(KeyUse::Relinearize, Level(2));
    request.add(KeyUse::rotation(3, context), Level(1));
    request.add(KeyUse::rotation(-1, context), Level(0));
    request.add(KeyUse::Move(Galois::Conjugation), Level(1));
    request
}

fn keys(context: &Context, request: &KeyRequest) -> EvaluationKeys {
    toy_key(context, 1).evaluation_keys(context, request, &mut fixed_seeds(2)).unwrap()
}

fn file(context: &Context, request: &KeyRequest) -> Vec<u8> {
    let mut data = Vec::new();
    encode_evaluation_keys(&mut data, context, &keys(context, request)).unwrap();
    data
}

/// Parameters whose lowest level has a smaller ring.
fn rings() -> Arc<Context> {
    let mut spec = toy_context().params().spec().clone();
    let towers = ntt_primes_below(30, 6, 3, &[]).unwrap();
    let special = ntt_primes_below(33, 6, 1, &towers).unwrap();
    let lower = ntt_primes_below(34, 6, 1, &[]).unwrap();
    let segment = SegmentSpec { log_n: 5, level: Level(1), special_primes: lower, digits: vec![2] };
    (spec.log_n, spec.towers, spec.special_primes, spec.lower) = (6, towers, special, vec![segment]);
    Context::new(Params::new(spec).unwrap()).unwrap()
}

#[test]
fn headers_say_what_they_are_and_nothing_else() {
    let context = toy_context();
    let data = file(&context, &request(&context));
    let header = decode_header(&data[..], data.len() as u64, Kind::EvaluationKeys).unwrap();
    assert_eq!((header.version, header.is_insecure), (VERSION, true));
    assert_eq!(header, Header::of(Kind::EvaluationKeys, context.params(), header.key_id));
    let versions = format!("this release reads versions 1 to {VERSION}");
    for version in [0, VERSION + 1] {
        let message = refused(&context, &data, |body| {
            body[VERSION_AT..FLAGS_AT].copy_from_slice(&version.to_le_bytes());
        });
        assert_eq!(message, format!("has format version {version}; {versions}"));
    }
    for flags in [2, 3, 0x8000] {
        let message = refused(&context, &data, |body| {
            body[FLAGS_AT..FINGERPRINT_AT].copy_from_slice(&u16::to_le_bytes(flags));
        });
        assert_eq!(message, format!("is damaged: flags is {flags:#x}"));
    }
    let message = refused(&context, &data, |body| body[FLAGS_AT] = 0);
    assert_eq!(message, "is damaged: insecure flag is false");
    let message = refused(&context, &data, |body| body[FINGERPRINT_AT] ^= 1);
    assert!(message.starts_with("was made for parameters"), "{message}");
    for (kind, words) in [
        (Kind::SecretKey, "a secret key"),
        (Kind::EvaluationKeys, "a file of evaluation keys"),
        (Kind::Ciphertexts, "a ciphertext file"),
    ] {
        assert_eq!(Kind::of_magic(&kind.magic()[..]), Some(kind));
        assert_eq!(kind.to_string(), words);
        let found = decode_header(&data[..], data.len() as u64, kind);
        assert_eq!(found.is_ok(), kind == Kind::EvaluationKeys);
    }
    assert_eq!(Kind::of_magic(&Kind::SecretKey.magic()[..7]), None);
}

#[test]
fn fields_end_where_the_body_ends() {
    let data = sealed(&[7; 20]);
    let reader = || BodyReader::new(&data[..], data.len() as u64).unwrap();
    assert!(reader().expect(20).is_ok());
    assert!(matches!(reader().expect(21), Err(FormatError::Truncated { needed: 21, remaining: 20 })));
    assert!(reader().expect_exactly(20).is_ok());
    assert!(matches!(reader().expect_exactly(13), Err(FormatError::TrailingBytes { n_bytes: 7 })));
    assert!(matches!(reader().expect_exactly(21), Err(FormatError::Truncated { .. })));
    let mut twice = reader();
    assert_eq!(twice.bytes(12).unwrap(), [7; 12]);
    assert!(matches!(twice.bytes(9), Err(FormatError::Truncated { needed: 9, remaining: 8 })));
    assert!(matches!(twice.finish(), Err(FormatError::TrailingBytes { n_bytes: 8 })));
    let mut all = reader();
    all.skip().unwrap();
    assert!(all.finish().is_ok());
    let short = BodyReader::new(&data[..], TRAILER_LEN as u64 - 1);
    assert!(matches!(short, Err(FormatError::Truncated { needed: 40, remaining: 39 })));
    assert!(BodyReader::new(&data[..], TRAILER_LEN as u64).is_ok());
    // A byte behind the end, which the length does not tell.
    let longer = [&data[..], &[0]].concat();
    let mut reader = BodyReader::new(&longer[..], data.len() as u64).unwrap();
    reader.skip().unwrap();
    assert!(matches!(reader.finish(), Err(FormatError::TrailingBytes { n_bytes: 1 })));
    // Skipping goes in pieces, and the hash covers all of them.
    for n in [(1 << 16) - 1, 1 << 16, (1 << 16) + 1, 200_000] {
        let data = sealed(&vec![3; n]);
        let mut reader = BodyReader::new(&data[..], data.len() as u64).unwrap();
        reader.skip().unwrap();
        assert_eq!(reader.finish().unwrap().0, data[data.len() - 32..], "{n}");
    }
    // The length and the hash must both be right.
    let length_at = data.len() - TRAILER_LEN;
    let mut wrong = data.clone();
    wrong[length_at] += 1;
    let hash = blake3::hash(&wrong[..length_at + 8]);
    wrong[length_at + 8..].copy_from_slice(hash.as_bytes());
    let mut reader = BodyReader::new(&wrong[..], wrong.len() as u64).unwrap();
    reader.skip().unwrap();
    assert!(matches!(reader.finish(), Err(FormatError::WrongHash)));
}

#[test]
fn counts_are_compared_with_the_bytes_that_items_take() {
    let with_count = |count: u32, bytes: usize| sealed(&[&count.to_le_bytes()[..], &vec![0; bytes]].concat());
    let count = |data: &[u8], item| BodyReader::new(data, data.len() as u64).unwrap().count(item);
    assert_eq!(count(&with_count(3, 24), 8).unwrap(), 3);
    assert!(matches!(
        count(&with_count(3, 23), 8),
        Err(FormatError::Truncated { needed: 24, remaining: 23 })
    ));
    // What takes no byte is counted as if it took one.
    assert!(matches!(count(&with_count(3, 2), 0), Err(FormatError::Truncated { needed: 3, remaining: 2 })));
    let many = with_count(u32::MAX, 10);
    assert!(matches!(
        count(&many, u64::MAX),
        Err(FormatError::Truncated { needed: u64::MAX, remaining: 10 })
    ));
}

#[test]
fn bits_behind_the_last_residue_are_zero() {
    // Three residues of six bits end in the middle of the third byte.
    assert_eq!((residue_bytes(3, 64), residue_bytes(3, 65), residue_bytes(0, 64)), (3, 3, 0));
    assert_eq!((residue_bytes(1, 1), residue_bytes(1, 2), residue_bytes(8, 3)), (1, 1, 2));
    let read = |packed: &[u8], n, q: u64| {
        let data = sealed(packed);
        BodyReader::new(&data[..], data.len() as u64).unwrap().poly(n, &[q]).map_err(|e| e.to_string())
    };
    assert_eq!(read(&[0b0100_0001, 0b0011_0000, 0], 3, 64), Ok(vec![1, 1, 3]));
    let padding = Err("is damaged: padding is not zero".to_owned());
    assert_eq!(read(&[0b0100_0001, 0b0011_0000, 0b0000_0100], 3, 64), padding);
    assert_eq!(read(&[0b0100_0001, 0b0011_0000, 0b0000_0011], 3, 64), Ok(vec![1, 1, 51]));
    // Words are filled from several bytes: seven bits, more than sixty-four in all, a bit behind them.
    let mut packed = vec![0xff; 9];
    packed[8] = 0b0000_0011;
    assert!(read(&packed, 10, 128).unwrap().iter().take(9).all(|&r| r == 127));
    packed[8] = 0b0100_0000;
    assert_eq!(read(&packed, 10, 128), padding);
    assert_eq!(read(&[5], 1, 6), Ok(vec![5]));
    assert_eq!(read(&[6], 1, 6), Err("is damaged: residue is 6, not below 6".to_owned()));
}

#[test]
fn several_towers_are_packed_one_after_the_other() {
    let mut writer = BodyWriter::new(Vec::new());
    writer.poly(&[1, 2, 3, 4, 5, 6], &[8, 1 << 20]).unwrap();
    let data = writer.finish().unwrap();
    assert_eq!(data.len() as u64, residue_bytes(3, 8) + residue_bytes(3, 1 << 20) + TRAILER_LEN as u64);
    let mut reader = BodyReader::new(&data[..], data.len() as u64).unwrap();
    assert_eq!(reader.poly(3, &[8, 1 << 20]).unwrap(), [1, 2, 3, 4, 5, 6]);
    reader.finish().unwrap();
}

#[test]
fn keys_of_version_one_are_read() {
    let context = toy_context();
    let request = request(&context);
    let now = body(&file(&context, &request));
    let entries = &now[ENTRIES_AT..ENTRIES_AT + request.len() * ENTRY];
    let mut rest = &now[ENTRIES_AT + entries.len()..];
    let mut old = now[..ENTRIES_AT].to_vec();
    old[VERSION_AT..FLAGS_AT].copy_from_slice(&1_u16.to_le_bytes());
    for (entry, (_, level)) in entries.chunks(ENTRY).zip(request.iter()) {
        let params = context.params();
        let poly: u64 = params.key_primes(level).iter().map(|&q| residue_bytes(params.n(), q)).sum();
        let (key, next) = rest.split_at(32 + poly as usize * params.key_digits(level).len());
        old.extend_from_slice(entry);
        old.extend_from_slice(key);
        rest = next;
    }
    assert!(rest.is_empty());
    let data = sealed(&old);
    let read = |request: &KeyRequest| decode_requested_keys(&data[..], data.len() as u64, &context, request);
    assert!(read(&request).unwrap() == keys(&context, &request));
    let mut more = request.clone();
    more.add(KeyUse::rotation(5, &context), Level(0));
    assert!(matches!(read(&more), Err(FormatError::KeyMissing { .. })));
    let mut less = KeyRequest::default();
    less.add(KeyUse::Relinearize, Level(2));
    assert!(matches!(read(&less), Err(FormatError::KeyNotAsked { .. })));
}

#[test]
fn keys_come_in_order_and_once() {
    let context = toy_context();
    let data = file(&context, &request(&context));
    let entry = |i: usize| ENTRIES_AT + i * ENTRY..ENTRIES_AT + (i + 1) * ENTRY;
    let message = "is damaged: use of a key is not in order";
    let swapped = refused(&context, &data, |body| {
        let first = body[entry(1)].to_vec();
        body.copy_within(entry(2), entry(1).start);
        body[entry(2)].copy_from_slice(&first);
    });
    assert_eq!(swapped, message);
    let twice = refused(&context, &data, |body| body.copy_within(entry(1), entry(2).start));
    assert_eq!(twice, message);
}

#[test]
fn keys_are_named_by_steps_below_the_slots_and_two_numbers_above() {
    let context = toy_context();
    let data = file(&context, &request(&context));
    let slots = context.slots() as u32;
    let last = ENTRIES_AT + 3 * ENTRY;
    let code = |code: u32| {
        refused(&context, &data, |body| body[last..last + 4].copy_from_slice(&code.to_le_bytes()))
    };
    assert_eq!(code(slots), "accepted", "the conjugation, as it was");
    // The last rotation is there already.
    assert_eq!(code(slots - 1), "is damaged: use of a key is not in order");
    for beyond in [slots + 1, slots + 2, u32::MAX] {
        assert_eq!(code(beyond), format!("is damaged: rotation is {beyond}"));
    }
    let level = |level: u16| {
        refused(&context, &data, |body| body[last + 4..last + 6].copy_from_slice(&level.to_le_bytes()))
    };
    assert_eq!(level(1), "accepted");
    let highest = context.params().max_level().0;
    assert_eq!(level(highest + 1), format!("is damaged: level is L{}", highest + 1));
}

#[test]
fn only_a_ring_of_its_own_has_a_way_into_it() {
    let context = rings();
    let lower = context.at(Level(1));
    let mut request = KeyRequest::default();
    request.add_in(1, KeyUse::Enter, Level(1));
    let data = file(&context, &request);
    let code = |code: usize, level: u16| {
        refused(&context, &data, |body| {
            body[ENTRIES_AT..ENTRIES_AT + 4].copy_from_slice(&(code as u32).to_le_bytes());
            body[ENTRIES_AT + 4..ENTRIES_AT + 6].copy_from_slice(&level.to_le_bytes());
        })
    };
    assert_eq!(code(lower.slots() + 1, 1), "accepted");
    assert_eq!(code(lower.slots() + 2, 1), format!("is damaged: rotation is {}", lower.slots() + 2));
    // In the ring above, which nothing leads into, the number is none; a larger one is a rotation there.
    assert_eq!(code(context.slots() + 1, 2), format!("is damaged: rotation is {}", context.slots() + 1));
    // The same bytes as a key of another use have another length.
    assert_ne!(code(lower.slots(), 1), "accepted");
}

#[test]
fn exactly_the_keys_that_are_asked_for_are_taken() {
    let context = toy_context();
    let data = file(&context, &request(&context));
    let read = |request: &KeyRequest| {
        decode_requested_keys(&data[..], data.len() as u64, &context, request)
            .err()
            .map_or_else(|| "accepted".to_owned(), |error| error.to_string())
    };
    assert_eq!(read(&request(&context)), "accepted");
    let changed = |key_use: KeyUse, level: Option<Level>| {
        let mut changed = KeyRequest::default();
        for (other, own) in request(&context).iter().filter(|(other, _)| *other != key_use) {
            changed.add(other, own);
        }
        level.into_iter().for_each(|level| changed.add(key_use, level));
        read(&changed)
    };
    let conjugation = KeyUse::Move(Galois::Conjugation);
    let rotation = KeyUse::rotation(3, &context);
    // One too many at the beginning, in the middle and at the end.
    for (key_use, words) in
        [(KeyUse::Relinearize, "relinearization"), (rotation, "rotation by 3"), (conjugation, "conjugation")]
    {
        let message = changed(key_use, None);
        assert!(message.starts_with(&format!("has a key for {words}")), "{message}");
    }
    // A key for fewer levels than asked for is missing; one for more is not asked for.
    let message = changed(rotation, Some(Level(2)));
    assert!(message.starts_with("has no key for rotation by 3 up to level L2"), "{message}");
    let message = changed(rotation, Some(Level(0)));
    assert!(message.starts_with("has a key for rotation by 3 up to level L1"), "{message}");
    // One too few at the beginning and between two.
    for steps in [1, 5] {
        let message = changed(KeyUse::rotation(steps, &context), Some(Level(0)));
        assert!(
            message.starts_with(&format!("has no key for rotation by {steps} up to level L0")),
            "{message}"
        );
    }
    // One too few at the end.
    let mut less = KeyRequest::default();
    less.add(KeyUse::Relinearize, Level(2));
    let short = file(&context, &less);
    less.add(rotation, Level(0));
    let read = decode_requested_keys(&short[..], short.len() as u64, &context, &less);
    assert!(matches!(read, Err(FormatError::KeyMissing { level: Level(0), .. })));
}

#[test]
fn keys_are_written_in_the_order_of_the_request_and_to_the_end() {
    let context = toy_context();
    let request = request(&context);
    let keys = keys(&context, &request);
    let begin = || EvaluationKeysWriter::new(Vec::new(), &context, keys.id(), &request).unwrap();
    let all: Vec<_> = request.iter().collect();
    let mut writer = begin();
    for (i, (key_use, key)) in keys.iter().enumerate() {
        assert_eq!(writer.next_key(), Some(all[i]));
        writer.write(&context, (key_use, key.level()), *key.seed(), key.residues()).unwrap();
    }
    assert_eq!(writer.next_key(), None);
    let (key_use, key) = keys.iter().next().unwrap();
    let once_more = writer.write(&context, (key_use, key.level()), *key.seed(), key.residues());
    assert!(matches!(once_more, Err(FormatError::KeyNotAsked { .. })));
    assert!(!writer.inner_mut().is_empty());
    let (key_use, key) = keys.iter().nth(1).unwrap();
    let another = begin().write(&context, (key_use, key.level()), *key.seed(), key.residues());
    assert!(matches!(another, Err(FormatError::KeyNotAsked { .. })));
    assert!(matches!(begin().finish(), Err(FormatError::KeyMissing { .. })));
    // Its front tells how many there are.
    let data = file(&context, &request);
    assert_eq!(count_evaluation_keys(&data[..], data.len() as u64).unwrap(), 4);
}
