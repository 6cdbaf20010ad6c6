//! The token file: who may use the server, how much, and until when. Tokens are kept as hashes only.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::ids::Owner;
use crate::store::whole::write_whole;

/// Most bytes of a token file.
const LIMIT: u64 = 16 << 20;
/// What a token begins with, so that scanners for leaked secrets find it.
const PREFIX: &str = "fhe_";

/// What one token may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Bytes of evaluation keys in the store.
    pub key_bytes: u64,
    /// Jobs that wait or run.
    pub queued_jobs: u32,
    /// Requests a minute.
    pub requests_per_minute: u32,
}

impl Quota {
    /// For whoever talks to a server without tokens: what the server as a whole allows.
    pub const NONE: Self = Self { key_bytes: u64::MAX, queued_jobs: u32::MAX, requests_per_minute: u32::MAX };
}

/// One token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Whose it is.
    pub name: Owner,
    /// Hash of the token, hexadecimal.
    pub hash: String,
    /// What it may use.
    pub quota: Quota,
    /// Seconds since 1970 after which it is refused.
    pub expires: Option<u64>,
}

impl Token {
    /// Whether it is refused for its age.
    pub fn is_expired(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= now())
    }
}

/// The content of a token file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    tokens: Vec<Token>,
}

/// Why a token file cannot be used or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The operating system refused.
    #[error("{}: cannot be read or written", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        #[source]
        cause: io::Error,
    },
    /// No token file.
    #[error("{}: is no token file", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        cause: serde_json::Error,
    },
    /// A name twice.
    #[error("there is a token {0} already: remove it first, or choose another name")]
    Taken(Owner),
    /// A name that means something else.
    #[error("the name {0} is for clients without a token: choose another name")]
    Reserved(Owner),
    /// No such name.
    #[error("there is no token {0}")]
    Unknown(Owner),
    /// The operating system has no randomness.
    #[error("no randomness: {0}")]
    Randomness(getrandom::Error),
}

impl Tokens {
    /// Reads a token file; none is an empty one.
    ///
    /// # Errors
    /// If it cannot be read or is malformed.
    pub fn load(path: &Path) -> Result<Self, TokenError> {
        let bytes = match fhe_host::read_bounded(path, LIMIT) {
            Ok(bytes) => bytes,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(cause) => return Err(TokenError::Io { path: path.to_path_buf(), cause }),
        };
        serde_json::from_slice(&bytes)
            .map_err(|cause| TokenError::Malformed { path: path.to_path_buf(), cause })
    }

    /// Writes a token file that only its owner can read.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), TokenError> {
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::other);
        let written = text.and_then(|text| write_whole(path, &text));
        written.map_err(|cause| TokenError::Io { path: path.to_path_buf(), cause })
    }

    /// Makes a token; this is the only time that it is seen.
    ///
    /// # Errors
    /// If the name is taken or reserved, or there is no randomness.
    pub fn add(&mut self, name: Owner, quota: Quota, expires: Option<u64>) -> Result<String, TokenError> {
        if name == Owner::anonymous() {
            return Err(TokenError::Reserved(name));
        }
        if self.tokens.iter().any(|token| token.name == name) {
            return Err(TokenError::Taken(name));
        }
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(TokenError::Randomness)?;
        let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let secret = format!("{PREFIX}{secret}");
        self.tokens.push(Token { name, hash: hash(&secret), quota, expires });
        Ok(secret)
    }

    /// Removes a token. Keys and jobs of its name stay in the store.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn remove(&mut self, name: &Owner) -> Result<(), TokenError> {
        let before = self.tokens.len();
        self.tokens.retain(|token| token.name != *name);
        if self.tokens.len() == before { Err(TokenError::Unknown(name.clone())) } else { Ok(()) }
    }

    /// All tokens.
    pub fn iter(&self) -> impl Iterator<Item = &Token> {
        self.tokens.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The token that `secret` is, expired or not.
    pub fn find(&self, secret: &str) -> Option<&Token> {
        // Hashes are compared, so the time it takes says nothing about a token.
        let hash = hash(secret);
        self.tokens.iter().find(|token| token.hash == hash)
    }
}

/// A token is 32 random bytes, so one round of a hash is as good as many.
fn hash(secret: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("fhe-serve 1 token");
    hasher.update(secret.as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTA: Quota = Quota { key_bytes: 1, queued_jobs: 2, requests_per_minute: 3 };

    fn name(text: &str) -> Owner {
        text.parse().unwrap()
    }

    #[test]
    fn tokens_are_found_by_themselves_and_kept_as_hashes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        let mut tokens = Tokens::load(&path).unwrap();
        let secret = tokens.add(name("clinic"), QUOTA, None).unwrap();
        tokens.add(name("other"), QUOTA, Some(0)).unwrap();
        tokens.save(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&secret) && !text.contains(&secret[PREFIX.len()..]));
        let read = Tokens::load(&path).unwrap();
        assert_eq!(read, tokens);
        assert_eq!(read.find(&secret).unwrap().name, name("clinic"));
        assert!(read.find("fhe_").is_none() && read.find("").is_none());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn names_are_unique_and_expiry_counts() {
        let mut tokens = Tokens::default();
        tokens.add(name("a"), QUOTA, Some(now() + 60)).unwrap();
        assert!(matches!(tokens.add(name("a"), QUOTA, None), Err(TokenError::Taken(_))));
        assert!(matches!(tokens.add(Owner::anonymous(), QUOTA, None), Err(TokenError::Reserved(_))));
        assert!(!tokens.iter().next().unwrap().is_expired());
        tokens.remove(&name("a")).unwrap();
        assert!(matches!(tokens.remove(&name("a")), Err(TokenError::Unknown(_))));
        tokens.add(name("a"), QUOTA, Some(now())).unwrap();
        assert!(tokens.iter().next().unwrap().is_expired());
    }
}
