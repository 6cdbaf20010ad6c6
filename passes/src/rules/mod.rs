//! Rewrite rules as data: name, where the paper derives it, pattern, replacement, guards.
//!
//! A left side is one pattern, or several that name the classes they match (`?r = (…), ?k = (…)`) where a guard must speak
//! about one of them. Every rule has a snapshot where it fires and shares the numeric test over random weights.

mod backward;
mod forward;
mod fuse;
mod guard;
mod receive;

use egg::{ConditionalApplier, MultiPattern, Pattern, Rewrite};

use crate::egraph::{EGraph, Facts, Lang};

pub(crate) use guard::Guard;

/// One rewrite.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Kebab-case and unique.
    pub name: &'static str,
    /// Where it is derived, as `paper §4.1`, or `ours` for what the paper does not have.
    pub source: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    /// Variable and what must hold for its class.
    pub(crate) guards: &'static [(&'static str, Guard)],
}

/// Node fusing, cases 1 to 4 (paper §4.1).
#[must_use]
pub fn fusing() -> Vec<Rule> {
    fuse::RULES.to_vec()
}

/// Weight redistribution (paper §4.2) in the directions asked for. Nothing without a direction.
#[must_use]
pub fn redistribution(forward: bool, backward: bool) -> Vec<Rule> {
    let mut rules = Vec::new();
    if forward {
        rules.extend_from_slice(forward::DONORS);
        rules.extend_from_slice(receive::FORWARD);
    }
    if backward {
        rules.extend_from_slice(backward::DONORS);
        rules.extend_from_slice(receive::BACKWARD);
    }
    if forward || backward {
        rules.extend_from_slice(receive::EITHER);
    }
    rules
}

impl Rule {
    /// The rule as egg runs it.
    pub(crate) fn compile(&self) -> Rewrite<Lang, Facts> {
        let applier =
            ConditionalApplier { condition: self.condition(), applier: parse::<Pattern<Lang>>(self.to) };
        let rewrite = if self.from.contains('=') {
            Rewrite::new(self.name, parse::<MultiPattern<Lang>>(self.from), applier)
        } else {
            Rewrite::new(self.name, parse::<Pattern<Lang>>(self.from), applier)
        };
        rewrite.expect("the rule binds every variable it uses")
    }

    fn condition(&self) -> impl Fn(&mut EGraph, egg::Id, &egg::Subst) -> bool + use<> {
        let guards: Vec<(egg::Var, Guard)> = self.guards.iter().map(|(v, g)| (parse(v), *g)).collect();
        move |egraph, _, subst| guards.iter().all(|(var, guard)| guard(egraph, subst[*var]))
    }
}

fn parse<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is a pattern of this language"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_compiles_and_has_a_name_of_its_own() {
        let mut rules = fusing();
        rules.extend(redistribution(true, true));
        let names: BTreeSet<_> = rules.iter().map(|rule| rule.compile().name).collect();
        assert_eq!(names.len(), rules.len());
    }
}
