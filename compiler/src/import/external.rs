//! Tensor data in files beside the model: only inside the model's folder, and never more than asked for.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use tract_onnx::pb::StringStringEntryProto;

/// The folder external data may come from.
#[derive(Debug)]
pub(super) struct ExternalData(Option<PathBuf>);

impl ExternalData {
    /// Files of a folder; without one a model has no external data.
    pub(super) fn new(folder: Option<&Path>) -> Self {
        ExternalData(folder.and_then(|folder| folder.canonicalize().ok()))
    }

    /// Reads the bytes a tensor refers to.
    pub(super) fn read(&self, entries: &[StringStringEntryProto]) -> Result<Vec<u8>, String> {
        let entry = |key: &str| entries.iter().find(|e| e.key == key).map(|e| e.value.as_str());
        let number = |key: &str| match entry(key) {
            None => Ok(None),
            Some(text) => {
                text.parse::<u64>().map(Some).map_err(|_| format!("has an external {key} of `{text}`"))
            }
        };
        let location = entry("location").ok_or("is external but has no location")?;
        let path = self.resolve(location)?;
        let offset = number("offset")?.unwrap_or(0);
        let unreadable =
            |e: std::io::Error| format!("is external data in `{location}`, which cannot be read: {e}");
        let mut file = File::open(path).map_err(unreadable)?;
        let available = file.metadata().map_err(unreadable)?.len().saturating_sub(offset);
        let length = number("length")?.unwrap_or(available);
        if length > available {
            return Err(format!(
                "asks for {length} bytes at {offset} of `{location}`, which has {available}"
            ));
        }
        file.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }

    fn resolve(&self, location: &str) -> Result<PathBuf, String> {
        let outside = || format!("is external data in `{location}`, outside the model's folder");
        let folder = self.0.as_ref().ok_or("is external data, but the model has no folder")?;
        let relative = Path::new(location);
        if !relative.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
            return Err(outside());
        }
        // The canonical path also sees through links that lead out of the folder.
        let path = folder
            .join(relative)
            .canonicalize()
            .map_err(|e| format!("is external data in `{location}`, which cannot be read: {e}"))?;
        if path.starts_with(folder) { Ok(path) } else { Err(outside()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(location: &str, offset: &str, length: &str) -> Vec<StringStringEntryProto> {
        [("location", location), ("offset", offset), ("length", length)]
            .map(|(key, value)| StringStringEntryProto { key: key.into(), value: value.into() })
            .to_vec()
    }

    #[test]
    fn only_files_inside_the_folder_are_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("model")).unwrap();
        std::fs::write(folder.path().join("model/w.bin"), b"0123456789").unwrap();
        std::fs::write(folder.path().join("secret.bin"), b"secret").unwrap();
        let data = ExternalData::new(Some(&folder.path().join("model")));
        assert_eq!(data.read(&entries("w.bin", "2", "3")).unwrap(), b"234");
        for (location, offset, length, expected) in [
            ("../secret.bin", "0", "6", "outside"),
            ("/etc/hostname", "0", "1", "outside"),
            ("missing.bin", "0", "1", "cannot be read"),
            ("w.bin", "8", "3", "which has 2"),
            ("w.bin", "-1", "3", "external offset"),
        ] {
            let error = data.read(&entries(location, offset, length)).unwrap_err();
            assert!(error.contains(expected), "{location}: {error}");
        }
    }
}
