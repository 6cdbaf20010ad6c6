//! Files on disk: written whole or not at all, secrets for the owner only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{Builder, NamedTempFile};

/// What is written, which decides who may read it and what it may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// For the owner only; never replaces a file.
    Secret,
    /// A large file that is made once; never replaces a file.
    New,
    /// A file that begins with these bytes; replaces only files that do, too.
    Magic(&'static [u8]),
    /// A text; replaces texts of its kind only, and none that begins with one of these.
    Text {
        /// What kind of text.
        kind: Text,
        /// How files begin that must not be lost to a text.
        spares: &'static [&'static [u8]],
    },
}

/// Kinds of texts, as far as their first characters tell them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// Begins with a bracket or a brace.
    Json,
    /// Begins with a tag.
    Html,
    /// Anything else that is neither a script nor an armored key.
    Lines,
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system refused.
    #[error("cannot be written: {0}")]
    Io(#[from] io::Error),
    /// There is no such folder.
    #[error("cannot be written: there is no folder {}", .0.display())]
    NoFolder(PathBuf),
    /// A key or a secret would replace a file.
    #[error("exists already, and is never overwritten")]
    Exists,
    /// A file of another kind would be lost.
    #[error("exists and is another kind of file: it is not replaced")]
    OtherKind,
}

/// Writes a file beside `path` and moves it there when `write` is done, so that no half-written file is ever seen. Links
/// are followed; pipes and devices are written to directly.
///
/// # Errors
/// If the file cannot be written or may not be replaced, or `write` fails; then nothing is left behind.
pub fn write_whole<E: From<WriteError>>(
    path: &Path,
    content: Content,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let path = &followed(path);
    let Some(folder) = checked_folder(path, content)? else { return write_through(path, write) };
    let mut file = new_file(folder, content).map_err(plain)?;
    let _unfinished = Unfinished::register(file.path());
    // A secret passes no buffer that is not erased afterwards.
    let capacity = if content == Content::Secret { 0 } else { 1 << 20 };
    let mut buffered = BufWriter::with_capacity(capacity, file.as_file_mut());
    write(&mut buffered)?;
    buffered.flush().map_err(plain)?;
    drop(buffered);
    file.as_file().sync_all().map_err(plain)?;
    match content {
        Content::Secret | Content::New => file.persist_noclobber(path).map_err(|e| match e.error.kind() {
            ErrorKind::AlreadyExists => WriteError::Exists,
            _ => plain(e.error),
        })?,
        Content::Magic(_) | Content::Text { .. } => file.persist(path).map_err(|e| plain(e.error))?,
    };
    written().push(path.to_path_buf());
    // The file is there; that its name survives a power cut is as much as can be tried.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Refuses at once what [`write_whole`] would refuse after hours of work: a folder that is not there or not writable, a file
/// that may not be replaced.
///
/// # Errors
/// As [`write_whole`]; nothing is left behind.
pub fn check_target(path: &Path, content: Content) -> Result<(), WriteError> {
    match checked_folder(&followed(path), content)? {
        Some(folder) => new_file(folder, content).map(drop).map_err(plain),
        None => Ok(()),
    }
}

/// The folder that a new file goes to, if the file may be there; none for a pipe or a device.
fn checked_folder(path: &Path, content: Content) -> Result<Option<&Path>, WriteError> {
    match fs::metadata(path) {
        // A pipe or a device can hold nothing that would be lost.
        Ok(found) if content == Content::Secret || content == Content::New && found.is_file() => {
            return Err(WriteError::Exists);
        }
        Ok(found) if found.is_file() => check_replaceable(path, content)?,
        Ok(found) if found.is_dir() => {
            return Err(WriteError::Io(io::Error::from(ErrorKind::IsADirectory)));
        }
        Ok(_) => return Ok(None),
        Err(_) => {}
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if folder.is_dir() { Ok(Some(folder)) } else { Err(WriteError::NoFolder(folder.to_path_buf())) }
}

/// Where a link points to, also if there is nothing yet.
fn followed(path: &Path) -> PathBuf {
    if let Ok(found) = fs::canonicalize(path) {
        return found;
    }
    match fs::read_link(path) {
        Ok(target) => path.parent().map_or(target.clone(), |folder| folder.join(target)),
        Err(_) => path.to_path_buf(),
    }
}

/// Refuses to replace a file of another kind; an empty file is of any kind.
fn check_replaceable(path: &Path, content: Content) -> Result<(), WriteError> {
    let mut first = Vec::new();
    // What its owner may write but not read tells no kind.
    let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut first));
    let is_same_kind = match content {
        Content::Secret | Content::New => false,
        Content::Magic(magic) => first.starts_with(magic),
        Content::Text { kind, spares } => {
            text_kind(&first) == Some(kind) && !spares.iter().any(|magic| first.starts_with(magic))
        }
    };
    if read.is_ok() && (first.is_empty() || is_same_kind) { Ok(()) } else { Err(WriteError::OtherKind) }
}

/// The kind of text that a file which begins so may be; a character may be cut at the end.
fn text_kind(first: &[u8]) -> Option<Text> {
    let is_utf8 = std::str::from_utf8(first).map_or_else(|e| e.error_len().is_none(), |_| true);
    if !is_utf8 || first.iter().any(|&byte| byte < b' ' && !b"\t\n\r".contains(&byte)) {
        return None;
    }
    match first.trim_ascii_start() {
        [b'{' | b'[', ..] => Some(Text::Json),
        [b'<', ..] => Some(Text::Html),
        // Scripts, and keys and certificates as text, are nobody's results.
        rest if rest.starts_with(b"#!") || rest.starts_with(b"-----") => None,
        _ => Some(Text::Lines),
    }
}

/// Writes to a pipe or device, which cannot be replaced.
fn write_through<E: From<WriteError>>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let file = OpenOptions::new().write(true).open(path).map_err(plain)?;
    let mut buffered = BufWriter::new(file);
    write(&mut buffered)?;
    buffered.flush().map_err(|e| plain(e).into())
}

/// A new file, created exclusively. Unix: mode 0600 for secrets; what the user's umask allows for the rest.
fn new_file(folder: &Path, content: Content) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".fhe-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = if content == Content::Secret { 0o600 } else { 0o666 };
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    let _ = content;
    builder.tempfile_in(folder)
}

/// The error without the name of a temporary file, which tells a user nothing.
fn plain(error: io::Error) -> WriteError {
    let text = error.to_string();
    WriteError::Io(match text.split_once(" at path ") {
        Some((reason, _)) => io::Error::new(error.kind(), reason.to_owned()),
        None => error,
    })
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

/// Files that were written whole, so that an interrupted process can say so.
static WRITTEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn written() -> MutexGuard<'static, Vec<PathBuf>> {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files with a part of the work, which the same command can go on from.
static RESUMABLE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn resumable() -> MutexGuard<'static, Vec<PathBuf>> {
    RESUMABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file with a part of the work, which an interrupted process leaves and speaks of, for as long as this lives.
#[derive(Debug)]
pub struct Resumable(PathBuf);

impl Resumable {
    /// Speaks of `path` from now on.
    pub fn register(path: &Path) -> Self {
        resumable().push(path.to_path_buf());
        Self(path.to_path_buf())
    }
}

impl Drop for Resumable {
    fn drop(&mut self) {
        resumable().retain(|path| *path != self.0);
    }
}

/// What an interrupted process leaves behind.
#[derive(Debug, Clone, Copy)]
pub struct Left<'a> {
    /// Files that were written whole.
    pub written: &'a [PathBuf],
    /// Files with a part of the work.
    pub resumable: &'a [PathBuf],
}

/// From now on Ctrl-C and SIGTERM remove every file that is being written, call `say` with what is left, and end the
/// process with `code`.
///
/// # Errors
/// If the operating system does not allow it; says what that means.
pub fn exit_on_interrupt(code: u8, say: impl Fn(Left<'_>) + Send + 'static) -> Result<(), String> {
    let handler = ctrlc::set_handler(move || {
        for path in unfinished().iter() {
            // A file that is gone already needs no removal.
            let _ = fs::remove_file(path);
        }
        say(Left { written: &written(), resumable: &resumable() });
        std::process::exit(i32::from(code));
    });
    handler.map_err(|error| format!("Ctrl-C may leave temporary files: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: Content = Content::Magic(b"magic");
    const TEXT: Content = Content::Text { kind: Text::Json, spares: &[b"fhe-"] };
    const LINES: Content = Content::Text { kind: Text::Lines, spares: &[b"fhe-"] };

    fn write(path: &Path, content: Content, data: &[u8]) -> Result<(), WriteError> {
        write_whole(path, content, |file| Ok(file.write_all(data)?))
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        (folder, path)
    }

    #[test]
    fn failed_write_leaves_nothing_and_keeps_the_old_file() {
        let (folder, path) = folder();
        write(&path, MAGIC, b"magic old").unwrap();
        let failing = write_whole(&path, MAGIC, |file| {
            file.write_all(b"magic new").map_err(WriteError::Io)?;
            Err(WriteError::OtherKind)
        });
        assert!(failing.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"magic old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn secret_is_never_overwritten() {
        let (_folder, path) = folder();
        write(&path, Content::Secret, b"one").unwrap();
        for content in [Content::Secret, MAGIC] {
            assert!(write(&path, content, b"two").is_err());
        }
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }

    #[test]
    fn only_files_of_the_same_kind_are_replaced() {
        let (_folder, path) = folder();
        fs::write(&path, "").unwrap();
        write(&path, MAGIC, b"magic").unwrap();
        write(&path, MAGIC, b"magic again").unwrap();
        fs::write(&path, "fhe-evk\n and more").unwrap();
        assert!(matches!(write(&path, MAGIC, b"magic"), Err(WriteError::OtherKind)));
        assert!(matches!(write(&path, TEXT, b"{}"), Err(WriteError::OtherKind)));
        fs::write(&path, b"\x89PNG\r\n\x1a\n").unwrap();
        assert!(matches!(write(&path, TEXT, b"{}"), Err(WriteError::OtherKind)));
        for other in ["a,b\n1,2\n", "<!doctype html>", "#!/bin/sh\n", "-----BEGIN PRIVATE KEY"] {
            fs::write(&path, other).unwrap();
            assert!(matches!(write(&path, TEXT, b"{}"), Err(WriteError::OtherKind)), "{other}");
            let is_lines = other.starts_with('a');
            assert_eq!(check_target(&path, LINES).is_ok(), is_lines, "{other}");
        }
        fs::write(&path, "{\"Gr\u{f6}\u{df}e\"").unwrap();
        write(&path, TEXT, b"[]").unwrap();
        assert!(matches!(write(&path, Content::New, b"keys"), Err(WriteError::Exists)));
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_devices_stay_devices() {
        let (folder, path) = folder();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("a", &link).unwrap();
        for data in [b"one", b"two"] {
            write(&link, LINES, data).unwrap();
            assert_eq!(fs::read(&path).unwrap(), data);
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        write(Path::new("/dev/null"), MAGIC, b"magic").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_target_is_refused_before_the_work_and_left_as_it_is() {
        let (folder, path) = folder();
        check_target(&path, MAGIC).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
        fs::write(&path, "another kind").unwrap();
        assert!(matches!(check_target(&path, MAGIC), Err(WriteError::OtherKind)));
        assert!(matches!(check_target(&path, Content::Secret), Err(WriteError::Exists)));
        let nowhere = folder.path().join("no/a");
        assert!(matches!(check_target(&nowhere, TEXT), Err(WriteError::NoFolder(_))));
        assert!(check_target(folder.path(), TEXT).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"another kind");
    }

    #[test]
    fn missing_folder_is_named() {
        let (folder, _) = folder();
        let error = write(&folder.path().join("no/a"), MAGIC, b"magic").unwrap_err().to_string();
        assert!(error.starts_with("cannot be written: there is no folder"), "{error}");
    }
}
