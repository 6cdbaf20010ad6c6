//! What is said of a decrypted result: the class, how sure it is, and what is wrong with it.

use fhe_bytecode::params::ntt_primes_near;
use fhe_bytecode::*;
use fhe_client::{Answer, Content, DoubtKind, Resolution, label, largest_value, noise_floor};

const LOG_N: u32 = 5;

/// An interface with so many scores, of which the program says that they are off by at most 0.01. Half the modulus is 512.
fn interface(n_scores: u32, change: impl FnOnce(&mut InterfaceSpec)) -> Interface {
    let towers = ntt_primes_near(2f64.powi(40), LOG_N, 1, &[]).unwrap();
    let special_primes = ntt_primes_near(2f64.powi(41), LOG_N, 1, &towers).unwrap();
    let (slots, scale) = (1 << (LOG_N - 1), Scale::new(f64::from(1 << 30)).unwrap());
    let layout = Layout::vector(Packing::Packed, n_scores, 1, slots).unwrap();
    let mut spec = InterfaceSpec {
        program: Fingerprint([7; 32]),
        params: ParamsSpec::toy(LOG_N, towers, special_primes),
        origin: Origin::default(),
        input: InputSpec::new("x", LayoutId(0), Level(0), scale),
        output: OutputSpec::new("y", LayoutId(0)),
        output_level: Level(0),
        output_scale: scale,
        layouts: vec![layout.spec().clone()],
        rotation_keys: Vec::new(),
        relin_level: None,
        conjugation_level: None,
        lower_keys: Vec::new(),
        prediction: Prediction { max_abs_error: 0.01, ..Prediction::default() },
    };
    change(&mut spec);
    Interface::new(spec).unwrap()
}

fn answer(scores: &[f64]) -> Answer {
    Answer::new(&interface(scores.len() as u32, |_| ()), scores)
}

fn port(name: &str, n: u32, offset: u32) -> Port {
    Port { name: name.to_owned(), dims: vec![1, n], channels_last: false, offset }
}

#[test]
fn scores_are_rounded_to_what_the_program_says_they_are_off_by() {
    let found = answer(&[0.1234, -0.005, 7.0]);
    assert_eq!((found.unit, found.scores), (0.01, vec![0.12, -0.01, 7.0]));
    let resolution = Resolution::of(&interface(3, |_| ()));
    assert_eq!((resolution.unit(), resolution.doubt()), (0.01, 0.02));
    // A unit is a power of ten, the error is not, and what two scores may differ by is the larger of both.
    let coarse = interface(3, |spec| spec.prediction.max_abs_error = 0.03);
    assert_eq!((Resolution::of(&coarse).unit(), Resolution::of(&coarse).doubt()), (0.1, 0.2));
    // Where the program claims less, the client's own floor and six decimals are the least.
    let claimed = interface(3, |spec| spec.prediction.max_abs_error = 0.0);
    assert!(8.0 * noise_floor(&claimed) < 1e-6);
    assert_eq!(Resolution::of(&claimed).unit(), 1e-6);
    assert!(Resolution::finest(&claimed).unit() < 1e-6);
}

#[test]
fn the_class_is_the_first_of_the_largest_scores() {
    for (scores, class) in
        [(&[1.0, 3.0, 2.0][..], 1), (&[2.0, 2.0, 1.0], 0), (&[-1.0, -1.0, -0.5], 2), (&[4.0], 0)]
    {
        assert_eq!(answer(scores).class, class, "{scores:?}");
    }
    // Digits that are not shown decide, as long as they are above the noise.
    let close = answer(&[0.301, 0.304]);
    assert_eq!((close.class, close.is_undecided, close.scores), (1, true, vec![0.3, 0.3]));
}

#[test]
fn a_class_is_undecided_within_twice_what_scores_are_off_by() {
    for (lead, is_undecided) in [(0.0, true), (0.01, true), (0.02, true), (0.03, false), (1.0, false)] {
        assert_eq!(answer(&[0.0, lead, -5.0]).is_undecided, is_undecided, "{lead}");
    }
    // A number alone has no rival.
    assert!(!answer(&[0.0]).is_undecided);
    assert!(answer(&[f64::NAN, 1.0]).is_undecided);
}

#[test]
fn confidence_is_the_softmax_in_tenths_rounded_down() {
    for (scores, confidence) in [
        (&[0.0, 0.0][..], Some(0.5)),
        (&[0.0, 0.0, 0.0], Some(0.3)),
        (&[10.0, 0.0], Some(0.9)),
        (&[0.85, 0.0], Some(0.7)),
        (&[0.84, 0.0], Some(0.6)),
        (&[100.0, -100.0], Some(1.0)),
        (&[3.0], None),
        (&[f64::NAN, 1.0], Some(0.0)),
    ] {
        assert_eq!(answer(scores).confidence, confidence, "{scores:?}");
    }
}

#[test]
fn scores_outside_their_range_or_near_the_modulus_are_doubted() {
    let interface = interface(4, |spec| spec.output.range = Some(Interval { low: -1.0, high: 2.0 }));
    let kinds = |scores: [f64; 4]| {
        let answer = Answer::new(&interface, &scores);
        [0, 1, 2, 3].map(|i| answer.doubt(i).map(|kind| kind.code()))
    };
    let (outside, wrapped) = (Some("outside-calibration"), Some("may-have-wrapped"));
    assert_eq!(kinds([-1.0, 2.0, 0.0, 1.0]), [None; 4]);
    // A unit of slack on either side.
    assert_eq!(kinds([-1.01, 2.01, -1.02, 2.02]), [None, None, outside, outside]);
    let limit = largest_value(&interface);
    assert!((limit - 512.0).abs() < 1.0, "{limit}");
    assert_eq!(
        kinds([0.49 * limit, 0.51 * limit, -0.51 * limit, f64::NAN]),
        [outside, wrapped, wrapped, wrapped]
    );
    let doubts = Answer::new(&interface, &[0.0, 9.0, 0.0, 0.0]).doubts;
    assert_eq!((doubts.len(), doubts[0].index), (1, 1));
    assert_eq!(doubts[0].kind, DoubtKind::Uncalibrated(Interval { low: -1.0, high: 2.0 }));
    assert_eq!(doubts[0].kind.to_string(), "outside the calibrated scores [-1, 2]");
    // Without a range there is only the modulus.
    assert!(answer(&[0.49 * limit, 0.0]).doubts.is_empty());
}

#[test]
fn the_best_come_first_and_equal_ones_in_the_order_of_the_output() {
    let found = answer(&[0.1, 0.304, 0.301, 0.2, 0.1]);
    assert_eq!(found.top(5), [1, 2, 3, 0, 4]);
    assert_eq!((found.top(2), found.top(0), found.top(9).len()), (vec![1, 2], vec![], 5));
    // The best is first although another looks the same.
    assert_eq!(answer(&[0.301, 0.304]).top(2), [1, 0]);
}

#[test]
fn labels_are_those_of_the_program_or_positions() {
    let named = interface(2, |spec| spec.output.labels = vec!["cat".to_owned(), "dog".to_owned()]);
    assert_eq!(Answer::new(&named, &[0.0, 1.0]).label, "dog");
    assert_eq!((label(&named, 0), label(&named, 7)), ("cat".to_owned(), "7".to_owned()));
    assert_eq!(answer(&[0.0, 1.0]).label, "1");
}

#[test]
fn the_classes_are_those_of_the_first_output() {
    let two = interface(5, |spec| spec.output.ports = vec![port("class", 2, 1), port("rest", 2, 3)]);
    let found = Answer::new(&two, &[9.0, 1.0, 1.5, 30.0, 40.0]);
    assert_eq!((found.class, found.confidence), (2, Some(0.6)));
    assert!(!found.is_undecided && found.outputs.len() == 2);
    assert_eq!((found.outputs[1].name.as_str(), &found.outputs[1].dims), ("rest", &vec![1, 2]));
    let Content::Numbers { values, unit, .. } = &found.outputs[1].content else { panic!("numbers") };
    assert_eq!((values, *unit), (&vec![30.0, 40.0], 0.01));
}

#[test]
fn a_tail_that_ends_with_the_largest_names_the_class() {
    let tail = |steps: Vec<TailStep>, classes: &[&str]| Tail {
        name: "best".to_owned(),
        port: 0,
        steps,
        classes: classes.iter().map(|&name| name.to_owned()).collect(),
    };
    let arg_max = TailStep::ArgMax { length: 3, inner: 1 };
    let named = interface(3, |spec| spec.output.tails = vec![tail(vec![arg_max], &["a", "b", "c"])]);
    let found = Answer::new(&named, &[0.0, 5.0, 1.0]);
    assert_eq!((found.label.as_str(), found.is_undecided, found.confidence), ("b", false, Some(0.9)));
    assert!(Answer::new(&named, &[0.0, 5.0, 4.995]).is_undecided);
    // Where classes win by votes, the largest score is no class, and has no confidence.
    let votes = vec![TailStep::Votes { classes: 3 }, arg_max];
    let voted = interface(3, |spec| spec.output.tails = vec![tail(votes, &["a", "b", "c"])]);
    let found = Answer::new(&voted, &[-1.0, -1.0, -9.0]);
    assert_eq!((found.label.as_str(), found.confidence), ("c", None));
    assert!(found.is_voted() && found.top(3) == [found.class]);
    assert!(!answer(&[0.0, 1.0, 2.0]).is_voted());
}

/// Three classes by name behind two other numbers.
fn classes_of_the_second_output() -> Interface {
    let steps = vec![TailStep::ArgMax { length: 3, inner: 1 }];
    let classes = ["a", "b", "c"].map(str::to_owned).to_vec();
    interface(5, |spec| {
        spec.output.ports = vec![port("rest", 2, 0), port("best", 3, 2)];
        spec.output.tails = vec![Tail { name: "best".to_owned(), port: 1, steps, classes }];
    })
}

#[test]
fn the_classes_of_a_tail_are_those_of_its_output() {
    let two = classes_of_the_second_output();
    let found = Answer::new(&two, &[9.0, 8.0, 1.0, 5.0, 2.0]);
    assert_eq!((found.class, found.label.as_str(), found.top(2)), (3, "b", vec![3, 4]));
    assert_eq!([2, 3, 4].map(|position| label(&two, position)), ["a", "b", "c"]);
    // What is no class has no name.
    assert_eq!([0, 1, 5].map(|position| label(&two, position)), ["0", "1", "5"]);
}

#[test]
fn fewer_numbers_than_scores_are_no_panic() {
    let two = interface(5, |spec| spec.output.ports = vec![port("class", 2, 1), port("rest", 2, 3)]);
    assert_eq!(Answer::new(&two, &[1.0, 3.0]).class, 1);
    assert_eq!(Answer::new(&classes_of_the_second_output(), &[1.0, 3.0, 2.0, 0.0]).class, 1);
}

#[test]
fn computed_numbers_are_rounded_to_what_is_known_of_them() {
    let sigmoid = Tail { name: "p".to_owned(), port: 0, steps: vec![TailStep::Sigmoid {}], classes: vec![] };
    let found = Answer::new(&interface(1, |spec| spec.output.tails = vec![sigmoid]), &[1.0]);
    let Content::Numbers { values, unit, .. } = &found.outputs[0].content else { panic!("numbers") };
    assert_eq!((values, *unit), (&vec![0.73], 0.01));
}

#[test]
fn without_scores_one_class_and_two_bits_of_doubt_are_told() {
    let interface = interface(4, |spec| spec.output.range = Some(Interval { low: -1.0, high: 2.0 }));
    let found = Answer::new(&interface, &[5.0, 1.0, -7.0, 400.0]);
    let (told, with_scores) = (found.told(false), found.told(true));
    assert_eq!((told.class, told.confidence, told.scores), (Some((3, "3".to_owned())), Some(1.0), None));
    let [best, other] = &told.doubts[..] else { panic!("{:?}", told.doubts) };
    assert!(best.starts_with("the best score may have wrapped around"), "{best}");
    assert_eq!(other, "another score is outside the calibrated scores [-1, 2]");
    assert_eq!(with_scores.scores, Some(vec![5.0, 1.0, -7.0, 400.0]));
    assert_eq!(with_scores.doubts.len(), 3);
    assert_eq!(with_scores.doubts[1], "score 2 is outside the calibrated scores [-1, 2]");
}

#[test]
fn numbers_are_scores_and_classes_are_told() {
    // A model of one number has no class.
    let told = answer(&[4.0]).told(false);
    assert_eq!((told.class, told.scores, told.confidence), (None, None, None));
    let told = answer(&[4.0]).told(true);
    assert_eq!((told.class, told.scores), (None, Some(vec![4.0])));
    // Neither are numbers of several outputs told.
    let two = interface(5, |spec| spec.output.ports = vec![port("class", 2, 1), port("rest", 2, 3)]);
    let found = Answer::new(&two, &[9.0, 1.0, 1.5, 30.0, 40.0]);
    assert_eq!((found.told(false).outputs.len(), found.told(true).outputs.len()), (0, 2));
    // A class by name is, a list of them is not: it tells something of every score.
    let best = |inner: u32, n: u32| {
        let steps = vec![TailStep::ArgMax { length: n / inner, inner }];
        let tail = Tail { name: "best".to_owned(), port: 0, steps, classes: Vec::new() };
        let named = interface(n, |spec| spec.output.tails = vec![tail]);
        Answer::new(&named, &(0..n).map(f64::from).collect::<Vec<_>>())
    };
    assert_eq!((best(1, 3).told(false).outputs.len(), best(3, 6).told(false).outputs.len()), (1, 0));
    assert_eq!(best(3, 6).told(true).outputs.len(), 1);
}
