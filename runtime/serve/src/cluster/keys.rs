//! Evaluation keys as a gateway sees them: what the store has is what there is.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::link::Link;
use super::names::{Work, keys_folder};
use super::objects::{Object, Objects};
use super::pieces::{Pieces, ready_name, refused_name, remove_all};
use super::queue::GatewayQueue;
use super::upload::Sending;
use crate::backend::{KeyStore, Later, NoUpload, Queue, Upload};
use crate::catalog::{Catalog, Entry};
use crate::ids::{JobRef, KeyRef, Owner};
use crate::jobs::Problem;
use crate::uploads::{KeyState, Keys, STALE};

/// Keys that are sent at a time through one gateway; each holds a piece in memory.
const N_UPLOADS: usize = 32;
/// Time between two looks at keys that are being checked.
const LOOK: Duration = Duration::from_millis(200);

/// The keys of a gateway.
#[derive(Clone)]
pub(super) struct GatewayKeys {
    link: Link,
    objects: Objects,
    catalog: Arc<Catalog>,
    queue: GatewayQueue,
    room: Arc<Semaphore>,
}

/// Asks a worker to check keys that came at `time`. The same question within two minutes is one.
pub(super) async fn check_work(link: &Link, key: &KeyRef, time: SystemTime) -> io::Result<()> {
    let ms = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_millis());
    let id = format!("check.{}.{}.{}.{ms}", key.owner, key.program, key.key);
    match link.publish(link.names.subject(key), &Work::check(key), &id).await? {
        Some(()) => Ok(()),
        None => Err(io::Error::other("the queue is full")),
    }
}

impl GatewayKeys {
    pub(super) fn new(link: Link, objects: Objects, catalog: Arc<Catalog>, queue: GatewayQueue) -> Self {
        Self { link, objects, catalog, queue, room: Arc::new(Semaphore::new(N_UPLOADS)) }
    }

    async fn look(&self, entry: &Entry, at: &KeyRef) -> io::Result<Option<Keys>> {
        let mut found = Pieces::find(&self.objects, at).await?;
        let mut error = None;
        if !found.is_ready && found.len() != entry.key_file_bytes {
            // Asked for by its name and after the list, in which pieces may be gone and the reason not yet there.
            let reason = self.objects.get(&refused_name(at)).await?;
            found.refused = reason.is_some();
            error = reason.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        }
        Ok(state(entry, at, &found, error))
    }

    /// The folders of a client's keys, each with what is in it.
    async fn folders(&self, owner: &Owner) -> io::Result<BTreeMap<KeyRef, Vec<Object>>> {
        let mut folders: BTreeMap<KeyRef, Vec<Object>> = BTreeMap::new();
        for object in self.objects.list(&format!("keys/{owner}")).await? {
            let parts: Vec<&str> = object.name.split('/').collect();
            let [_, _, program, key, _] = parts[..] else { continue };
            if let (Ok(program), Ok(key)) = (program.parse(), key.parse()) {
                folders.entry(KeyRef { owner: owner.clone(), program, key }).or_default().push(object);
            }
        }
        Ok(folders)
    }
}

/// Where keys are, from what the store has of them.
fn state(entry: &Entry, at: &KeyRef, found: &Pieces, error: Option<Problem>) -> Option<Keys> {
    let (received_bytes, total_bytes) = (found.len(), entry.key_file_bytes);
    let state = match () {
        () if found.is_leaving() => KeyState::Checking,
        () if found.is_ready => KeyState::Ready,
        () if error.is_some() => KeyState::Refused,
        () if received_bytes == total_bytes => KeyState::Checking,
        () if received_bytes > 0 => KeyState::Uploading,
        () => return None,
    };
    let error = error.filter(|_| state == KeyState::Refused);
    Some(Keys { program: at.program, key: at.key, state, received_bytes, total_bytes, error })
}

impl KeyStore for GatewayKeys {
    fn is_ready(&self, at: &KeyRef) -> Later<'static, io::Result<bool>> {
        let (objects, name) = (self.objects.clone(), ready_name(at));
        Box::pin(async move { Ok(objects.len(&name).await?.is_some()) })
    }

    fn get(
        &self,
        entry: &Arc<Entry>,
        at: &KeyRef,
        wait: Duration,
    ) -> Later<'static, io::Result<Option<Keys>>> {
        let (this, entry, at) = (self.clone(), Arc::clone(entry), at.clone());
        Box::pin(async move {
            let ends = Instant::now() + wait;
            let mut is_asked = false;
            loop {
                let keys = this.look(&entry, &at).await?;
                if keys.as_ref().is_none_or(|keys| keys.state != KeyState::Checking) {
                    return Ok(keys);
                }
                // The gateway that received them may have ended before it asked for their check.
                if !is_asked {
                    let found = Pieces::find(&this.objects, &at).await?;
                    let last = found.pieces.last().map_or(SystemTime::UNIX_EPOCH, |piece| piece.changed);
                    check_work(&this.link, &at, last).await?;
                    is_asked = true;
                }
                if Instant::now() >= ends {
                    return Ok(keys);
                }
                tokio::time::sleep(LOOK).await;
            }
        })
    }

    fn list(&self, owner: &Owner) -> Later<'static, io::Result<Vec<Keys>>> {
        let (this, owner) = (self.clone(), owner.clone());
        Box::pin(async move {
            let folders = this.folders(&owner).await?;
            let one = |(at, all): (KeyRef, Vec<Object>)| {
                let entry = this.catalog.get(at.program)?;
                state(entry, &at, &Pieces::of(&keys_folder(&at), all), None)
            };
            Ok(folders.into_iter().filter_map(one).collect())
        })
    }

    fn bytes_of(&self, owner: &Owner, besides: &KeyRef) -> Later<'static, io::Result<u64>> {
        let (this, owner, besides) = (self.clone(), owner.clone(), besides.clone());
        Box::pin(async move {
            let folders = this.folders(&owner).await?;
            let whole = |(at, all): (&KeyRef, &Vec<Object>)| {
                let len = all.iter().map(|object| object.len).sum();
                this.catalog.get(at.program).map_or(len, |entry| entry.key_file_bytes.max(len))
            };
            Ok(folders.iter().filter(|(at, _)| **at != besides).map(whole).sum())
        })
    }

    fn begin(
        &self,
        entry: &Arc<Entry>,
        at: &KeyRef,
        first: u64,
    ) -> Later<'static, Result<Box<dyn Upload>, NoUpload>> {
        let (this, entry, at) = (self.clone(), Arc::clone(entry), at.clone());
        Box::pin(async move {
            let permit = Arc::clone(&this.room).try_acquire_owned().map_err(|_| NoUpload::Full)?;
            let found = Pieces::find(&this.objects, &at).await?;
            if found.is_ready {
                return Err(NoUpload::Exists);
            }
            let so_far = found.len();
            if so_far == entry.key_file_bytes || found.is_leaving() {
                return Err(NoUpload::Busy);
            }
            if first != 0 && first != so_far {
                return Err(NoUpload::WrongOffset(so_far));
            }
            match first {
                0 => drop(remove_all(&this.objects, &at).await?),
                _ => {
                    for object in found.stray {
                        this.objects.remove(&object.name).await?;
                    }
                }
            }
            let sending = Sending {
                link: this.link,
                objects: this.objects,
                key: at,
                offset: first,
                piece: Vec::new(),
                _permit: permit,
            };
            Ok(Box::new(sending) as Box<dyn Upload>)
        })
    }

    fn remove(&self, at: &KeyRef) -> Later<'static, Result<bool, NoUpload>> {
        let (this, at) = (self.clone(), at.clone());
        Box::pin(async move {
            let was_there = remove_all(&this.objects, &at).await?;
            for job in this.queue.list(&at.owner).await? {
                if job.key == at.key && job.program == at.program && !job.state.is_final() {
                    this.queue.cancel(&JobRef { owner: at.owner.clone(), id: job.id }).await?;
                }
            }
            Ok(was_there)
        })
    }

    fn sweep(&self) -> Later<'static, io::Result<()>> {
        let this = self.clone();
        Box::pin(async move {
            let mut folders: BTreeMap<String, Vec<Object>> = BTreeMap::new();
            for object in this.objects.list("keys").await? {
                let folder = object.name.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
                folders.entry(folder).or_default().push(object);
            }
            for (folder, all) in folders {
                let is_old = |object: &Object| {
                    SystemTime::now().duration_since(object.changed).is_ok_and(|age| age > STALE)
                };
                if !Pieces::of(&folder, all.clone()).is_ready && all.iter().all(is_old) {
                    for object in all {
                        this.objects.remove(&object.name).await?;
                    }
                }
            }
            Ok(())
        })
    }

    fn drain(&self) {}
}
