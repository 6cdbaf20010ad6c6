//! A discrete-event simulation of machines that keep keys.
//!
//! A key belongs to a partition of the queue and a partition to a machine, by hashes. Jobs wait for that machine; when too many
//! do and another one is idle, that one helps. A machine that does not have a client's keys reads them first, and the least
//! recently used leave for them. Whose turn it is at a machine is the workers' rule. Evaluations take the same time each.

use super::draw::{Draw, Popularity};
use super::service::{Counts, Job, Service};

/// Parts of the queue, as many as the service has.
const N_PARTITIONS: usize = 256;

/// What is simulated.
pub(super) struct Plan {
    pub n_clients: usize,
    pub skew: f64,
    pub rate: f64,
    pub seconds: f64,
    pub read_seconds: f64,
    pub n_machines: usize,
    pub n_slots: usize,
    /// Clients whose keys fit the memory of a machine.
    pub n_kept: usize,
    /// Jobs that wait or run, all machines together, before more are refused.
    pub queue: usize,
    pub overflow: usize,
    pub arrivals: Arrivals,
}

/// When jobs come, and whose they are.
pub(super) enum Arrivals {
    /// Independently, some clients more often than others; the first tenth is not counted.
    Drawn { n: usize, seed: u64 },
    /// As they came in a run, the home of every client there, and all keys read there once before, in order; all are counted.
    Seen { jobs: Vec<(f64, usize)>, homes: Vec<usize> },
}

impl Arrivals {
    /// When each job comes and whose it is, and how many of the first are not counted.
    fn jobs(&self, plan: &Plan) -> (Vec<(f64, usize)>, usize) {
        match self {
            Self::Seen { jobs, .. } => (jobs.clone(), 0),
            Self::Drawn { n, seed } => {
                let mut draw = Draw::new(*seed);
                let popularity = Popularity::new(plan.n_clients, plan.skew);
                let mut now = 0.0;
                let next = |_| {
                    now += draw.pause(plan.rate);
                    (now, popularity.draw(&mut draw))
                };
                ((0..*n).map(next).collect(), n / 10)
            }
        }
    }

    /// Machines before the first job.
    fn service<'p>(&self, plan: &'p Plan) -> Service<'p> {
        match self {
            Self::Seen { homes, .. } => {
                let mut service = Service::new(plan, homes, |client| client);
                (0..homes.len()).for_each(|client| service.warm(client));
                service
            }
            Self::Drawn { .. } => {
                let hash = |number: usize| Draw::new(number as u64).next() as usize;
                let homes: Vec<usize> =
                    (0..N_PARTITIONS).map(|p| hash(usize::MAX - p) % plan.n_machines).collect();
                Service::new(plan, &homes, move |client| hash(client) % N_PARTITIONS)
            }
        }
    }
}

/// What came out.
pub(super) struct Outcome {
    /// Predictions answered a second.
    pub per_second: f64,
    /// Part of the jobs that found a full queue.
    pub refused: f64,
    /// Part of the time that slots were busy.
    pub busy: f64,
    /// Part of the jobs whose keys were in memory.
    pub hits: f64,
    /// Part of the jobs that ran on another machine than their client's.
    pub overflowed: f64,
    /// Seconds from arrival to answer, in order.
    latencies: Vec<f64>,
}

impl Outcome {
    /// The mean seconds from arrival to answer.
    pub(super) fn mean(&self) -> f64 {
        self.latencies.iter().sum::<f64>() / self.latencies.len().max(1) as f64
    }

    /// The seconds within which a part of the jobs is answered.
    pub(super) fn latency(&self, part: f64) -> f64 {
        let index = (part * self.latencies.len() as f64) as usize;
        self.latencies.get(index.min(self.latencies.len().saturating_sub(1))).copied().unwrap_or(0.0)
    }
}

pub(super) fn simulate(plan: &Plan) -> Outcome {
    let (jobs, n_warm) = plan.arrivals.jobs(plan);
    let mut service = plan.arrivals.service(plan);
    let (mut now, mut warm_at) = (0.0, 0.0);
    for (number, &(at, client)) in jobs.iter().enumerate() {
        now = at;
        service.finish_until(now);
        if number == n_warm {
            warm_at = now;
            service.counts = Counts::default();
        }
        service.arrive(Job { client, arrived: now, is_counted: number >= n_warm });
    }
    if let Arrivals::Seen { .. } = plan.arrivals {
        // A run ends with its last answer; what is drawn stands for a service that goes on.
        service.finish_until(f64::INFINITY);
        (warm_at, now) = (0.0, service.last);
    }
    let counts = service.counts;
    service.finish_until(f64::INFINITY);
    service.latencies.sort_by(f64::total_cmp);
    let span = (now - warm_at).max(f64::MIN_POSITIVE);
    let n_counted = (jobs.len() - n_warm) as f64;
    Outcome {
        per_second: (n_counted - counts.n_refused as f64) / span,
        refused: counts.n_refused as f64 / n_counted,
        busy: counts.busy / span / (plan.n_machines * plan.n_slots) as f64,
        hits: counts.n_hits as f64 / counts.n_begun.max(1) as f64,
        overflowed: counts.n_helped as f64 / n_counted,
        latencies: service.latencies,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            n_clients: 1,
            skew: 0.0,
            rate: 0.7,
            seconds: 1.0,
            read_seconds: 0.0,
            n_machines: 1,
            n_slots: 1,
            n_kept: 1,
            queue: usize::MAX,
            overflow: usize::MAX,
            arrivals: Arrivals::Drawn { n: 200_000, seed: 1 },
        }
    }

    /// A queue with independent arrivals and equal evaluations has a known mean wait: load / (2 (1 - load)) evaluations.
    #[test]
    fn one_machine_waits_as_theory_says() {
        for rate in [0.3, 0.7, 0.9] {
            let outcome = simulate(&Plan { rate, ..plan() });
            let mean = outcome.mean();
            let expected = 1.0 + rate / (2.0 * (1.0 - rate));
            assert!((mean / expected - 1.0).abs() < 0.05, "at {rate}: {mean} instead of {expected}");
            assert!((outcome.busy - rate).abs() < 0.02, "{}", outcome.busy);
        }
    }

    #[test]
    fn keys_of_equal_clients_are_in_memory_as_often_as_they_fit() {
        let plan = Plan { n_clients: 100, n_kept: 25, read_seconds: 0.1, rate: 0.5, ..plan() };
        let outcome = simulate(&plan);
        assert!((outcome.hits - 0.25).abs() < 0.01, "{}", outcome.hits);
        assert!((outcome.busy - 0.5 * 1.075).abs() < 0.01, "{}", outcome.busy);
    }

    #[test]
    fn an_overload_is_refused_and_the_rest_is_answered() {
        let outcome = simulate(&Plan { rate: 2.0, queue: 10, ..plan() });
        assert!((outcome.refused - 0.5).abs() < 0.01, "{}", outcome.refused);
        assert!((outcome.per_second - 1.0).abs() < 0.01 && outcome.latency(0.99) <= 11.0 + 1e-6);
    }

    #[test]
    fn idle_machines_help_a_busy_client() {
        let alone = Plan { n_machines: 4, rate: 1.5, queue: 100, ..plan() };
        assert!(simulate(&alone).refused > 0.2);
        let helped = simulate(&Plan { overflow: 1, ..alone });
        assert!(helped.refused == 0.0 && helped.overflowed > 0.2, "{}", helped.overflowed);
    }

    fn seen(jobs: Vec<(f64, usize)>, homes: Vec<usize>) -> Outcome {
        let (n_clients, n_machines) = (homes.len(), 1 + homes.iter().max().unwrap());
        let arrivals = Arrivals::Seen { jobs, homes };
        simulate(&Plan { n_clients, n_machines, read_seconds: 0.5, arrivals, ..plan() })
    }

    #[track_caller]
    fn check(outcome: &Outcome, expected: &[f64]) {
        let is_close = outcome.latencies.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(is_close && outcome.latencies.len() == expected.len(), "{:?}", outcome.latencies);
    }

    #[test]
    fn jobs_that_were_seen_are_followed_one_by_one() {
        let outcome = seen(vec![(0.0, 0), (0.1, 1), (0.2, 0), (5.0, 1)], vec![0, 1]);
        check(&outcome, &[1.0, 1.0, 1.0, 1.8]);
        assert_eq!((outcome.hits, outcome.per_second), (1.0, 4.0 / 6.0));
        // One machine keeps the keys of one client, the last one's. The third job overtakes the second: its keys are there.
        let outcome = seen(vec![(0.0, 0), (0.1, 1), (0.2, 0), (5.0, 1)], vec![0, 0]);
        check(&outcome, &[1.0, 1.5, 2.3, 3.9]);
        assert_eq!(outcome.hits, 0.5);
    }

    #[test]
    fn a_client_that_never_stops_holds_nobody_up_for_long() {
        let mut jobs: Vec<(f64, usize)> = (0..40).map(|number| (f64::from(number) * 1e-3, 0)).collect();
        jobs.push((0.05, 1));
        let outcome = seen(jobs, vec![0, 0]);
        // The keys of each are read at the turn of the other: at the first job, after five seconds, and after that.
        assert_eq!(outcome.hits, 38.0 / 41.0);
        let expected = 5.5 + 1.5 - 0.05;
        assert!(outcome.latencies.iter().any(|seconds| (seconds - expected).abs() < 1e-6), "{expected}");
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers =
            |seed| simulate(&Plan { arrivals: Arrivals::Drawn { n: 1000, seed }, ..plan() }).latencies;
        assert_eq!(numbers(3), numbers(3));
        assert_ne!(numbers(3), numbers(4));
    }
}
