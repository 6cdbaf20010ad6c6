//! `cargo xtask capacity`: how many machines a service needs, by simulation with measured numbers.

mod compare;
mod draw;
mod service;
mod simulate;

use std::io;
use std::path::PathBuf;

pub(crate) use compare::compare;
use simulate::{Arrivals, Outcome, Plan, simulate};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  cargo xtask capacity --clients 16 --rate 0.25
  cargo xtask capacity --clients 1000000 --rate 40 --machines 160 --memory-gib 256 --slots 8 --seconds 3.3 --key-gib 1.33")]
pub(crate) struct Args {
    /// Clients, each with keys of its own
    #[arg(long, default_value_t = 1000)]
    clients: usize,
    /// How much more often the most active clients come: 0 all alike, 1 as words in a language
    #[arg(long, default_value_t = 0.8)]
    skew: f64,
    /// Predictions a second, all clients together
    #[arg(long, default_value_t = 1.0)]
    rate: f64,
    /// Seconds of one evaluation when every slot of a machine is busy
    #[arg(long, default_value_t = 3.3)]
    seconds: f64,
    /// GiB of one client's keys in memory
    #[arg(long, default_value_t = 1.33)]
    key_gib: f64,
    /// GiB a second at which a machine reads keys from the store and checks them
    #[arg(long, default_value_t = 1.0)]
    read_gib: f64,
    /// Machines
    #[arg(long, default_value_t = 4)]
    machines: usize,
    /// Evaluations at a time on one machine
    #[arg(long, default_value_t = 1)]
    slots: usize,
    /// GiB for keys on one machine
    #[arg(long, default_value_t = 64.0)]
    memory_gib: f64,
    /// Jobs that wait or run, all machines together, before more are refused
    #[arg(long, default_value_t = 256)]
    queue: usize,
    /// Jobs that wait on a client's own machine before idle ones help
    #[arg(long, default_value_t = 2)]
    overflow: usize,
    /// Price of a machine for an hour
    #[arg(long, default_value_t = 1.0)]
    price: f64,
    /// Predictions to simulate
    #[arg(long, default_value_t = 200_000)]
    predictions: usize,
    /// Seed of the arrivals
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Compare with a run of real workers instead, as `cargo xtask cluster --model` writes it
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    if let Some(path) = &args.against {
        return compare(path);
    }
    let plan = args.plan().map_err(io::Error::other)?;
    print!("{}", text(args, &simulate(&plan)));
    Ok(())
}

impl Args {
    fn plan(&self) -> Result<Plan, String> {
        let positive = [
            ("rate", self.rate),
            ("seconds", self.seconds),
            ("key-gib", self.key_gib),
            ("read-gib", self.read_gib),
        ];
        if let Some((name, value)) = positive.iter().find(|(_, value)| !(*value > 0.0 && value.is_finite())) {
            return Err(format!("--{name} is {value}: it has to be above zero"));
        }
        if self.clients == 0 || self.machines == 0 || self.slots == 0 || self.predictions == 0 {
            return Err("clients, machines, slots and predictions have to be above zero".to_owned());
        }
        let n_kept = (self.memory_gib / self.key_gib) as usize;
        if n_kept < self.slots {
            return Err(format!(
                "{} GiB hold the keys of {n_kept} clients, fewer than {} slots",
                self.memory_gib, self.slots
            ));
        }
        Ok(Plan {
            n_clients: self.clients,
            skew: self.skew,
            rate: self.rate,
            seconds: self.seconds,
            read_seconds: self.key_gib / self.read_gib,
            n_machines: self.machines,
            n_slots: self.slots,
            n_kept,
            queue: self.queue,
            overflow: self.overflow,
            arrivals: Arrivals::Drawn { n: self.predictions, seed: self.seed },
        })
    }
}

fn text(args: &Args, outcome: &Outcome) -> String {
    let per_thousand = args.machines as f64 * args.price / 3.6 / outcome.per_second.max(f64::MIN_POSITIVE);
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let rows = [
        ("answered", format!("{:.2} a second", outcome.per_second)),
        ("refused", percent(outcome.refused)),
        ("machines busy", percent(outcome.busy)),
        ("keys in memory", percent(outcome.hits)),
        ("on another machine", percent(outcome.overflowed)),
        ("half within", format!("{:.2} s", outcome.latency(0.5))),
        ("99 of 100 within", format!("{:.2} s", outcome.latency(0.99))),
        ("keys in the store", format!("{:.1} TiB", args.clients as f64 * args.key_gib / 1024.0)),
        ("memory for keys", format!("{:.2} TiB", args.machines as f64 * args.memory_gib / 1024.0)),
        ("price of a thousand", format!("{per_thousand:.2}")),
    ];
    rows.iter().map(|(name, value)| format!("{name:20} {value}\n")).collect()
}
