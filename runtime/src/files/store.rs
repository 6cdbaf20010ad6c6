//! Files on disk: written whole or not at all, secrets for the owner only.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{Builder, NamedTempFile};

use super::error::{FileError, FileErrorKind};
use super::header::Kind;

/// Who may read a new file, and whether it may replace an old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Anyone; replaces an existing file.
    Public,
    /// The owner only; never replaces an existing file.
    Owner,
}

/// Writes a file beside `path` and moves it there when `write` is done, so that no half-written file is ever seen.
///
/// # Errors
/// If the file cannot be written, or `write` fails; then nothing is left behind.
pub fn write_atomically(
    path: &Path,
    audience: Audience,
    write: impl FnOnce(&mut dyn Write) -> Result<(), FileErrorKind>,
) -> Result<(), FileError> {
    try_write(path, audience, write).map_err(|kind| FileError { path: path.to_path_buf(), kind })
}

fn try_write(
    path: &Path,
    audience: Audience,
    write: impl FnOnce(&mut dyn Write) -> Result<(), FileErrorKind>,
) -> Result<(), FileErrorKind> {
    if audience == Audience::Owner && path.exists() {
        return Err(FileErrorKind::Exists);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = new_file(folder, audience)?;
    let _unfinished = Unfinished::register(file.path());
    // A secret passes no buffer that is not erased afterwards.
    let capacity = if audience == Audience::Owner { 0 } else { 1 << 20 };
    let mut buffered = BufWriter::with_capacity(capacity, file.as_file_mut());
    write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    file.as_file().sync_all()?;
    match audience {
        Audience::Public => file.persist(path).map_err(|e| e.error)?,
        Audience::Owner => file.persist_noclobber(path).map_err(|e| match e.error.kind() {
            std::io::ErrorKind::AlreadyExists => FileErrorKind::Exists,
            _ => FileErrorKind::Io(e.error),
        })?,
    };
    Ok(())
}

/// Files being written, so that an interrupted process can remove them.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Entry in the list of files being written, for as long as it lives.
struct Unfinished(PathBuf);

impl Unfinished {
    fn register(path: &Path) -> Self {
        unfinished().push(path.to_path_buf());
        Self(path.to_path_buf())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.0);
    }
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes every file that is being written. For a process about to exit, as on Ctrl-C.
pub fn remove_unfinished() {
    for path in unfinished().iter() {
        // A file that is gone already needs no removal.
        let _ = fs::remove_file(path);
    }
}

/// A new file, created exclusively. Unix: mode 0600 for secrets; what the user's umask allows for the rest.
fn new_file(folder: &Path, audience: Audience) -> std::io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".fhe-run-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = match audience {
            Audience::Public => 0o666,
            Audience::Owner => 0o600,
        };
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    let _ = audience;
    builder.tempfile_in(folder)
}

/// Opens a file for reading and gives its length. A secret key that others can read is refused.
///
/// # Errors
/// If the file cannot be opened or is a secret key with too wide permissions.
pub(crate) fn open(path: &Path, kind: Kind) -> Result<(File, u64), FileErrorKind> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let found = first_kind(&mut file)?.unwrap_or(kind);
    #[cfg(unix)]
    // A file of another kind may be readable by all; its decoder says that the kind is wrong.
    if kind == Kind::SecretKey && found == kind {
        use std::os::unix::fs::PermissionsExt;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(FileErrorKind::SecretReadable { mode });
        }
    }
    #[cfg(not(unix))]
    let _ = found;
    Ok((file, metadata.len()))
}

/// The kind that the first bytes tell; the file is at its start afterwards.
fn first_kind(file: &mut File) -> std::io::Result<Option<Kind>> {
    let mut magic = Vec::new();
    Read::by_ref(file).take(8).read_to_end(&mut magic)?;
    file.rewind()?;
    Ok(Kind::of_magic(&magic))
}

/// The kind of a file by its magic; `None` if it is none of ours.
///
/// # Errors
/// If the file cannot be read.
pub fn kind_of(path: &Path) -> Result<Option<Kind>, FileError> {
    let read = || -> Result<Option<Kind>, FileErrorKind> { Ok(first_kind(&mut File::open(path)?)?) };
    read().map_err(|kind| FileError { path: path.to_path_buf(), kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_write_leaves_nothing_and_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_atomically(&path, Audience::Public, |w| Ok(w.write_all(b"old")?)).unwrap();
        let failing = write_atomically(&path, Audience::Public, |w| {
            w.write_all(b"new")?;
            Err(FileErrorKind::WrongHash)
        });
        assert!(failing.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn secret_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_atomically(&path, Audience::Owner, |w| Ok(w.write_all(b"one")?)).unwrap();
        let again = write_atomically(&path, Audience::Owner, |w| Ok(w.write_all(b"two")?)).unwrap_err();
        assert!(matches!(again.kind, FileErrorKind::Exists));
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }

    #[cfg(unix)]
    #[test]
    fn secret_is_for_the_owner_only_and_refused_otherwise() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_atomically(&path, Audience::Owner, |w| Ok(w.write_all(b"one")?)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(open(&path, Kind::SecretKey).is_ok());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(open(&path, Kind::SecretKey), Err(FileErrorKind::SecretReadable { mode: 0o640 })));
        fs::write(&path, Kind::EvaluationKeys.magic()).unwrap();
        assert!(open(&path, Kind::SecretKey).is_ok(), "no secret, so the decoder may say what it is");
    }
}
