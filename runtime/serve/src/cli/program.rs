//! `fhe-serve program`: what gateways and workers serve, in the store that they share.

use std::error::Error;
use std::path::PathBuf;

use clap::Subcommand;

use super::many::SharedStore;
use crate::ids::ProgramId;

#[derive(Debug, Subcommand)]
pub(super) enum Program {
    /// Put programs into the store; gateways and workers that start after that serve them
    Add {
        /// Programs
        #[arg(required = true, value_name = "PROGRAM")]
        programs: Vec<PathBuf>,
        #[command(flatten)]
        store: SharedStore,
    },
    /// Print the hashes of the programs in the store
    List {
        #[command(flatten)]
        store: SharedStore,
    },
    /// Take a program out of the store
    Remove {
        /// Its hash
        program: ProgramId,
        #[command(flatten)]
        store: SharedStore,
    },
}

#[cfg(not(feature = "cluster"))]
pub(super) fn run(_: Program) -> Result<(), Box<dyn Error>> {
    Err(super::many::NOT_BUILT.into())
}

#[cfg(feature = "cluster")]
pub(super) fn run(command: Program) -> Result<(), Box<dyn Error>> {
    use crate::cluster::{Objects, add_program, programs, remove_program};

    super::args::block_on(async {
        match command {
            Program::Add { programs, store } => {
                let objects = Objects::open(&store.store)?;
                for path in programs {
                    let id = add_program(&objects, &path).await?;
                    fhe_host::print(&format!("{id}\n"))?;
                }
                Ok(())
            }
            Program::List { store } => {
                let all = programs(&Objects::open(&store.store)?).await?;
                let lines = all.iter().map(|(name, _)| format!("{}\n", name.display()));
                Ok(fhe_host::print(&lines.collect::<String>())?)
            }
            Program::Remove { program, store } => {
                match remove_program(&Objects::open(&store.store)?, program).await? {
                    true => Ok(()),
                    false => Err(format!("there is no program {program} in the store").into()),
                }
            }
        }
    })
}
