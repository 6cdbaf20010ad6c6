//! The four steps between two parties: keygen, encrypt, eval, decrypt.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use fhe_bytecode::{Interface, Keys, Port};
use fhe_ckks::{Context, key_request};
use fhe_client::{Client, ClientError, joined};
use fhe_files::{Ciphertexts, Expected, Kind, Stored, evaluation_keys_len};
use fhe_host::WriteError;
use fhe_host::memory::peak_rss_bytes;
use fhe_host::show_bytes;
use fhe_machine::{Cancel, Input, Model, Options, Profile, Session, VmError, check_memory};
use fhe_secret::{SecretKey, SeedSource};
use serde_json::json;

use super::args::{Decrypt, Encrypt, Eval, Keygen};
use super::error::CliError;
use super::program::{Contract, Program};
use super::progress::Bar;
use super::run::{check_profile, memory_budget, note_memory, report_profile};
use super::{batches, complain, samples, show, sum_up};
use crate::partial::{Batch, Partial};
use crate::store::{self, FileError, FileErrorKind};

/// Makes a secret key and evaluation keys.
pub(crate) fn keygen(args: &Keygen, quiet: bool) -> Result<(), CliError> {
    let program = Contract::load(&args.program)?;
    program.check_security(args.insecure.insecure)?;
    different(&args.secret_key, &args.eval_keys)?;
    // A pipe or a device can hold nothing that would be lost.
    if let Some(path) = [&args.secret_key, &args.eval_keys].into_iter().find(|path| path.is_file()) {
        let kind = FileErrorKind::Write(WriteError::Exists);
        return Err(FileError { path: path.clone(), kind }.into());
    }
    // Before the tables of the parameters, which take time and memory themselves.
    let keys = Keys::from(&*program.interface);
    let needed = evaluation_keys_len(program.interface.params(), keys.places());
    check_key_bytes(args, needed, keys.places().count(), quiet)?;
    let context = Context::new(program.interface.params().clone())?;
    let request = key_request(&context, keys);
    let mut seeds = SeedSource::os();
    let key = SecretKey::generate(&context, &mut seeds)?;
    let bar = Bar::new("making keys", quiet);
    let mut progress = |part| bar.set(part, format!("of {} keys", request.len()));
    store::generate_evaluation_keys(&args.eval_keys, &context, &key, &request, &mut seeds, &mut progress)?;
    drop(bar);
    let written = store::write_secret_key(&args.secret_key, &context, &key, program.interface.program());
    if let Err(error) = written {
        // Evaluation keys without their secret are of no use; they are ours, made just now.
        let _ = std::fs::remove_file(&args.eval_keys);
        return Err(error.into());
    }
    let (n_keys, bytes) =
        (request.len(), std::fs::metadata(&args.eval_keys).map_or(0, |metadata| metadata.len()));
    let words = format!(
        "key {}\n{}: secret key, keep it\n{}: {n_keys} evaluation keys, {}, for the server",
        key.id(),
        args.secret_key.display(),
        args.eval_keys.display(),
        show_bytes(bytes)
    );
    let fields = json!({
        "key": key.id().to_string(),
        "secret_key": args.secret_key,
        "eval_keys": args.eval_keys,
        "n_eval_keys": n_keys,
        "eval_keys_bytes": bytes,
    });
    sum_up(args.summary.format, quiet, &words, &fields)
}

/// Says what the keys take before they are made, and refuses what is too much.
fn check_key_bytes(args: &Keygen, needed: u64, n_keys: usize, quiet: bool) -> Result<(), CliError> {
    if !quiet {
        eprintln!("{n_keys} evaluation keys will take {} on disk", show_bytes(needed));
    }
    if let Some(allowed) = args.max_key_bytes.filter(|allowed| *allowed < needed) {
        return Err(CliError::KeyBytes { needed, allowed, why: "--max-key-bytes allows" });
    }
    match fhe_host::free_disk_bytes(&args.eval_keys).filter(|free| *free < needed) {
        Some(allowed) => Err(CliError::KeyBytes { needed, allowed, why: "the disk has" }),
        None => Ok(()),
    }
}

/// Encrypts inputs.
pub(crate) fn encrypt(args: &Encrypt, quiet: bool) -> Result<(), CliError> {
    store::check_ciphertexts(&args.output)?;
    let program = Contract::load(&args.program)?;
    let part = args.model_input.as_deref().map(|name| port_named(&program.interface, name)).transpose()?;
    let (input, port) = (&args.input, part.map(|(_, port)| port));
    let (inputs, n_found) = samples::load_part(&program.interface, &input.inputs, &input.taken, port)?;
    let expected = match part {
        None => Expected::input(&program.interface),
        Some((index, _)) => Expected::part(&program.interface, index),
    };
    let (context, client) = client(&program, &args.secret_key)?;
    let mut seeds = SeedSource::os();
    let batch = program.interface.batch();
    let samples = inputs
        .chunks(batch)
        .map(|inputs| {
            let tensors: Vec<&[f64]> = inputs.iter().map(|input| &input.tensor[..]).collect();
            let fresh = client.encrypt(&joined(&tensors, batch), &mut seeds)?;
            Ok(fresh.into_iter().map(Stored::Seeded).collect())
        })
        .collect::<Result<Vec<Vec<Stored>>, ClientError>>()?;
    let n_samples = inputs.len();
    let named = if args.no_names { &[][..] } else { &inputs[..] };
    let names = named.chunks(batch).map(|inputs| batches::name(inputs.iter().map(|i| &i.name[..]), batch));
    let names = names.collect();
    let ciphertexts = Ciphertexts { names, ..Ciphertexts::new(client.key().id(), samples) };
    store::write_ciphertexts(&args.output, &context, &expected, &ciphertexts)?;
    let n_outside = inputs.iter().filter(|input| input.outside.is_some()).count();
    let rest = if n_found > n_samples { " (--index chooses)" } else { "" };
    let words = format!("{}: {n_samples} of {n_found} sample(s) encrypted{rest}", args.output.display());
    let fields = json!({ "output": args.output, "inputs": n_samples, "samples": n_found, "outside_range": n_outside, "key": client.key().id().to_string() });
    sum_up(args.summary.format, quiet, &words, &fields)
}

/// One of the model's inputs, with its position among them.
fn port_named<'a>(interface: &'a Interface, name: &str) -> Result<(u32, &'a Port), CliError> {
    let ports = &interface.input().ports;
    (0u32..).zip(ports).find(|(_, port)| port.name == name).ok_or_else(|| {
        let known: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        CliError::NoSuchInput { name: name.to_owned(), known: known.join(", ") }
    })
}

/// Evaluates a program on encrypted inputs.
pub(crate) fn eval(args: &Eval, quiet: bool) -> Result<(), CliError> {
    for path in [&args.ciphertexts, &args.eval_keys] {
        if store::kind_of(path)? == Some(Kind::SecretKey) {
            return Err(CliError::SecretGiven { path: path.clone() });
        }
    }
    different(&args.ciphertexts, &args.output)?;
    check_profile(&args.run)?;
    store::check_ciphertexts(&args.output)?;
    let program = Program::load(&args.program)?;
    for (path, kind) in [(&args.ciphertexts, Kind::Ciphertexts), (&args.eval_keys, Kind::EvaluationKeys)] {
        store::check_parameters(path, kind, program.checked.params())?;
    }
    let context = Context::new(program.checked.params().clone())?;
    let expected = Expected::input(&program.interface);
    // How many samples there are is known before any of them is held.
    let request = store::read_request(&args.ciphertexts, &context, &expected)?;
    let held = held_bytes(&program, request.n_samples);
    let budget = memory_budget(&args.run);
    let memory = budget.saturating_sub(held);
    check_memory(&program.checked, memory).map_err(|error| with_samples(error, held, budget))?;
    let (inputs, request) = store::read_inputs(&args.ciphertexts, &context, &expected)?;
    let key_id = store::read_header(&args.eval_keys, Kind::EvaluationKeys)?.key_id;
    if inputs.key_id != key_id {
        return Err(VmError::WrongKey { found: inputs.key_id, expected: key_id }.into());
    }
    let wanted = key_request(&context, &program.checked);
    let key_bytes = std::fs::metadata(&args.eval_keys).map_or(0, |metadata| metadata.len());
    let mut bar = Bar::new("reading keys", quiet);
    let began = Instant::now();
    let mut progress = |part| bar.set(part, format!("of {}", show_bytes(key_bytes)));
    let keys = store::read_evaluation_keys(&args.eval_keys, &context, &wanted, &mut progress)?;
    let key_seconds = began.elapsed().as_secs_f64();
    let n_evaluations = inputs.samples.len();
    let options = Options { memory, n_evaluations };
    let model = Model::new(&program.checked, context.clone(), options)?;
    let session = Session::new(Arc::new(model), Arc::new(keys))?;
    bar.suspend(|| note_memory(&session, quiet));
    let expected = Expected::result(&program.interface);
    let batch = Batch { context: &context, expected: &expected, key_id, request };
    let (mut partial, mut results) = Partial::open(&args.output, batch)?;
    let n_resumed = results.len();
    if n_resumed > 0 && !quiet {
        bar.suspend(|| eprintln!("{n_resumed} of {n_evaluations} results are there from a run before"));
    }
    let mut profiles = Vec::new();
    bar.begin("evaluating", n_resumed);
    let at_once = session.batch(memory);
    let mut left = inputs.samples.into_iter().skip(n_resumed);
    while results.len() < n_evaluations {
        let input = |sample: Vec<Stored>| {
            let sample = sample.into_iter().map(|stored| stored.expand(&context)).collect();
            Input::new(&context, inputs.key_id, sample)
        };
        let batch: Vec<Input> = left.by_ref().take(at_once).map(input).collect();
        bar.items(results.len()..results.len() + batch.len(), n_evaluations);
        let (found, profile) = session.evaluate_batch(batch, &Cancel::default(), &bar)?;
        for result in found {
            let result: Vec<Stored> = result.into_iter().map(Stored::Full).collect();
            partial.push(&result)?;
            results.push(result);
        }
        profiles.push(profile);
    }
    drop(bar);
    let seconds: f64 = profiles.iter().map(|profile| profile.total_seconds).sum();
    let ciphertexts =
        Ciphertexts { key_id, samples: results, names: inputs.names, request: Some(request.hash) };
    store::write_ciphertexts(&args.output, &context, &expected, &ciphertexts)?;
    partial.remove();
    report_profile(&args.run, &Profile::joined(profiles))?;
    let before = if n_resumed > 0 { format!(", {n_resumed} of them before") } else { String::new() };
    let words = format!(
        "{}: {n_evaluations} encrypted result(s){before}, keys read in {key_seconds:.2} s, evaluated in {seconds:.2} s",
        args.output.display()
    );
    let fields = json!({
        "output": args.output,
        "results": n_evaluations,
        "resumed": n_resumed,
        "key_seconds": key_seconds,
        "seconds": seconds,
        "peak_rss_bytes": peak_rss_bytes(),
        "threads": rayon::current_num_threads(),
    });
    sum_up(args.summary.format, quiet, &words, &fields)
}

/// Bytes of all encrypted inputs and results, which stay in memory until the file is written.
fn held_bytes(program: &Program, n_samples: usize) -> u64 {
    let (params, interface) = (program.checked.params(), &program.interface);
    let bytes = |n_cts: usize, level| (n_cts as u64).saturating_mul(params.ciphertext_bytes(level));
    // Fresh ciphertexts have half of themselves as a seed; sums of several have not.
    let parts = if interface.input().ports.len() > interface.batch() { 1 } else { 2 };
    let input = bytes(interface.input_ciphertexts(), interface.input().level) / parts;
    let result = bytes(interface.output_ciphertexts(), interface.output_level());
    (n_samples as u64).saturating_mul(input.saturating_add(result))
}

/// The same error with the samples counted in.
fn with_samples(error: VmError, held: u64, budget: u64) -> VmError {
    match error {
        VmError::TooLittleMemory { needed, keys, working, .. } => {
            let [needed, working] = [needed, working].map(|bytes| bytes.saturating_add(held));
            VmError::TooLittleMemory { needed, keys, working, budget }
        }
        other => other,
    }
}

/// Decrypts results.
pub(crate) fn decrypt(args: &Decrypt, quiet: bool) -> Result<(), CliError> {
    show::check_args(&args.show)?;
    let program = Contract::load(&args.program)?;
    let (context, client) = client(&program, &args.secret_key)?;
    let results =
        store::read_ciphertexts(&args.ciphertexts, &context, &Expected::result(&program.interface))?;
    let refused = |kind| FileError { path: args.ciphertexts.clone(), kind };
    if results.key_id != client.key().id() {
        let kind = FileErrorKind::WrongKey { found: results.key_id, expected: client.key().id() };
        return Err(refused(kind).into());
    }
    let names = match &args.request {
        Some(path) => {
            let request = store::read_request(path, &context, &Expected::input(&program.interface))?;
            results.check_answers(&request).map_err(|error| refused(error.into()))?;
            // What the client called its samples, whatever the server calls them.
            store::read_contents(path)?.names
        }
        None => {
            if !quiet {
                complain("note: the result was not compared with a request; --request FILE does");
            }
            results.names.clone()
        }
    };
    let scores = results
        .samples
        .into_iter()
        .map(|sample| {
            let sample: Vec<_> = sample.into_iter().map(|stored| stored.expand(&context)).collect();
            client.decrypt_raw(&sample)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let results = batches::results(&program.interface, &scores, &names);
    let shown: Vec<_> = results
        .iter()
        .map(|(raw, name)| show::Shown { raw, label: None, name: name.as_deref(), outside: None })
        .collect();
    show::show(&program.interface, &shown, &args.show)
}

/// Refuses one file for two purposes.
pub(super) fn different(a: &Path, b: &Path) -> Result<(), CliError> {
    let is_same_file = matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
    match a == b || is_same_file {
        true => Err(CliError::SameFile { path: b.to_path_buf() }),
        false => Ok(()),
    }
}

fn client(program: &Contract, secret_key: &Path) -> Result<(Arc<Context>, Client), CliError> {
    // A key for other parameters is refused before their tables are made.
    store::check_parameters(secret_key, Kind::SecretKey, program.interface.params())?;
    let context = Context::new(program.interface.params().clone())?;
    let (key, made_for) = store::read_secret_key(secret_key, &context)?;
    if let Some(other) = made_for.filter(|made_for| *made_for != program.interface.program()) {
        complain(&format!(
            "warning: {}: was made for program {other}, and is used with {}, of the same parameters",
            secret_key.display(),
            program.interface.program()
        ));
    }
    let client = Client::new(program.interface.clone(), context.clone(), key)?;
    Ok((context, client))
}
