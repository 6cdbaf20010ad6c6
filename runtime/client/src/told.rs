//! What is told of an answer. Without scores as little as says what the result is: one class, a coarse confidence, and whether
//! it or any other score is doubted. A bit for every score would tell whoever wrote the program about as much as scores do.

use super::answer::{Answer, Doubt, DoubtKind};
use super::tail::{Content, Named};

/// What goes with scores wherever machines read them.
pub const SCORES_WARNING: &str =
    "scores are decrypted values: sent back to the server, they give the secret key away (docs/security.md)";

/// What is told of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Position and label of the best class; none if the model computes a number, which is a score.
    pub class: Option<(usize, String)>,
    /// Softmax of the rounded scores in coarse steps; none for a single score.
    pub confidence: Option<f64>,
    /// Whether the error may have exchanged the best class with another.
    pub is_undecided: bool,
    /// What is wrong with scores, in words: each where scores are asked for, else the best one and whether there is another.
    pub doubts: Vec<String>,
    /// The model's outputs where they are more or other than the scores: a class, and all there is where scores are asked for.
    pub outputs: Vec<Named>,
    /// Rounded scores, where they are asked for.
    pub scores: Option<Vec<f64>>,
}

impl Answer {
    /// What is told of it, with or without scores.
    pub fn told(&self, with_scores: bool) -> Told {
        let doubts = match with_scores {
            true => self.doubts.iter().map(|d| in_words(&format!("score {}", d.index), d.kind)).collect(),
            false => {
                let named = ["the best score", "another score"].into_iter().zip(self.two_doubts());
                named.filter_map(|(score, doubt)| Some(in_words(score, doubt?.kind))).collect()
            }
        };
        let is_class =
            |named: &&Named| matches!(&named.content, Content::Classes { names, .. } if names.len() == 1);
        Told {
            class: (!self.is_number()).then(|| (self.class, self.label.clone())),
            confidence: self.confidence,
            is_undecided: self.is_undecided,
            doubts,
            outputs: self.outputs.iter().filter(|named| with_scores || is_class(named)).cloned().collect(),
            scores: with_scores.then(|| self.scores.clone()),
        }
    }

    /// Doubt about the best class, and the worst about any other score.
    pub fn two_doubts(&self) -> [Option<&Doubt>; 2] {
        let best = self.doubts.iter().find(|doubt| doubt.index == self.class);
        let others = self.doubts.iter().filter(|doubt| doubt.index != self.class);
        // What wrapped around is the worse of the two.
        [best, others.max_by_key(|doubt| matches!(doubt.kind, DoubtKind::MayHaveWrapped(_)))]
    }

    /// Whether the model computes a single number that is no class.
    pub fn is_number(&self) -> bool {
        let first = self.outputs.first().map(|output| &output.content);
        self.scores.len() == 1 && !matches!(first, Some(Content::Classes { .. }))
    }
}

fn in_words(score: &str, kind: DoubtKind) -> String {
    match kind {
        DoubtKind::Uncalibrated(_) => format!("{score} is {kind}"),
        DoubtKind::MayHaveWrapped(_) => format!("{score} {kind}"),
    }
}
