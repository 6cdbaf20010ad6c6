//! Whose turn it is at a worker: clients whose keys it has may overtake others, for as long as nobody waits too long.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::members::View;

/// What a worker knows of the partitions of the queue.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Since when each partition waits for its turn.
    since: BTreeMap<u16, Instant>,
    /// Messages of each partition that this worker has.
    n_taken: BTreeMap<u16, usize>,
}

/// What decides whose turn it is, besides time.
pub(super) struct Rules<'a> {
    /// Who is alive, and whose home is where.
    pub view: &'a View,
    /// Partitions of which some client's keys are in memory here.
    pub kept: &'a BTreeSet<u16>,
    /// Jobs that wait for a worker before others help it.
    pub overflow: usize,
    /// Time for which jobs whose keys are in memory may overtake others.
    pub patience: Duration,
}

impl Turns {
    /// A message of a partition has come.
    pub(super) fn heard(&mut self, partition: u16, now: Instant) {
        self.since.entry(partition).or_insert(now);
    }

    /// The queue has these messages, those that run among them. Who was not heard of waits from now on.
    pub(super) fn looked(&mut self, counts: &BTreeMap<u16, usize>, now: Instant) {
        let n_taken = &self.n_taken;
        let is_waiting = |partition: &u16, n: usize| n > n_taken.get(partition).copied().unwrap_or(0);
        self.since.retain(|partition, _| counts.get(partition).is_some_and(|n| is_waiting(partition, *n)));
        for (partition, _) in counts.iter().filter(|(partition, n)| is_waiting(partition, **n)) {
            self.since.entry(*partition).or_insert(now);
        }
    }

    /// This worker has taken a message: if more of its partition wait, they wait for their next turn.
    pub(super) fn took(&mut self, partition: u16, now: Instant) {
        *self.n_taken.entry(partition).or_default() += 1;
        self.since.entry(partition).and_modify(|since| *since = now);
    }

    /// A message that this worker had is at its end.
    pub(super) fn ended(&mut self, partition: u16) {
        match self.n_taken.get_mut(&partition) {
            Some(n) if *n > 1 => *n -= 1,
            _ => drop(self.n_taken.remove(&partition)),
        }
    }

    /// Which partitions to ask, in this order: at home those that have waited too long, then those whose keys are here, then the
    /// rest, each the longest first; then those of workers for whom too many jobs wait, whose keys are here or the fullest first.
    pub(super) fn order(&self, counts: &BTreeMap<u16, usize>, rules: &Rules<'_>, now: Instant) -> Vec<u16> {
        let view = rules.view;
        let home = |partition: u16| view.homes.get(usize::from(partition)).copied();
        // What waits or runs for each worker.
        let mut loads = vec![0; view.n_slots.len()];
        for (partition, n) in counts {
            if let Some(load) = home(*partition).and_then(|home| loads.get_mut(home)) {
                *load += n;
            }
        }
        let is_mine = |partition: u16| home(partition) == Some(view.me);
        let needs_help = |partition: u16| match home(partition) {
            Some(home) => home != view.me && loads[home] > view.n_slots[home] + rules.overflow,
            None => true,
        };
        let is_away = |partition: u16| !rules.kept.contains(&partition);
        let mut at_home: Vec<u16> = self.since.keys().copied().filter(|p| is_mine(*p)).collect();
        at_home.sort_by_key(|partition| {
            let since = self.since[partition];
            let is_patient = now.saturating_duration_since(since) < rules.patience;
            (is_patient, is_patient && is_away(*partition), since)
        });
        let mut others: Vec<(u16, usize)> =
            counts.iter().map(|(p, n)| (*p, *n)).filter(|(partition, _)| needs_help(*partition)).collect();
        others.sort_by_key(|(partition, n)| (is_away(*partition), std::cmp::Reverse(*n)));
        at_home.into_iter().chain(others.into_iter().map(|(partition, _)| partition)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn order(turns: &Turns, counts: &[(u16, usize)], view: &View, kept: &[u16], now: Instant) -> Vec<u16> {
        let kept = kept.iter().copied().collect();
        let rules = Rules { view, kept: &kept, overflow: 2, patience: PATIENCE };
        turns.order(&counts.iter().copied().collect(), &rules, now)
    }

    fn looked(counts: &[(u16, usize)], now: Instant) -> Turns {
        let mut turns = Turns::default();
        turns.looked(&counts.iter().copied().collect(), now);
        turns
    }

    #[test]
    fn home_comes_first_and_others_when_they_overflow() {
        let view = View { n_slots: vec![1, 1, 2], me: 0, homes: vec![0, 1, 0, 1, 2, 2] };
        // Four for one slot are too many, four for two are not.
        let counts = [(0, 1), (1, 3), (2, 2), (3, 1), (4, 4)];
        let now = Instant::now();
        let turns = looked(&counts, now);
        assert_eq!(order(&turns, &counts, &view, &[], now), [0, 2, 1, 3]);
        assert_eq!(
            order(&turns, &counts, &view, &[2, 3], now),
            [2, 0, 3, 1],
            "keys that are here come first"
        );
        let fewer = [(0, 1), (1, 2), (2, 2), (3, 1), (4, 4)];
        assert_eq!(order(&turns, &fewer, &view, &[], now), [0, 2]);
        let alone = View { n_slots: vec![], me: usize::MAX, homes: vec![] };
        assert_eq!(order(&turns, &counts, &alone, &[], now).len(), 5, "who hears nobody helps everybody");
    }

    #[test]
    fn keys_in_memory_overtake_until_somebody_has_waited_too_long() {
        let view = View { n_slots: vec![1], me: 0, homes: vec![0; 3] };
        let counts = [(0, 9), (1, 1), (2, 1)];
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        let mut turns = Turns::default();
        for (partition, ms) in [(1, 0), (2, 1), (0, 2)] {
            turns.heard(partition, at(ms));
        }
        let mut served = Vec::new();
        for second in 0..7 {
            let now = at(1000 * second + 10);
            turns.looked(&counts.into(), now);
            let first = order(&turns, &counts, &view, &[0], now)[0];
            turns.took(first, now);
            turns.ended(first);
            served.push(first);
        }
        assert_eq!(served, [0, 0, 0, 0, 0, 1, 2], "a client that never stops holds nobody up for longer");
    }

    #[test]
    fn a_partition_that_only_runs_does_not_wait() {
        let view = View { n_slots: vec![1], me: 0, homes: vec![0; 2] };
        let now = Instant::now();
        let mut turns = looked(&[(0, 1)], now);
        turns.took(0, now);
        turns.looked(&[(0, 1)].into(), now);
        assert!(order(&turns, &[(0, 1)], &view, &[], now).is_empty());
        turns.looked(&[(0, 2)].into(), now);
        assert_eq!(order(&turns, &[(0, 2)], &view, &[], now), [0]);
        // One that went back to the queue waits again.
        turns.ended(0);
        turns.looked(&[(0, 1)].into(), now);
        assert_eq!(order(&turns, &[(0, 1)], &view, &[], now), [0]);
    }
}
