//! The zoo: models of PyTorch, Keras and scikit-learn, and one for every operator of ONNX, each built, evaluated under
//! encryption, and compared with what the original runtime computed; or refused as `docs/models.md` says. The page itself is
//! generated from the same cards.
//!
//! `onnx-models/zoo` and `onnx-models/operators` hold the models with the scripts that made them. `cargo xtask bless` writes the
//! page. `ZOO=NAME` keeps to models whose name contains it.

mod card;
mod judge;
mod page;

use rayon::prelude::*;

use card::{Card, Expect};

fn check(cards: &[Card]) {
    let faults: Vec<String> = cards
        .par_iter()
        .filter_map(|card| judge::judge(card).err().map(|fault| format!("{}: {fault}", card.name)))
        .collect();
    assert!(faults.is_empty(), "{} of {} models:\n{}", faults.len(), cards.len(), faults.join("\n"));
}

fn of(cards: Vec<Card>, expect: Expect) -> Vec<Card> {
    let only = std::env::var("ZOO").unwrap_or_default();
    cards.into_iter().filter(|card| card.expect == expect && card.name.contains(&only)).collect()
}

#[test]
fn models_that_work_give_the_original_answers_under_encryption() {
    check(&of(Card::zoo(), Expect::Works));
}

/// Support vectors have coefficients of both signs, whose sum is zero: what the ten numbers of the input do to the score cancels
/// for the most part, and what the noise of their copies does cancels not. One evaluation in twenty was beyond its bound.
#[test]
fn noise_in_copies_of_a_number_does_not_cancel() {
    let one = || Card::zoo().into_iter().filter(|card| card.name == "skl-svr-poly");
    check(&(0..60).flat_map(|_| one()).collect::<Vec<_>>());
}

#[test]
fn approximated_models_stay_close_to_the_original_under_encryption() {
    check(&of(Card::zoo(), Expect::Approximated));
}

#[test]
fn other_models_are_refused_for_their_reason_with_a_remedy() {
    check(&of(Card::zoo(), Expect::Refused));
}

#[test]
fn operators_that_work_give_the_original_answers_under_encryption() {
    check(&of(Card::operators(), Expect::Works));
}

#[test]
fn approximated_operators_stay_close_to_the_original_under_encryption() {
    check(&of(Card::operators(), Expect::Approximated));
}

#[test]
fn other_operators_are_refused_for_their_reason_with_a_remedy() {
    check(&of(Card::operators(), Expect::Refused));
}

#[test]
fn the_page_of_models_is_the_one_that_the_cards_make() {
    page::check();
}

#[test]
fn there_are_at_least_forty_models_of_every_exporter() {
    let cards = Card::zoo();
    assert!(cards.len() >= 40);
    for source in ["TorchScript", "torch.export", "Keras", "scikit-learn"] {
        assert!(cards.iter().filter(|card| card.source.contains(source)).count() >= 5, "{source}");
    }
}
