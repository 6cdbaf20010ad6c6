//! Where the time of an evaluation goes: per layer and per operation.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

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
}

impl Share {
    fn add(&mut self, event: &Event) {
        self.count += 1;
        self.seconds += event.seconds;
    }
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
}
