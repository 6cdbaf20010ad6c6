//! Transforms as files hold them: fixed numbers that no kernel, library or root may change.
//!
//! The numbers come from `docs/notes/known_answers.py`, which computes them from `docs/FILES.md`.

use super::{INSTRUCTIONS, PRIMES, residues, rng};
use crate::engine::Engine;
use crate::kernels::Instructions;
use crate::modulus::Modulus;
use crate::ntt::Ntt;
use crate::root::root_of_unity;

const N: usize = 256;

/// By prime: the first entries of the transform of Σ (i³ + 7)·X^i and the hash of all.
const TRANSFORMS: [(u64, [u64; 3], &str); 6] = [
    (65_537, [43_482, 61_766, 50_842], "5a03c5e568f8fdbfe2504f0a2c926c0d2f07cfca7c9a2429688be85a2700b0c3"),
    (
        274_876_334_081,
        [107_980_983_457, 248_308_451_296, 99_033_304_055],
        "242ee54ad08b4fa9abd6414dca1715a0f013ed6a26693aaa026f077686b520c9",
    ),
    (
        70_368_743_587_841,
        [21_492_239_401_517, 33_276_934_242_403, 53_612_309_507_950],
        "eba3847352d97c633264e302eeb73cc505a1e97324894807303306730d44f30f",
    ),
    (
        140_737_487_306_753,
        [7_661_230_460_419, 63_755_937_288_319, 38_907_106_331_990],
        "0dc55cfce86129fce68b5d314dc388ca3d90fb3f2a7dc0df7ca63fa93cb053cd",
    ),
    (
        1_125_899_904_679_937,
        [635_026_996_660_373, 303_520_700_011_631, 308_354_028_946_139],
        "8e7be7c9122829352b6f98845e595a4ea297b1661fd0447b644b4702041589d3",
    ),
    (
        1_152_921_504_606_584_833,
        [34_146_570_449_854_340, 742_213_558_819_973_091, 727_935_311_089_944_432],
        "9f4d8627b5c7bf8e400e70933445006b1c3be32ec3e63452ec620f371e561bbf",
    ),
];

fn cubes(q: u64) -> Vec<u64> {
    (0..N as u64).map(|i| (i.pow(3) + 7) % q).collect()
}

fn hash(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    blake3::hash(&bytes).to_hex().to_string()
}

#[test]
fn transforms_are_the_known_ones_with_every_kernel() {
    for (prime, first, expected) in TRANSFORMS {
        for instructions in INSTRUCTIONS {
            let ntt = Ntt::new(Modulus::new(prime), N, instructions).unwrap();
            let mut x = cubes(prime);
            ntt.forward(&mut x);
            assert_eq!(x[..3], first, "modulo {prime} with {}", ntt.engine_name());
            assert_eq!(hash(&x), expected, "modulo {prime} with {}", ntt.engine_name());
            ntt.inverse(&mut x);
            assert_eq!(x, cubes(prime), "modulo {prime} with {}", ntt.engine_name());
        }
    }
}

/// A library that picks another root or order is not used, which costs time; this test says so.
#[test]
fn the_library_picks_our_root_and_order() {
    for prime in PRIMES {
        let q = Modulus::new(prime);
        for n in [16, 64, 1 << 12, 1 << 15] {
            let library = Engine::library(q, n, root_of_unity(q, 2 * n).unwrap())
                .unwrap_or_else(|| panic!("concrete-ntt has another root or order modulo {prime} for {n}"));
            let reference = Ntt::new(q, n, Instructions::Scalar).unwrap();
            let x = residues(&mut rng(5), prime, n);
            let (mut expected, mut found) = (x.clone(), x.clone());
            reference.forward(&mut expected);
            library.forward(&mut found);
            assert!(found == expected, "forward, n = {n}, q = {prime}");
            library.inverse(q, &mut found, None, 1);
            assert!(found == x, "inverse, n = {n}, q = {prime}");
        }
    }
}

#[test]
fn a_library_with_another_root_is_not_used() {
    let q = Modulus::new(PRIMES[1]);
    let root = root_of_unity(q, 2 * N).unwrap();
    for other in [q.inv(root), q.pow(root, 5)] {
        assert!(Engine::library(q, N, other).is_none());
        assert_eq!(Engine::choose(q, N, other, Instructions::Scalar).name(), "plain");
    }
}
