//! `cargo xtask web`: the client of a browser and its page, as one folder that any server of files can serve.
//!
//! The module is built three times from one source: with the relaxed vectors of WebAssembly, with vectors, and without any. The
//! worker takes the first one that the browser runs; all give the same bits.

mod bindgen;
mod paths;
mod toolchain;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{lab, workspace};
use toolchain::Toolchain;

const CRATE: &str = "fhec-web";
const FOLDER: &str = "runtime/web";
/// Parts of the page that are served as they are.
const PARTS: [&str; 2] = ["module", "page"];
/// Most bytes of a module on its way to a browser.
const LIMIT: u64 = 400_000;

/// A build of the module: its file, and what it may use beyond the usual.
struct Variant {
    name: &'static str,
    features: &'static str,
}

const VARIANTS: [Variant; 3] = [
    Variant { name: "fhec_web_relaxed", features: "+simd128,+relaxed-simd" },
    Variant { name: "fhec_web_simd", features: "+simd128" },
    Variant { name: "fhec_web", features: "-simd128" },
];

#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Examples:
  cargo xtask web                      writes target/web, for fhe-serve run … --page=target/web
  cargo xtask web --embed              builds an fhe-serve that has the page in itself: --page alone serves it

The compiler's own wasm32 target is used if it is there or rustup can add it; otherwise Debian's rustc-web, which apt-get
downloads and which is unpacked under target/wasm-tools. Nothing is installed system-wide.")]
pub(crate) struct Args {
    /// Build fhe-serve with the page in it, too
    #[arg(long)]
    embed: bool,
    /// Use Debian's compiler also where there is another
    #[arg(long)]
    debian: bool,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    let (tools, out) = (lab::target().join("wasm-tools"), lab::target().join("web"));
    // Nothing of an earlier build stays.
    let _ = fs::remove_dir_all(&out);
    let toolchain = match Toolchain::find(&tools, args.debian) {
        Ok(found) => found,
        Err(why) => {
            println!("SKIPPED: the client of a browser was not built: {why}");
            return Ok(());
        }
    };
    println!("compiler: {toolchain}");
    let bindgen = bindgen::build(&tools)?;
    fs::create_dir_all(&out)?;
    for variant in &VARIANTS {
        let module = build(&toolchain, variant)?;
        bind(&bindgen, &module, variant, &out)?;
        report(&out.join(format!("{}.wasm", variant.name)))?;
    }
    for part in PARTS {
        for entry in fs::read_dir(workspace::root().join(FOLDER).join(part))? {
            let entry = entry?;
            fs::copy(entry.path(), out.join(entry.file_name()))?;
        }
    }
    println!("{}", out.display());
    if args.embed {
        let folder = out.display().to_string();
        let build =
            ["build", "--release", "--workspace", "--bin", "fhe-serve", "--features", "fhe-serve/page"];
        workspace::run("cargo", &build, &[("FHE_SERVE_PAGE", &folder)])?;
    }
    Ok(())
}

/// Compiles the module; gives its file.
fn build(toolchain: &Toolchain, variant: &Variant) -> io::Result<PathBuf> {
    let target = lab::target().join("wasm");
    let folder = target.display().to_string();
    let mut flags = paths::hidden()?;
    flags.push("--cfg=getrandom_backend=\"wasm_js\"".to_owned());
    flags.push(format!("-Ctarget-feature={}", variant.features));
    let mut env = toolchain.env();
    env.push((paths::FLAGS.to_owned(), flags.join(paths::SEPARATOR)));
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let args = ["build", "--locked", "--profile", "web", "-p", CRATE, "--lib", "--target", toolchain::TARGET];
    workspace::run("cargo", &[&args[..], &["--target-dir", &folder]].concat(), &env)?;
    Ok(target.join(toolchain::TARGET).join("web").join("fhec_web.wasm"))
}

/// Makes the JavaScript beside a module, which must be the same for all of them.
fn bind(bindgen: &Path, module: &Path, variant: &Variant, out: &Path) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let (to, from) = (folder.path().display().to_string(), module.display().to_string());
    workspace::run(&bindgen.display().to_string(), &[&from, &to], &[])?;
    fs::copy(folder.path().join("fhec_web_bg.wasm"), out.join(format!("{}.wasm", variant.name)))?;
    for name in ["fhec_web.js", "fhec_web.d.ts"] {
        let (made, kept) = (fs::read(folder.path().join(name))?, out.join(name));
        match fs::read(&kept) {
            Ok(before) if before != made => {
                return Err(io::Error::other(format!("{name} is not the same for all modules")));
            }
            _ => fs::write(kept, made)?,
        }
    }
    Ok(())
}

/// Says how large a module is, as it is and compressed, and refuses one that is too large.
fn report(module: &Path) -> io::Result<()> {
    let whole = fs::metadata(module)?.len();
    let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let gzip = Command::new("gzip").arg("-9c").arg(module).stderr(Stdio::null()).output();
    let Some(packed) = gzip.ok().filter(|done| done.status.success()).map(|done| done.stdout.len() as u64)
    else {
        println!("{name}: {whole} bytes (there is no gzip to say how many compressed)");
        return Ok(());
    };
    println!("{name}: {whole} bytes, {packed} compressed");
    match packed > LIMIT {
        true => Err(io::Error::other(format!("{name} has {packed} bytes compressed, more than {LIMIT}"))),
        false => Ok(()),
    }
}
