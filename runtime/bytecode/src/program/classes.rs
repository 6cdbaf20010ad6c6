//! Which numbers of a result are scores of classes, and which class they say.
//!
//! Everybody who asks whether an error changes a class asks here: of several outputs only one has the classes, an image has
//! none, and where every two classes have a decision of their own the largest number is none.

use std::ops::Range;

use super::OutputSpec;
use super::port::{Port, Tail, TailStep, batch};
use crate::layout::Shape;

/// The scores of classes among the numbers of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Classes {
    /// The numbers are no classes.
    None,
    /// The largest of these wins.
    Scores(Range<usize>),
    /// Each of these decides between two of so many classes, and most votes win.
    Votes(Range<usize>, usize),
}

impl Classes {
    /// The classes of a result of this shape: those that a tail takes the largest of, else the first output's if that is a
    /// vector.
    pub fn new(shape: Shape, ports: &[Port], tails: &[Tail]) -> Self {
        let range = |port: usize| match ports.get(port) {
            Some(port) => port.range(shape.len()),
            None => (port == 0).then_some(0..shape.len()),
        };
        let of_tail = |tail: &Tail| {
            let range = range(tail.port as usize)?;
            let is_one = tail.gives_classes() && tail.len_after(range.len()) == Some(1);
            let voted = tail.steps.iter().find_map(|step| match step {
                TailStep::Votes { classes } => Some(*classes as usize),
                _ => None,
            });
            is_one.then(|| voted.map_or(Self::Scores(range.clone()), |n| Self::Votes(range, n)))
        };
        let is_vector = match ports.first() {
            Some(port) => port.dims.iter().filter(|&&d| d > 1).count() < 2,
            None => shape.height * shape.width == 1,
        };
        let first = || range(0).filter(|_| is_vector).map_or(Self::None, Self::Scores);
        tails.iter().find_map(of_tail).unwrap_or_else(first)
    }

    /// The best class; the last of equal ones.
    pub fn best(&self, numbers: &[f64]) -> Option<usize> {
        let scores = self.scores(numbers);
        (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]))
    }

    /// How far the best class is ahead of another one.
    pub fn lead_over(&self, other: usize, numbers: &[f64]) -> f64 {
        match (self, self.best(numbers)) {
            (Self::Scores(range), Some(best)) => {
                let scores = part(range, numbers);
                scores[best] - scores.get(other).unwrap_or(&f64::NEG_INFINITY)
            }
            (Self::Votes(..), Some(best)) if other != best => self.lead(numbers),
            _ => 0.0,
        }
    }

    /// By how much numbers may change, each against the others, without changing the class; infinity where there is no other.
    pub fn lead(&self, numbers: &[f64]) -> f64 {
        match self {
            Self::None => f64::INFINITY,
            Self::Scores(range) => {
                let mut sorted = part(range, numbers).to_vec();
                sorted.sort_by(|a, b| b.total_cmp(a));
                sorted.get(1).map_or(f64::INFINITY, |next| sorted[0] - next)
            }
            // A decision changes with its own error alone, a difference with twice as much.
            Self::Votes(range, _) => {
                part(range, numbers).iter().map(|d| 2.0 * d.abs()).fold(f64::INFINITY, f64::min)
            }
        }
    }

    /// A number for every class, larger for better ones.
    fn scores(&self, numbers: &[f64]) -> Vec<f64> {
        match self {
            Self::None => Vec::new(),
            Self::Scores(range) => part(range, numbers).to_vec(),
            Self::Votes(range, n) => {
                let mut votes = vec![0.0; *n];
                let pairs = (0..*n).flat_map(|i| (i + 1..*n).map(move |j| [i, j]));
                for ([i, j], decision) in pairs.zip(part(range, numbers)) {
                    votes[if *decision > 0.0 { i } else { j }] += 1.0;
                }
                votes
            }
        }
    }
}

/// These of the numbers; none where there are fewer.
fn part<'a>(range: &Range<usize>, numbers: &'a [f64]) -> &'a [f64] {
    numbers.get(range.clone()).unwrap_or_default()
}

impl OutputSpec {
    /// The classes of a result of this shape.
    pub fn classes(&self, shape: Shape) -> Classes {
        // Those of every result of a batch are alike.
        let n_ports = self.ports.len() / batch(&self.ports, shape.len());
        Classes::new(shape, &self.ports[..n_ports], &self.tails)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(offset: u32, dims: &[u32]) -> Port {
        Port { name: String::new(), dims: dims.to_vec(), channels_last: false, offset }
    }

    fn arg_max(port: u32, before: &[TailStep], length: u32) -> Tail {
        let last = TailStep::ArgMax { length, inner: 1 };
        let steps = before.iter().copied().chain([last]).collect();
        Tail { name: String::new(), port, steps, classes: Vec::new() }
    }

    fn vector(channels: u32) -> Shape {
        Shape { channels, height: 1, width: 1 }
    }

    #[test]
    fn classes_are_those_that_a_tail_decides_then_those_of_the_first_output() {
        assert_eq!(Classes::new(vector(5), &[], &[]), Classes::Scores(0..5));
        let ports = [port(0, &[1, 1]), port(1, &[1, 4])];
        assert_eq!(Classes::new(vector(5), &ports, &[]), Classes::Scores(0..1));
        assert_eq!(Classes::new(vector(5), &ports, &[arg_max(1, &[], 4)]), Classes::Scores(1..5));
        let votes = [TailStep::Votes { classes: 4 }];
        assert_eq!(Classes::new(vector(6), &[], &[arg_max(0, &votes, 4)]), Classes::Votes(0..6, 4));
    }

    #[test]
    fn images_have_no_classes() {
        let image = Shape { channels: 2, height: 3, width: 3 };
        let none = Classes::new(image, &[port(0, &[1, 2, 3, 3])], &[]);
        assert_eq!(none, Classes::None);
        assert_eq!((none.best(&[1.0; 18]), none.lead(&[1.0; 18])), (None, f64::INFINITY));
        assert_eq!(Classes::new(image, &[], &[]), Classes::None);
        // An index for every pixel is no single class.
        assert_eq!(Classes::new(image, &[port(0, &[1, 2, 3, 3])], &[arg_max(0, &[], 2)]), Classes::None);
    }

    #[test]
    fn other_outputs_are_no_classes() {
        let classes = Classes::Scores(1..4);
        let numbers = [9.0, 1.0, 4.0, 2.5];
        assert_eq!((classes.best(&numbers), classes.lead(&numbers)), (Some(1), 1.5));
        assert_eq!(classes.lead_over(0, &numbers), 3.0);
        assert_eq!(Classes::Scores(0..1).lead(&numbers), f64::INFINITY);
    }

    #[test]
    fn fewer_numbers_than_classes_have_none() {
        let classes = Classes::Scores(0..2);
        assert_eq!((classes.best(&[1.0]), classes.lead(&[1.0])), (None, f64::INFINITY));
    }

    /// 0 beats 1, 2 beats 0, 2 beats 1: the largest decision is that of 0 and 1.
    #[test]
    fn most_votes_win() {
        let classes = Classes::Votes(0..3, 3);
        let numbers = [5.0, -1.0, -0.25];
        assert_eq!((classes.best(&numbers), classes.lead(&numbers)), (Some(2), 0.5));
        assert_eq!((classes.lead_over(0, &numbers), classes.lead_over(2, &numbers)), (0.5, 0.0));
    }
}
