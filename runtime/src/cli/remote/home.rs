//! The user's folder: a secret key for every program, and which program each server had.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};

use fhe_bytecode::Fingerprint;
use fhe_host::{Content, Text, WriteError, write_whole};

use super::RemoteError;
use super::server::hex;

/// A folder that only its owner can read.
pub(super) struct Home {
    folder: PathBuf,
}

impl Home {
    /// The folder that is named, or the user's own.
    pub(super) fn open(named: Option<&Path>) -> Result<Self, RemoteError> {
        let folder = match named {
            Some(folder) => folder.to_path_buf(),
            None => default_folder().ok_or(RemoteError::NoHome)?,
        };
        let home = Self { folder };
        home.make("keys")?;
        home.make("servers")?;
        Ok(home)
    }

    /// Where the secret key of a program is, or will be.
    pub(super) fn secret_key(&self, program: Fingerprint) -> Result<PathBuf, RemoteError> {
        Ok(self.make(&format!("keys/{}", hex(&program.0)))?.join("secret.key"))
    }

    /// Where evaluation keys of a program wait until the server has them.
    pub(super) fn evaluation_keys(&self, program: Fingerprint) -> Result<PathBuf, RemoteError> {
        Ok(self.make(&format!("keys/{}", hex(&program.0)))?.join("evaluation.evk"))
    }

    /// The program that a server had last time.
    pub(super) fn known(&self, url: &str) -> Result<Option<String>, RemoteError> {
        let path = self.server(url);
        match fhe_host::read_bounded(&path, 4096) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let is_hash = |line: &&str| line.len() == 64 && line.bytes().all(|b| b.is_ascii_hexdigit());
                Ok(text.lines().find(is_hash).map(str::to_owned))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(RemoteError::Home { path, cause }),
        }
    }

    /// Keeps the program that a server has.
    pub(super) fn remember(&self, url: &str, program: &str) -> Result<(), RemoteError> {
        let path = self.server(url);
        let text = format!("{url}\n{program}\n");
        let written = write_whole(&path, Content::Text { kind: Text::Lines, spares: &[] }, |file| {
            file.write_all(text.as_bytes()).map_err(WriteError::Io)
        });
        written.map_err(|error| RemoteError::Home { path, cause: io::Error::other(error) })
    }

    fn server(&self, url: &str) -> PathBuf {
        // An address is no name of a file; letters and digits of it are for people, the rest tells them apart.
        let name: String = url.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let tail: u32 = url.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33) ^ u32::from(byte));
        self.folder.join(format!("servers/{}-{tail:08x}", &name[..name.len().min(80)]))
    }

    fn make(&self, name: &str) -> Result<PathBuf, RemoteError> {
        let path = self.folder.join(name);
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(|cause| RemoteError::Home { path: path.clone(), cause })?;
        Ok(path)
    }

    /// Removes a file that is not needed any more.
    pub(super) fn remove(path: &Path) -> Result<(), RemoteError> {
        match fs::remove_file(path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(RemoteError::Home { path: path.to_path_buf(), cause })
            }
            _ => Ok(()),
        }
    }
}

fn default_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config =
        set("XDG_CONFIG_HOME").or_else(|| set("APPDATA")).or_else(|| Some(set("HOME")?.join(".config")));
    Some(config?.join("fhec"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_apart_and_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(Some(folder.path())).unwrap();
        let (a, b) = ("http://a.example:80/x", "http://a.example:80-x");
        assert_eq!(home.known(a).unwrap(), None);
        home.remember(a, &"0".repeat(64)).unwrap();
        home.remember(b, &"1".repeat(64)).unwrap();
        home.remember(a, &"2".repeat(64)).unwrap();
        assert_eq!(home.known(a).unwrap(), Some("2".repeat(64)));
        assert_eq!(home.known(b).unwrap(), Some("1".repeat(64)));
    }

    #[cfg(unix)]
    #[test]
    fn the_folder_of_keys_is_for_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(Some(&folder.path().join("new"))).unwrap();
        let path = home.secret_key(Fingerprint([7; 32])).unwrap();
        let mode = fs::metadata(path.parent().unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
