//! Ports and tails: which numbers are which, and what may be computed from them.

use fhe_bytecode::{Port, Tail, TailStep};

fn port(dims: &[u32], offset: u32, channels_last: bool) -> Port {
    Port { name: "x".to_owned(), dims: dims.to_vec(), channels_last, offset }
}

fn tail(steps: &[TailStep], n_classes: usize) -> Tail {
    let classes = (0..n_classes).map(|i| i.to_string()).collect();
    Tail { name: "y".to_owned(), port: 0, steps: steps.to_vec(), classes }
}

#[test]
fn a_port_has_one_to_eight_extents_none_of_them_zero() {
    let numbers = |dims: &[u32]| port(dims, 0, false).n_numbers();
    assert_eq!((numbers(&[]), numbers(&[7]), numbers(&[2, 3, 5])), (None, Some(7), Some(30)));
    assert_eq!((numbers(&[2; 8]), numbers(&[2; 9])), (Some(256), None));
    assert_eq!((numbers(&[0]), numbers(&[4, 0, 3])), (None, None));
    assert_eq!(numbers(&[u32::MAX; 3]), None);
}

#[test]
fn a_port_ends_where_its_tensor_does_and_no_later() {
    let of = port(&[2, 3], 4, false);
    assert_eq!((of.range(9), of.range(10), of.range(11)), (None, Some(4..10), Some(4..10)));
    assert_eq!(port(&[6], u32::MAX, false).range(6), None);
    assert_eq!(port(&[0], 0, false).range(6), None);
}

#[test]
fn channels_that_come_last_in_the_model_come_first_in_the_program() {
    // [1, 2, 3, 4] with four channels: number (y·3 + x)·4 + c of the model is number c·6 + y·3 + x of the program.
    let last = port(&[1, 2, 3, 4], 5, true);
    for (y, x, c) in (0..2).flat_map(|y| (0..3).flat_map(move |x| (0..4).map(move |c| (y, x, c)))) {
        assert_eq!(last.position((y * 3 + x) * 4 + c), c * 6 + y * 3 + x);
    }
    assert_eq!(port(&[1, 2, 3, 4], 5, false).position(17), 17);
    assert_eq!((port(&[], 0, true).position(3), port(&[9], 0, true).position(3)), (3, 3));
}

#[test]
fn steps_along_a_dimension_take_whole_groups() {
    let along: [fn(u32, u32) -> TailStep; 3] = [
        |length, inner| TailStep::Softmax { length, inner },
        |length, inner| TailStep::LogSoftmax { length, inner },
        |length, inner| TailStep::Normalize { length, inner },
    ];
    for step in along {
        let after = |length, inner, n| tail(&[step(length, inner)], 0).len_after(n);
        assert_eq!((after(3, 2, 12), after(12, 1, 12), after(1, 12, 12)), (Some(12), Some(12), Some(12)));
        assert_eq!((after(5, 1, 12), after(2, 5, 12), after(24, 1, 12)), (None, None, None));
        assert_eq!((after(0, 1, 12), after(1, 0, 12), after(u32::MAX, u32::MAX, 12)), (None, None, None));
    }
}

#[test]
fn a_largest_one_is_left_of_every_group() {
    let after = |length, inner, n| tail(&[TailStep::ArgMax { length, inner }], 0).len_after(n);
    assert_eq!((after(3, 2, 12), after(12, 1, 12), after(1, 1, 12)), (Some(4), Some(1), Some(12)));
    assert_eq!((after(5, 1, 12), after(0, 3, 12)), (None, None));
    assert_eq!(tail(&[TailStep::Sigmoid {}], 0).len_after(12), Some(12));
}

#[test]
fn votes_are_one_for_every_pair_of_classes() {
    let after = |classes, n| tail(&[TailStep::Votes { classes }], 0).len_after(n);
    assert_eq!((after(2, 1), after(3, 3), after(4, 6), after(10, 45)), (Some(2), Some(3), Some(4), Some(10)));
    assert_eq!((after(4, 5), after(4, 7), after(3, 6), after(4, 12)), (None, None, None, None));
    assert_eq!((after(0, 0), after(1, 0), after(u32::MAX, 1)), (None, None, None));
}

#[test]
fn a_tail_has_at_most_eight_steps_and_each_takes_what_the_last_one_left() {
    let votes_then_best = [TailStep::Votes { classes: 4 }, TailStep::ArgMax { length: 4, inner: 1 }];
    assert_eq!(
        (tail(&votes_then_best, 0).len_after(6), tail(&votes_then_best, 0).len_after(4)),
        (Some(1), None)
    );
    assert_eq!(tail(&[], 0).len_after(6), Some(6));
    assert_eq!(tail(&[TailStep::Sigmoid {}; 8], 0).len_after(6), Some(6));
    assert_eq!(tail(&[TailStep::Sigmoid {}; 9], 0).len_after(6), None);
}

#[test]
fn names_are_those_of_all_classes_or_none() {
    let best = [TailStep::ArgMax { length: 3, inner: 2 }];
    let fits = |steps: &[TailStep], n_classes: usize, n: usize| tail(steps, n_classes).fits(n);
    // Of four results each is one of three classes.
    assert!(fits(&best, 0, 12) && fits(&best, 3, 12));
    assert!(!fits(&best, 4, 12) && !fits(&best, 2, 12) && !fits(&best, 3, 13));
    // Numbers have a name each.
    let votes = [TailStep::Votes { classes: 4 }];
    assert!(fits(&votes, 4, 6) && fits(&votes, 0, 6) && !fits(&votes, 6, 6) && !fits(&votes, 4, 5));
    assert!(fits(&[], 6, 6) && !fits(&[], 5, 6));
}

#[test]
fn classes_are_what_ends_with_a_largest_one() {
    let best = TailStep::ArgMax { length: 3, inner: 1 };
    assert!(tail(&[TailStep::Sigmoid {}, best], 0).gives_classes());
    assert!(!tail(&[best, TailStep::Sigmoid {}], 0).gives_classes() && !tail(&[], 0).gives_classes());
}
