//! Chooses one node per class such that the whole graph is cheapest, with shared values counted once.
//!
//! The cheapest node of every class is exact for depth. It is not for work: two consumers of one value may prefer two
//! multiples of it, and then the value is computed twice. So the choice is improved class by class while the cost of the
//! whole graph falls; depth comes first in that cost and never grows. Every trial goes through the whole graph, so trials have a
//! budget; whatever was found until it is spent is sound.

use std::collections::BTreeSet;

use egg::{Id, Language};

use super::cost::{Cost, Price, price};
use super::facts::EGraph;
use super::language::Lang;

/// Sweeps over all classes after which improvement stops.
const SWEEPS: usize = 8;

/// Classes that trials may visit in all, a second or two of work. Networks of a thousand layers take a tenth of it.
const VISITS: usize = 1 << 26;

/// One node per class.
pub(super) struct Selection<'g> {
    egraph: &'g EGraph,
    /// By class number: the chosen node, and the price of every node with its operands in canonical form.
    choice: Vec<usize>,
    prices: Vec<Vec<Price>>,
    /// Classes that trials visited.
    visits: usize,
}

/// Depth of a class that was not met, and of one whose operands are under way.
const UNSEEN: u32 = u32::MAX;
const OPEN: u32 = u32::MAX - 1;

impl<'g> Selection<'g> {
    /// The choice for everything `root` needs.
    pub(super) fn new(egraph: &'g EGraph, root: Id) -> Self {
        let size = egraph.classes().map(|class| usize::from(class.id) + 1).max().unwrap_or(0);
        let mut selection = Self { egraph, choice: vec![0; size], prices: vec![Vec::new(); size], visits: 0 };
        for class in egraph.classes() {
            let canonical = |node: &Lang| {
                let mut price = price(egraph, node);
                price.operands.iter_mut().for_each(|(operand, _)| *operand = egraph.find(*operand));
                price
            };
            selection.prices[usize::from(class.id)] = class.nodes.iter().map(canonical).collect();
        }
        selection.cheapest();
        selection.improve(egraph.find(root));
        selection
    }

    /// The chosen node of a class.
    pub(super) fn node(&self, class: Id) -> &'g Lang {
        let class = self.egraph.find(class);
        &self.egraph[class].nodes[self.choice[usize::from(class)]]
    }

    /// Chooses the cheapest node of every class, as a tree. Classes are looked at in their order, again and again, but only
    /// those of which an operand has become cheaper.
    fn cheapest(&mut self) {
        let order: Vec<Id> = self.egraph.classes().map(|class| class.id).collect();
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); self.choice.len()];
        for (place, &class) in order.iter().enumerate() {
            for operand in self.egraph[class].nodes.iter().flat_map(Lang::children) {
                readers[usize::from(self.egraph.find(*operand))].push(place);
            }
        }
        let mut costs: Vec<Option<Cost>> = vec![None; self.choice.len()];
        let mut waiting: BTreeSet<usize> = (0..order.len()).collect();
        let mut after = 0;
        while let Some(place) = waiting.range(after..).next().or_else(|| waiting.first()).copied() {
            waiting.remove(&place);
            after = place + 1;
            let number = usize::from(order[place]);
            let has_cost = |id: Id| costs[usize::from(self.egraph.find(id))].is_some();
            let nodes = self.egraph[order[place]].nodes.iter().zip(&self.prices[number]).enumerate();
            let priced = nodes.filter(|(_, (node, _))| node.all(has_cost));
            let cost = |id: Id| costs[usize::from(id)].unwrap_or_default();
            let best = priced.map(|(i, (_, price))| (price.total(cost), i)).min();
            if let Some((cost, node)) = best.filter(|(cost, _)| costs[number].is_none_or(|old| *cost < old)) {
                (costs[number], self.choice[number]) = (Some(cost), node);
                waiting.extend(&readers[number]);
            }
        }
    }

    /// Switches single classes to another node while the graph becomes cheaper.
    fn improve(&mut self, root: Id) {
        let Some((mut best, mut order)) = self.evaluate(root) else { return };
        for _ in 0..SWEEPS {
            let before = best;
            for class in order.clone() {
                let number = usize::from(class);
                for candidate in 0..self.prices[number].len() {
                    if candidate == self.choice[number] {
                        continue;
                    }
                    if self.visits > VISITS {
                        return;
                    }
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
    fn evaluate(&mut self, root: Id) -> Option<(Cost, Vec<Id>)> {
        let mut depth = vec![UNSEEN; self.choice.len()];
        let mut order = Vec::new();
        let mut sum = Cost::default();
        let mut stack = vec![(root, false)];
        while let Some((class, ready)) = stack.pop() {
            self.visits += 1;
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
