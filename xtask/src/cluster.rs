//! `cargo xtask cluster`: gateways, workers, NATS and stores on this machine, and the capacity model held to a run of them.

use std::io;
use std::path::PathBuf;

use crate::{capacity, lab, workspace};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  cargo xtask cluster
  cargo xtask cluster --slow
  cargo xtask cluster --model
  cargo xtask cluster --contract
  cargo xtask cluster --tls
  cargo xtask cluster --deploy")]
pub(crate) struct Args {
    /// Only tests whose name contains this
    filter: Option<String>,
    /// Also the tests that take minutes
    #[arg(long)]
    slow: bool,
    /// Run three workers for two minutes and compare them with `cargo xtask capacity`
    #[arg(long, conflicts_with_all = ["slow", "filter"])]
    model: bool,
    /// Send a server what its OpenAPI document allows and forbids (schemathesis)
    #[arg(long, conflicts_with_all = ["slow", "filter", "model"])]
    contract: bool,
    /// The client over TLS, which is a feature of its own
    #[arg(long, conflicts_with_all = ["slow", "filter", "model", "contract"])]
    tls: bool,
    /// Only lint the files under runtime/serve/deploy
    #[arg(long, conflicts_with_all = ["slow", "filter", "model", "contract", "tls"])]
    deploy: bool,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    if args.tls {
        let command =
            ["test", "--release", "--workspace", "--features", "fhe-runtime/tls", "--test", "remote"];
        return workspace::run("cargo", &command, &[]);
    }
    let script = workspace::root().join(".ci/cluster").display().to_string();
    let more: &[&str] = match () {
        () if args.deploy => &["--deploy"],
        () if args.contract => &["--contract"],
        () => &[],
    };
    workspace::run(&script, more, &[])?;
    if args.deploy {
        return Ok(());
    }
    if args.contract {
        return test(&["--test", "serve", "contract", "--", "--ignored", "--nocapture"], None);
    }
    if args.model {
        let path = lab::target().join("capacity.json");
        test(
            &["--test", "machines", "three_workers_for_the_capacity_model", "--", "--ignored", "--nocapture"],
            Some(&path),
        )?;
        return capacity::compare(&path);
    }
    let mut rest = vec!["--test", "machines"];
    rest.extend(args.filter.as_deref());
    rest.extend(["--", "--test-threads=1", "--skip", "capacity_model"]);
    rest.extend(args.slow.then_some("--include-ignored"));
    test(&rest, None)
}

fn test(rest: &[&str], run: Option<&PathBuf>) -> io::Result<()> {
    let mut command = vec!["test", "--release", "--workspace", "--features", "fhe-serve/cluster"];
    command.extend(rest);
    let run = run.map(|path| path.display().to_string());
    let env: Vec<(&str, &str)> = run.iter().map(|path| ("FHE_MODEL_RUN", path.as_str())).collect();
    workspace::run("cargo", &command, &env)
}
