//! Stopping an evaluation from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says that a result is no longer wanted. Clones say it together; an evaluation looks between instructions and for every
/// plaintext of a linear map.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Says it.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was said.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
