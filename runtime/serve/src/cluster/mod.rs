//! Many machines: gateways that clients meet, workers that evaluate, NATS between them, one store for all.
//!
//! ```text
//! NATS   stream NAME-work      what is to be done, subjects NAME.work.PARTITION.OWNER, gone when it is acknowledged
//!        bucket NAME-jobs      a record for every job, OWNER.JOB
//!        bucket NAME-workers   who is alive
//! store  programs/PROGRAM                     compiled programs
//!        keys/OWNER/PROGRAM/KEY/at-OFFSET     pieces of evaluation keys
//!        keys/OWNER/PROGRAM/KEY/ready         they are whole and were checked
//!        keys/OWNER/PROGRAM/KEY/refused       why they were thrown away
//!        jobs/OWNER/JOB.input, .result        what a job reads, what it gave
//! ```
//! Messages carry ids. A job's id is the hash of program, key and input, and an evaluation has no randomness, so a second
//! delivery writes what the first one wrote. Gateways keep nothing that another one could not read again.

mod follow;
mod gateway;
mod keys;
mod link;
mod members;
mod names;
mod objects;
mod pieces;
mod pull;
mod queue;
mod records;
mod task;
mod turns;
mod upload;
mod worker;

use std::path::{Path, PathBuf};

use fhe_bytecode::codec::{DEFAULT_LIMIT, decode};

pub use gateway::{GatewayOptions, gateway};
pub use link::Place;
pub use objects::Objects;
pub use worker::{WorkerOptions, work};

use crate::catalog::CatalogError;
use crate::ids::ProgramId;
use crate::server::ServerError;

/// Why a gateway or a worker does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// What every server needs.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A program.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A name that is none.
    #[error("{0:?} is no name of a service: use lower-case letters, digits and hyphens")]
    Name(String),
    /// NATS.
    #[error("{url}: {cause}")]
    Nats {
        /// Where.
        url: String,
        /// What it said.
        cause: String,
    },
    /// The store.
    #[error("{store}: {cause}")]
    Store {
        /// Which.
        store: String,
        /// What it said.
        cause: String,
    },
    /// Nothing to serve.
    #[error("{0}: the store has no program: put one there with `fhe-serve program add`")]
    Empty(String),
}

/// Puts a program into a store; gives its hash.
///
/// # Errors
/// If it is none, or cannot be read or written.
pub async fn add_program(objects: &Objects, path: &Path) -> Result<ProgramId, ClusterError> {
    let bytes = fhe_host::read_bounded(path, DEFAULT_LIMIT)
        .map_err(|cause| CatalogError::Read { path: path.to_path_buf(), cause })?;
    let program = decode(&bytes, DEFAULT_LIMIT)
        .map_err(|cause| CatalogError::Program { path: path.to_path_buf(), cause })?;
    let id = ProgramId(program.interface().program().0);
    objects.put(&format!("programs/{id}"), bytes.into()).await.map_err(|error| objects.failed(&error))?;
    Ok(id)
}

/// All programs of a store, by their hashes.
///
/// # Errors
/// If they cannot be read.
pub async fn programs(objects: &Objects) -> Result<Vec<(PathBuf, Vec<u8>)>, ClusterError> {
    let failed = |error: std::io::Error| objects.failed(&error);
    let mut files = Vec::new();
    for object in objects.list("programs").await.map_err(failed)? {
        let name = object.name.trim_start_matches("programs/");
        if let (Ok(_), Some(bytes)) =
            (name.parse::<ProgramId>(), objects.get(&object.name).await.map_err(failed)?)
        {
            files.push((PathBuf::from(name), bytes.to_vec()));
        }
    }
    Ok(files)
}

/// Takes a program out of a store; says whether it was there.
///
/// # Errors
/// If it cannot be removed.
pub async fn remove_program(objects: &Objects, id: ProgramId) -> Result<bool, ClusterError> {
    objects.remove(&format!("programs/{id}")).await.map_err(|error| objects.failed(&error))
}
