//! Which job is next: keys of gigabytes are to be read for more than one input, and nobody is to wait for that too long.
//!
//! Jobs whose keys are in memory may overtake others until somebody has waited for too long. Then it is the first one's turn;
//! keys that are read for it are there for some others of its client that wait at that moment, and for no later ones, so a
//! client that never stops holds nobody up.

use std::collections::BTreeMap;

use super::queue::{Jobs, State};
use crate::ids::{JobRef, KeyRef};
use crate::memory::{Place, Reservation};

/// Jobs that keys are read for at a time.
const TOGETHER: usize = 4;

impl Jobs {
    /// The place in the queue of the next job, with memory for it.
    pub(super) fn choose(&self, state: &mut State) -> Option<(usize, Reservation)> {
        let ledger = &self.setup.ledger;
        let first = state.queue.front()?;
        let is_patient = state.live[first].since.elapsed() < self.setup.limits.patience;
        let places: Vec<Place> = state.queue.iter().map(|at| ledger.place(&state.live[at].key)).collect();
        let all = 0..places.len();
        let goes_first =
            |&index: &usize| places[index] == Place::Here && state.live[&state.queue[index]].goes_along;
        let order: Vec<usize> = match is_patient {
            true => {
                let mut order: Vec<usize> = all.collect();
                // Who would wait for keys that another job reads comes last.
                order.sort_by_key(|index| (!goes_first(index), places[*index]));
                order
            }
            // Nobody overtakes one who waits for memory for too long.
            false => {
                let is_coming = places[0] == Place::Coming;
                let instead = all.clone().find(|&index| is_coming && places[index] != Place::Coming);
                all.filter(goes_first).chain(instead).chain([0]).collect()
            }
        };
        let turns = turns(state);
        let (index, reservation) = order.into_iter().find_map(|index| {
            let key = &state.live[&state.queue[index]].key;
            // A program that is gone needs no memory to be refused.
            let (keys, working) = match self.setup.catalog.get(key.program) {
                Some(entry) => (entry.key_bytes, entry.model.working_bytes()),
                None => (0, 0),
            };
            let turn = |key: &KeyRef| turns.get(key).copied().unwrap_or(usize::MAX);
            Some((index, ledger.try_reserve(key, keys, working, turn)?))
        })?;
        if places[index] == Place::Away {
            take_along(state, index);
        }
        Some((index, reservation))
    }
}

/// When it is the turn of every client that waits, roughly: the place of its first job.
fn turns(state: &State) -> BTreeMap<KeyRef, usize> {
    let mut turns = BTreeMap::new();
    for (index, at) in state.queue.iter().enumerate() {
        let live = &state.live[at];
        let turn = if live.goes_along { 0 } else { index };
        turns
            .entry(live.key.clone())
            .and_modify(|first: &mut usize| *first = turn.min(*first))
            .or_insert(turn);
    }
    turns
}

/// Keys are read for a job: some others of its client go with it.
fn take_along(state: &mut State, index: usize) {
    let chosen = &state.queue[index];
    let is_other = |at: &&JobRef| *at != chosen && state.live[*at].key == state.live[chosen].key;
    let others: Vec<JobRef> = state.queue.iter().filter(is_other).take(TOGETHER - 1).cloned().collect();
    for at in others {
        if let Some(live) = state.live.get_mut(&at) {
            live.goes_along = true;
        }
    }
}
