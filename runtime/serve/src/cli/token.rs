//! `fhe-serve token`: who may.

use std::error::Error;

use clap::Subcommand;
use fhe_host::{parse_bytes, show_bytes};

use super::args::StoreArg;
use crate::ids::Owner;
use crate::tokens::{Quota, Tokens, now};

#[derive(Debug, Subcommand)]
pub(super) enum Token {
    /// Make a token and print it; it is not kept
    Add {
        /// Whose it is: lower-case letters, digits, hyphens
        name: Owner,
        #[command(flatten)]
        store: StoreArg,
        /// Bytes of evaluation keys in the store
        #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "8GiB")]
        key_bytes: u64,
        /// Jobs that wait or run
        #[arg(long, value_name = "N", default_value_t = 16)]
        jobs: u32,
        /// Requests a minute
        #[arg(long, value_name = "N", default_value_t = 600)]
        requests: u32,
        /// Days until it is refused (default: never)
        #[arg(long, value_name = "N")]
        days: Option<u32>,
    },
    /// Print who may
    List {
        #[command(flatten)]
        store: StoreArg,
    },
    /// Refuse a token from now on
    Remove {
        /// Whose it is
        name: Owner,
        #[command(flatten)]
        store: StoreArg,
    },
}

pub(super) fn run(command: Token) -> Result<(), Box<dyn Error>> {
    match command {
        Token::Add { name, store, key_bytes, jobs, requests, days } => {
            std::fs::create_dir_all(&store.store)?;
            let mut tokens = Tokens::load(&store.tokens())?;
            let expires = days.map(|days| now() + u64::from(days) * 24 * 3600);
            let quota = Quota { key_bytes, queued_jobs: jobs, requests_per_minute: requests };
            let secret = tokens.add(name, quota, expires)?;
            tokens.save(&store.tokens())?;
            Ok(fhe_host::print(&format!("{secret}\n"))?)
        }
        Token::List { store } => {
            let tokens = Tokens::load(&store.tokens())?;
            let line = |token: &crate::tokens::Token| {
                let Quota { key_bytes, queued_jobs, requests_per_minute } = token.quota;
                let expiry = match token.expires {
                    None => "no expiry".to_owned(),
                    Some(_) if token.is_expired() => "EXPIRED".to_owned(),
                    Some(at) => format!("{} days left", at.saturating_sub(now()).div_ceil(24 * 3600)),
                };
                let keys = show_bytes(key_bytes);
                format!(
                    "{}\t{keys} of keys\t{queued_jobs} jobs\t{requests_per_minute} requests a minute\t{expiry}\n",
                    token.name
                )
            };
            Ok(fhe_host::print(&tokens.iter().map(line).collect::<String>())?)
        }
        Token::Remove { name, store } => {
            let mut tokens = Tokens::load(&store.tokens())?;
            tokens.remove(&name)?;
            Ok(tokens.save(&store.tokens())?)
        }
    }
}
