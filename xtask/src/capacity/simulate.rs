//! A discrete-event simulation of machines that keep keys.
//!
//! A client has a machine of its own by the hash of its key. Its jobs wait there; when too many do and another machine is idle,
//! that one helps. A machine that does not have a client's keys reads them first, and the least recently used leave for them.
//! Evaluations take the same time each; arrivals are independent.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::draw::{Draw, Popularity};

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
    pub queue: usize,
    pub overflow: usize,
    pub arrivals: Arrivals,
}

/// When jobs come, and whose they are.
pub(super) enum Arrivals {
    /// Independently, some clients more often than others; the first tenth is not counted.
    Drawn { n: usize, seed: u64 },
    /// As they came in a run, and the home of every client there; all are counted.
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

    fn home(&self, client: usize, n_machines: usize) -> usize {
        match self {
            Self::Seen { homes, .. } => homes[client],
            Self::Drawn { .. } => Draw::new(client as u64).next() as usize % n_machines,
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

#[derive(Clone, Copy)]
struct Job {
    client: usize,
    arrived: f64,
    is_counted: bool,
}

#[derive(Default)]
struct Machine {
    waiting: VecDeque<Job>,
    n_busy: usize,
    /// Keys in memory: when they were used last, by client, and clients in that order.
    used: BTreeMap<usize, u64>,
    order: BTreeMap<u64, usize>,
    clock: u64,
}

impl Machine {
    /// Uses a client's keys; says whether they were in memory.
    fn touch(&mut self, client: usize, n_kept: usize) -> bool {
        self.clock += 1;
        let before = self.used.insert(client, self.clock);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.clock, client);
        if self.used.len() > n_kept
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
        }
        before.is_some()
    }
}

/// The end of an evaluation: when, in nanoseconds, and where. The job is told apart by its number.
type End = Reverse<(u64, usize, usize)>;

pub(super) fn simulate(plan: &Plan) -> Outcome {
    let (jobs, n_warm) = plan.arrivals.jobs(plan);
    let mut machines: Vec<Machine> = (0..plan.n_machines).map(|_| Machine::default()).collect();
    let mut running =
        Running { plan, ends: BinaryHeap::new(), jobs: Vec::new(), n_hits: 0, n_begun: 0, busy: 0.0 };
    let mut outcome = Outcome {
        per_second: 0.0,
        refused: 0.0,
        busy: 0.0,
        hits: 0.0,
        overflowed: 0.0,
        latencies: Vec::new(),
    };
    let (mut now, mut warm_at, mut n_refused, mut n_overflowed) = (0.0, 0.0, 0usize, 0usize);
    for (number, &(at, client)) in jobs.iter().enumerate() {
        now = at;
        running.finish_until(now, &mut machines, &mut outcome.latencies);
        if number == n_warm {
            warm_at = now;
            (running.n_hits, running.n_begun, running.busy) = (0, 0, 0.0);
        }
        let home = plan.arrivals.home(client, plan.n_machines);
        let is_full = |machine: &Machine| machine.n_busy >= plan.n_slots;
        let mut chosen = home;
        if is_full(&machines[home]) && machines[home].waiting.len() >= plan.overflow {
            let has_keys = |machine: &Machine| machine.used.contains_key(&client);
            let idle = machines.iter().enumerate().filter(|(_, machine)| !is_full(machine));
            if let Some((index, _)) = idle.max_by_key(|(_, machine)| has_keys(machine)) {
                chosen = index;
            }
        }
        let is_counted = number >= n_warm;
        n_overflowed += usize::from(is_counted && chosen != home);
        let job = Job { client, arrived: now, is_counted };
        let machine = &mut machines[chosen];
        if !is_full(machine) {
            running.begin(job, chosen, machine, now);
        } else if machine.waiting.len() < plan.queue {
            machine.waiting.push_back(job);
        } else {
            n_refused += usize::from(is_counted);
        }
    }
    let span = (now - warm_at).max(f64::MIN_POSITIVE);
    let (busy, n_hits, n_begun) = (running.busy, running.n_hits, running.n_begun);
    running.finish_until(f64::INFINITY, &mut machines, &mut outcome.latencies);
    let n_counted = (jobs.len() - n_warm) as f64;
    outcome.latencies.sort_by(f64::total_cmp);
    outcome.per_second = (n_counted - n_refused as f64) / span;
    outcome.refused = n_refused as f64 / n_counted;
    outcome.busy = busy / span / (plan.n_machines * plan.n_slots) as f64;
    outcome.hits = n_hits as f64 / n_begun.max(1) as f64;
    outcome.overflowed = n_overflowed as f64 / n_counted;
    outcome
}

/// Evaluations under way.
struct Running<'p> {
    plan: &'p Plan,
    ends: BinaryHeap<End>,
    jobs: Vec<Job>,
    n_hits: usize,
    n_begun: usize,
    busy: f64,
}

impl Running<'_> {
    fn begin(&mut self, job: Job, index: usize, machine: &mut Machine, now: f64) {
        let is_hit = machine.touch(job.client, self.plan.n_kept);
        let seconds = self.plan.seconds + if is_hit { 0.0 } else { self.plan.read_seconds };
        machine.n_busy += 1;
        self.n_hits += usize::from(is_hit);
        self.n_begun += 1;
        self.busy += seconds;
        self.jobs.push(job);
        self.ends.push(Reverse((((now + seconds) * 1e9) as u64, index, self.jobs.len() - 1)));
    }

    /// Ends what ends until `now`, and begins what waits for it.
    fn finish_until(&mut self, now: f64, machines: &mut [Machine], latencies: &mut Vec<f64>) {
        while let Some(&Reverse((at, index, number))) = self.ends.peek() {
            let at = at as f64 / 1e9;
            if at > now {
                return;
            }
            self.ends.pop();
            let job = self.jobs[number];
            if job.is_counted {
                latencies.push(at - job.arrived);
            }
            let machine = &mut machines[index];
            machine.n_busy -= 1;
            if let Some(next) = machine.waiting.pop_front() {
                self.begin(next, index, machine, at);
            }
        }
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

    #[test]
    fn jobs_that_were_seen_are_followed_one_by_one() {
        let jobs = vec![(0.0, 0), (0.1, 1), (0.2, 0), (5.0, 1)];
        let arrivals = Arrivals::Seen { jobs, homes: vec![0, 1] };
        let outcome = simulate(&Plan { n_clients: 2, n_machines: 2, read_seconds: 0.5, arrivals, ..plan() });
        // Keys are read once by each, and the third job waits for the first.
        let expected = [1.0, 1.5, 1.5, 2.3];
        assert!(
            outcome.latencies.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6),
            "{:?}",
            outcome.latencies
        );
        assert_eq!(outcome.hits, 0.5);
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers =
            |seed| simulate(&Plan { arrivals: Arrivals::Drawn { n: 1000, seed }, ..plan() }).latencies;
        assert_eq!(numbers(3), numbers(3));
        assert_ne!(numbers(3), numbers(4));
    }
}
