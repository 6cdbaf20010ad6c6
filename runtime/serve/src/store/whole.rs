//! Files that are there completely or not at all, whatever ends the process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// What unfinished files begin with; nothing else in a store does.
pub(crate) const UNFINISHED: &str = ".unfinished-";

/// Replaces a file by `bytes`; its owner alone can read it.
///
/// # Errors
/// If the operating system refuses; the old file is still there then.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = folder_of(path);
    let temporary = folder.join(format!("{UNFINISHED}{}-{number}", std::process::id()));
    let written = new_private(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    match written.and_then(|()| fs::rename(&temporary, path)) {
        Ok(()) => sync_folder(folder),
        Err(error) => {
            // What could not be written needs no name; the first error is the one to tell.
            let _ = fs::remove_file(&temporary);
            Err(error)
        }
    }
}

/// Moves a finished file to its name, so that it is there after a power cut, too.
///
/// # Errors
/// If the operating system refuses.
pub(crate) fn publish(from: &Path, to: &Path) -> io::Result<()> {
    File::open(from)?.sync_all()?;
    fs::rename(from, to)?;
    sync_folder(folder_of(to))
}

/// A new, empty file for its owner alone; an old one of that name is emptied.
pub(crate) fn new_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    private(&mut options).open(path)
}

/// Sets the mode of files that `options` makes.
pub(crate) fn private(options: &mut OpenOptions) -> &OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    // Windows has no such call, and its renames need none.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
