//! Random changes of bytes and of text.

use fhec_tests::models::random::Random;

/// Numbers at the edges of types and formats.
const EXTREMES: [u64; 14] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    u64::MAX,
];

/// One to four random changes of `seed`; parts of `other` may get in.
pub fn bytes(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut data = seed.to_vec();
    for _ in 0..=random.below(4) {
        change(&mut data, other, random);
    }
    data
}

fn change(data: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    if data.is_empty() {
        data.push(random.below(256) as u8);
        return;
    }
    let at = place(data.len(), random);
    let end = (at + 1 + random.below(16)).min(data.len());
    match random.below(12) {
        0 => data[at] ^= 1 << random.below(8),
        1 => data[at] = random.below(256) as u8,
        2 => data[at] = data[at].wrapping_add(if random.below(2) == 0 { 1 } else { 255 }),
        3 => number(&mut data[at..], random),
        4 => data[at..end].fill(if random.below(2) == 0 { 0 } else { 0xff }),
        5 => data[at..end].reverse(),
        6 => drop(data.drain(at..end)),
        7 => data.insert(at, random.below(256) as u8),
        8 => {
            let copy = data[at..end].to_vec();
            data.splice(at..at, copy);
        }
        9 => {
            let to = random.below(data.len());
            let len = (end - at).min(data.len() - to);
            data.copy_within(at..at + len, to);
        }
        10 if !other.is_empty() => {
            let from = random.below(other.len());
            let len = (1 + random.below(64)).min(other.len() - from);
            data.splice(at..end, other[from..from + len].iter().copied());
        }
        _ => data.truncate(at),
    }
}

/// A position; headers and ends are more interesting than the middle.
fn place(len: usize, random: &mut Random) -> usize {
    match random.below(4) {
        0 => random.below(len.min(128)),
        1 => len - 1 - random.below(len.min(64)),
        _ => random.below(len),
    }
}

/// Overwrites the first bytes with an extreme number of some width and order.
fn number(data: &mut [u8], random: &mut Random) {
    let value = extreme(random);
    let width = [1, 2, 4, 8][random.below(4)].min(data.len());
    let little = value.to_le_bytes();
    for (i, byte) in data[..width].iter_mut().enumerate() {
        *byte = if value & 1 == 0 { little[i] } else { little[width - 1 - i] };
    }
}

/// A number at the edge of something.
pub fn extreme(random: &mut Random) -> u64 {
    EXTREMES[random.below(EXTREMES.len())]
}

/// Random changes of a text in a syntax of words, numbers and brackets.
pub fn text(seed: &str, words: &[&str], random: &mut Random) -> Vec<u8> {
    let mut text = seed.to_owned();
    for _ in 0..=random.below(3) {
        let tokens = tokens(&text);
        let token = tokens[random.below(tokens.len())].clone();
        match random.below(6) {
            0 => text.replace_range(token, ""),
            1 => {
                let copy = text[token.clone()].to_owned();
                text.insert_str(token.end, &copy);
            }
            2 => text.replace_range(token, words[random.below(words.len())]),
            3 => text.replace_range(token, &extreme(random).to_string()),
            4 => {
                let other = text[tokens[random.below(tokens.len())].clone()].to_owned();
                text.replace_range(token, &other);
            }
            _ => text.insert_str(token.start, words[random.below(words.len())]),
        }
    }
    if random.below(4) == 0 { bytes(text.as_bytes(), seed.as_bytes(), random) } else { text.into_bytes() }
}

/// Ranges of words, numbers and single other characters; at least one, perhaps empty.
fn tokens(text: &str) -> Vec<std::ops::Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let mut tokens: Vec<std::ops::Range<usize>> = Vec::new();
    let mut in_word = false;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match tokens.last_mut() {
            Some(last) if in_word && is_word(c) => last.end = end,
            _ => tokens.push(at..end),
        }
        in_word = is_word(c);
    }
    if tokens.is_empty() {
        tokens.push(0..0);
    }
    tokens
}
