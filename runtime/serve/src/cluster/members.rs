//! Who is alive, and whose home each partition is: every worker computes the same from the same names, without a word.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::link::{ALIVE, Link, subjects};
use super::names::N_PARTITIONS;

/// One worker among others.
#[derive(Clone)]
pub(super) struct Member {
    id: String,
    n_slots: usize,
    view: Arc<Mutex<Arc<View>>>,
    /// Evaluations that run here.
    pub n_running: Arc<AtomicUsize>,
}

/// What a worker says of itself.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Word {
    n_slots: usize,
    n_running: usize,
}

/// The workers as one of them sees them.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Evaluations at a time of every worker that is alive.
    pub n_slots: Vec<usize>,
    /// Which of them is this one.
    pub me: usize,
    /// The home of every partition.
    pub homes: Vec<usize>,
}

impl Member {
    /// A new one, told to the others.
    pub(super) async fn join(link: &Link, n_slots: usize) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let id = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let member = Self { id, n_slots, view: Arc::default(), n_running: Arc::default() };
        member.beat(link).await?;
        Ok(member)
    }

    /// Who is alive, and whose home is where.
    pub(super) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says that this worker is alive, and looks who else is.
    async fn beat(&self, link: &Link) -> io::Result<()> {
        let word = Word { n_slots: self.n_slots, n_running: self.n_running.load(Ordering::Relaxed) };
        link.workers.put(&self.id, serde_json::to_vec(&word)?.into()).await.map_err(io::Error::other)?;
        let view = view(&self.id, &alive(link).await?);
        let mut known = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        if known.n_slots.len() != view.n_slots.len() {
            tracing::info!(n_workers = view.n_slots.len(), "workers alive");
        }
        *known = Arc::new(view);
        Ok(())
    }

    /// Beats for as long as the worker runs.
    pub(super) async fn run(self, link: Link) {
        loop {
            tokio::time::sleep(ALIVE / 5).await;
            if let Err(error) = self.beat(&link).await {
                tracing::warn!(%error, "NATS failed; trying again");
            }
        }
    }

    /// Says that this worker takes nothing more.
    pub(super) async fn leave(&self, link: &Link) {
        // Silence says the same a little later.
        let _ = tokio::time::timeout(Duration::from_secs(2), link.workers.purge(&self.id)).await;
    }
}

/// Those who are alive, in order of their names, and what they said last.
async fn alive(link: &Link) -> io::Result<Vec<(String, Word)>> {
    let bucket = link.names.workers();
    let stream = link.jetstream.get_stream_no_info(format!("KV_{bucket}")).await.map_err(io::Error::other)?;
    let prefix = format!("$KV.{bucket}.");
    let found = subjects(&stream, format!("{prefix}>")).await?;
    let mut alive = Vec::new();
    for id in found.keys().filter_map(|subject| subject.strip_prefix(&prefix)) {
        // One that left has a mark where its word was.
        let said = link.workers.get(id).await.map_err(io::Error::other)?;
        alive.extend(said.and_then(|said| Some((id.to_owned(), serde_json::from_slice(&said).ok()?))));
    }
    Ok(alive)
}

/// Evaluations that run, on all workers, as they said last.
pub(super) async fn running(link: &Link) -> io::Result<usize> {
    Ok(alive(link).await?.iter().map(|(_, word)| word.n_running).sum())
}

/// Every partition is at home where the hash of partition and name is largest: few move when a worker comes or goes.
fn view(id: &str, alive: &[(String, Word)]) -> View {
    let weight = |partition: u16, id: &str| {
        let mut hasher = blake3::Hasher::new_derive_key("fhe-serve 1 home");
        hasher.update(&partition.to_le_bytes()).update(id.as_bytes());
        *hasher.finalize().as_bytes()
    };
    let home = |partition: u16| (0..alive.len()).max_by_key(|&i| weight(partition, &alive[i].0));
    View {
        n_slots: alive.iter().map(|(_, word)| word.n_slots).collect(),
        // One that cannot hear itself has no home anywhere.
        me: alive.iter().position(|(other, _)| other == id).unwrap_or(usize::MAX),
        homes: (0..N_PARTITIONS).filter_map(home).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_has_one_home_and_few_move() {
        let word = Word { n_slots: 1, n_running: 0 };
        let alive = ["a", "b", "c"].map(|id| (id.to_owned(), word));
        let all = view("b", &alive);
        assert_eq!((all.homes.len(), all.me), (usize::from(N_PARTITIONS), 1));
        for worker in 0..3 {
            let n_homes = all.homes.iter().filter(|home| **home == worker).count();
            assert!(n_homes > 60, "{n_homes} of {N_PARTITIONS}");
        }
        let fewer = view("b", &alive[..2]);
        let is_kept = |(before, after): (&usize, &usize)| *before == 2 || before == after;
        assert!(all.homes.iter().zip(&fewer.homes).all(is_kept), "only the homes of the one that left move");
        assert_eq!(view("z", &alive).me, usize::MAX);
    }
}
