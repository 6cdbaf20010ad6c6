//! Who may: tokens from a file that may change while the server runs, and a bound on requests a minute.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::ids::Owner;
use crate::tokens::{Quota, TokenError, Tokens};

/// How often the token file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Who is allowed in.
#[derive(Debug)]
pub struct Access {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Whether clients without a token are served: not any more once there was a token.
    is_open: bool,
    tokens: Tokens,
    changed: Option<SystemTime>,
    looked: Instant,
    buckets: BTreeMap<Owner, Bucket>,
}

/// Requests that a client may still make.
#[derive(Debug)]
struct Bucket {
    left: f64,
    filled: Instant,
}

/// A client that was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Whose keys and jobs it sees.
    pub owner: Owner,
    /// What it may use.
    pub quota: Quota,
}

/// Why a client is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// No token.
    Missing,
    /// None of ours.
    Unknown,
    /// Too old.
    Expired,
    /// Too many requests; seconds until the next one.
    TooMany(u64),
}

impl Access {
    /// Reads the token file. Clients without a token are let in only if `is_open` and there is no token at all.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn new(path: &Path, is_open: bool) -> Result<Self, TokenError> {
        let (changed, tokens) = (modified(path), Tokens::load(path)?);
        let is_open = is_open && tokens.is_empty();
        let state = State { is_open, tokens, changed, looked: Instant::now(), buckets: BTreeMap::new() };
        Ok(Self { path: path.to_path_buf(), state: Mutex::new(state) })
    }

    /// Whether there is any token.
    pub fn has_tokens(&self) -> bool {
        !self.state.lock().unwrap_or_else(PoisonError::into_inner).tokens.is_empty()
    }

    /// Lets the holder of a token in, and counts the request.
    ///
    /// # Errors
    /// Why not.
    pub fn enter(&self, token: Option<&str>) -> Result<Caller, Denied> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.look_again(&mut state);
        if state.is_open {
            return Ok(Caller { owner: Owner::anonymous(), quota: Quota::NONE });
        }
        let token = state.tokens.find(token.ok_or(Denied::Missing)?).ok_or(Denied::Unknown)?;
        if token.is_expired() {
            return Err(Denied::Expired);
        }
        let caller = Caller { owner: token.name.clone(), quota: token.quota };
        state.count(&caller)?;
        Ok(caller)
    }

    /// A token that is added or removed counts within a second; a file that cannot be read changes nothing.
    fn look_again(&self, state: &mut State) {
        if state.looked.elapsed() < LOOK_EVERY {
            return;
        }
        state.looked = Instant::now();
        let changed = modified(&self.path);
        if changed != state.changed {
            match Tokens::load(&self.path) {
                Ok(tokens) => {
                    state.is_open &= tokens.is_empty();
                    (state.tokens, state.changed) = (tokens, changed);
                }
                Err(error) => {
                    tracing::warn!(%error, "the token file cannot be read; the tokens stay as they were")
                }
            }
        }
    }
}

impl State {
    /// A minute's requests at once at most, then one after the other.
    fn count(&mut self, caller: &Caller) -> Result<(), Denied> {
        let most = f64::from(caller.quota.requests_per_minute);
        let now = Instant::now();
        let bucket = self.buckets.entry(caller.owner.clone()).or_insert(Bucket { left: most, filled: now });
        let seconds = (now - bucket.filled).as_secs_f64();
        bucket.left = (bucket.left + seconds * most / 60.0).min(most);
        bucket.filled = now;
        if bucket.left < 1.0 {
            let wait = (1.0 - bucket.left) * 60.0 / most.max(1e-9);
            return Err(Denied::TooMany(wait.ceil().clamp(1.0, 3600.0) as u64));
        }
        bucket.left -= 1.0;
        Ok(())
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|file| file.modified()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::now;

    fn access(requests_per_minute: u32, expires: Option<u64>) -> (tempfile::TempDir, Access, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        let mut tokens = Tokens::default();
        let quota = Quota { key_bytes: 1, queued_jobs: 1, requests_per_minute };
        let secret = tokens.add("clinic".parse().unwrap(), quota, expires).unwrap();
        tokens.save(&path).unwrap();
        let access = Access::new(&path, true).unwrap();
        (folder, access, secret)
    }

    #[test]
    fn only_holders_of_a_token_get_in_where_there_are_tokens() {
        let (_folder, access, secret) = access(10, None);
        assert_eq!(access.enter(Some(&secret)).unwrap().owner, "clinic".parse().unwrap());
        assert_eq!(access.enter(None), Err(Denied::Missing));
        assert_eq!(access.enter(Some("fhe_0")), Err(Denied::Unknown));
    }

    #[test]
    fn an_old_token_is_refused() {
        let (_folder, access, secret) = access(10, Some(now()));
        assert_eq!(access.enter(Some(&secret)), Err(Denied::Expired));
    }

    #[test]
    fn requests_a_minute_are_bounded() {
        let (_folder, access, secret) = access(3, None);
        for _ in 0..3 {
            access.enter(Some(&secret)).unwrap();
        }
        assert!(matches!(access.enter(Some(&secret)), Err(Denied::TooMany(1..=20))));
    }

    #[test]
    fn removing_the_last_token_opens_nothing() {
        let (folder, access, secret) = access(10, None);
        Tokens::default().save(&folder.path().join("tokens.json")).unwrap();
        access.state.lock().unwrap().looked = Instant::now() - 2 * LOOK_EVERY;
        access.state.lock().unwrap().changed = None;
        assert_eq!(access.enter(Some(&secret)), Err(Denied::Unknown));
        assert_eq!(access.enter(None), Err(Denied::Missing));
    }

    #[test]
    fn without_tokens_a_server_is_open_or_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        assert_eq!(Access::new(&path, true).unwrap().enter(None).unwrap().owner, Owner::anonymous());
        assert_eq!(Access::new(&path, false).unwrap().enter(None), Err(Denied::Missing));
    }
}
