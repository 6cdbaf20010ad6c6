//! What files hold, as fixed numbers: seeds that grow, keys, an encryption and a key switch under fixed seeds.
//!
//! The numbers come from `docs/notes/known_answers.py`, which computes them from `docs/FILES.md`. They belong to
//! version 1 of the constants that the fingerprint of the parameters names; other numbers need another version.

use fhe_bytecode::params::ARITHMETIC_VERSION;

use super::*;

fn params() -> Params {
    Params::new(ParamsSpec {
        digit_size: 2,
        ..ParamsSpec::toy(
            8,
            vec![1_125_899_904_679_937, 274_876_334_081, 1_152_921_504_606_584_833],
            vec![140_737_487_306_753, 70_368_743_587_841],
        )
    })
    .unwrap()
}

fn hash(words: impl IntoIterator<Item = u64>) -> String {
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    blake3::hash(&bytes).to_hex().to_string()
}

#[test]
fn fingerprint_names_the_version_of_these_numbers() {
    assert_eq!(ARITHMETIC_VERSION, 1);
    let found: String = params().fingerprint().0.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(found, "04a4f03dd0b42ccb9c6be59b71ee282aeedc9827e91be463683b3ee6d7642641");
}

#[test]
fn a_seed_grows_into_known_residues() {
    let context = Context::new(params()).unwrap();
    let seed = PublicSeed(std::array::from_fn(|i| i as u8));
    let poly = seed.uniform_poly(&context, context.key_basis(Level(2)), 5);
    let first: Vec<&[u64]> = (0..5).map(|i| &poly.tower(i)[..2]).collect();
    assert_eq!(
        first,
        [
            [271_608_104_637_895, 275_818_205_417_657],
            [74_442_989_624, 42_213_657_933],
            [480_500_001_233_649_778, 870_536_445_101_244_315],
            [13_736_103_671_247, 91_267_308_443_710],
            [10_693_264_441_909, 10_065_308_239_000],
        ]
    );
    assert_eq!(
        hash(poly.data().iter().copied()),
        "61615667a753839ddf6ac90b1a00a4098ad7043543562ca61e68ab023be8d044"
    );
}

/// The same with one more tower, and levels that are no beginnings of the chain.
fn pool() -> Params {
    let spec = params().spec().clone();
    let set = |indices: &[u16]| indices.iter().copied().map(TowerIdx).collect();
    let levels = vec![set(&[0, 3]), set(&[0, 1]), set(&[0, 1, 2, 3])];
    let pool = Some(Pool { levels, digits: vec![2, 2] });
    Params::new(ParamsSpec { towers: [spec.towers, vec![12_289]].concat(), pool, ..spec }).unwrap()
}

/// Hashes of an encryption, of a rotation key and of both halves of the rotated ciphertext.
struct Known {
    encrypted: &'static str,
    key: &'static str,
    rotated: [&'static str; 2],
}

#[test]
fn secret_encryption_and_key_switch_are_known_with_every_kernel() {
    let known = Known {
        encrypted: "bd5c8700a486277d2c2995f489f86486e49b9c89f9d00da82f3b4610cf1348e1",
        key: "370ffc8a1909e730546da565117e813b903836fd6b5aac923b75644a4d0d02cd",
        rotated: [
            "111bf2fbb4e83fd7bb678ba049ec6482ac7c7896c59164861711ee240b7ddba2",
            "87774c9b29753d8da5438eefc92f0ab8efc031c0948fb242020f56e49392a5e9",
        ],
    };
    check(params(), Level(2), &known, |_, _, _| ());
}

#[test]
fn a_pool_has_a_known_fingerprint_key_switch_and_rescale_with_every_kernel() {
    let fingerprint: String = pool().fingerprint().0.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(fingerprint, "befa1974df6bc63f7ee8f15a42d86a99306aa7d86a5e44b0e63401cbe5e9bdf4");
    let known = Known {
        encrypted: "4bcbd8710bb504b72787742340552c96b64a70cf6fd3d39980e144668683deca",
        key: "2ae4e5e5f25b9360ecd577b409e1663e5cb0549a7de95b833d893ab3781945dc",
        rotated: [
            "68316b99f3f01a800457f6c8a6dc3acae4f06a19b7259a5ce5ef921f6446a67f",
            "137e7362850e7e2a9dba31f0220e352dca6ee69e250c25b97d350420ccc97893",
        ],
    };
    check(pool(), Level(1), &known, |context, rotated, instructions| {
        let rescaled = Evaluator::new(context).rescale(rotated).unwrap();
        assert_eq!(
            halves(&rescaled),
            [
                "4bd955c98e2c151e3a641381af8041e31a4664f4db9c03bafb169deba940dcb4",
                "81e08cbe117200becf043dfa8521d705f9167125ebed0109f5fb0f550e470915",
            ],
            "rescale with {instructions:?}"
        );
    });
}

fn halves(ciphertext: &Ciphertext) -> Vec<String> {
    ciphertext.polys().iter().map(|poly| hash(poly.data().iter().copied())).collect()
}

/// Compares what every kernel makes under the first seeds; `then` goes on with the rotated ciphertext.
fn check(
    params: Params,
    level: Level,
    known: &Known,
    then: impl Fn(&Arc<Context>, &Ciphertext, Instructions),
) {
    for instructions in [Instructions::Scalar, Instructions::Avx2, Instructions::Avx512, Instructions::Best] {
        let mut party = Party::with_instructions(params.clone(), instructions);
        let context = party.context.clone();
        let id: String = party.secret.id().0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(id, "da158f19469e4d46a81d3075266bb2ae");
        let coeffs: Vec<u8> = party.secret.coeffs().iter().map(|&c| (c + 1) as u8).collect();
        assert_eq!(
            blake3::hash(&coeffs).to_hex().as_str(),
            "a7491a4c36f660e07d9783c9b0a246b391f01a0f50c294957d4fd0ccc1069142"
        );

        let x: Vec<f64> = (0..128).map(|j| f64::from(j % 7 - 3) / 4.0).collect();
        let plain = context.encoder().encode(&x, Scale::new(2f64.powi(30)).unwrap(), level).unwrap();
        let fresh = party.secret.encrypt(&context, &plain, &mut party.seeds).unwrap();
        let encrypted = hash(fresh.residues().iter().copied());
        assert_eq!(encrypted, known.encrypted, "encryption with {instructions:?}");

        let keys = party.rotation_keys(&[3], level);
        let rotation = Rotation::new(3, &context);
        let key = hash(keys.get(rotation, level).unwrap().residues().flatten());
        assert_eq!(key, known.key, "rotation key with {instructions:?}");
        let switched = Evaluator::new(&context).rotate(&fresh.expand(&context), rotation, &keys).unwrap();
        assert_eq!(halves(&switched), known.rotated, "key switch with {instructions:?}");
        assert_close(&party.decrypt(&switched), &rotated(&x, 3), 1e-4);
        then(&context, &switched, instructions);
    }
}
