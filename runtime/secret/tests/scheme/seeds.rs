//! Seeds of evaluation keys that come from the secret key, and keys digit by digit.

use super::*;

fn request(context: &Context, wanted: &[(Option<i64>, u16)]) -> KeyRequest {
    let mut request = KeyRequest::default();
    for &(steps, level) in wanted {
        let key_use = steps.map_or(KeyUse::Relinearize, |steps| KeyUse::rotation(steps, context));
        request.add(key_use, Level(level));
    }
    request
}

#[test]
fn a_request_has_its_seeds_and_shares_none_with_another() {
    let context = Context::new(toy_params(8, 3, 40, 1, 1)).unwrap();
    let key = |seed| SecretKey::generate(&context, &mut fixed_seeds(seed)).unwrap();
    let public = |key: &SecretKey, wanted: &[(Option<i64>, u16)]| -> Vec<[u8; 32]> {
        let request = request(&context, wanted);
        let mut seeds = SeedSource::of_keys(&context, key, &request);
        let seed = |wanted| key.key_digits(&context, wanted, &mut seeds).unwrap().seed().0;
        request.iter().map(seed).collect()
    };
    let (first, other) = (key(1), key(2));
    let wanted = [(None, 1), (Some(3), 1)];
    let mut all = public(&first, &wanted);
    assert_eq!(all, public(&first, &wanted));
    all.extend(public(&other, &wanted));
    for changed in [
        &[(None, 2), (Some(3), 1)][..],
        &[(None, 1), (Some(4), 1)],
        &[(None, 1)],
        &[(Some(3), 1)],
        &[(None, 1), (Some(3), 1), (Some(4), 1)],
    ] {
        all.extend(public(&first, changed));
    }
    let n = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!((all.len(), n), (13, 13), "no seed serves two ends");
}

#[test]
fn digits_are_those_of_the_whole_key() {
    for params in [toy_params(8, 3, 40, 1, 1), toy_pool(8)] {
        let context = Context::new(params).unwrap();
        let key = SecretKey::generate(&context, &mut fixed_seeds(1)).unwrap();
        for key_use in [KeyUse::Relinearize, KeyUse::rotation(5, &context)] {
            let (wanted, seeds) = ((key_use, Level(2)), || fixed_seeds(2));
            let whole = key.evaluation_key(&context, wanted, &mut seeds()).unwrap();
            let digits = key.key_digits(&context, wanted, &mut seeds()).unwrap();
            assert_eq!((digits.level(), digits.seed()), (whole.level(), *whole.seed()));
            assert!(digits.map(|digit| digit.as_ref().to_vec()).eq(whole.residues()));
        }
    }
}
