//! `fhe-serve gateway` and `fhe-serve worker`: many machines. The grammar is in every build, the work is the feature `cluster`.

use std::error::Error;

use clap::Args;

use super::args::{ComputeArgs, FrontArgs, LogArgs};

/// What all machines share.
#[derive(Debug, Args)]
pub(super) struct Shared {
    /// NATS with JetStream, as in nats://127.0.0.1:4222; user and password are the variables NATS_USER and NATS_PASSWORD
    #[arg(long, value_name = "URL")]
    pub nats: String,
    #[command(flatten)]
    pub store: SharedStore,
    /// Name of the service, where one NATS has several
    #[arg(long, value_name = "NAME", default_value = "fhe")]
    pub name: String,
}

/// Where programs, keys, inputs and results are.
#[derive(Debug, Args)]
pub(super) struct SharedStore {
    /// Folder that all machines share, or s3://BUCKET/PREFIX with its account in the variables AWS_…
    #[arg(long, value_name = "URL")]
    pub store: String,
}

#[derive(Debug, Args)]
pub(super) struct Gateway {
    #[command(flatten)]
    pub shared: Shared,
    /// Serve programs whose parameters are below 128 bits of security
    #[arg(long)]
    pub insecure: bool,
    /// Copies of the queue that a cluster of NATS keeps
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub replicas: u8,
    #[command(flatten)]
    pub front: FrontArgs,
    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Debug, Args)]
pub(super) struct Worker {
    #[command(flatten)]
    pub shared: Shared,
    #[command(flatten)]
    pub compute: ComputeArgs,
    /// Serve programs whose parameters are below 128 bits of security
    #[arg(long)]
    pub insecure: bool,
    /// Jobs that wait for another worker before this one helps it
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub overflow: usize,
    /// Times that a job is begun before it is given up
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub deliveries: u32,
    /// Seconds without a word of a worker after which another one takes its job
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    pub ack_seconds: u64,
    /// Seconds that a job may wait
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub queue_seconds: u64,
    /// Seconds that a job may run
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub job_seconds: u64,
    /// Seconds for running jobs when the worker is told to end
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub drain_seconds: u64,
    /// Address for /healthz and /metrics (default: none)
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<std::net::SocketAddr>,
    #[command(flatten)]
    pub log: LogArgs,
}

#[cfg(not(feature = "cluster"))]
pub(super) const NOT_BUILT: &str = "this fhe-serve is for one machine only: build it with --features cluster";

#[cfg(not(feature = "cluster"))]
pub(super) fn gateway(_: &Gateway) -> Result<(), Box<dyn Error>> {
    Err(NOT_BUILT.into())
}

#[cfg(not(feature = "cluster"))]
pub(super) fn worker(_: &Worker) -> Result<(), Box<dyn Error>> {
    Err(NOT_BUILT.into())
}

#[cfg(feature = "cluster")]
pub(super) fn gateway(args: &Gateway) -> Result<(), Box<dyn Error>> {
    use crate::cluster::{self, GatewayOptions};

    args.log.start();
    let folder = std::path::Path::new(&args.shared.store.store);
    let options = GatewayOptions {
        place: place(&args.shared),
        allow_insecure: args.insecure,
        n_replicas: args.replicas.into(),
        front: args.front.front(folder),
    };
    super::args::block_on(async {
        let stop = super::args::stop_signal()?;
        let server = cluster::gateway(&options).await?;
        server.serve(stop).await;
        Ok(())
    })
}

#[cfg(feature = "cluster")]
pub(super) fn worker(args: &Worker) -> Result<(), Box<dyn Error>> {
    use std::time::Duration;

    use crate::cluster::{WorkerOptions, work};

    args.log.start();
    let (memory, n_slots) = args.compute.prepare()?;
    let options = WorkerOptions {
        place: place(&args.shared),
        memory,
        n_slots,
        allow_insecure: args.insecure,
        overflow: args.overflow,
        n_deliveries: args.deliveries,
        ack: Duration::from_secs(args.ack_seconds),
        queue_wait: Duration::from_secs(args.queue_seconds),
        job: Duration::from_secs(args.job_seconds),
        drain: Duration::from_secs(args.drain_seconds),
        metrics: args.metrics,
    };
    super::args::block_on(async {
        let stop = super::args::stop_signal()?;
        Ok(work(options, None, stop).await?)
    })
}

#[cfg(feature = "cluster")]
fn place(shared: &Shared) -> crate::cluster::Place {
    crate::cluster::Place {
        nats: shared.nats.clone(),
        store: shared.store.store.clone(),
        name: shared.name.clone(),
    }
}
