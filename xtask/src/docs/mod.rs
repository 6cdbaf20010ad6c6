//! `cargo xtask docs`: brings the command pages up to date and runs the commands that the documents show.

pub(crate) mod blocks;

use std::io;
use std::path::PathBuf;

use crate::{lab, workspace};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  cargo xtask docs
  cargo xtask docs --only docs/tutorial.md
  cargo xtask docs --pages
  cargo xtask docs --picture")]
pub(crate) struct Args {
    /// Run only the commands of this document
    #[arg(long, value_name = "FILE")]
    only: Option<PathBuf>,
    /// Write the command pages and end
    #[arg(long)]
    pages: bool,
    /// Take docs/report.png anew (needs Chromium) and end
    #[arg(long)]
    picture: bool,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    if args.picture {
        return lab::call("picture", &[]);
    }
    lab::call("pages", &[])?;
    if args.pages {
        return Ok(());
    }
    workspace::run("cargo", &["build", "--release", "--workspace", "--quiet"], &[])?;
    let documents = match &args.only {
        Some(path) => vec![path.clone()],
        None => blocks::documents()?,
    };
    for document in documents {
        blocks::execute(&document)?;
    }
    Ok(())
}
