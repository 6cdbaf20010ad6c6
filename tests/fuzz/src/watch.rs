//! What must be said of an execution that does not come back: its number, and where it panicked.

use std::any::Any;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fhe_host::memory::processor_seconds;

/// Time after which the whole run is given up.
const LAST_PATIENCE: Duration = Duration::from_secs(120);

/// Ends the process when one execution does not end, and says which. What ends it otherwise, such as a stack overflow,
/// leaves the number of the execution in a file.
pub(crate) struct Watch {
    index: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
    note: File,
    note_path: PathBuf,
}

impl Watch {
    pub(crate) fn start(name: &'static str, seed: u64, folder: &Path) -> std::io::Result<Self> {
        let note_path = folder.join(format!("{name}-{seed}-running.txt"));
        let note = File::create(&note_path)?;
        let watch = Self { index: Arc::new(AtomicU64::new(u64::MAX)), done: Arc::default(), note, note_path };
        let (index, done) = (Arc::clone(&watch.index), Arc::clone(&watch.done));
        std::thread::spawn(move || {
            // Processor time, where it is known: a process that is stopped does not hang.
            let began = Instant::now();
            let now = || processor_seconds().unwrap_or_else(|| began.elapsed().as_secs_f64());
            let (mut last, mut since) = (u64::MAX, now());
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(500));
                let running = index.load(Ordering::Relaxed);
                if running != last {
                    (last, since) = (running, now());
                } else if now() - since > LAST_PATIENCE.as_secs_f64() {
                    eprintln!("{name}: execution {running} of seed {seed} does not end");
                    std::process::exit(1);
                }
            }
        });
        Ok(watch)
    }

    /// Notes which execution runs.
    pub(crate) fn begin(&self, index: u64) -> std::io::Result<()> {
        self.index.store(index, Ordering::Relaxed);
        // One call each: an execution takes some microseconds.
        (&self.note).rewind()?;
        (&self.note).write_all(format!("execution {index:20}\n").as_bytes())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        // The run came to its end: nothing to tell.
        let _ = std::fs::remove_file(&self.note_path);
    }
}

/// Where the last panic was.
static PLACE: Mutex<String> = Mutex::new(String::new());

/// Keeps panics silent and remembers their place, until dropped.
pub(crate) struct PanicHook;

impl PanicHook {
    pub(crate) fn install() -> Self {
        std::panic::set_hook(Box::new(|info| {
            if let (Some(at), Ok(mut place)) = (info.location(), PLACE.lock()) {
                *place = format!("{}:{}", at.file(), at.line());
            }
        }));
        Self
    }
}

impl Drop for PanicHook {
    fn drop(&mut self) {
        drop(std::panic::take_hook());
    }
}

/// A panic's place and words, without its numbers.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    // Numbers differ from input to input.
    let words: String = text.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).take(120).collect();
    let place = PLACE.lock().map(|place| place.clone()).unwrap_or_default();
    format!("{place}: {words}")
}
