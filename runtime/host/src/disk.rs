//! Space on the disk of a file.

use std::path::Path;

/// Bytes that a user may still write on the disk where `path` is or would be; nothing where that is not told.
#[cfg(all(unix, feature = "files"))]
pub fn free_disk_bytes(path: &Path) -> Option<u64> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let disk = nix::sys::statvfs::statvfs(folder).ok()?;
    // The types of both differ between systems.
    #[allow(clippy::useless_conversion)]
    let bytes = u64::from(disk.blocks_available()).saturating_mul(u64::from(disk.fragment_size()));
    Some(bytes)
}

/// Bytes that a user may still write on the disk where `path` is or would be; nothing where that is not told.
#[cfg(not(all(unix, feature = "files")))]
pub fn free_disk_bytes(_path: &Path) -> Option<u64> {
    None
}

#[cfg(all(test, unix, feature = "files"))]
mod tests {
    use super::*;

    #[test]
    fn the_disk_of_a_new_file_is_that_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_disk_bytes(&folder.path().join("new")).is_some_and(|bytes| bytes > 0));
        assert_eq!(free_disk_bytes(&folder.path().join("no/new")), None);
    }
}
