//! What commands write: files, a summary of a build, and numbers of bytes as people give them.

use std::io::Write;
use std::path::Path;

use crate::diagnostics::{Diagnostic, Kind};
use crate::report::BuildReport;

/// Writes a file that is there completely or not at all.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let written = builder.tempfile_in(folder).and_then(|mut file| {
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|e| e.error)
    });
    written.map_err(|e| Diagnostic::new(Kind::Cannot, format!("{}: cannot be written: {e}", path.display())))
}

pub(super) fn summary(report: &BuildReport, path: &Path) -> String {
    let security = match (report.secure, report.security_margin_bits) {
        (true, Some(margin)) => format!("128-bit security with {margin:.0} bits to spare"),
        (false, Some(margin)) => format!("WARNING: {:.0} bits beyond the 128-bit bound: not secure", -margin),
        _ => "WARNING: a toy ring, protects nothing".to_owned(),
    };
    format!(
        "{}: {} levels, N = {}, log2(PQ) = {:.0}, {security}\n\
         {} layout, {} rotation keys ({:.2} GiB), plaintexts {:.2} GiB, about {:.1} core-seconds\n\
         expected error {:.2e} (deviation), {:.1} bits below the largest score\n",
        path.display(),
        report.levels,
        report.n,
        report.log2_pq,
        report.layout,
        report.rotation_keys,
        gib(report.key_bytes),
        gib(report.plaintext_bytes),
        report.predicted_seconds,
        report.predicted_error,
        report.predicted_precision_bits,
    )
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}

/// Bytes with an optional unit K, M, G or T (powers of 1024).
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    let trimmed = text.trim().trim_end_matches(['B', 'b']).trim_end_matches('i');
    let (number, shift) = match trimmed.chars().last().map(|c| c.to_ascii_uppercase()) {
        Some('K') => (&trimmed[..trimmed.len() - 1], 10),
        Some('M') => (&trimmed[..trimmed.len() - 1], 20),
        Some('G') => (&trimmed[..trimmed.len() - 1], 30),
        Some('T') => (&trimmed[..trimmed.len() - 1], 40),
        _ => (trimmed, 0),
    };
    let value: f64 = number.parse().map_err(|_| format!("`{text}` is no number of bytes"))?;
    if value >= 0.0 && value.is_finite() {
        Ok((value * (1u64 << shift) as f64) as u64)
    } else {
        Err(format!("`{text}` is no number of bytes"))
    }
}
