//! Tensor data in files beside the model.
//!
//! A model may name a file of its own folder and nothing else: one plain name that does not start with a dot, of a regular
//! file that is no link. Anything wider lets a model's author put a file of its user into the program that is built from
//! it; so does a key that lies there, and no key is read, nor any other file of ours. A file is read only where it has exactly
//! the bytes a tensor needs, and all of them together stay below a limit.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use fhe_diagnostics::OUR_FILES;
use fhec_onnx::StringStringEntryProto;

use super::limits::MAX_FILE_LEN;

/// How keys of other programs begin.
const ARMORED: &[u8] = b"-----BEGIN";
/// Bytes that tell such a file, or one of ours.
const LONGEST_MAGIC: u64 = 16;

/// The folder external data may come from, and how much of it still may.
#[derive(Debug)]
pub(super) struct ExternalData {
    folder: Option<PathBuf>,
    left: u64,
}

impl ExternalData {
    /// Files of a folder; without one a model has no external data.
    pub(super) fn new(folder: Option<&Path>) -> Self {
        ExternalData { folder: folder.map(Path::to_owned), left: MAX_FILE_LEN }
    }

    /// Reads the bytes a tensor refers to, which must be `wanted` many.
    pub(super) fn read(
        &mut self,
        entries: &[StringStringEntryProto],
        wanted: u64,
    ) -> Result<Vec<u8>, String> {
        let entry = |key: &str| entries.iter().find(|e| e.key == key).map(|e| e.value.as_str());
        let number = |key: &str| match entry(key) {
            None => Ok(None),
            Some(text) => {
                text.parse::<u64>().map(Some).map_err(|_| format!("has an external {key} of `{text}`"))
            }
        };
        let location = entry("location").ok_or("is external but has no location")?;
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
        if length.is_some_and(|length| length != wanted) {
            return Err(format!(
                "needs {wanted} bytes, but says that `{location}` has another number of them"
            ));
        }
        if wanted > self.left {
            return Err(format!(
                "is external data in `{location}`: the files beside a model may hold {MAX_FILE_LEN} bytes in all"
            ));
        }
        let unreadable =
            |e: std::io::Error| format!("is external data in `{location}`, which cannot be read: {e}");
        let mut file = self.open(location)?;
        let available = file.metadata().map_err(unreadable)?.len().saturating_sub(offset);
        if wanted > available || (length.is_none() && wanted != available) {
            return Err(format!(
                "needs {wanted} bytes from {offset} of `{location}`, which has {available} there"
            ));
        }
        self.left -= wanted;
        file.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(wanted).read_to_end(&mut bytes).map_err(unreadable)?;
        match bytes.len() as u64 == wanted {
            true => Ok(bytes),
            false => Err(format!("is external data in `{location}`, which became shorter")),
        }
    }

    /// Opens a file of the folder.
    fn open(&self, location: &str) -> Result<File, String> {
        let folder = self.folder.as_ref().ok_or("is external data, but the model has no folder")?;
        let is_plain =
            !location.is_empty() && !location.starts_with('.') && !location.contains(['/', '\\', ':', '\0']);
        if !is_plain {
            return Err(format!("is external data in `{location}`, {OUTSIDE}"));
        }
        let path = folder.join(location);
        let unreadable =
            |e: std::io::Error| format!("is external data in `{location}`, which cannot be read: {e}");
        // Looked at before it is opened: opening a pipe would wait for a writer.
        let named = path.symlink_metadata().map_err(unreadable)?;
        if !named.is_file() {
            return Err(format!("is external data in `{location}`, which is a link or no regular file"));
        }
        let mut file = File::open(&path).map_err(unreadable)?;
        let opened = file.metadata().map_err(unreadable)?;
        if !is_same(&named, &opened) {
            return Err(format!("is external data in `{location}`, which was replaced while it was opened"));
        }
        let mut first = Vec::new();
        Read::by_ref(&mut file).take(LONGEST_MAGIC).read_to_end(&mut first).map_err(unreadable)?;
        match OUR_FILES.iter().chain(&[ARMORED]).any(|magic| first.starts_with(magic)) {
            true => {
                Err(format!("is external data in `{location}`, which is a key, a ciphertext or a program"))
            }
            false => Ok(file),
        }
    }
}

/// Why a location is refused by its spelling.
pub(crate) const OUTSIDE: &str = "which is not the plain name of a file in the model's folder";

#[cfg(unix)]
fn is_same(a: &std::fs::Metadata, b: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn is_same(a: &std::fs::Metadata, b: &std::fs::Metadata) -> bool {
    b.is_file() && a.len() == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(location: &str, offset: &str, length: &str) -> Vec<StringStringEntryProto> {
        let given = [("location", location), ("offset", offset), ("length", length)];
        let given = given.into_iter().filter(|(_, value)| !value.is_empty());
        given.map(|(key, value)| StringStringEntryProto { key: key.into(), value: value.into() }).collect()
    }

    #[test]
    fn only_plain_files_of_the_folder_are_read() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("model");
        std::fs::create_dir_all(folder.join(".ssh")).unwrap();
        std::fs::create_dir(folder.join("sub")).unwrap();
        let inside = ["w.bin", ".hidden", ".ssh/id_x", "sub/w.bin"];
        for name in inside {
            std::fs::write(folder.join(name), b"0123456789").unwrap();
        }
        std::fs::write(outer.path().join("secret.bin"), b"0123456789").unwrap();
        std::fs::write(folder.join("me.key"), b"fhe-sec\n0123456789").unwrap();
        std::fs::write(folder.join("me.pem"), b"-----BEGIN 0123456789").unwrap();
        let mut data = ExternalData::new(Some(&folder));
        assert_eq!(data.read(&entries("w.bin", "2", "3"), 3).unwrap(), b"234");
        assert_eq!(data.read(&entries("w.bin", "7", ""), 3).unwrap(), b"789");
        let absolute = outer.path().join("secret.bin");
        for (location, offset, length, expected) in [
            ("../secret.bin", "0", "3", OUTSIDE),
            (absolute.to_str().unwrap(), "0", "3", OUTSIDE),
            (".hidden", "0", "3", OUTSIDE),
            (".ssh/id_x", "0", "3", OUTSIDE),
            ("sub/w.bin", "0", "3", OUTSIDE),
            ("./w.bin", "0", "3", OUTSIDE),
            ("", "0", "3", "no location"),
            ("sub", "0", "3", "no regular file"),
            ("missing.bin", "0", "3", "cannot be read"),
            ("me.key", "9", "3", "which is a key"),
            ("me.pem", "12", "3", "which is a key"),
            ("w.bin", "8", "3", "which has 2 there"),
            ("w.bin", "-1", "3", "external offset"),
            ("w.bin", "0", "4", "another number"),
            ("w.bin", "0", "", "which has 10 there"),
        ] {
            let error = data.read(&entries(location, offset, length), 3).unwrap_err();
            assert!(error.contains(expected), "{location}: {error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_and_pipes_are_refused_without_opening_them() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("w.bin"), b"0123456789").unwrap();
        std::os::unix::fs::symlink("w.bin", folder.path().join("link")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
        let mut data = ExternalData::new(Some(folder.path()));
        for location in ["link", "pipe"] {
            if location == "pipe" && !made.as_ref().is_ok_and(|status| status.success()) {
                continue;
            }
            let error = data.read(&entries(location, "0", "3"), 3).unwrap_err();
            assert!(error.contains("no regular file"), "{location}: {error}");
        }
    }

    #[test]
    fn the_files_are_bounded_in_sum() {
        let folder = tempfile::tempdir().unwrap();
        let big = File::create(folder.path().join("big.bin")).unwrap();
        big.set_len(MAX_FILE_LEN + 1).unwrap();
        let mut data = ExternalData::new(Some(folder.path()));
        data.left = 10;
        assert_eq!(data.read(&entries("big.bin", "0", "6"), 6).unwrap(), [0; 6]);
        let error = data.read(&entries("big.bin", "0", "6"), 6).unwrap_err();
        assert!(error.contains("bytes in all"), "{error}");
    }
}
