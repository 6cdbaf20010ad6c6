//! Program files with sections of anybody's choice, as a hostile author writes them: checksums are right.

const CHECKSUM_BYTES: usize = 32;
const CHECKSUM_CONTEXT: &str = "fhec 1 program file";
/// What files are shorter than.
const MEGABYTE: usize = 1 << 20;

/// A program with one of its sections replaced.
///
/// # Panics
/// When it has no such section.
pub fn with_section(program: &[u8], tag: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let at = program.windows(4).position(|w| w == tag).expect("a program has all sections");
    let length = program[at + 4..at + 12].try_into().map_or(0, u64::from_le_bytes) as usize;
    let (before, after) = (&program[..at + 4], &program[at + 12 + length..program.len() - CHECKSUM_BYTES]);
    sealed([before, &(content.len() as u64).to_le_bytes(), content, after].concat())
}

/// A program, all but its checksum, with the right one.
pub fn sealed(mut body: Vec<u8>) -> Vec<u8> {
    let sum = blake3::derive_key(CHECKSUM_CONTEXT, &body);
    body.extend_from_slice(&sum);
    body
}

/// Programs of nearly a megabyte that have one list of as many items as fit, by what these are: few bytes in a file, many in
/// memory.
pub fn long_lists(program: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    // A pool is a part of the parameters: a small chain, then its levels or digits, then two flags.
    let chain: &[u8] = &[9, 1, 17, 1, 97, 1, 1];
    // Name and layout of the output; its labels, range, ports and tails follow.
    let output: &[u8] = &[1, b'y', 0];
    let cases: [Long<'_>; 12] = [
        ("instructions", b"CODE", &[], &[0, 11, 0, 1], &[]),
        ("maps", b"MAPS", &[], &[0; 4], &[]),
        ("layers", b"LAYR", &[], &[0; 25], &[]),
        ("rotations", b"ROTK", &[], &[1, 0], &[]),
        ("labels", b"OUTP", &[output], &[0], &[0, 0, 0]),
        ("ports", b"OUTP", &[output, &[0, 0]], &[0; 4], &[0]),
        ("dimensions", b"OUTP", &[output, &[0, 0, 1, 0]], &[1], &[0, 0, 0]),
        ("tails", b"OUTP", &[output, &[0, 0, 0]], &[0; 4], &[]),
        ("steps", b"OUTP", &[output, &[0, 0, 0, 1, 0, 0]], &[2], &[0]),
        ("classes", b"OUTP", &[output, &[0, 0, 0, 1, 0, 0, 0]], &[0], &[]),
        ("levels", b"PARM", &[chain], &[0], &[0, 0, 1]),
        ("digits", b"PARM", &[chain, &[0]], &[1], &[0, 1]),
    ];
    cases.into_iter().map(|case| long(program, case)).collect()
}

/// The same for what lower levels have of their own, of a program of version 4.
pub fn long_segment_lists(program: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    // A small chain without a pool, then its segments, then two flags; a segment has a ring, a level, primes and digits.
    let chain: &[u8] = &[9, 1, 17, 1, 97, 1, 0];
    let cases: [Long<'_>; 5] = [
        ("segments", b"PARM", &[chain], &[5, 0, 0, 0], &[0, 1]),
        ("primes of a segment", b"PARM", &[chain, &[1, 5, 0]], &[17], &[0, 0, 1]),
        ("digits of a segment", b"PARM", &[chain, &[1, 5, 0, 1, 17]], &[0xff, 0xff, 3], &[0, 1]),
        ("keys of segments", b"LOWK", &[], &[0; 4], &[]),
        ("rotations of a segment", b"LOWK", &[&[1, 0]], &[1, 0], &[0, 0]),
    ];
    cases.into_iter().map(|case| long(program, case)).collect()
}

/// Name, section, what stands in front of a list, an item of it, what stands behind it.
type Long<'a> = (&'static str, &'a [u8; 4], &'a [&'a [u8]], &'a [u8], &'a [u8]);

fn long(program: &[u8], (name, tag, front, item, end): Long<'_>) -> (&'static str, Vec<u8>) {
    let count = (MEGABYTE - program.len() - 256) / item.len();
    let content = [&front.concat(), &varint(count), &item.repeat(count), end].concat();
    (name, with_section(program, tag, &content))
}

/// A number in groups of seven bits.
fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
