//! The grammar of `fhe-run remote`.

use std::path::{Path, PathBuf};

use clap::Args;
use fhe_host::parse_bytes;
use zeroize::Zeroizing;

use super::super::args::{InsecureArg, ResultFormat, ShowArgs, TakenArgs, TextFormat};
use super::RemoteError;

/// Where a token is looked for when no file is named.
const TOKEN_VARIABLE: &str = "FHE_TOKEN";

#[derive(Debug, Args)]
pub(crate) struct Remote {
    /// Address of the server, as in http://127.0.0.1:8080
    pub url: String,
    /// Pictures or folders of them, .npy, .npz, .csv, CIFAR-10 .bin or idx files (each may be gzipped)
    #[arg(required_unless_present = "keys_only")]
    pub inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub taken: TakenArgs,
    /// Make and send keys, and nothing else
    #[arg(long, conflicts_with = "inputs")]
    pub keys_only: bool,
    /// Most bytes that the evaluation keys may take on disk until they are sent, as in 2GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub max_key_bytes: Option<u64>,
    /// Name or hash of the program, where the server has several
    #[arg(long, value_name = "NAME")]
    pub program: Option<String>,
    /// Make keys for the server's program even if it was another one last time
    #[arg(long)]
    pub accept_program: bool,
    /// File with the token for the server (default: the variable FHE_TOKEN)
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Trust a server whose certificate this authority signed, and no other (PEM; default: the roots of Mozilla)
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE")]
    pub ca_cert: Option<PathBuf>,
    /// Folder for keys (default: fhec in your configuration folder)
    #[arg(long, value_name = "FOLDER")]
    pub home: Option<PathBuf>,
    #[command(flatten)]
    pub show: ShowArgs,
    #[command(flatten)]
    pub insecure: InsecureArg,
}

impl Remote {
    /// The token, if there is one. It is no argument: those are visible to others.
    pub(super) fn token(&self) -> Result<Option<Zeroizing<String>>, RemoteError> {
        match &self.token_file {
            Some(path) => read_token(path).map(Some),
            None => Ok(std::env::var(TOKEN_VARIABLE).ok().map(Zeroizing::new)),
        }
    }

    /// The authorities that alone are trusted, if they are named.
    pub(super) fn authorities(&self) -> Option<&Path> {
        #[cfg(feature = "tls")]
        return self.ca_cert.as_deref();
        #[cfg(not(feature = "tls"))]
        None
    }

    /// How to sum up when there is no result to show.
    pub(super) fn summary_format(&self) -> TextFormat {
        match self.show.format() {
            ResultFormat::Json => TextFormat::Json,
            ResultFormat::Text | ResultFormat::Csv | ResultFormat::Npy => TextFormat::Text,
        }
    }
}

fn read_token(path: &Path) -> Result<Zeroizing<String>, RemoteError> {
    let wrong = |cause| RemoteError::Home { path: path.to_path_buf(), cause };
    let text = Zeroizing::new(std::fs::read_to_string(path).map_err(wrong)?);
    Ok(Zeroizing::new(text.trim().to_owned()))
}
