//! Where the time of an evaluation goes: per layer, per operation, and as a trace.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table};
use fhe_host::memory::rss_bytes;
use serde::Serialize;

/// One executed operation.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// Layer the operation belongs to.
    pub layer: String,
    /// Name of the operation.
    pub operation: &'static str,
    /// Seconds after the start of the evaluation.
    pub start: f64,
    /// Seconds it took.
    pub seconds: f64,
    /// Memory of the process afterwards, where the operating system tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
}

/// Collects events while a program runs.
#[derive(Debug)]
pub struct Recorder {
    began: Instant,
    events: Vec<Event>,
}

impl Recorder {
    /// Starts the clock.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { began: Instant::now(), events: Vec::new() }
    }

    /// Runs `work` and records how long it took.
    pub fn time<T>(&mut self, layer: &str, operation: &'static str, work: impl FnOnce() -> T) -> T {
        let start = self.began.elapsed();
        let result = work();
        self.push(layer, operation, start, self.began.elapsed() - start);
        result
    }

    /// When the clock was started.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn push(&mut self, layer: &str, operation: &'static str, start: Duration, took: Duration) {
        self.events.push(Event {
            layer: layer.to_owned(),
            operation,
            start: start.as_secs_f64(),
            seconds: took.as_secs_f64(),
            resident_bytes: rss_bytes(),
        });
    }

    /// Ends the recording; the machine adds what its threads spent on encoding so far.
    pub fn finish(self, encode_seconds: f64, n_encoded: u64) -> Profile {
        let total_seconds = self.began.elapsed().as_secs_f64();
        Profile { total_seconds, encode_seconds, n_encoded, events: self.events }
    }
}

/// All events of one evaluation.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Profile {
    /// Wall-clock time of the evaluation.
    pub total_seconds: f64,
    /// Seconds of encoding plaintexts since the machine was made, summed over threads.
    pub encode_seconds: f64,
    /// Plaintexts encoded since the machine was made.
    pub n_encoded: u64,
    /// Operations in the order of execution.
    pub events: Vec<Event>,
}

/// Time of one group of events.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Share {
    /// Number of operations.
    pub count: usize,
    /// Seconds in all.
    pub seconds: f64,
}

impl Profile {
    /// The profiles of several evaluations by one machine, one after the other.
    pub fn joined(profiles: Vec<Profile>) -> Self {
        let mut all = Self::default();
        for profile in profiles {
            let shifted = profile
                .events
                .into_iter()
                .map(|event| Event { start: event.start + all.total_seconds, ..event });
            all.events.extend(shifted);
            all.total_seconds += profile.total_seconds;
            // These count from the making of the machine, so the last one has all.
            all.encode_seconds = profile.encode_seconds;
            all.n_encoded = profile.n_encoded;
        }
        all
    }

    /// Time of each operation, over all layers.
    pub fn by_operation(&self) -> BTreeMap<&'static str, Share> {
        let mut shares = BTreeMap::<_, Share>::new();
        for event in &self.events {
            shares.entry(event.operation).or_default().add(event);
        }
        shares
    }

    /// Time of each layer, in the order of execution.
    pub fn by_layer(&self) -> Vec<(&str, Share)> {
        let mut shares: Vec<(&str, Share)> = Vec::new();
        for event in &self.events {
            match shares.iter_mut().find(|(layer, _)| *layer == event.layer) {
                Some((_, share)) => share.add(event),
                None => {
                    let mut share = Share::default();
                    share.add(event);
                    shares.push((&event.layer, share));
                }
            }
        }
        shares
    }

    /// Two tables for people: per layer, then per operation.
    pub fn to_table(&self) -> String {
        let layers = table("layer", self.by_layer(), self.total_seconds);
        let mut operations: Vec<_> = self.by_operation().into_iter().collect();
        operations.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds));
        let operations = table("operation", operations, self.total_seconds);
        let encoding = format!(
            "{} plaintexts encoded in {:.3} s of thread time, within the linear layers",
            self.n_encoded, self.encode_seconds
        );
        format!("{layers}\n{operations}\n{encoding}")
    }

    /// Totals and events as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "total_seconds": self.total_seconds,
            "encode_seconds": self.encode_seconds,
            "n_encoded": self.n_encoded,
            "layers": self.by_layer().into_iter()
                .map(|(layer, share)| serde_json::json!({"layer": layer, "count": share.count, "seconds": share.seconds}))
                .collect::<Vec<_>>(),
            "operations": self.by_operation(),
            "events": self.events,
        })
    }

    /// Events in the format of Chrome's trace viewer.
    pub fn to_chrome_trace(&self) -> serde_json::Value {
        let micros = |seconds: f64| (seconds * 1e6).round();
        let events: Vec<_> = self
            .events
            .iter()
            .map(|event| {
                serde_json::json!({
                    "name": event.operation, "cat": event.layer, "ph": "X", "pid": 1, "tid": 1,
                    "ts": micros(event.start), "dur": micros(event.seconds), "args": {"layer": event.layer},
                })
            })
            .collect();
        serde_json::json!({ "traceEvents": events, "displayTimeUnit": "ms" })
    }
}

impl Share {
    fn add(&mut self, event: &Event) {
        self.count += 1;
        self.seconds += event.seconds;
    }
}

fn table(first_column: &str, rows: Vec<(&str, Share)>, total_seconds: f64) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_BORDERS_ONLY);
    table.set_header([first_column, "operations", "seconds", "share"]);
    for (name, share) in rows {
        let percent = 100.0 * share.seconds / total_seconds.max(f64::MIN_POSITIVE);
        table.add_row([
            name.to_owned(),
            share.count.to_string(),
            format!("{:.3}", share.seconds),
            format!("{percent:.1} %"),
        ]);
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let mut recorder = Recorder::new();
        for (layer, operation) in [("conv1", "linear"), ("act1", "square"), ("conv1", "rescale")] {
            recorder.time(layer, operation, || ());
        }
        recorder.finish(0.0, 0)
    }

    #[test]
    fn layers_keep_the_order_of_execution() {
        let profile = profile();
        let layers: Vec<_> = profile.by_layer().into_iter().map(|(l, share)| (l, share.count)).collect();
        assert_eq!(layers, [("conv1", 2), ("act1", 1)]);
    }

    #[test]
    fn chrome_trace_has_every_event() {
        let trace = profile().to_chrome_trace();
        assert_eq!(trace["traceEvents"].as_array().unwrap().len(), 3);
        assert_eq!(trace["traceEvents"][1]["name"], "square");
    }
}
