//! The picture of a report that the documents show.

use std::io;

use fhec_tests::browser::Browser;
use fhec_tests::models::{Network, Spec, generate};

use crate::workspace;

/// Where the picture goes.
const PICTURE: &str = "docs/report.png";
/// Size of the part of the page that is shown.
const SIZE: [u32; 2] = [1280, 2000];

/// Writes the report of ResNet-20 with generated weights and takes its picture.
pub(crate) fn take() -> io::Result<()> {
    let missing = || io::Error::other("the picture needs Chromium (Debian: apt-get install chromium)");
    let command = Browser::installed().ok_or_else(missing)?;
    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("resnet20.onnx"), generate(&Spec::new(Network::Resnet20)))?;
    workspace::run("cargo", &["build", "--release", "--workspace", "--quiet"], &[])?;
    workspace::run(
        "target/release/fhec",
        &["report", &file("resnet20.onnx"), "-o", &file("report.html")],
        &[],
    )?;
    let mut browser = Browser::start(command, SIZE[0], SIZE[1])?;
    browser.open(&folder.path().join("report.html"))?;
    // The table of passes is left out of the picture, so that the drawing and the charts are in it.
    browser.evaluate("document.querySelectorAll('#levels .scroll')[1].remove()")?;
    let height = browser
        .evaluate("document.querySelector('#layers details').getBoundingClientRect().top + scrollY")?;
    let height = height.as_f64().unwrap_or(f64::from(SIZE[1]));
    let png = base64(&browser.screenshot([0.0, 0.0, f64::from(SIZE[0]), height])?)?;
    std::fs::write(workspace::root().join(PICTURE), png)
}

/// Bytes from base64 without line breaks.
fn base64(text: &str) -> io::Result<Vec<u8>> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |c: u8| DIGITS.iter().position(|d| *d == c).ok_or_else(|| io::Error::other("not base64"));
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut bits = 0;
        for &c in group {
            bits = bits << 6 | digit(c)? as u32;
        }
        bits <<= 6 * (4 - group.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_decodes_all_lengths() {
        for (text, bytes) in [("Zg==", &b"f"[..]), ("Zm8=", b"fo"), ("Zm9v", b"foo"), ("Zm9vYg==", b"foob")] {
            assert_eq!(base64(text).unwrap(), bytes);
        }
        assert!(base64("!").is_err());
    }
}
