//! Evaluation keys on their way: one writer at a time, what came stays, and nothing is visible before all of it was checked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fhe_machine::Session;
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use crate::catalog::{Catalog, Entry};
use crate::ids::{KeyName, KeyRef, Owner, ProgramId};
use crate::jobs::{Failure, Problem, problem, read_keys};
use crate::memory::Ledger;
use crate::metrics::Metrics;
use crate::store::Store;

/// Time after which keys on their way are given up.
pub(crate) const STALE: Duration = Duration::from_secs(24 * 3600);

/// Where a file of evaluation keys is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyState {
    /// Some bytes are missing.
    Uploading,
    /// All bytes are there and are being checked.
    Checking,
    /// Ready for evaluations.
    Ready,
    /// Was checked and thrown away.
    Refused,
}

/// One client's evaluation keys for one program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize, ToSchema)]
pub struct Keys {
    /// Hash of the program.
    #[schema(value_type = String)]
    pub program: ProgramId,
    /// Id of the key.
    #[schema(value_type = String)]
    pub key: KeyName,
    /// Where they are.
    pub state: KeyState,
    /// Bytes that came: the next one goes here.
    pub received_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
    /// Why they were refused.
    pub error: Option<Problem>,
}

/// All keys on their way.
pub struct Uploads {
    catalog: Arc<Catalog>,
    store: Arc<Store>,
    ledger: Arc<Ledger>,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
    wake: Condvar,
    /// Counts what was checked, for those who wait.
    checked: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// Being written now.
    writing: BTreeSet<KeyRef>,
    /// Complete, in the order of their completion; the first may be under work.
    checking: VecDeque<KeyRef>,
    /// Thrown away, and why; bounded.
    refused: BTreeMap<KeyRef, Problem>,
    is_draining: bool,
}

/// Most refusals that are remembered.
const MAX_REFUSED: usize = 1024;

/// The right to write one client's keys, for as long as it lives.
pub struct Writing {
    uploads: Arc<Uploads>,
    key: KeyRef,
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.uploads.lock().writing.remove(&self.key);
    }
}

impl Uploads {
    /// Nothing on its way but what the store has.
    pub fn new(
        catalog: Arc<Catalog>,
        store: Arc<Store>,
        ledger: Arc<Ledger>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let (state, wake, checked) = (Mutex::default(), Condvar::new(), watch::Sender::new(0));
        Arc::new(Self { catalog, store, ledger, metrics, state, wake, checked })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where keys are; nothing if none came.
    pub fn get(&self, entry: &Entry, at: &KeyRef) -> Option<Keys> {
        let total_bytes = entry.key_file_bytes;
        let keys = |state, received_bytes, error| {
            Some(Keys { program: at.program, key: at.key, state, received_bytes, total_bytes, error })
        };
        let state = self.lock();
        // In this order: keys move from staging to their place while nobody holds the lock.
        match (self.store.staged_len(at), self.store.keys_len(at)) {
            (_, Some(len)) => keys(KeyState::Ready, len, None),
            (Some(len), None) if len == total_bytes => keys(KeyState::Checking, len, None),
            (Some(len), None) => keys(KeyState::Uploading, len, None),
            (None, None) => {
                let error = state.refused.get(at)?;
                keys(KeyState::Refused, 0, Some(error.clone()))
            }
        }
    }

    /// All keys of one client for programs that are served.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn list(&self, owner: &Owner) -> io::Result<Vec<Keys>> {
        let (checked, staged) = self.store.all_keys()?;
        let all: BTreeSet<KeyRef> = checked.into_iter().chain(staged).map(|(key, _)| key).collect();
        let of_owner = all.iter().filter(|key| key.owner == *owner);
        Ok(of_owner.filter_map(|key| self.get(self.catalog.get(key.program)?, key)).collect())
    }

    /// Bytes that one client's keys take or will take, those of `besides` aside.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn bytes_of(&self, owner: &Owner, besides: &KeyRef) -> io::Result<u64> {
        let (checked, staged) = self.store.all_keys()?;
        let whole = |key: &KeyRef, len: u64| match self.catalog.get(key.program) {
            Some(entry) => entry.key_file_bytes.max(len),
            None => len,
        };
        let all: BTreeMap<KeyRef, u64> = checked.into_iter().chain(staged).collect();
        let others = all.iter().filter(|(key, _)| key.owner == *owner && *key != besides);
        Ok(others.map(|(key, len)| whole(key, *len)).sum())
    }

    /// The right to write keys; nothing while somebody else writes or checks them.
    pub fn begin(self: &Arc<Self>, key: &KeyRef) -> Option<Writing> {
        let mut state = self.lock();
        if state.checking.contains(key) || !state.writing.insert(key.clone()) {
            return None;
        }
        state.refused.remove(key);
        Some(Writing { uploads: Arc::clone(self), key: key.clone() })
    }

    /// All bytes are there: they are to be checked.
    pub fn complete(&self, key: &KeyRef) {
        let mut state = self.lock();
        if !state.checking.contains(key) {
            state.checking.push_back(key.clone());
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Throws keys away that were found out while they came.
    pub fn refuse(&self, key: &KeyRef, reason: Problem) {
        // The reason first: keys that are neither here nor refused would be sent again.
        let mut state = self.lock();
        while state.refused.len() >= MAX_REFUSED {
            state.refused.pop_first();
        }
        state.refused.insert(key.clone(), reason);
        drop(state);
        if let Err(error) = self.store.unstage_keys(key) {
            tracing::error!(key = %key.key, %error, "cannot remove refused keys");
        }
    }

    /// Follows checks: changes after each.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.checked.subscribe()
    }

    /// Takes up what a killed server left complete but unchecked.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn recover(&self) -> io::Result<()> {
        for (key, len) in self.store.all_keys()?.1 {
            if self.catalog.get(key.program).is_some_and(|entry| entry.key_file_bytes == len) {
                self.complete(&key);
            }
        }
        Ok(())
    }

    /// Throws away what nobody goes on with.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn sweep(&self) -> io::Result<()> {
        for (key, _) in self.store.all_keys()?.1 {
            let is_stale = self.store.staged_age(&key).is_some_and(|age| age > STALE);
            let state = self.lock();
            if is_stale && !state.writing.contains(&key) && !state.checking.contains(&key) {
                self.store.unstage_keys(&key)?;
            }
        }
        Ok(())
    }

    /// Starts the one thread that checks keys; it ends with [`Uploads::drain`].
    ///
    /// # Errors
    /// If the operating system has no more threads.
    pub fn start(self: &Arc<Self>) -> io::Result<JoinHandle<()>> {
        let uploads = Arc::clone(self);
        std::thread::Builder::new().name("checker".to_owned()).spawn(move || {
            while let Some(key) = uploads.next() {
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| uploads.check(&key)));
                let outcome = outcome.unwrap_or_else(|_| {
                    Err(problem("internal", "the check stopped: this is a bug in fhe-serve"))
                });
                if let Err(reason) = &outcome {
                    uploads.metrics.refused(&reason.code);
                    uploads.refuse(&key, reason.clone());
                }
                tracing::info!(key = %key.key, owner = %key.owner, ready = outcome.is_ok(), "keys checked");
                uploads.lock().checking.pop_front();
                uploads.checked.send_modify(|count| *count += 1);
            }
        })
    }

    /// Checks nothing more.
    pub fn drain(&self) {
        self.lock().is_draining = true;
        self.wake.notify_all();
    }

    fn is_draining(&self) -> bool {
        self.lock().is_draining
    }

    fn next(&self) -> Option<KeyRef> {
        let mut state = self.lock();
        loop {
            if state.is_draining {
                return None;
            }
            if let Some(key) = state.checking.front() {
                return Some(key.clone());
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reads all of the keys within their memory, joins them with their model, and makes them visible.
    fn check(&self, key: &KeyRef) -> Result<(), Problem> {
        let gone = || problem("no-such-program", "the program of these keys is not served any more");
        let entry = self.catalog.get(key.program).ok_or_else(gone)?;
        let Some(reservation) = self.ledger.reserve(key, entry.key_bytes, 0, || self.is_draining()) else {
            // The next server goes on here; nothing was refused.
            return Ok(());
        };
        let failed = |failure| match failure {
            Failure::Problem(problem) => problem,
            Failure::Cancelled => problem("internal", "the check was cancelled"),
        };
        let keys =
            reservation.keys(|| read_keys(entry, key.key, &self.store.staged_path(key))).map_err(failed)?;
        let joined = Session::new(Arc::clone(&entry.model), keys).map(drop);
        let published = joined
            .map_err(|error| problem("bad-keys", error.to_string()))
            .and_then(|()| self.store.publish_keys(key).map_err(|error| problem("store", error.to_string())));
        if published.is_err() {
            self.ledger.forget(key);
        }
        published
    }
}
