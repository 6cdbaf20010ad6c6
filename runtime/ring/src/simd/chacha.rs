//! The ChaCha20 stream, two blocks in each lane.

use super::lanes::Narrow;

/// Words of a block.
const BLOCK: usize = 8;
/// Vectors of blocks that are computed in turns: one alone would wait for its own results.
const TURNS: usize = 2;
/// "expand 32-byte k".
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// out ← the stream of `key` from block `first` on, without a nonce; all turns have whole vectors.
///
/// # Panics
/// When the number of words is another.
pub(crate) fn chacha20<S: Narrow>(s: S, key: &[u32; 8], first: u64, out: &mut [u64]) {
    assert!(out.len().is_multiple_of(2 * BLOCK * S::WIDTH * TURNS), "whole turns only");
    let twice = |x: u32| S::words_from(|_| u64::from(x) << 32 | u64::from(x));
    let constants = CONSTANTS.map(twice);
    let key = key.map(twice);
    s.run(
        #[inline(always)]
        || {
            for (at, out) in S::words_mut(out).0.chunks_exact_mut(2 * BLOCK * TURNS).enumerate() {
                let mut start = [[s.splat(0.0); 16]; TURNS];
                for turn in 0..TURNS {
                    for i in 0..4 {
                        start[turn][i] = s.load(&constants[i]);
                    }
                    for i in 0..8 {
                        start[turn][4 + i] = s.load(&key[i]);
                    }
                    let block = 2 * S::WIDTH * (TURNS * at + turn);
                    let counters = counters::<S>(first.wrapping_add(block as u64));
                    for i in 0..2 {
                        start[turn][12 + i] = s.load(&counters[i]);
                    }
                }
                let mut x = start;
                for _ in 0..10 {
                    round(s, &mut x, [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]);
                    round(s, &mut x, [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]]);
                }
                for turn in 0..TURNS {
                    let x = &mut x[turn];
                    for i in 0..16 {
                        x[i] = s.add_narrow(x[i], start[turn][i]);
                    }
                    let [mut lower, mut upper] = [[s.splat(0.0); BLOCK]; 2];
                    for i in 0..BLOCK {
                        lower[i] = s.lower(x[2 * i], x[2 * i + 1]);
                        upper[i] = s.upper(x[2 * i], x[2 * i + 1]);
                    }
                    let [lower, upper] = [s.ungroup(lower), s.ungroup(upper)];
                    let out = &mut out[2 * BLOCK * turn..][..2 * BLOCK];
                    for i in 0..BLOCK {
                        s.store(&mut out[i], lower[i]);
                        s.store(&mut out[BLOCK + i], upper[i]);
                    }
                }
            }
        },
    );
}

/// Both words of the numbers of blocks: lane l has block `first` + l in its lower half, block `first` + WIDTH + l in its upper.
#[inline(always)]
fn counters<S: Narrow>(first: u64) -> [S::Words; 2] {
    [0, 32].map(
        #[inline(always)]
        |shift| {
            let half = |block: usize| first.wrapping_add(block as u64) >> shift & u64::from(u32::MAX);
            S::words_from(|lane| half(lane) | half(S::WIDTH + lane) << 32)
        },
    )
}

/// A round: four quarters, in all turns.
#[inline(always)]
fn round<S: Narrow>(s: S, x: &mut [[S::V; 16]; TURNS], quarters: [[usize; 4]; 4]) {
    for [a, b, _, d] in quarters {
        for x in &mut *x {
            x[a] = s.add_narrow(x[a], x[b]);
            x[d] = s.rotate_narrow::<16, 16>(s.xor(x[d], x[a]));
        }
    }
    for [_, b, c, d] in quarters {
        for x in &mut *x {
            x[c] = s.add_narrow(x[c], x[d]);
            x[b] = s.rotate_narrow::<12, 20>(s.xor(x[b], x[c]));
        }
    }
    for [a, b, _, d] in quarters {
        for x in &mut *x {
            x[a] = s.add_narrow(x[a], x[b]);
            x[d] = s.rotate_narrow::<8, 24>(s.xor(x[d], x[a]));
        }
    }
    for [_, b, c, d] in quarters {
        for x in &mut *x {
            x[c] = s.add_narrow(x[c], x[d]);
            x[b] = s.rotate_narrow::<7, 25>(s.xor(x[b], x[c]));
        }
    }
}
