//! Chooses one node per class such that the whole graph is cheapest, with shared values counted once.
//!
//! The cheapest node of every class is exact for depth. It is not for work: two consumers of one value may prefer two
//! multiples of it, and then the value is computed twice. So the choice is improved class by class while the cost of the
//! whole graph falls; depth comes first in that cost and never grows.

use egg::{Extractor, Id};

use super::cost::{Cost, Price, Pricing, price};
use super::facts::EGraph;
use super::language::Lang;

/// Sweeps over all classes after which improvement stops.
const SWEEPS: usize = 8;

/// One node per class.
pub(super) struct Selection<'g> {
    egraph: &'g EGraph,
    /// By class number: the chosen node, and the price of every node with its operands in canonical form.
    choice: Vec<usize>,
    prices: Vec<Vec<Price>>,
}

/// Depth of a class that was not met, and of one whose operands are under way.
const UNSEEN: u32 = u32::MAX;
const OPEN: u32 = u32::MAX - 1;

impl<'g> Selection<'g> {
    /// The choice for everything `root` needs.
    pub(super) fn new(egraph: &'g EGraph, root: Id) -> Self {
        let extractor = Extractor::new(egraph, Pricing(egraph));
        let size = egraph.classes().map(|class| usize::from(class.id) + 1).max().unwrap_or(0);
        let mut selection = Self { egraph, choice: vec![0; size], prices: vec![Vec::new(); size] };
        for class in egraph.classes() {
            let best = extractor.find_best_node(class.id);
            let position = class.nodes.iter().position(|n| n == best);
            let canonical = |node: &Lang| {
                let mut price = price(egraph, node);
                price.operands.iter_mut().for_each(|(operand, _)| *operand = egraph.find(*operand));
                price
            };
            let number = usize::from(class.id);
            selection.choice[number] = position.expect("the best node of a class is one of its nodes");
            selection.prices[number] = class.nodes.iter().map(canonical).collect();
        }
        selection.improve(egraph.find(root));
        selection
    }

    /// The chosen node of a class.
    pub(super) fn node(&self, class: Id) -> &'g Lang {
        let class = self.egraph.find(class);
        &self.egraph[class].nodes[self.choice[usize::from(class)]]
    }

    /// Switches single classes to another node while the graph becomes cheaper.
    fn improve(&mut self, root: Id) {
        let Some((mut best, mut order)) = self.evaluate(root) else { return };
        for _ in 0..SWEEPS {
            let before = best;
            for class in order.clone() {
                let number = usize::from(class);
                for candidate in 0..self.prices[number].len() {
                    let kept = std::mem::replace(&mut self.choice[number], candidate);
                    match self.evaluate(root) {
                        Some((cost, reached)) if cost < best => (best, order) = (cost, reached),
                        _ => self.choice[number] = kept,
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
        let mut depth = vec![UNSEEN; self.choice.len()];
        let mut order = Vec::new();
        let mut sum = Cost::default();
        let mut stack = vec![(root, false)];
        while let Some((class, ready)) = stack.pop() {
            let number = usize::from(class);
            let chosen = &self.prices[number][self.choice[number]];
            if ready {
                let own =
                    chosen.total(|operand| Cost { depth: depth[usize::from(operand)], ..Cost::default() });
                depth[number] = own.depth;
                order.push(class);
                sum.work = sum.work.saturating_add(own.work);
                sum.conditioning = sum.conditioning.saturating_add(own.conditioning);
                continue;
            }
            match depth[number] {
                UNSEEN => depth[number] = OPEN,
                OPEN => return None,
                _ => continue,
            }
            stack.push((class, true));
            for &(operand, _) in &chosen.operands {
                match depth[usize::from(operand)] {
                    UNSEEN => stack.push((operand, false)),
                    OPEN => return None,
                    _ => {}
                }
            }
        }
        sum.depth = depth[usize::from(root)];
        Some((sum, order))
    }
}
