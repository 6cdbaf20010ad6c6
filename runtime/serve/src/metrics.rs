//! What the server counts, for Prometheus. No label comes from a client.

use std::collections::BTreeMap;

use fhe_machine::Profile;
use prometheus::{
    CounterVec, Encoder, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use crate::catalog::Catalog;
use crate::ids::ProgramId;
use crate::jobs::JobState;
use crate::memory::Ledger;

/// The counters of one server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    gauges: IntGaugeVec,
    memory: IntGaugeVec,
    key_cache: IntGaugeVec,
    requests: IntCounterVec,
    refusals: IntCounterVec,
    jobs: IntCounterVec,
    evaluation_seconds: Histogram,
    layer_seconds: CounterVec,
    layer_runs: CounterVec,
    body_bytes: IntCounter,
}

/// Numbers that are read when they are asked for.
#[derive(Debug, Clone, Default)]
pub struct Now {
    /// Jobs that wait.
    pub queued: u64,
    /// Jobs that run.
    pub running: u64,
    /// Connections that are open.
    pub connections: u64,
    /// Bytes by kind.
    pub memory: BTreeMap<&'static str, u64>,
    /// Hits, misses and evictions of the keys in memory.
    pub key_cache: BTreeMap<&'static str, u64>,
}

impl Now {
    /// Memory as an account and the programs have it.
    pub fn of(ledger: &Ledger, catalog: &Catalog) -> Self {
        let usage = ledger.usage();
        Self {
            memory: BTreeMap::from([
                ("keys", usage.keys),
                ("working", usage.working),
                ("capacity", ledger.capacity()),
                ("plaintexts", catalog.kept_bytes()),
                ("plaintexts_most", catalog.plaintext_bytes()),
                ("resident", fhe_host::memory::rss_bytes().unwrap_or(0)),
            ]),
            key_cache: BTreeMap::from([
                ("hits", usage.hits),
                ("misses", usage.misses),
                ("evictions", usage.evictions),
                ("sets", usage.n_keys),
            ]),
            ..Self::default()
        }
    }
}

impl Metrics {
    /// Everything at zero.
    ///
    /// # Errors
    /// Never in practice: the names are constants.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let gauge = |name: &str, help: &str, label: &str| {
            let vec = IntGaugeVec::new(Opts::new(name, help), &[label])?;
            registry.register(Box::new(vec.clone()))?;
            Ok::<_, prometheus::Error>(vec)
        };
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let vec = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(vec.clone()))?;
            Ok::<_, prometheus::Error>(vec)
        };
        let layers = |name: &str, help: &str| {
            let vec = CounterVec::new(Opts::new(name, help), &["program", "layer"])?;
            registry.register(Box::new(vec.clone()))?;
            Ok::<_, prometheus::Error>(vec)
        };
        let buckets = prometheus::exponential_buckets(0.05, 2.0, 14)?;
        let options = HistogramOpts::new("fhe_evaluation_seconds", "Seconds of evaluations").buckets(buckets);
        let evaluation_seconds = Histogram::with_opts(options)?;
        registry.register(Box::new(evaluation_seconds.clone()))?;
        let body_bytes = IntCounter::new("fhe_body_bytes_total", "Bytes of bodies received")?;
        registry.register(Box::new(body_bytes.clone()))?;
        Ok(Self {
            gauges: gauge("fhe_now", "Jobs and connections now", "what")?,
            memory: gauge("fhe_memory_bytes", "Memory by kind", "kind")?,
            key_cache: gauge("fhe_key_cache", "Keys found in memory, read, and let go", "what")?,
            requests: counter("fhe_requests_total", "Requests answered", &["route", "status"])?,
            refusals: counter("fhe_refusals_total", "Requests and jobs refused", &["reason"])?,
            jobs: counter("fhe_jobs_total", "Jobs that ended", &["state"])?,
            evaluation_seconds,
            layer_seconds: layers("fhe_layer_seconds_total", "Seconds spent in a layer")?,
            layer_runs: layers("fhe_layer_runs_total", "Evaluations of a layer")?,
            body_bytes,
            registry,
        })
    }

    /// A request was answered.
    pub fn answered(&self, route: &str, status: u16) {
        self.requests.with_label_values(&[route, &status.to_string()]).inc();
    }

    /// A request was refused.
    pub fn refused(&self, reason: &str) {
        self.refusals.with_label_values(&[reason]).inc();
    }

    /// Bytes came.
    pub fn received(&self, bytes: u64) {
        self.body_bytes.inc_by(bytes);
    }

    /// A job ended.
    pub fn job_ended(&self, state: JobState, reason: Option<&str>) {
        self.jobs.with_label_values(&[format!("{state:?}").to_lowercase()]).inc();
        if let Some(reason) = reason {
            self.refused(reason);
        }
    }

    /// A job was evaluated.
    pub fn evaluated(&self, program: ProgramId, profile: &Profile) {
        self.evaluation_seconds.observe(profile.total_seconds);
        let program = &program.to_string()[..16];
        for (layer, share) in profile.by_layer() {
            self.layer_seconds.with_label_values(&[program, layer]).inc_by(share.seconds);
            self.layer_runs.with_label_values(&[program, layer]).inc();
        }
    }

    /// Everything as text.
    ///
    /// # Errors
    /// Never in practice: memory is written.
    pub fn text(&self, now: &Now) -> Result<String, prometheus::Error> {
        let set = |gauges: &IntGaugeVec, label: &str, value: u64| {
            gauges.with_label_values(&[label]).set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        set(&self.gauges, "queued", now.queued);
        set(&self.gauges, "running", now.running);
        set(&self.gauges, "connections", now.connections);
        now.memory.iter().for_each(|(kind, bytes)| set(&self.memory, kind, *bytes));
        now.key_cache.iter().for_each(|(what, count)| set(&self.key_cache, what, *count));
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
