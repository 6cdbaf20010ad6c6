//! The connection of one machine to NATS.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::time::Duration;

use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, Stream};
use async_nats::jetstream::{self, kv};
use async_nats::{Client, ConnectOptions};
use futures_util::TryStreamExt;

use super::ClusterError;
use super::names::{Names, Work};

/// Time within which the same message is one message.
const SAME: Duration = Duration::from_secs(120);
/// Time for one answer of NATS.
pub(super) const ANSWER: Duration = Duration::from_secs(5);
/// Time without a word after which a worker is gone.
pub(super) const ALIVE: Duration = Duration::from_secs(10);

/// Where the machines of a service meet.
#[derive(Clone, Debug)]
pub struct Place {
    /// Address of NATS.
    pub nats: String,
    /// Address of the store.
    pub store: String,
    /// Name of the service.
    pub name: String,
}

/// How large the queue is and how long it remembers; gateways say so, workers take what there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub queue: usize,
    pub keep: Duration,
    pub n_replicas: usize,
}

/// A connection, and what is behind it.
#[derive(Clone)]
pub(super) struct Link {
    pub names: Names,
    pub client: Client,
    pub jetstream: jetstream::Context,
    pub stream: Stream,
    pub jobs: kv::Store,
    pub workers: kv::Store,
}

impl Link {
    /// Connects, and makes what is missing.
    pub(super) async fn open(place: &Place, room: Option<Room>) -> Result<Self, ClusterError> {
        let names = Names::new(&place.name)?;
        let failed =
            |error: &dyn Error| ClusterError::Nats { url: place.nats.clone(), cause: error.to_string() };
        let mut options = ConnectOptions::new()
            .name("fhe-serve")
            .reconnect_delay_callback(|n| Duration::from_millis(100 * (n as u64).min(10)));
        if let (Ok(user), Ok(password)) = (std::env::var("NATS_USER"), std::env::var("NATS_PASSWORD")) {
            options = options.user_and_password(user, password);
        }
        let client = options.connect(&place.nats).await.map_err(|error| failed(&error))?;
        let jetstream = ContextBuilder::new().timeout(ANSWER).build(client.clone());
        let wanted = stream::Config {
            name: names.stream(),
            subjects: vec![names.all()],
            retention: RetentionPolicy::WorkQueue,
            discard: DiscardPolicy::New,
            max_messages: room.map_or(-1, |room| i64::try_from(room.queue).unwrap_or(-1)),
            num_replicas: room.map_or(1, |room| room.n_replicas),
            duplicate_window: SAME,
            ..stream::Config::default()
        };
        let stream = match room {
            Some(_) => {
                jetstream.create_or_update_stream(wanted).await.map_err(|error| failed(&error))?;
                jetstream.get_stream(names.stream()).await.map_err(|error| failed(&error))?
            }
            None => jetstream.get_or_create_stream(wanted).await.map_err(|error| failed(&error))?,
        };
        let n_replicas = room.map_or(1, |room| room.n_replicas);
        let keep = room.map_or(Duration::from_secs(24 * 3600), |room| room.keep);
        let jobs =
            bucket(&jetstream, names.jobs(), keep, n_replicas).await.map_err(|error| failed(&*error))?;
        let workers =
            bucket(&jetstream, names.workers(), ALIVE, n_replicas).await.map_err(|error| failed(&*error))?;
        Ok(Self { names, client, jetstream, stream, jobs, workers })
    }

    /// Puts work into the queue. The same `id` is the same message for a while. Nothing if the queue is full.
    pub(super) async fn publish(&self, subject: String, work: &Work, id: &str) -> io::Result<Option<()>> {
        let message = PublishMessage::build().message_id(id).payload(serde_json::to_vec(work)?.into());
        let sent = self.jetstream.send_publish(subject.clone(), message).await;
        let acknowledged = match sent {
            Ok(future) => future.await,
            Err(error) => Err(error),
        };
        match acknowledged {
            Ok(_) => {
                // A hint only: who misses it looks by itself.
                let _ = self.client.publish(self.names.wake(), subject.into()).await;
                Ok(Some(()))
            }
            Err(error) if error.to_string().contains("maximum messages exceeded") => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Messages by subject: what waits or runs.
    pub(super) async fn counts(&self, filter: String) -> io::Result<BTreeMap<String, usize>> {
        subjects(&self.stream, filter).await
    }

    /// Messages in the queue, and how many there may be.
    pub(super) async fn load(&self) -> io::Result<(u64, i64)> {
        let info = self.stream.get_info().await.map_err(io::Error::other)?;
        Ok((info.state.messages, info.config.max_messages))
    }
}

/// Messages of a stream by subject.
pub(super) async fn subjects<I>(stream: &Stream<I>, filter: String) -> io::Result<BTreeMap<String, usize>> {
    let found = stream.info_with_subjects(filter).await.map_err(io::Error::other)?;
    found.try_collect().await.map_err(io::Error::other)
}

async fn bucket(
    jetstream: &jetstream::Context,
    bucket: String,
    max_age: Duration,
    num_replicas: usize,
) -> Result<kv::Store, Box<dyn Error + Send + Sync>> {
    match jetstream.get_key_value(&bucket).await {
        Ok(store) => Ok(store),
        Err(_) => {
            let config = kv::Config { bucket, max_age, num_replicas, history: 1, ..kv::Config::default() };
            Ok(jetstream.create_key_value(config).await?)
        }
    }
}
