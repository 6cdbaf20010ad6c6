//! Memory of a server: reserved before it is used, keys kept while there is room.
//!
//! What plaintexts leave of the budget is for keys and working sets. A job starts when its keys and its working set are
//! reserved; keys that no running job uses stay until others need their bytes. Those leave first that no waiting job wants, or
//! that are wanted last; of these the least recently used.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fhe_ckks::EvaluationKeys;

use crate::ids::KeyRef;

/// The account of keys and working sets.
#[derive(Debug)]
pub struct Ledger {
    capacity: u64,
    inner: Mutex<Inner>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    working: u64,
    /// Bytes that are promised and not used yet.
    held: u64,
    keys: BTreeMap<KeyRef, Entry>,
    clock: u64,
    usage: Usage,
}

#[derive(Debug)]
struct Entry {
    bytes: u64,
    /// Reservations that use them.
    n_users: usize,
    /// When they were asked for last.
    used: u64,
    slot: Arc<Slot>,
}

/// Keys in memory, or a place for them.
type Slot = Mutex<Option<Arc<EvaluationKeys>>>;

/// Where keys are, best for who needs them first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In memory.
    Here,
    /// In the store alone.
    Away,
    /// Being read, by one whom the others wait for.
    Coming,
}

/// What is in use, and what happened so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of keys, in use or kept.
    pub keys: u64,
    /// Bytes of running evaluations.
    pub working: u64,
    /// Key sets in memory.
    pub n_keys: u64,
    /// Keys that were still there.
    pub hits: u64,
    /// Keys that had to be read.
    pub misses: u64,
    /// Keys that left for others.
    pub evictions: u64,
}

impl Ledger {
    /// An account of `capacity` bytes.
    pub fn new(capacity: u64) -> Arc<Self> {
        Arc::new(Self { capacity, inner: Mutex::default(), freed: Condvar::new() })
    }

    /// Bytes for keys and working sets.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// What is in use.
    pub fn usage(&self) -> Usage {
        let inner = self.lock();
        let keys = inner.keys.values().map(|entry| entry.bytes).sum();
        Usage { keys, working: inner.working, n_keys: inner.keys.len() as u64, ..inner.usage }
    }

    /// Where keys are.
    pub fn place(&self, key: &KeyRef) -> Place {
        let slot = self.lock().keys.get(key).map(|entry| Arc::clone(&entry.slot));
        match slot.as_ref().map(|slot| slot.try_lock()) {
            None => Place::Away,
            Some(Ok(keys)) if keys.is_some() => Place::Here,
            // Who reads them has the lock, or is about to take it.
            Some(_) => Place::Coming,
        }
    }

    /// Whose keys are in memory.
    pub fn keys(&self) -> Vec<KeyRef> {
        self.lock().keys.keys().cloned().collect()
    }

    /// Reserves memory for keys and a working set, if there is room; unused keys make room. Those for which `turn` is largest
    /// leave first.
    pub fn try_reserve(
        self: &Arc<Self>,
        key: &KeyRef,
        key_bytes: u64,
        working: u64,
        turn: impl Fn(&KeyRef) -> usize,
    ) -> Option<Reservation> {
        let inner = self.lock();
        self.reserve_in(inner, key, key_bytes, working, turn)
    }

    fn reserve_in(
        self: &Arc<Self>,
        mut inner: MutexGuard<'_, Inner>,
        key: &KeyRef,
        key_bytes: u64,
        working: u64,
        turn: impl Fn(&KeyRef) -> usize,
    ) -> Option<Reservation> {
        let new_keys = if inner.keys.contains_key(key) { 0 } else { key_bytes };
        let needed = new_keys.checked_add(working)?;
        if !inner.make_room(self.capacity, needed, key, turn) {
            return None;
        }
        inner.clock += 1;
        inner.working += working;
        let clock = inner.clock;
        match new_keys == 0 && key_bytes > 0 {
            true => inner.usage.hits += 1,
            false => inner.usage.misses += 1,
        }
        let entry = inner.keys.entry(key.clone()).or_insert_with(|| Entry {
            bytes: key_bytes,
            n_users: 0,
            used: 0,
            slot: Arc::default(),
        });
        entry.n_users += 1;
        entry.used = clock;
        let slot = Arc::clone(&entry.slot);
        Some(Reservation { ledger: Arc::clone(self), key: key.clone(), working, slot })
    }

    /// Reserves memory, and waits for it; gives up when `give_up` says so.
    pub fn reserve(
        self: &Arc<Self>,
        key: &KeyRef,
        key_bytes: u64,
        working: u64,
        give_up: impl Fn() -> bool,
    ) -> Option<Reservation> {
        loop {
            if give_up() {
                return None;
            }
            if let Some(reservation) = self.try_reserve(key, key_bytes, working, |_| 0) {
                return Some(reservation);
            }
            let guard = self.lock();
            drop(self.freed.wait_timeout(guard, Duration::from_millis(100)));
        }
    }

    /// Promises bytes to one who does not know yet for which keys. Keys that nobody uses stay until the promise is taken up.
    pub fn hold(self: &Arc<Self>, bytes: u64) -> Option<Hold> {
        let mut inner = self.lock();
        let used: u64 = inner.keys.values().filter(|entry| entry.n_users > 0).map(|entry| entry.bytes).sum();
        if used + inner.working + inner.held + bytes > self.capacity {
            return None;
        }
        inner.held += bytes;
        Some(Hold { ledger: Arc::clone(self), bytes })
    }

    /// Forgets keys that were removed from the store; those in use go when they are free.
    pub fn forget(&self, key: &KeyRef) {
        let mut inner = self.lock();
        if inner.keys.get(key).is_some_and(|entry| entry.n_users == 0) {
            inner.keys.remove(key);
        } else if let Some(entry) = inner.keys.get_mut(key) {
            // An empty slot is removed by its last user.
            entry.slot = Arc::default();
        }
        self.freed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here is left half-done by a panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Lets unused keys go, last turn and then least recently used first, until `needed` bytes are free. Changes nothing if that
    /// cannot be.
    fn make_room(
        &mut self,
        capacity: u64,
        needed: u64,
        wanted: &KeyRef,
        turn: impl Fn(&KeyRef) -> usize,
    ) -> bool {
        let held: u64 = self.keys.values().map(|entry| entry.bytes).sum::<u64>() + self.working + self.held;
        let Some(target) = capacity.checked_sub(needed) else { return false };
        let mut unused: Vec<(Reverse<usize>, u64, KeyRef, u64)> = (self.keys.iter())
            .filter(|(key, entry)| entry.n_users == 0 && *key != wanted)
            .map(|(key, entry)| (Reverse(turn(key)), entry.used, key.clone(), entry.bytes))
            .collect();
        if held - unused.iter().map(|(.., bytes)| bytes).sum::<u64>() > target {
            return false;
        }
        unused.sort();
        let mut held = held;
        for (.., key, bytes) in unused {
            if held <= target {
                break;
            }
            self.keys.remove(&key);
            self.usage.evictions += 1;
            held -= bytes;
        }
        true
    }
}

/// Bytes that are promised.
#[derive(Debug)]
pub struct Hold {
    ledger: Arc<Ledger>,
    bytes: u64,
}

impl Hold {
    /// Takes the promise up, for keys and a working set that it has room for.
    ///
    /// # Panics
    /// If they need more than was promised.
    pub fn reserve(mut self, key: &KeyRef, key_bytes: u64, working: u64) -> Reservation {
        assert!(key_bytes + working <= self.bytes, "{key_bytes} + {working} of {}", self.bytes);
        let mut inner = self.ledger.lock();
        inner.held -= std::mem::take(&mut self.bytes);
        self.ledger.reserve_in(inner, key, key_bytes, working, |_| 0).expect("the bytes were promised")
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.ledger.lock().held -= self.bytes;
        self.ledger.freed.notify_all();
    }
}

/// Bytes for one client's keys and, while it runs, an evaluation.
#[derive(Debug)]
pub struct Reservation {
    ledger: Arc<Ledger>,
    key: KeyRef,
    working: u64,
    slot: Arc<Slot>,
}

impl Reservation {
    /// The keys, read by `load` if they are not in memory. Others who want the same ones wait.
    ///
    /// # Errors
    /// What `load` says.
    pub fn keys<E>(
        &self,
        load: impl FnOnce() -> Result<EvaluationKeys, E>,
    ) -> Result<Arc<EvaluationKeys>, E> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = &*slot {
            return Ok(Arc::clone(keys));
        }
        let keys = Arc::new(load()?);
        *slot = Some(Arc::clone(&keys));
        Ok(keys)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut inner = self.ledger.lock();
        inner.working -= self.working;
        if let Some(entry) = inner.keys.get_mut(&self.key) {
            entry.n_users -= 1;
            let is_empty = || entry.slot.lock().unwrap_or_else(PoisonError::into_inner).is_none();
            if entry.n_users == 0 && is_empty() {
                inner.keys.remove(&self.key);
            }
        }
        drop(inner);
        self.ledger.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fhe_bytecode::{Params, ParamsSpec};
    use fhe_ckks::{Context, KeyId};

    use super::*;
    use crate::ids::{KeyName, Owner, ProgramId};

    fn key(number: u8) -> KeyRef {
        KeyRef { owner: Owner::anonymous(), program: ProgramId([0; 32]), key: KeyName([number; 16]) }
    }

    fn no_keys() -> EvaluationKeys {
        let towers = fhe_bytecode::params::ntt_primes_below(30, 5, 1, &[]).unwrap();
        let special_primes = fhe_bytecode::params::ntt_primes_below(33, 5, 1, &towers).unwrap();
        let spec = ParamsSpec { insecure: false, ..ParamsSpec::toy(5, towers, special_primes) };
        let context = Context::new(Params::new(spec).unwrap()).unwrap();
        EvaluationKeys::from_parts(&context, KeyId([0; 16]), BTreeMap::new())
    }

    fn is_here(ledger: &Ledger, number: u8) -> bool {
        ledger.place(&key(number)) == Place::Here
    }

    fn reserved(ledger: &Arc<Ledger>, number: u8, bytes: u64, working: u64) -> Option<Reservation> {
        ledger.try_reserve(&key(number), bytes, working, |_| 0)
    }

    fn used(ledger: &Arc<Ledger>, number: u8, bytes: u64) {
        let reservation = reserved(ledger, number, bytes, 0).unwrap();
        reservation.keys(|| Ok::<_, ()>(no_keys())).unwrap();
    }

    #[test]
    fn the_least_recently_used_keys_leave() {
        let ledger = Ledger::new(100);
        used(&ledger, 1, 40);
        used(&ledger, 2, 40);
        used(&ledger, 1, 40);
        used(&ledger, 3, 40);
        assert!(is_here(&ledger, 1) && !is_here(&ledger, 2) && is_here(&ledger, 3));
        let usage = ledger.usage();
        assert_eq!((usage.keys, usage.hits, usage.misses, usage.evictions), (80, 1, 3, 1));
    }

    #[test]
    fn keys_that_a_waiting_job_wants_stay_before_those_that_none_does() {
        let ledger = Ledger::new(100);
        for number in [1, 2, 3] {
            used(&ledger, number, 30);
        }
        // The first is wanted next, the last one later, the other by nobody.
        let turn = |wanted: &KeyRef| [1, 3].iter().position(|n| *wanted == key(*n)).unwrap_or(usize::MAX);
        ledger.try_reserve(&key(4), 30, 0, turn).unwrap().keys(|| Ok::<_, ()>(no_keys())).unwrap();
        assert!(is_here(&ledger, 1) && !is_here(&ledger, 2) && is_here(&ledger, 3));
        drop(ledger.try_reserve(&key(5), 60, 0, turn).unwrap());
        assert!(is_here(&ledger, 1) && !is_here(&ledger, 3) && !is_here(&ledger, 4));
    }

    #[test]
    fn keys_that_are_being_read_are_not_here_yet() {
        let ledger = Ledger::new(100);
        assert_eq!(ledger.place(&key(1)), Place::Away);
        let reservation = reserved(&ledger, 1, 40, 0).unwrap();
        assert_eq!(ledger.place(&key(1)), Place::Coming);
        let read = || {
            assert_eq!(ledger.place(&key(1)), Place::Coming);
            Ok::<_, ()>(no_keys())
        };
        reservation.keys(read).unwrap();
        assert_eq!(ledger.place(&key(1)), Place::Here);
    }

    #[test]
    fn keys_in_use_stay_and_a_job_waits_for_them() {
        let ledger = Ledger::new(100);
        let running = reserved(&ledger, 1, 40, 30).unwrap();
        running.keys(|| Ok::<_, ()>(no_keys())).unwrap();
        assert!(reserved(&ledger, 2, 40, 0).is_none());
        assert_eq!(ledger.usage().evictions, 0);
        assert!(reserved(&ledger, 1, 40, 30).is_some(), "the same client's second job shares its keys");
        drop(running);
        assert!(reserved(&ledger, 2, 40, 60).is_some());
        assert!(reserved(&ledger, 2, 40, 61).is_none(), "never more than there is");
    }

    #[test]
    fn a_promise_is_kept_and_lets_unused_keys_stay_until_then() {
        let ledger = Ledger::new(100);
        used(&ledger, 1, 40);
        let hold = ledger.hold(70).unwrap();
        assert!(is_here(&ledger, 1), "nobody needs the room yet");
        assert!(ledger.hold(40).is_none() && reserved(&ledger, 2, 40, 0).is_none());
        let running = hold.reserve(&key(3), 40, 30);
        assert!(!is_here(&ledger, 1) && ledger.usage().working == 30);
        drop(running);
        drop(ledger.hold(100).unwrap());
        assert!(reserved(&ledger, 2, 40, 60).is_some());
    }

    #[test]
    fn keys_that_could_not_be_read_take_no_room() {
        let ledger = Ledger::new(100);
        let reservation = reserved(&ledger, 1, 100, 0).unwrap();
        assert_eq!(reservation.keys(|| Err::<EvaluationKeys, _>("damaged")), Err("damaged"));
        drop(reservation);
        assert_eq!(ledger.usage().keys, 0);
    }

    #[test]
    fn forgotten_keys_are_read_again() {
        let ledger = Ledger::new(100);
        let reservation = reserved(&ledger, 1, 40, 0).unwrap();
        reservation.keys(|| Ok::<_, ()>(no_keys())).unwrap();
        ledger.forget(&key(1));
        drop(reservation);
        assert!(!is_here(&ledger, 1));
    }
}
