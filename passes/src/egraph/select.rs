//! Chooses one node per class such that the whole graph is cheapest, with shared values counted once.
//!
//! The cheapest node of every class is exact for depth. It is not for work: two consumers of one value may prefer two
//! multiples of it, and then the value is computed twice. So the choice is improved class by class while the cost of the
//! whole graph falls; depth comes first in that cost and never grows.

use std::collections::BTreeMap;

use egg::{Extractor, Id};

use super::cost::{Cost, Price, Pricing, price};
use super::facts::EGraph;
use super::language::Lang;

/// Sweeps over all classes after which improvement stops.
const SWEEPS: usize = 8;

/// One node per class.
pub(super) struct Selection<'g> {
    egraph: &'g EGraph,
    choice: BTreeMap<Id, usize>,
    prices: BTreeMap<Id, Vec<Price>>,
}

impl<'g> Selection<'g> {
    /// The choice for everything `root` needs.
    pub(super) fn new(egraph: &'g EGraph, root: Id) -> Self {
        let extractor = Extractor::new(egraph, Pricing(egraph));
        let mut selection = Self { egraph, choice: BTreeMap::new(), prices: BTreeMap::new() };
        for class in egraph.classes() {
            let best = extractor.find_best_node(class.id);
            let position = class.nodes.iter().position(|n| n == best);
            selection
                .choice
                .insert(class.id, position.expect("the best node of a class is one of its nodes"));
            selection.prices.insert(class.id, class.nodes.iter().map(|n| price(egraph, n)).collect());
        }
        selection.improve(egraph.find(root));
        selection
    }

    /// The chosen node of a class.
    pub(super) fn node(&self, class: Id) -> &'g Lang {
        let class = self.egraph.find(class);
        &self.egraph[class].nodes[self.choice[&class]]
    }

    /// Switches single classes to another node while the graph becomes cheaper.
    fn improve(&mut self, root: Id) {
        let Some((mut best, mut order)) = self.evaluate(root) else { return };
        for _ in 0..SWEEPS {
            let before = best;
            for class in order.clone() {
                for candidate in 0..self.prices[&class].len() {
                    let kept = self.choice.insert(class, candidate);
                    match self.evaluate(root) {
                        Some((cost, reached)) if cost < best => (best, order) = (cost, reached),
                        _ => {
                            self.choice.insert(class, kept.expect("every class has a choice"));
                        }
                    }
                }
            }
            if best == before {
                return;
            }
        }
    }

    /// The cost of the chosen graph and its classes, operands first; nothing if the choice runs in a circle.
    fn evaluate(&self, root: Id) -> Option<(Cost, Vec<Id>)> {
        let mut depth: BTreeMap<Id, Option<u32>> = BTreeMap::new();
        let mut order = Vec::new();
        let mut sum = Cost::default();
        let mut stack = vec![(root, false)];
        while let Some((class, ready)) = stack.pop() {
            let chosen = &self.prices[&class][self.choice[&class]];
            if ready {
                let own = chosen.total(|operand| Cost {
                    depth: depth[&self.egraph.find(operand)].expect("operands come first"),
                    ..Cost::default()
                });
                depth.insert(class, Some(own.depth));
                order.push(class);
                sum.work = sum.work.saturating_add(own.work);
                sum.conditioning = sum.conditioning.saturating_add(own.conditioning);
                continue;
            }
            match depth.get(&class) {
                Some(Some(_)) => continue,
                Some(None) => return None,
                None => {}
            }
            depth.insert(class, None);
            stack.push((class, true));
            for &(operand, _) in &chosen.operands {
                let operand = self.egraph.find(operand);
                match depth.get(&operand) {
                    Some(None) => return None,
                    Some(Some(_)) => {}
                    None => stack.push((operand, false)),
                }
            }
        }
        sum.depth = depth[&root].expect("the root is done last");
        Some((sum, order))
    }
}
