//! Keeps panics of foreign code from ending the program.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the current thread runs foreign code whose panics are caught; a panic hook keeps silent then.
pub fn is_contained() -> bool {
    CONTAINED.get()
}

/// Runs `f`; a panic becomes its message.
pub fn contain<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    let before = CONTAINED.replace(true);
    // What `f` leaves half-done is dropped with it: callers give it nothing that outlives an error.
    let result = catch_unwind(AssertUnwindSafe(f));
    CONTAINED.set(before);
    result.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(contain(|| 3), Ok(3));
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| assert!(is_contained())));
        let caught = contain(|| -> i32 { panic!("foreign trouble {}", 1) });
        std::panic::set_hook(hook);
        assert_eq!(caught, Err("foreign trouble 1".into()));
        assert!(!is_contained());
    }
}
