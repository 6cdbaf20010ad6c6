//! `fhe-run remote`: the client of a server, from the interface to the classes.
//!
//! Keys are made once for a program and kept in the user's folder; the server gets the evaluation keys once, and an encrypted
//! input for every sample. What comes back is compared with what was asked before it is decrypted.

mod args;
mod error;
mod home;
mod job;
mod server;
#[cfg(feature = "tls")]
mod trust;
mod upload;

use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use fhe_bytecode::Interface;
use fhe_bytecode::codec::read_interface;
use fhe_bytecode::text::harmless;
use fhe_ckks::Context;
use fhe_client::{Client, joined};
use fhe_secret::{SecretKey, SeedSource};
use serde_json::json;
use zeroize::Zeroizing;

use super::error::CliError;
use super::progress::Bar;
use super::{complain, program, samples, show, sum_up};
use crate::store;
pub(crate) use args::Remote;
pub use error::RemoteError;
use home::Home;
use server::{Program, Server};

/// Most bytes of an interface.
const INTERFACE_LIMIT: u64 = 64 << 20;
/// Inputs that the server has at a time.
const AHEAD: usize = 2;

/// Runs the whole way of a client.
pub(crate) fn remote(args: &Remote, quiet: bool) -> Result<(), CliError> {
    show::check_args(&args.show)?;
    let home = Home::open(args.home.as_deref())?;
    let server = Server::new(&args.url, args.token()?, args.authorities())?;
    let program = choose(&server, args.program.as_deref())?;
    confirm_program(&home, &server, &program, args.accept_program)?;
    let interface = interface(&server, &program, args.insecure.insecure)?;
    // Before keys are made: an input that cannot be read ends it.
    let inputs = match args.keys_only {
        true => Vec::new(),
        false => samples::load(&interface, &args.inputs, &args.taken)?.0,
    };
    let context = Context::new(interface.params().clone())?;
    let client = client(&home, &interface, &context)?;
    upload::ensure(&server, &home, &program, &client, args.max_key_bytes, quiet)?;
    home.remember(server.url(), &program.id)?;
    if args.keys_only {
        let key = server::hex(&client.key().id().0);
        let words = format!("key {key} is ready at {}", server.url());
        return sum_up(args.summary_format(), quiet, &words, &json!({ "key": key, "program": program.id }));
    }
    let mut scores = Vec::new();
    let mut asked = VecDeque::new();
    let n_scores = interface.output_layout().shape().len();
    let mut left = inputs.chunks(interface.batch());
    for i in (0..inputs.len()).step_by(interface.batch()) {
        let bar = Bar::new(&format!("input {} of {}", i + 1, inputs.len()), quiet);
        // The server has the next input before it is done with this one.
        for inputs in left.by_ref().take(AHEAD - asked.len()) {
            let tensors: Vec<&[f64]> = inputs.iter().map(|input| &input.tensor[..]).collect();
            asked.push_back(job::ask(&server, &program, &client, &joined(&tensors, interface.batch()))?);
        }
        if let Some(asked) = asked.pop_front() {
            let all = job::answer(&server, &program, &client, asked, &bar)?;
            scores.extend(all.chunks(n_scores).map(|scores| Zeroizing::new(scores.to_vec())));
        }
    }
    let shown: Vec<_> = (scores.iter().zip(&inputs))
        .map(|(raw, input)| show::Shown {
            raw,
            label: input.label,
            name: Some(&input.name),
            outside: input.outside,
        })
        .collect();
    show::show(&interface, &shown, &args.show)
}

/// The program that the user means: the only one, or one by its name or the begin of its hash.
fn choose(server: &Server, wanted: Option<&str>) -> Result<Program, RemoteError> {
    let all = server.programs()?;
    let is_meant = |program: &Program| match wanted {
        Some(wanted) => program.name == wanted || (!wanted.is_empty() && program.id.starts_with(wanted)),
        None => true,
    };
    let mut meant: Vec<Program> = all.iter().filter(|program| is_meant(program)).cloned().collect();
    match meant.len() {
        1 => Ok(meant.remove(0)),
        _ => Err(RemoteError::Programs {
            wanted: wanted.map(str::to_owned),
            found: all
                .iter()
                .map(|program| format!("{} ({})", &program.id[..16], harmless(&program.name)))
                .collect(),
        }),
    }
}

/// Says that a server's program is another one than last time, and asks whether that is fine.
fn confirm_program(
    home: &Home,
    server: &Server,
    program: &Program,
    is_accepted: bool,
) -> Result<(), RemoteError> {
    let Some(known) = home.known(server.url())?.filter(|known| *known != program.id) else { return Ok(()) };
    complain(&format!(
        "warning: {} served program {} last time, and serves {} now: keys and results of the old one do not fit",
        server.url(),
        &known[..16.min(known.len())],
        &program.id[..16]
    ));
    if is_accepted {
        return Ok(());
    }
    let changed = || RemoteError::ProgramChanged { known: known.clone(), found: program.id.clone() };
    if !std::io::stdin().is_terminal() {
        return Err(changed());
    }
    eprint!("make keys for the new program and go on? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(|_| changed())?;
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(changed()) }
}

/// The interface of a program; a server that sends another one is found out.
fn interface(server: &Server, program: &Program, insecure: bool) -> Result<Arc<Interface>, CliError> {
    let bytes = server.interface(program, INTERFACE_LIMIT)?;
    let interface = read_interface(&bytes[..], INTERFACE_LIMIT).map_err(RemoteError::Interface)?;
    if server::hex(&interface.program().0) != program.id {
        return Err(RemoteError::OtherInterface.into());
    }
    if let Some(reason) = program::insecurity(interface.params()) {
        complain(&format!("warning: {}: {reason}", server.url()));
        if !insecure {
            return Err(CliError::Insecure { path: PathBuf::from(server.url()), reason });
        }
    }
    Ok(Arc::new(interface))
}

/// The client with the secret key of this program, which is made if there is none.
fn client(home: &Home, interface: &Arc<Interface>, context: &Arc<Context>) -> Result<Client, CliError> {
    let path = home.secret_key(interface.program())?;
    let key = match path.exists() {
        true => {
            let (key, program) = store::read_secret_key(&path, context)?;
            if program != Some(interface.program()) {
                return Err(RemoteError::OtherSecret { path }.into());
            }
            key
        }
        false => {
            let key = SecretKey::generate(context, &mut SeedSource::os())?;
            store::write_secret_key(&path, context, &key, interface.program())?;
            key
        }
    };
    Ok(Client::new(Arc::clone(interface), Arc::clone(context), key)?)
}
