//! Evaluation keys in pieces: which are there, and all of them as one reader.

use std::collections::VecDeque;
use std::io::{self, Read};

use axum::body::Bytes;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::names::keys_folder;
use super::objects::{Object, Objects};
use crate::ids::KeyRef;
use crate::jobs::{Problem, Source};

/// Most bytes of a piece.
pub(super) const PIECE: usize = 8 << 20;
/// Pieces that are asked for before they are needed.
const N_AHEAD: usize = 3;

/// One client's keys in the store.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    /// Pieces from the first byte on, without a gap.
    pub pieces: Vec<Object>,
    /// Pieces beyond a gap; they are of no use.
    pub stray: Vec<Object>,
    /// Whether they were checked.
    pub is_ready: bool,
    /// Whether they are to be thrown away, or were.
    pub refused: bool,
}

impl Pieces {
    /// What the store has.
    pub(super) async fn find(objects: &Objects, key: &KeyRef) -> io::Result<Self> {
        Ok(Self::of(&keys_folder(key), objects.list(&keys_folder(key)).await?))
    }

    /// What a list of one folder says.
    pub(super) fn of(folder: &str, all: Vec<Object>) -> Self {
        let mut found = Self::default();
        for object in all {
            match object.name.strip_prefix(folder).map(|name| name.trim_start_matches('/')) {
                Some("ready") => found.is_ready = true,
                Some("refused") => found.refused = true,
                Some(name) if piece_offset(name) == Some(found.len()) => found.pieces.push(object),
                _ => found.stray.push(object),
            }
        }
        found
    }

    /// Whether they are being thrown away: nobody may write them before all of them are gone.
    pub(super) fn is_leaving(&self) -> bool {
        self.refused && !(self.pieces.is_empty() && self.stray.is_empty())
    }

    /// Bytes from the first on.
    pub(super) fn len(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len).sum()
    }
}

/// The name of the piece that begins at `offset`; names are in the order of offsets.
pub(super) fn piece_name(key: &KeyRef, offset: u64) -> String {
    format!("{}/at-{offset:016x}", keys_folder(key))
}

fn piece_offset(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("at-").filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

/// Where the reason is for which keys were refused.
pub(super) fn refused_name(key: &KeyRef) -> String {
    format!("{}/refused", keys_folder(key))
}

/// What marks keys as checked.
pub(super) fn ready_name(key: &KeyRef) -> String {
    format!("{}/ready", keys_folder(key))
}

/// Throws the pieces of a key away. What marks them as ready goes first, so that it is not left without its pieces, and again
/// last, for whoever ended a check meanwhile. A reason stays.
pub(super) async fn remove_pieces(objects: &Objects, key: &KeyRef) -> io::Result<bool> {
    let (ready, reason) = (ready_name(key), refused_name(key));
    let mut was_there = objects.remove(&ready).await?;
    for object in objects.list(&keys_folder(key)).await?.iter().filter(|object| object.name != reason) {
        was_there = true;
        objects.remove(&object.name).await?;
    }
    objects.remove(&ready).await?;
    Ok(was_there)
}

/// Makes keys visible that were checked. Says whether their pieces, so many bytes, are still there.
pub(super) async fn make_ready(objects: &Objects, key: &KeyRef, len: u64) -> io::Result<bool> {
    objects.put(&ready_name(key), Bytes::new()).await?;
    let is_whole = Pieces::find(objects, key).await?.len() == len;
    if !is_whole {
        objects.remove(&ready_name(key)).await?;
    }
    Ok(is_whole)
}

/// Throws away all that there is of a key. Says whether that was more than the reason of a refusal.
pub(super) async fn remove_all(objects: &Objects, key: &KeyRef) -> io::Result<bool> {
    let was_there = remove_pieces(objects, key).await?;
    objects.remove(&refused_name(key)).await?;
    Ok(was_there)
}

/// Says why the pieces of a key are thrown away, and does it. In this order: keys that are neither here nor refused would be sent
/// again.
pub(super) async fn refuse(objects: &Objects, key: &KeyRef, reason: &Problem) -> io::Result<()> {
    objects.put(&refused_name(key), serde_json::to_vec(reason)?.into()).await?;
    remove_pieces(objects, key).await?;
    Ok(())
}

/// All pieces as one file.
pub(super) struct PieceSource {
    pub objects: Objects,
    pub pieces: Vec<Object>,
    pub handle: Handle,
}

impl Source for PieceSource {
    fn open(&self) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let len = self.pieces.iter().map(|piece| piece.len).sum();
        let reader = PieceReader {
            objects: self.objects.clone(),
            left: self.pieces.iter().map(|piece| piece.name.clone()).collect(),
            handle: self.handle.clone(),
            coming: VecDeque::new(),
            now: Bytes::new(),
        };
        Ok((Box::new(reader), len))
    }
}

/// Reads pieces one after the other, some ahead. For threads that may wait, not for asynchronous ones.
struct PieceReader {
    objects: Objects,
    left: VecDeque<String>,
    handle: Handle,
    coming: VecDeque<JoinHandle<io::Result<Option<Bytes>>>>,
    now: Bytes,
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.now.is_empty() {
            while self.coming.len() < N_AHEAD
                && let Some(name) = self.left.pop_front()
            {
                let objects = self.objects.clone();
                let read = async move { objects.patiently(|| objects.get(&name)).await };
                self.coming.push_back(self.handle.spawn(read));
            }
            let Some(next) = self.coming.pop_front() else { return Ok(0) };
            let piece = self.handle.block_on(next).map_err(io::Error::other)??;
            self.now = piece.ok_or_else(|| io::Error::other("a piece of the keys is gone"))?;
        }
        let n = buffer.len().min(self.now.len());
        buffer[..n].copy_from_slice(&self.now.split_to(n));
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{KeyName, Owner, ProgramId};

    #[tokio::test(flavor = "multi_thread")]
    async fn pieces_are_one_file_and_what_is_beyond_a_gap_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(folder.path().join("s").to_str().unwrap()).unwrap();
        let key = KeyRef { owner: Owner::anonymous(), program: ProgramId([1; 32]), key: KeyName([2; 16]) };
        for (offset, text) in [(0, "abc"), (3, "de"), (5, "fgh"), (17, "gap")] {
            objects.put(&piece_name(&key, offset), Bytes::from_static(text.as_bytes())).await.unwrap();
        }
        let found = Pieces::find(&objects, &key).await.unwrap();
        assert_eq!((found.len(), found.stray.len(), found.is_ready), (8, 1, false));
        let source =
            PieceSource { objects: objects.clone(), pieces: found.pieces, handle: Handle::current() };
        let read = tokio::task::spawn_blocking(move || {
            let (mut reader, len) = source.open().unwrap();
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            (text, len)
        });
        assert_eq!(read.await.unwrap(), ("abcdefgh".to_owned(), 8));
        let reason = crate::jobs::problem("bad-keys", "they are");
        refuse(&objects, &key, &reason).await.unwrap();
        let found = Pieces::find(&objects, &key).await.unwrap();
        assert!(found.refused && found.pieces.is_empty() && found.stray.is_empty() && !found.is_leaving());
        assert!(!remove_all(&objects, &key).await.unwrap());
    }

    #[tokio::test]
    async fn keys_that_left_while_they_were_checked_are_not_ready() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(folder.path().join("s").to_str().unwrap()).unwrap();
        let key = KeyRef { owner: Owner::anonymous(), program: ProgramId([1; 32]), key: KeyName([2; 16]) };
        objects.put(&piece_name(&key, 0), Bytes::from_static(b"abc")).await.unwrap();
        assert!(make_ready(&objects, &key, 3).await.unwrap());
        assert!(Pieces::find(&objects, &key).await.unwrap().is_ready);
        assert!(remove_all(&objects, &key).await.unwrap());
        assert!(!make_ready(&objects, &key, 3).await.unwrap());
        assert!(!Pieces::find(&objects, &key).await.unwrap().is_ready);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn refused_keys_are_here_or_refused_at_every_moment() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(folder.path().join("s").to_str().unwrap()).unwrap();
        let key = KeyRef { owner: Owner::anonymous(), program: ProgramId([1; 32]), key: KeyName([2; 16]) };
        for offset in 0..64 {
            objects.put(&piece_name(&key, offset), Bytes::from_static(b"a")).await.unwrap();
        }
        let looking = tokio::spawn({
            let (objects, key) = (objects.clone(), key.clone());
            async move {
                loop {
                    let found = Pieces::find(&objects, &key).await.unwrap();
                    if found.len() < 64 {
                        assert!(objects.get(&refused_name(&key)).await.unwrap().is_some(), "{found:?}");
                    }
                    if found.refused && !found.is_leaving() {
                        return;
                    }
                }
            }
        });
        refuse(&objects, &key, &crate::jobs::problem("bad-keys", "they are")).await.unwrap();
        looking.await.unwrap();
    }
}
