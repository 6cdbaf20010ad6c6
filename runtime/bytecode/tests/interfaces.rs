//! What is refused of an interface, at both sides of every bound.

use fhe_bytecode::params::ntt_primes_near;
use fhe_bytecode::*;

const LOG_N: u32 = 6;
const SLOTS: u32 = 1 << (LOG_N - 1);
/// Bits of the towers.
const TOWERS: [i32; 3] = [40, 30, 31];

/// Three hundred numbers in and five out, with nothing that need not be there.
fn spec() -> InterfaceSpec {
    let mut towers: Vec<u64> = Vec::new();
    for bits in TOWERS {
        towers.extend(ntt_primes_near(2f64.powi(bits), LOG_N, 1, &towers).unwrap());
    }
    let special_primes = ntt_primes_near(2f64.powi(41), LOG_N, 1, &towers).unwrap();
    let layout = |n: u32| Layout::vector(Packing::Packed, n, 1, SLOTS).unwrap().spec().clone();
    InterfaceSpec {
        program: Fingerprint([1; 32]),
        params: ParamsSpec::toy(LOG_N, towers, special_primes),
        origin: Origin::default(),
        input: InputSpec::new("x", LayoutId(0), Level(2), Scale::from_log2(30.0)),
        output: OutputSpec::new("y", LayoutId(1)),
        output_level: Level(0),
        output_scale: Scale::from_log2(20.0),
        layouts: vec![layout(300), layout(5)],
        rotation_keys: Vec::new(),
        relin_level: None,
        conjugation_level: None,
        lower_keys: Vec::new(),
        prediction: Prediction::default(),
    }
}

fn messages(change: impl FnOnce(&mut InterfaceSpec)) -> Vec<String> {
    let mut spec = spec();
    change(&mut spec);
    match Interface::new(spec) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.list().iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn accepts(change: impl FnOnce(&mut InterfaceSpec)) {
    assert_eq!(messages(change), Vec::<String>::new());
}

#[track_caller]
fn refuses(change: impl FnOnce(&mut InterfaceSpec), expected: &str) {
    let found = messages(change);
    assert!(found.len() == 1 && found[0].contains(expected), "{expected:?}: {found:#?}");
}

fn port(name: String, dims: &[u32], offset: u32) -> Port {
    Port { name, dims: dims.to_vec(), channels_last: false, offset }
}

#[test]
fn an_ordinary_interface_is_accepted_and_says_what_it_holds() {
    let interface = Interface::new(spec()).unwrap();
    assert_eq!((interface.input_layout().shape().len(), interface.output_layout().shape().len()), (300, 5));
    assert_eq!((interface.output_level(), interface.n_keys()), (Level(0), 0));
}

#[test]
fn levels_end_with_the_chain_and_scales_with_the_modulus() {
    accepts(|s| s.output_level = Level(2));
    refuses(|s| s.output_level = Level(3), "level L3 is above the chain's L2");
    refuses(|s| s.input.level = Level(3), "level L3 is above the chain's L2");
    accepts(|s| s.output_scale = Scale::ONE);
    refuses(|s| s.output_scale = Scale::from_log2(-0.001), "is below one");
    refuses(|s| s.input.scale = Scale::from_log2(-40.0), "is below one");
    let q =
        |s: &InterfaceSpec, n: usize| s.params.towers[..n].iter().map(|&t| (t as f64).log2()).sum::<f64>();
    accepts(|s| s.output_scale = Scale::from_log2(q(s, 1) - 1e-6));
    refuses(|s| s.output_scale = Scale::new(s.params.towers[0] as f64).unwrap(), "does not fit the modulus");
    accepts(|s| s.input.scale = Scale::from_log2(q(s, 3) - 1e-6));
    refuses(|s| s.input.scale = Scale::from_log2(q(s, 3) + 1e-6), "does not fit the modulus");
}

#[test]
fn keys_are_in_order_within_the_ring_and_within_the_chain() {
    let keys = |of: &[(i64, u16)]| -> Vec<RotationKey> {
        let key = |&(amount, level): &(i64, u16)| RotationKey {
            rotation: Rotation::new(amount, 1 << 20),
            level: Level(level),
        };
        of.iter().map(key).collect()
    };
    let half = i64::from(SLOTS) / 2;
    accepts(|s| s.rotation_keys = keys(&[(1 - half, 2), (-1, 0), (1, 2), (half, 1)]));
    for useless in [[(0, 1)], [(-half, 1)], [(half + 1, 1)], [(100, 0)]] {
        refuses(|s| s.rotation_keys = keys(&useless), "rotation");
    }
    refuses(|s| s.rotation_keys = keys(&[(2, 1), (1, 1)]), "rotation +1");
    refuses(|s| s.rotation_keys = keys(&[(1, 1), (1, 1)]), "rotation +1");
    refuses(|s| s.rotation_keys = keys(&[(1, 3)]), "level L3 is above");
    accepts(|s| (s.relin_level, s.conjugation_level) = (Some(Level(2)), Some(Level(0))));
    refuses(|s| s.relin_level = Some(Level(3)), "level L3 is above");
    refuses(|s| s.conjugation_level = Some(Level(9)), "level L9 is above");
}

#[test]
fn no_more_errors_are_listed_than_anybody_reads() {
    let zero = RotationKey { rotation: Rotation::ZERO, level: Level(0) };
    assert_eq!(messages(|s| s.rotation_keys = vec![zero; 64]).len(), 64);
    assert_eq!(messages(|s| s.rotation_keys = vec![zero; 5000]).len(), 64);
    let high = |amount: i64| RotationKey { rotation: Rotation::new(amount, 1 << 20), level: Level(9) };
    assert_eq!(messages(|s| s.rotation_keys = (-15..0).chain(1..=16).map(high).collect()).len(), 31);
}

#[test]
fn predictions_are_numbers_that_are_not_negative() {
    let fields: [fn(&mut Prediction) -> &mut f64; 3] =
        [|p| &mut p.seconds, |p| &mut p.encode_seconds, |p| &mut p.max_abs_error];
    for field in fields {
        for good in [0.0, 1e-300, 1e300] {
            accepts(|s| *field(&mut s.prediction) = good);
        }
        for bad in [-1e-300, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(messages(|s| *field(&mut s.prediction) = bad).len(), 1, "{bad}");
        }
    }
}

#[test]
fn layouts_of_both_ends_must_exist() {
    for (change, name) in [
        ((|s| s.input.layout = LayoutId(2)) as fn(&mut InterfaceSpec), "layout l2"),
        (|s| s.output.layout = LayoutId(2), "layout l2"),
        (|s| s.output.layout = LayoutId(u32::MAX), "layout l4294967295"),
    ] {
        let found = messages(change);
        assert!(found.iter().any(|message| message.contains("does not exist")), "{name}: {found:?}");
    }
}

#[test]
fn numbers_of_channels_are_finite_and_deviations_positive() {
    accepts(|s| s.input.preprocessing.mean = vec![-1e9; 300]);
    accepts(|s| s.input.preprocessing.std = vec![f64::MIN_POSITIVE as _; 300]);
    refuses(|s| s.input.preprocessing.mean = vec![0.0; 299], "mean has 299 values for 300 channels");
    refuses(|s| s.input.preprocessing.std = vec![1.0; 301], "std has 301 values for 300 channels");
    refuses(|s| s.output.labels = vec!["a".to_owned(); 4], "labels has 4 values for 5 channels");
    accepts(|s| s.output.labels = vec!["a".to_owned(); 5]);
    for bad in [f64::NAN, f64::INFINITY] {
        refuses(|s| s.input.preprocessing.mean = [vec![0.0; 299], vec![bad as _]].concat(), "not finite");
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE / 2.0] {
        let std = [vec![1.0; 299], vec![bad as _]].concat();
        refuses(|s| s.input.preprocessing.std = std, "is not positive");
    }
}

#[test]
fn ranges_begin_before_they_end() {
    let range = |low: f64, high: f64| Some(Interval { low, high });
    accepts(|s| (s.input.range, s.output.range) = (range(-1.0, 1.0), range(0.0, 1e-9)));
    for (low, high) in [(1.0, -1.0), (f64::NAN, 1.0), (0.0, f64::NAN)] {
        assert_eq!(messages(|s| s.input.range = range(low, high)).len(), 1);
        assert_eq!(messages(|s| s.output.range = range(low, high)).len(), 1);
    }
}

#[test]
fn ports_follow_each_other_within_the_tensor() {
    let ports = |ends: &[(u32, u32)]| -> Vec<Port> {
        ends.iter().map(|&(start, end)| port(format!("p{start}"), &[end - start], start)).collect()
    };
    accepts(|s| s.input.ports = ports(&[(0, 1), (1, 7), (10, 300)]));
    refuses(|s| s.input.ports = ports(&[(0, 2), (1, 7)]), "port p1 ");
    refuses(|s| s.input.ports = ports(&[(5, 7), (0, 5)]), "port p0 ");
    refuses(|s| s.input.ports = ports(&[(0, 301)]), "port p0 ");
    refuses(|s| s.output.ports = ports(&[(0, 4), (4, 6)]), "port p4 ");
    // As many as allowed, and one more.
    let many = |n: u32| ports(&(0..n).map(|i| (i, i + 1)).collect::<Vec<_>>());
    accepts(|s| s.input.ports = many(256));
    refuses(|s| s.input.ports = many(257), "port p256 ");
}

#[test]
fn tails_start_from_a_port_or_from_all_scores() {
    let tail = |port: u32, length: u32| Tail {
        name: format!("t{port}"),
        port,
        steps: vec![TailStep::Softmax { length, inner: 1 }],
        classes: Vec::new(),
    };
    accepts(|s| s.output.tails = vec![tail(0, 5)]);
    refuses(|s| s.output.tails = vec![tail(0, 4)], "tail t0 ");
    // There is no port that it could start from.
    refuses(|s| s.output.tails = vec![tail(1, 5)], "tail t1 ");
    let two = || vec![port("a".to_owned(), &[2], 0), port("b".to_owned(), &[3], 2)];
    accepts(|s| (s.output.ports, s.output.tails) = (two(), vec![tail(0, 2), tail(1, 3)]));
    refuses(|s| (s.output.ports, s.output.tails) = (two(), vec![tail(1, 2)]), "tail t1 ");
    refuses(|s| (s.output.ports, s.output.tails) = (two(), vec![tail(2, 5)]), "tail t2 ");
    accepts(|s| s.output.tails = vec![tail(0, 5); 256]);
    refuses(|s| s.output.tails = vec![tail(0, 5); 257], "tail t0 ");
}

#[test]
fn no_text_moves_a_cursor_and_messages_repeat_little_of_one() {
    let changes: [fn(&mut InterfaceSpec, String); 9] = [
        |s, text| s.origin.model = text,
        |s, text| s.origin.producer = text,
        |s, text| s.origin.packing = text,
        |s, text| s.input.name = text,
        |s, text| s.output.name = text,
        |s, text| s.output.labels = ["a".to_owned(), text, "".into(), "".into(), "".into()].to_vec(),
        |s, text| s.input.ports = vec![port(text, &[3], 0)],
        |s, text| s.output.ports = vec![port(text, &[3], 0)],
        |s, text| {
            let steps = vec![TailStep::ArgMax { length: 5, inner: 1 }];
            let classes = ["a", "b", "c", "d", &text].map(str::to_owned).to_vec();
            s.output.tails = vec![Tail { name: "t".to_owned(), port: 0, steps, classes }];
        },
    ];
    for (i, change) in changes.into_iter().enumerate() {
        accepts(|s| change(s, "für Ärzte ½".to_owned()));
        let found = messages(|s| change(s, format!("\u{1b}[2J{}", "x".repeat(5000))));
        assert!(found.len() == 1 && found[0].len() < 160, "{i}: {found:#?}");
        assert!(found[0].contains("\\u{1b}[2J") && found[0].contains(&"x".repeat(30)), "{i}: {found:#?}");
    }
}
