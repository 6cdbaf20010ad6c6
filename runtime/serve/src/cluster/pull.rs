//! Messages for one worker: those of its own partitions first, those of others when they have too many.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, Consumer};
use async_nats::jetstream::message::Message;
use futures_util::StreamExt;

use super::link::Link;
use super::members::{Member, View};
use super::names::consumer;

/// Takes messages.
#[derive(Clone)]
pub(super) struct Puller {
    link: Link,
    member: Member,
    /// Jobs that wait for a worker before others help it.
    overflow: usize,
    /// Time without a word after which a message goes to another worker.
    ack: Duration,
    consumers: Arc<Mutex<BTreeMap<u16, Consumer<Config>>>>,
    /// The partition that was served last: the next one at home has its turn after it.
    last: Arc<AtomicU16>,
}

impl Puller {
    pub(super) fn new(link: Link, member: Member, overflow: usize, ack: Duration) -> Self {
        Self { link, member, overflow, ack, consumers: Arc::default(), last: Arc::default() }
    }

    /// The next message, if there is one for this worker.
    pub(super) async fn next(&self) -> io::Result<Option<Message>> {
        let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
        for (subject, n) in self.link.counts(self.link.names.all()).await? {
            if let Some(partition) = self.link.names.partition_of(&subject) {
                *counts.entry(partition).or_default() += n;
            }
        }
        let last = self.last.load(Ordering::Relaxed);
        for partition in order(&counts, &self.member.view(), self.overflow, last) {
            if let Some(message) = self.fetch(partition).await? {
                self.last.store(partition, Ordering::Relaxed);
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// A message of one partition that no worker has.
    async fn fetch(&self, partition: u16) -> io::Result<Option<Message>> {
        let known = self.consumers().get(&partition).cloned();
        let consumer = match known {
            Some(consumer) => consumer,
            None => {
                let consumer = self.make(partition).await?;
                self.consumers().insert(partition, consumer.clone());
                consumer
            }
        };
        let fetched = consumer.fetch().max_messages(1).messages().await;
        let first = match fetched {
            Ok(mut messages) => messages.next().await.transpose().map_err(io::Error::other),
            Err(error) => Err(io::Error::other(error)),
        };
        if first.is_err() {
            // A server that was set up anew may not have it any more.
            self.consumers().remove(&partition);
        }
        first
    }

    async fn make(&self, partition: u16) -> io::Result<Consumer<Config>> {
        let name = consumer(partition);
        let config = Config {
            durable_name: Some(name.clone()),
            filter_subject: self.link.names.of_partition(partition),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.ack,
            ..Config::default()
        };
        self.link.stream.create_consumer(config).await.map_err(io::Error::other)
    }

    fn consumers(&self) -> std::sync::MutexGuard<'_, BTreeMap<u16, Consumer<Config>>> {
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which partitions to ask, in this order: those at home in turn, so that nobody waits behind a client that never stops, then
/// those of workers for whom too many jobs wait, the fullest first.
fn order(counts: &BTreeMap<u16, usize>, view: &View, overflow: usize, last: u16) -> Vec<u16> {
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
        Some(home) => home != view.me && loads[home] > view.n_slots[home] + overflow,
        None => true,
    };
    let mut at_home: Vec<u16> = counts.keys().copied().filter(|partition| is_mine(*partition)).collect();
    let n_had = at_home.partition_point(|partition| *partition <= last);
    at_home.rotate_left(n_had);
    let mut others: Vec<(usize, u16)> =
        counts.iter().filter(|(partition, _)| needs_help(**partition)).map(|(p, n)| (*n, *p)).collect();
    others.sort_by(|a, b| b.cmp(a));
    at_home.into_iter().chain(others.into_iter().map(|(_, partition)| partition)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_comes_first_and_others_when_they_overflow() {
        let view = View { n_slots: vec![1, 1, 2], me: 0, homes: vec![0, 1, 0, 1, 2, 2] };
        let counts = BTreeMap::from([(0, 1), (1, 3), (2, 2), (3, 1), (4, 4)]);
        // Four for one slot are too many, four for two are not.
        assert_eq!(order(&counts, &view, 2, 0), [2, 0, 1, 3]);
        assert_eq!(order(&counts, &view, 3, 1), [2, 0]);
        assert_eq!(order(&counts, &view, 3, 2), [0, 2], "each has its turn");
        assert_eq!(order(&counts, &view, 1, 5), [0, 2, 4, 1, 3]);
        let alone = View { n_slots: vec![], me: usize::MAX, homes: vec![] };
        assert_eq!(order(&counts, &alone, 2, 0).len(), 5, "who hears nobody helps everybody");
    }
}
