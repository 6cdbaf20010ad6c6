//! The machines of a simulated service: who waits where, whose keys are kept, whose turn it is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::draw::Draw;
use super::simulate::Plan;

/// Seconds for which jobs whose keys are in memory may overtake others, as workers have it.
const PATIENCE: f64 = 5.0;

#[derive(Clone, Copy)]
pub(super) struct Job {
    pub client: usize,
    pub arrived: f64,
    pub is_counted: bool,
}

/// A part of the queue: the keys of some clients, and the machine that is their home.
struct Partition {
    home: usize,
    waiting: VecDeque<Job>,
    n_running: usize,
    /// Since when it waits for its turn.
    since: f64,
}

#[derive(Default)]
struct Machine {
    n_busy: usize,
    /// The partitions at home here.
    at_home: Vec<usize>,
    /// Keys in memory: when they were used last, by client, and clients in that order.
    used: BTreeMap<usize, u64>,
    order: BTreeMap<u64, usize>,
    /// Clients of each partition whose keys are in memory.
    kept: BTreeMap<usize, usize>,
    clock: u64,
}

/// The end of an evaluation: when, in nanoseconds, where, and the number of the job.
type End = Reverse<(u64, usize, usize)>;

/// What happened since counting began.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub n_hits: usize,
    pub n_begun: usize,
    pub n_helped: usize,
    pub n_refused: usize,
    pub busy: f64,
}

pub(super) struct Service<'p> {
    plan: &'p Plan,
    machines: Vec<Machine>,
    partitions: Vec<Partition>,
    /// The partition of every client.
    partition_of: Box<dyn Fn(usize) -> usize + 'p>,
    /// What waits or runs for each machine, wherever that is.
    loads: Vec<usize>,
    jobs: Vec<Job>,
    ends: BinaryHeap<End>,
    draw: Draw,
    pub counts: Counts,
    /// Seconds from arrival to answer, of the jobs that are counted.
    pub latencies: Vec<f64>,
    /// When the last job ended.
    pub last: f64,
}

impl<'p> Service<'p> {
    /// Machines without keys; `homes` says which one is the home of every partition.
    pub(super) fn new(plan: &'p Plan, homes: &[usize], partition_of: impl Fn(usize) -> usize + 'p) -> Self {
        let mut machines: Vec<Machine> = (0..plan.n_machines).map(|_| Machine::default()).collect();
        for (partition, home) in homes.iter().enumerate() {
            machines[*home].at_home.push(partition);
        }
        let partition =
            |home: &usize| Partition { home: *home, waiting: VecDeque::new(), n_running: 0, since: 0.0 };
        Self {
            plan,
            machines,
            partitions: homes.iter().map(partition).collect(),
            partition_of: Box::new(partition_of),
            loads: vec![0; plan.n_machines],
            jobs: Vec::new(),
            ends: BinaryHeap::new(),
            draw: Draw::new(1),
            counts: Counts::default(),
            latencies: Vec::new(),
            last: 0.0,
        }
    }

    /// Reads a client's keys at home, before anything else happens.
    pub(super) fn warm(&mut self, client: usize) {
        let partition = (self.partition_of)(client);
        self.touch(client, self.partitions[partition].home);
    }

    /// A job comes: its home takes it, or it waits, or another machine helps.
    pub(super) fn arrive(&mut self, job: Job) {
        if self.loads.iter().sum::<usize>() >= self.plan.queue {
            self.counts.n_refused += usize::from(job.is_counted);
            return;
        }
        let number = (self.partition_of)(job.client);
        let partition = &mut self.partitions[number];
        if partition.waiting.is_empty() {
            partition.since = job.arrived;
        }
        partition.waiting.push_back(job);
        let home = partition.home;
        self.loads[home] += 1;
        if self.is_free(home) {
            self.look(home, job.arrived);
            return;
        }
        // All that are idle look at the same time; chance says who is first.
        let mut idle: Vec<usize> = (0..self.machines.len()).filter(|m| self.is_free(*m)).collect();
        while !idle.is_empty() {
            let machine = idle.swap_remove(self.draw.next() as usize % idle.len());
            if self.look(machine, job.arrived) {
                return;
            }
        }
    }

    /// Ends what ends until `now`; a machine that becomes free looks for more.
    pub(super) fn finish_until(&mut self, now: f64) {
        while let Some(&Reverse((at, machine, number))) = self.ends.peek() {
            let at = at as f64 / 1e9;
            if at > now {
                return;
            }
            self.ends.pop();
            let job = self.jobs[number];
            if job.is_counted {
                self.latencies.push(at - job.arrived);
            }
            self.last = at;
            let partition = &mut self.partitions[(self.partition_of)(job.client)];
            partition.n_running -= 1;
            self.loads[partition.home] -= 1;
            self.machines[machine].n_busy -= 1;
            self.look(machine, at);
        }
    }

    fn is_free(&self, machine: usize) -> bool {
        self.machines[machine].n_busy < self.plan.n_slots
    }

    /// A free machine takes the next job, if there is one for it.
    fn look(&mut self, machine: usize, now: f64) -> bool {
        let is_home = self.turn(machine, now);
        let Some(number) = is_home.or_else(|| self.help(machine)) else { return false };
        let partition = &mut self.partitions[number];
        let job = partition.waiting.pop_front().expect("chosen because something waits");
        partition.n_running += 1;
        match is_home {
            Some(_) => partition.since = now,
            None => self.counts.n_helped += usize::from(job.is_counted),
        }
        self.begin(job, machine, now);
        true
    }

    /// At home: who has waited too long, then whose keys are here, then the others, each the longest first.
    fn turn(&self, machine: usize, now: f64) -> Option<usize> {
        let here = &self.machines[machine];
        let rank = |number: usize| {
            let since = self.partitions[number].since;
            let is_patient = now - since < PATIENCE;
            (is_patient, is_patient && !here.kept.contains_key(&number), since)
        };
        let waiting = here.at_home.iter().copied().filter(|n| !self.partitions[*n].waiting.is_empty());
        waiting.min_by(|a, b| rank(*a).partial_cmp(&rank(*b)).expect("times are numbers"))
    }

    /// Elsewhere: where too many wait, whose keys are here or the fullest.
    fn help(&self, machine: usize) -> Option<usize> {
        let most = self.plan.n_slots.saturating_add(self.plan.overflow);
        let needs_help = |home: &usize| *home != machine && self.loads[*home] > most;
        let theirs =
            (0..self.machines.len()).filter(needs_help).flat_map(|home| &self.machines[home].at_home);
        let waiting = theirs.copied().filter(|number| !self.partitions[*number].waiting.is_empty());
        waiting.max_by_key(|number| {
            let partition = &self.partitions[*number];
            let is_kept = self.machines[machine].kept.contains_key(number);
            (is_kept, partition.waiting.len() + partition.n_running)
        })
    }

    fn begin(&mut self, job: Job, machine: usize, now: f64) {
        let is_hit = self.touch(job.client, machine);
        let seconds = self.plan.seconds + if is_hit { 0.0 } else { self.plan.read_seconds };
        self.machines[machine].n_busy += 1;
        self.counts.n_hits += usize::from(is_hit);
        self.counts.n_begun += 1;
        self.counts.busy += seconds;
        self.jobs.push(job);
        self.ends.push(Reverse((((now + seconds) * 1e9) as u64, machine, self.jobs.len() - 1)));
    }

    /// Uses a client's keys; says whether they were in memory. The least recently used leave for them.
    fn touch(&mut self, client: usize, machine: usize) -> bool {
        let number = (self.partition_of)(client);
        let machine = &mut self.machines[machine];
        machine.clock += 1;
        let before = machine.used.insert(client, machine.clock);
        machine.order.insert(machine.clock, client);
        match before {
            Some(before) => drop(machine.order.remove(&before)),
            None => *machine.kept.entry(number).or_default() += 1,
        }
        if machine.used.len() > self.plan.n_kept
            && let Some((_, oldest)) = machine.order.pop_first()
        {
            machine.used.remove(&oldest);
            let left = (self.partition_of)(oldest);
            if let Some(n) = machine.kept.get_mut(&left) {
                *n -= 1;
                if *n == 0 {
                    machine.kept.remove(&left);
                }
            }
        }
        before.is_some()
    }
}
