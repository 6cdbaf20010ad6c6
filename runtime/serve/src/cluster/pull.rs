//! Messages for one worker: those of its own partitions first, those of others when they have too many.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, Consumer};
use async_nats::jetstream::message::Message;
use futures_util::StreamExt;
use tokio::time::timeout;

use super::link::{ANSWER, Link};
use super::members::Member;
use super::names::{consumer, partition};
use super::turns::{Rules, Turns};
use crate::limits::Limits;
use crate::memory::Ledger;

/// Takes messages, for all slots of a worker.
pub(super) struct Puller {
    link: Link,
    member: Member,
    ledger: Arc<Ledger>,
    /// Jobs that wait for a worker before others help it.
    overflow: usize,
    /// Time without a word after which a message goes to another worker.
    ack: Duration,
    consumers: Mutex<BTreeMap<u16, Consumer<Config>>>,
    turns: Mutex<Turns>,
}

impl Puller {
    pub(super) fn new(
        link: Link,
        member: Member,
        ledger: Arc<Ledger>,
        overflow: usize,
        ack: Duration,
    ) -> Self {
        Self { link, member, ledger, overflow, ack, consumers: Mutex::default(), turns: Mutex::default() }
    }

    /// A message with this subject has come.
    pub(super) fn heard(&self, subject: &[u8]) {
        let subject = String::from_utf8_lossy(subject);
        if let Some(partition) = self.link.names.partition_of(&subject) {
            lock(&self.turns).heard(partition, Instant::now());
        }
    }

    /// The next message, if there is one for this worker, and its partition.
    pub(super) async fn next(&self) -> io::Result<Option<(u16, Message)>> {
        let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
        for (subject, n) in self.link.counts(self.link.names.all()).await? {
            if let Some(partition) = self.link.names.partition_of(&subject) {
                *counts.entry(partition).or_default() += n;
            }
        }
        for partition in self.order(&counts) {
            if let Some(message) = self.fetch(partition).await? {
                lock(&self.turns).took(partition, Instant::now());
                return Ok(Some((partition, message)));
            }
        }
        Ok(None)
    }

    /// A message that this worker had is at its end.
    pub(super) fn ended(&self, partition: u16) {
        lock(&self.turns).ended(partition);
    }

    fn order(&self, counts: &BTreeMap<u16, usize>) -> Vec<u16> {
        let kept: BTreeSet<u16> = self.ledger.keys().iter().map(partition).collect();
        let (view, patience) = (self.member.view(), Limits::default().patience);
        let rules = Rules { view: &view, kept: &kept, overflow: self.overflow, patience };
        let (mut turns, now) = (lock(&self.turns), Instant::now());
        turns.looked(counts, now);
        turns.order(counts, &rules, now)
    }

    /// A message of one partition that no worker has.
    async fn fetch(&self, partition: u16) -> io::Result<Option<Message>> {
        let known = lock(&self.consumers).get(&partition).cloned();
        let consumer = match known {
            Some(consumer) => consumer,
            None => {
                let consumer = self.make(partition).await?;
                lock(&self.consumers).insert(partition, consumer.clone());
                consumer
            }
        };
        let first = async {
            let mut messages = consumer.fetch().max_messages(1).messages().await.map_err(io::Error::other)?;
            messages.next().await.transpose().map_err(io::Error::other)
        };
        // A server that ends between question and answer never answers.
        let first = timeout(ANSWER, first).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        if first.is_err() {
            // A server that was set up anew may not have it any more.
            lock(&self.consumers).remove(&partition);
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
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
