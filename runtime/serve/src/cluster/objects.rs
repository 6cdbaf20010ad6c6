//! The store that all machines share: a folder or S3. Every object is there completely or not at all.

use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Bytes;
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{Error, ObjectStore, ObjectStoreExt, RetryConfig};

// Named for its TLS, which the manifest chooses.
use reqwest as _;

use super::ClusterError;

/// A file that a folder has for as long as it is there: a folder that is not mounted looks empty otherwise.
const MARK: &str = "fhe-store";
/// Time that a store may be away before those who can wait give up.
const PATIENCE: Duration = Duration::from_secs(120);

/// A store.
#[derive(Clone, Debug)]
pub struct Objects {
    url: String,
    inner: Arc<dyn ObjectStore>,
    /// The mark, where the store is a folder.
    mark: Option<PathBuf>,
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub name: String,
    pub len: u64,
    pub changed: SystemTime,
}

impl Objects {
    /// Opens a folder, which is made if it is not there, or `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn open(url: &str) -> Result<Self, ClusterError> {
        let failed = |cause: String| ClusterError::Store { store: url.to_owned(), cause };
        if url.starts_with("s3://") {
            return Self::s3(url).map_err(|error| failed(error.to_string()));
        }
        if url.contains("://") && !url.starts_with("file://") {
            return Err(failed("a store is a folder or s3://BUCKET/PREFIX".to_owned()));
        }
        let folder = FilePath::new(url.trim_start_matches("file://"));
        let mark = folder.join(MARK);
        let is_empty = match std::fs::read_dir(folder) {
            Ok(mut entries) => {
                entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == "tokens.json"))
            }
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_empty {
            std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::write(&mark, b"a store of fhe-serve\n"))
                .map_err(|error| failed(error.to_string()))?;
        } else if !mark.is_file() {
            return Err(failed(format!(
                "the folder has files, and no {MARK} among them: choose an empty one"
            )));
        }
        let inner = LocalFileSystem::new_with_prefix(folder).map_err(|error| failed(error.to_string()))?;
        Ok(Self { url: url.to_owned(), inner: Arc::new(inner), mark: Some(mark) })
    }

    fn s3(url: &str) -> Result<Self, Error> {
        // Who builds a client first says whose cryptography it uses; this is the one that the rest of the server has.
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let retry = RetryConfig { retry_timeout: Duration::from_secs(30), ..RetryConfig::default() };
        let inner = AmazonS3Builder::from_env().with_url(url).with_retry(retry).build()?;
        let prefix = url.trim_start_matches("s3://").split_once('/').map_or("", |(_, prefix)| prefix);
        let inner: Arc<dyn ObjectStore> = match prefix.trim_matches('/') {
            "" => Arc::new(inner),
            prefix => Arc::new(PrefixStore::new(inner, Path::parse(prefix)?)),
        };
        Ok(Self { url: url.to_owned(), inner, mark: None })
    }

    pub(super) fn failed(&self, error: &io::Error) -> ClusterError {
        ClusterError::Store { store: self.url.clone(), cause: error.to_string() }
    }

    /// Writes an object.
    pub(super) async fn put(&self, name: &str, bytes: Bytes) -> io::Result<()> {
        // A folder that is away must not be made anew in its place.
        self.is_there()?;
        self.inner.put(&Path::from(name), bytes.into()).await.map_err(io::Error::other)?;
        Ok(())
    }

    /// Reads an object; nothing if there is none.
    pub(super) async fn get(&self, name: &str) -> io::Result<Option<Bytes>> {
        let read = async { self.inner.get(&Path::from(name)).await?.bytes().await };
        self.or_none(read.await)
    }

    /// Bytes of an object, if there is one.
    pub(super) async fn len(&self, name: &str) -> io::Result<Option<u64>> {
        self.or_none(self.inner.head(&Path::from(name)).await.map(|meta| meta.size))
    }

    /// Removes an object; says whether there was one, where the store tells.
    pub(super) async fn remove(&self, name: &str) -> io::Result<bool> {
        let was_there = self.len(name).await?.is_some();
        self.or_none(self.inner.delete(&Path::from(name)).await)?;
        Ok(was_there)
    }

    /// All objects below a folder, in order of their names.
    pub(super) async fn list(&self, folder: &str) -> io::Result<Vec<Object>> {
        self.is_there()?;
        let found = self.inner.list(Some(&Path::from(folder)));
        let mut all: Vec<Object> = found
            .map_ok(|meta| Object {
                name: meta.location.to_string(),
                len: meta.size,
                changed: meta.last_modified.into(),
            })
            .try_collect()
            .await
            .map_err(io::Error::other)?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Does something again until the store is there, for those who can wait.
    pub(super) async fn patiently<T, F: Future<Output = io::Result<T>>>(
        &self,
        mut work: impl FnMut() -> F,
    ) -> io::Result<T> {
        let ends = tokio::time::Instant::now() + PATIENCE;
        let mut pause = Duration::from_millis(100);
        loop {
            match work().await {
                Err(error) if tokio::time::Instant::now() < ends => {
                    tracing::warn!(%error, "the store failed; trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
                done => return done,
            }
        }
    }

    fn or_none<T>(&self, result: Result<T, Error>) -> io::Result<Option<T>> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(Error::NotFound { .. }) => self.is_there().map(|()| None),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn is_there(&self) -> io::Result<()> {
        match &self.mark {
            Some(mark) if !mark.is_file() => Err(io::Error::other("the folder of the store is away")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_that_is_away_is_no_empty_store() {
        let parent = tempfile::tempdir().unwrap();
        let (here, away) = (parent.path().join("store"), parent.path().join("away"));
        let objects = Objects::open(here.to_str().unwrap()).unwrap();
        objects.put("a/b", Bytes::from_static(b"1")).await.unwrap();
        assert_eq!(objects.get("a/c").await.unwrap(), None);
        std::fs::rename(&here, &away).unwrap();
        assert!(objects.get("a/b").await.is_err() && objects.len("a/b").await.is_err());
        assert!(
            objects.put("a/b", Bytes::from_static(b"2")).await.is_err() && objects.list("a").await.is_err()
        );
        assert!(!here.exists());
        std::fs::rename(&away, &here).unwrap();
        assert_eq!(objects.get("a/b").await.unwrap(), Some(Bytes::from_static(b"1")));
        assert_eq!(objects.list("a").await.unwrap()[0].name, "a/b");
        assert!(objects.remove("a/b").await.unwrap() && !objects.remove("a/b").await.unwrap());
    }

    #[test]
    fn a_folder_of_other_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("letter.txt"), b"").unwrap();
        assert!(matches!(Objects::open(folder.path().to_str().unwrap()), Err(ClusterError::Store { .. })));
        assert!(matches!(Objects::open("ftp://a/b"), Err(ClusterError::Store { .. })));
    }
}
