//! Files on disk: written whole or not at all, secrets for the owner only.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use fhe_host::{Content, WriteError, write_whole};

use super::error::{FileError, FileErrorKind};
use super::header::Kind;

/// Writes a file that is there completely or not at all; see [`write_whole`].
///
/// # Errors
/// If the file cannot be written, or `write` fails; then nothing is left behind.
pub fn write_atomically(
    path: &Path,
    content: Content,
    write: impl FnOnce(&mut dyn Write) -> Result<(), FileErrorKind>,
) -> Result<(), FileError> {
    write_whole(path, content, write).map_err(|kind| {
        let kind = match kind {
            FileErrorKind::Io(error) => FileErrorKind::Write(WriteError::Io(error)),
            other => other,
        };
        FileError { path: path.to_path_buf(), kind }
    })
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
    use std::fs;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn secret_is_for_the_owner_only_and_refused_otherwise() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_atomically(&path, Content::Secret, |w| Ok(w.write_all(b"one")?)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(open(&path, Kind::SecretKey).is_ok());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(open(&path, Kind::SecretKey), Err(FileErrorKind::SecretReadable { mode: 0o640 })));
        fs::write(&path, Kind::EvaluationKeys.magic()).unwrap();
        assert!(open(&path, Kind::SecretKey).is_ok(), "no secret, so the decoder may say what it is");
    }
}
