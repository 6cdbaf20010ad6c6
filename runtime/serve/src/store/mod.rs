//! The store on disk: keys, inputs, results and job records, each file there completely or not at all.
//!
//! ```text
//! lock                                  held by the server that uses the folder
//! tokens.json                           who may (see `tokens`)
//! keys/OWNER/PROGRAM/KEY                evaluation keys that were checked
//! staging/OWNER/PROGRAM.KEY             evaluation keys on their way: what came so far
//! staging/OWNER/input-NUMBER            an encrypted input on its way
//! jobs/OWNER/JOB.json, .input, .result  a job: its record, what it reads, what it gave
//! ```
//! A name appears by a rename, after the content is on the disk. Whatever ends the process, a key is either staged or
//! whole, and a job is what its record says.

pub(crate) mod whole;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::ids::{JobId, JobRef, KeyName, KeyRef, Owner, ProgramId};
use crate::jobs::Job;
use whole::{new_private, private, publish, write_whole};

/// Most bytes of a job's record.
const RECORD_LIMIT: u64 = 1 << 20;

/// The folder of a server.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    n_inputs: AtomicU64,
    /// Held while the server runs.
    _lock: File,
}

/// An input on its way; what nobody took is thrown away with it.
#[derive(Debug)]
pub struct Staged(PathBuf);

impl Staged {
    /// A file that is there for now.
    #[cfg(feature = "cluster")]
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // One that was taken is not here any more.
        let _ = fs::remove_file(&self.0);
    }
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What it said.
        #[source]
        cause: io::Error,
    },
    /// Another server is there.
    #[error("{}: another fhe-serve uses this store", .0.display())]
    InUse(PathBuf),
}

impl Store {
    /// Opens a store for one server, and makes it where there is none.
    ///
    /// # Errors
    /// If the folder cannot be made or another server uses it.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let io = |cause| StoreError::Io { path: folder.to_path_buf(), cause };
        make_folder(folder).map_err(io)?;
        for part in ["keys", "staging", "jobs"] {
            make_folder(&folder.join(part)).map_err(io)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let lock = private(&mut options).open(folder.join("lock")).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(folder.to_path_buf())),
            Err(TryLockError::Error(cause)) => return Err(io(cause)),
        }
        let store = Self { folder: folder.to_path_buf(), n_inputs: AtomicU64::new(0), _lock: lock };
        store.remove_unfinished().map_err(io)?;
        Ok(store)
    }

    /// Files that a killed server left half-written; keys on their way stay.
    fn remove_unfinished(&self) -> io::Result<()> {
        for part in ["jobs", "staging"] {
            for owner in names(&self.folder.join(part))? {
                let folder = self.folder.join(part).join(owner);
                let is_left =
                    |name: &String| name.starts_with(whole::UNFINISHED) || name.starts_with("input-");
                for name in names(&folder)?.into_iter().filter(is_left) {
                    fs::remove_file(folder.join(name))?;
                }
            }
        }
        Ok(())
    }

    /// Evaluation keys that were checked.
    pub fn keys_path(&self, key: &KeyRef) -> PathBuf {
        self.folder.join(format!("keys/{}/{}/{}", key.owner, key.program, key.key))
    }

    /// Evaluation keys on their way.
    pub fn staged_path(&self, key: &KeyRef) -> PathBuf {
        self.folder.join(format!("staging/{}/{}.{}", key.owner, key.program, key.key))
    }

    /// Bytes of checked keys, if they are there.
    pub fn keys_len(&self, key: &KeyRef) -> Option<u64> {
        file_len(&self.keys_path(key))
    }

    /// Bytes of keys on their way that came so far.
    pub fn staged_len(&self, key: &KeyRef) -> Option<u64> {
        file_len(&self.staged_path(key))
    }

    /// Opens a file for keys on their way, to go on at `offset`.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn stage_keys(&self, key: &KeyRef, offset: u64) -> io::Result<File> {
        let path = self.staged_path(key);
        make_folder(path.parent().unwrap_or(&self.folder))?;
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        let file = private(&mut options).open(path)?;
        file.set_len(offset)?;
        Ok(file)
    }

    /// Makes checked keys visible.
    ///
    /// # Errors
    /// If they cannot be moved.
    pub fn publish_keys(&self, key: &KeyRef) -> io::Result<()> {
        let to = self.keys_path(key);
        make_folder(to.parent().unwrap_or(&self.folder))?;
        publish(&self.staged_path(key), &to)
    }

    /// Removes keys, checked or on their way; says whether there were any.
    ///
    /// # Errors
    /// If they cannot be removed.
    pub fn remove_keys(&self, key: &KeyRef) -> io::Result<bool> {
        Ok(remove(&self.staged_path(key))? | remove(&self.keys_path(key))?)
    }

    /// Throws keys on their way away.
    ///
    /// # Errors
    /// If they cannot be removed.
    pub fn unstage_keys(&self, key: &KeyRef) -> io::Result<bool> {
        remove(&self.staged_path(key))
    }

    /// All keys of all clients: checked ones, then ones on their way, with their bytes.
    ///
    /// # Errors
    /// If the folders cannot be read.
    pub fn all_keys(&self) -> io::Result<(Vec<(KeyRef, u64)>, Vec<(KeyRef, u64)>)> {
        let (mut checked, mut staged) = (Vec::new(), Vec::new());
        let root = self.folder.join("keys");
        for owner in typed::<Owner>(&root)? {
            for program in typed::<ProgramId>(&root.join(owner.to_string()))? {
                for key in typed::<KeyName>(&root.join(format!("{owner}/{program}")))? {
                    let key = KeyRef { owner: owner.clone(), program, key };
                    checked.extend(self.keys_len(&key).map(|len| (key, len)));
                }
            }
        }
        let root = self.folder.join("staging");
        for owner in typed::<Owner>(&root)? {
            for name in names(&root.join(owner.to_string()))? {
                let Some((program, key)) = name.split_once('.') else { continue };
                let (Ok(program), Ok(key)) = (program.parse(), key.parse()) else { continue };
                let key = KeyRef { owner: owner.clone(), program, key };
                staged.extend(self.staged_len(&key).map(|len| (key, len)));
            }
        }
        Ok((checked, staged))
    }

    /// A new file for an encrypted input on its way.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn stage_input(&self, owner: &Owner) -> io::Result<(Staged, File)> {
        let folder = self.folder.join(format!("staging/{owner}"));
        make_folder(&folder)?;
        let path = folder.join(format!("input-{}", self.n_inputs.fetch_add(1, Ordering::Relaxed)));
        let file = new_private(&path)?;
        Ok((Staged(path), file))
    }

    fn job_path(&self, job: &JobRef, suffix: &str) -> PathBuf {
        self.folder.join(format!("jobs/{}/{}.{suffix}", job.owner, job.id))
    }

    /// What a job reads.
    pub fn input_path(&self, job: &JobRef) -> PathBuf {
        self.job_path(job, "input")
    }

    /// What a job gave.
    pub fn result_path(&self, job: &JobRef) -> PathBuf {
        self.job_path(job, "result")
    }

    /// Stores an accepted job: its input, then its record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add_job(&self, at: &JobRef, staged_input: &Path, job: &Job) -> io::Result<()> {
        make_folder(&self.folder.join(format!("jobs/{}", at.owner)))?;
        publish(staged_input, &self.input_path(at))?;
        self.put_job(at, job)
    }

    /// Writes a job's record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put_job(&self, at: &JobRef, job: &Job) -> io::Result<()> {
        write_whole(&self.job_path(at, "json"), &serde_json::to_vec(job).map_err(io::Error::other)?)
    }

    /// Writes a job's result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put_result(&self, at: &JobRef, bytes: &[u8]) -> io::Result<()> {
        write_whole(&self.result_path(at), bytes)
    }

    /// A job's record, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn job(&self, at: &JobRef) -> io::Result<Option<Job>> {
        match fhe_host::read_bounded(&self.job_path(at, "json"), RECORD_LIMIT) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).map_err(io::Error::other)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Throws away what a job reads.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove_input(&self, at: &JobRef) -> io::Result<bool> {
        remove(&self.input_path(at))
    }

    /// Throws a job away: its record first, so that none is left without its files.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove_job(&self, at: &JobRef) -> io::Result<bool> {
        let was_there = remove(&self.job_path(at, "json"))?;
        remove(&self.input_path(at))?;
        remove(&self.result_path(at))?;
        Ok(was_there)
    }

    /// The jobs of one client, or of all.
    ///
    /// # Errors
    /// If the folders cannot be read.
    pub fn jobs(&self, owner: Option<&Owner>) -> io::Result<Vec<JobRef>> {
        let root = self.folder.join("jobs");
        let owners = match owner {
            Some(owner) => vec![owner.clone()],
            None => typed::<Owner>(&root)?,
        };
        let mut found = Vec::new();
        for owner in owners {
            for name in names(&root.join(owner.to_string()))? {
                let id = name.strip_suffix(".json").and_then(|id| id.parse::<JobId>().ok());
                found.extend(id.map(|id| JobRef { owner: owner.clone(), id }));
            }
        }
        Ok(found)
    }

    /// Time since keys on their way got their last byte.
    pub fn staged_age(&self, key: &KeyRef) -> Option<Duration> {
        let changed = fs::metadata(self.staged_path(key)).ok()?.modified().ok()?;
        SystemTime::now().duration_since(changed).ok()
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn file_len(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.len())
}

fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Names in a folder, in order; none if there is no folder.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Names in a folder that are of one kind; others are none of ours.
fn typed<T: FromStr>(folder: &Path) -> io::Result<Vec<T>> {
    Ok(names(folder)?.iter().filter_map(|name| name.parse().ok()).collect())
}

#[cfg(test)]
mod tests;
