//! Large word buffers that are used again instead of going back to the operating system.
//!
//! Polynomials are megabytes, and every operation makes a few. Fresh pages cost a fault each, which
//! takes as long as the arithmetic; so a dropped buffer waits in a pool until one of its size is asked for.
//! Whoever holds a secret in a buffer erases it before dropping it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

use aligned_vec::{AVec, ConstAlign};

/// Bytes that may wait in the pool; beyond that, buffers are freed.
pub const POOL_BYTES: usize = if cfg!(target_arch = "wasm32") { 1 << 25 } else { 1 << 30 };
/// Smaller buffers are not worth the lock.
const MIN_POOLED_WORDS: usize = 1 << 12;

type Words = AVec<u64, ConstAlign<64>>;

static POOL: Mutex<Pool> = Mutex::new(Pool { classes: BTreeMap::new(), bytes: 0, clock: 0 });

/// Waiting buffers by capacity.
struct Pool {
    classes: BTreeMap<usize, Class>,
    bytes: usize,
    clock: u64,
}

#[derive(Default)]
struct Class {
    waiting: Vec<Words>,
    last_used: u64,
}

impl Pool {
    /// A waiting buffer of at least `len` words and at most half as much again.
    fn take(&mut self, len: usize) -> Option<Words> {
        self.clock += 1;
        let fitting = self.classes.range_mut(len..=len + len / 2);
        let (capacity, class) = fitting.into_iter().find(|(_, class)| !class.waiting.is_empty())?;
        class.last_used = self.clock;
        self.bytes -= capacity * 8;
        class.waiting.pop()
    }

    /// Keeps a buffer; the size that was not used for longest makes room. Returns what is to be freed.
    fn put(&mut self, words: Words) -> Vec<Words> {
        self.clock += 1;
        let capacity = words.capacity();
        let class = self.classes.entry(capacity).or_default();
        class.last_used = self.clock;
        class.waiting.push(words);
        self.bytes += capacity * 8;
        let mut surplus = Vec::new();
        while self.bytes > POOL_BYTES {
            let idle = self.classes.iter().filter(|(_, class)| !class.waiting.is_empty());
            let Some((&capacity, _)) = idle.min_by_key(|(_, class)| class.last_used) else { break };
            surplus.extend(self.classes.get_mut(&capacity).and_then(|class| class.waiting.pop()));
            self.bytes -= capacity * 8;
        }
        surplus
    }
}

/// Words that start at a cache line.
#[derive(Debug, PartialEq, Eq)]
pub struct Buffer(Words);

impl Buffer {
    /// A buffer with arbitrary contents, for whoever writes every word.
    pub fn unset(len: usize) -> Self {
        if len < MIN_POOLED_WORDS {
            return Self::fresh(len);
        }
        let waiting = POOL.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take(len);
        match waiting {
            Some(mut words) => {
                words.resize(len, 0);
                Self(words)
            }
            None => Self::fresh(len),
        }
    }

    /// A buffer of zeros.
    pub fn zeroed(len: usize) -> Self {
        let mut buffer = Self::unset(len);
        buffer.fill(0);
        buffer
    }

    /// A copy of `words`.
    pub fn copy_of(words: &[u64]) -> Self {
        let mut buffer = Self::unset(words.len());
        buffer.copy_from_slice(words);
        buffer
    }

    /// Forgets the words from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    fn fresh(len: usize) -> Self {
        let mut words = AVec::with_capacity(64, len);
        words.resize(len, 0);
        Self(words)
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self::copy_of(self)
    }
}

impl Deref for Buffer {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.0.capacity() < MIN_POOLED_WORDS {
            return;
        }
        let words = std::mem::replace(&mut self.0, AVec::new(64));
        let surplus = POOL.lock().unwrap_or_else(std::sync::PoisonError::into_inner).put(words);
        // Freed after the lock is released.
        drop(surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_buffer_comes_back_zeroed_and_with_the_right_length() {
        for len in [1 << 12, 5000, 1 << 13] {
            let mut buffer = Buffer::zeroed(len);
            buffer.fill(7);
            drop(buffer);
            let again = Buffer::zeroed(len - 100);
            assert_eq!(again.len(), len - 100);
            assert!(again.iter().all(|&word| word == 0));
        }
    }

    #[test]
    fn buffers_start_at_a_cache_line() {
        for len in [1, 100, 10_000] {
            assert_eq!(Buffer::unset(len).as_ptr() as usize % 64, 0);
        }
    }
}
