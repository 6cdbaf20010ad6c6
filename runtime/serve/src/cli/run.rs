//! `fhe-serve run`: one machine.

use std::error::Error;
use std::path::PathBuf;

use clap::Args;

use super::args::{ComputeArgs, FrontArgs, LogArgs, StoreArg, block_on, stop_signal};
use crate::server::{Options, Server};

#[derive(Debug, Args)]
pub(super) struct Run {
    /// Programs to serve
    #[arg(required = true, value_name = "PROGRAM")]
    programs: Vec<PathBuf>,
    #[command(flatten)]
    store: StoreArg,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Serve programs whose parameters are below 128 bits of security
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    front: FrontArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) fn run(args: &Run) -> Result<(), Box<dyn Error>> {
    args.log.start();
    let (memory, n_workers) = args.compute.prepare()?;
    let options = Options {
        programs: args.programs.clone(),
        store: args.store.store.clone(),
        memory,
        n_workers,
        allow_insecure: args.insecure,
        front: args.front.front(&args.store.store),
    };
    block_on(async {
        let stop = stop_signal()?;
        let server = Server::start(&options).await?;
        server.serve(stop).await;
        Ok(())
    })
}
