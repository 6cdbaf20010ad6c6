//! Packed residues to words or doubles.

use crate::modulus::Modulus;
use crate::packed::Packed;
use crate::simd::lanes::Lanes;
use crate::simd::prime::from_int;
use crate::words::Held;

/// out ← the residues, as words or as the bits of doubles; as many as there are, of at most 50 bits.
///
/// # Panics
/// When the lengths differ or there are more bits.
pub(in crate::simd) fn unpack<S: Lanes>(s: S, out: &mut [u64], packed: Packed<'_>, held: Held) {
    assert!(out.len() == packed.len(), "nothing to unpack");
    let pairs = S::words_mut(out).0.as_chunks_mut::<2>().0;
    let step = 2 * S::WIDTH / 8 * packed.bits();
    let done = 2 * S::WIDTH * pairs.len();
    s.run(
        #[inline(always)]
        || {
            let unpacker = s.unpacker(packed.bits());
            for (i, out) in pairs.iter_mut().enumerate() {
                let pair = s.unpack_pair(packed.padded(), i * step, &unpacker);
                for j in 0..2 {
                    let value = match held {
                        Held::Integers => pair[j],
                        Held::Doubles => from_int(s, pair[j]),
                    };
                    s.store(&mut out[j], value);
                }
            }
        },
    );
    let rest = packed.piece(done..packed.len()).residues();
    for (out, residue) in out[done..].iter_mut().zip(rest) {
        *out = match held {
            Held::Integers => residue,
            Held::Doubles => (residue as f64).to_bits(),
        };
    }
}

/// Whether residues of at most 50 bits are below their prime.
///
/// # Panics
/// When there are more bits.
pub(in crate::simd) fn is_reduced<S: Lanes>(s: S, q: Modulus, packed: Packed<'_>) -> bool {
    let step = 2 * S::WIDTH / 8 * packed.bits();
    let n_pairs = packed.len() / (2 * S::WIDTH);
    let pairs_are = s.run(
        #[inline(always)]
        || {
            let (unpacker, bound) = (s.unpacker(packed.bits()), s.splat(q.value() as f64));
            (0..n_pairs).all(
                #[inline(always)]
                |i| {
                    let [a, b] = s.unpack_pair(packed.padded(), i * step, &unpacker);
                    s.all_below(from_int(s, a), bound) && s.all_below(from_int(s, b), bound)
                },
            )
        },
    );
    pairs_are && packed.piece(2 * S::WIDTH * n_pairs..packed.len()).residues().all(|x| x < q.value())
}
