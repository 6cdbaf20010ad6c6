//! More than a server can do: what it answers, whether it keeps what it accepted, and its memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::server::{Server, done, tool};

/// How many times more jobs than the server does.
const FACTOR: f64 = 8.0;
/// A little more, for the jobs that are accepted last.
const WANTED: f64 = 1.05 * FACTOR;
/// How often senders look whether the server does more than was thought.
const LOOK: Duration = Duration::from_millis(5);
/// Encrypted inputs; one that waits or runs is not sent again.
const N_INPUTS: usize = 96;
/// Jobs that may wait.
const QUEUE: &str = "16";
const N_SENDERS: usize = 32;

/// What was seen.
#[derive(Default)]
struct Seen {
    statuses: BTreeMap<u16, usize>,
    /// Jobs that were accepted and have not been seen at their end, each with its input.
    open: BTreeMap<String, usize>,
    /// Inputs that no job has.
    free: BTreeSet<usize>,
    n_done: usize,
    /// Most bytes of keys and evaluations, and of the whole process.
    held: f64,
    resident: f64,
}

impl Seen {
    fn n_sent(&self) -> usize {
        self.statuses.values().sum()
    }

    fn n_accepted(&self) -> usize {
        self.statuses.get(&202).copied().unwrap_or(0)
    }

    /// Whether the server accepts more than its part of what is sent. How fast it is alone tells what it does beside others only
    /// roughly.
    fn is_behind(&self) -> bool {
        (self.n_sent() as f64) < WANTED * self.n_accepted() as f64
    }
}

pub(super) fn run(
    folder: &Path,
    program: &Path,
    input: &Path,
    memory: &str,
    alone: f64,
    seconds: u64,
) -> io::Result<()> {
    let server = Server::start(program, &folder.join("store"), memory, &["--queue", QUEUE])?;
    let home = folder.join("home");
    done(server.client(&home).arg("--keys-only"))?;
    let inputs = encrypt(folder, program, input, &home)?;
    let keys = server.json("/v1/keys")?;
    let named =
        |name: &str| keys[0][name].as_str().map(str::to_owned).ok_or_else(|| io::Error::other("no keys"));
    let path = format!("/v1/programs/{}/jobs?key={}", named("program")?, named("key")?);
    let seen = Mutex::new(Seen { free: (0..N_INPUTS).collect(), ..Seen::default() });
    let (is_over, began) = (AtomicBool::new(false), Instant::now());
    let pause = Duration::from_secs_f64(alone / FACTOR * N_SENDERS as f64);
    let mut sent_for = Duration::ZERO;
    let results: io::Result<()> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..N_SENDERS)
            .map(|number| {
                let (server, path, inputs, seen) = (&server, &path, &inputs, &seen);
                scope.spawn(move || {
                    let mut next = began + pause.mul_f64(number as f64 / N_SENDERS as f64);
                    while began.elapsed() < Duration::from_secs(seconds) {
                        let now = Instant::now();
                        if now < next && !seen.lock().expect("no panic").is_behind() {
                            std::thread::sleep(LOOK.min(next - now));
                            continue;
                        }
                        next = next.max(now) + pause;
                        send(server, path, inputs, seen)?;
                    }
                    Ok::<_, io::Error>(())
                })
            })
            .collect();
        let watcher = scope.spawn(|| watch(&server, &seen, &is_over));
        let sent: io::Result<()> =
            senders.into_iter().try_for_each(|sender| sender.join().expect("no panic"));
        sent_for = began.elapsed();
        is_over.store(true, Ordering::Relaxed);
        watcher.join().expect("no panic").and(sent)
    });
    results?;
    let seen = seen.into_inner().expect("no panic");
    report(&server, &seen, sent_for.as_secs_f64())
}

/// Different encryptions of one input.
fn encrypt(folder: &Path, program: &Path, input: &Path, home: &Path) -> io::Result<Vec<Vec<u8>>> {
    let secret = std::fs::read_dir(home.join("keys"))?.next().ok_or_else(|| io::Error::other("no key"))??;
    let path = folder.join("input.ct");
    let one = |_| {
        let mut command = tool("fhe-run");
        command.arg("encrypt").arg(program).arg(input).arg("-o").arg(&path).args(["--no-names", "--quiet"]);
        done(command.arg("--secret-key").arg(secret.path().join("secret.key")))?;
        let bytes = std::fs::read(&path)?;
        std::fs::remove_file(&path)?;
        Ok(bytes)
    };
    (0..N_INPUTS).map(one).collect()
}

fn send(server: &Server, path: &str, inputs: &[Vec<u8>], seen: &Mutex<Seen>) -> io::Result<()> {
    let lock = || seen.lock().expect("no panic");
    let Some(input) = lock().free.pop_first() else { return Ok(()) };
    let (status, body) = server.send("POST", path, &inputs[input])?;
    let mut seen = lock();
    *seen.statuses.entry(status).or_default() += 1;
    if status == 202 {
        let job: Value = serde_json::from_slice(&body)?;
        let id = job["id"].as_str().ok_or_else(|| io::Error::other("a job without a name"))?;
        seen.open.insert(id.to_owned(), input);
    } else {
        seen.free.insert(input);
    }
    Ok(())
}

/// Follows accepted jobs to their ends and frees their inputs; looks at the memory.
fn watch(server: &Server, seen: &Mutex<Seen>, is_over: &AtomicBool) -> io::Result<()> {
    let lock = || seen.lock().expect("no panic");
    let mut patience = Instant::now() + Duration::from_secs(60);
    loop {
        let is_last = is_over.load(Ordering::Relaxed);
        let memory = server.memory()?;
        {
            let mut seen = lock();
            seen.held = seen.held.max(memory("keys") + memory("working"));
            seen.resident = seen.resident.max(memory("resident"));
        }
        let open: Vec<(String, usize)> = lock().open.iter().map(|(id, n)| (id.clone(), *n)).collect();
        for (id, input) in &open {
            let job = server.json(&format!("/v1/jobs/{id}"))?;
            if job["state"] != "done" {
                if ["queued", "running"].iter().all(|state| job["state"] != *state) {
                    return Err(io::Error::other(format!("an accepted job was lost: {job}")));
                }
                continue;
            }
            let (status, _) = server.send("GET", &format!("/v1/jobs/{id}/result"), b"")?;
            let (removed, _) = server.send("DELETE", &format!("/v1/jobs/{id}"), b"")?;
            if status != 200 || removed >= 300 {
                return Err(io::Error::other(format!("the result of {id}: {status}, deleted: {removed}")));
            }
            let mut seen = lock();
            seen.open.remove(id);
            seen.free.insert(*input);
            seen.n_done += 1;
            patience = Instant::now() + Duration::from_secs(60);
        }
        if is_last && open.is_empty() {
            return Ok(());
        }
        if Instant::now() > patience {
            return Err(io::Error::other(format!("{} accepted jobs do not end", open.len())));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn report(server: &Server, seen: &Seen, seconds: f64) -> io::Result<()> {
    let (n_sent, n_accepted) = (seen.n_sent(), seen.n_accepted());
    let times = n_sent as f64 / seen.n_done as f64;
    let (peak, capacity) = (server.peak()?, server.memory()?("capacity"));
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    println!(
        "{n_sent} jobs sent in {seconds:.0} s, {times:.1} times as many as were done; statuses {:?}; {n_accepted} accepted, {} done; MiB: keys and evaluations at most {:.0} of {:.0}, resident {:.0}, at most {:.0}",
        seen.statuses,
        seen.n_done,
        mib(seen.held),
        mib(capacity),
        mib(seen.resident),
        mib(peak),
    );
    let wrong = |what: &str| Err(io::Error::other(what.to_owned()));
    if seen.statuses.keys().any(|status| ![200, 202, 429, 503].contains(status)) {
        return wrong("an answer that is none of 200, 202, 429 and 503");
    }
    if n_accepted != seen.n_done {
        return wrong("an accepted job was lost");
    }
    if times < FACTOR {
        return wrong("less than eight times as many jobs were sent as were done");
    }
    if seen.held > capacity {
        return wrong("keys and evaluations are beyond their memory");
    }
    Ok(())
}
