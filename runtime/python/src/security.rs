//! The gates: for parameters that protect nothing, and for secret keys where none belong.

use fhe_bytecode::Params;
use fhe_files::Kind;
use fhe_runtime::cli::insecurity;

use crate::fault::{Class, Fault};

/// Refuses parameters below 128 bits of security unless they were asked for.
pub(crate) fn check(params: &Params, insecure: bool) -> Result<(), Fault> {
    match insecurity(params) {
        Some(reason) if !insecure => Err(Fault::new(Class::Usage, "insecure", reason)
            .with_remedy("pass insecure=True to use it anyway, on data that needs no protection")),
        _ => Ok(()),
    }
}

/// Refuses a secret key where a server would read something else; `name` is for the message.
pub(crate) fn refuse_secret(kind: Option<Kind>, name: &str) -> Result<(), Fault> {
    match kind {
        Some(Kind::SecretKey) => {
            let what = format!("{name}: is a secret key, and a server touches no secret");
            Err(Fault::new(Class::File, "secret-given", what)
                .with_remedy("give the evaluation keys, and keep the secret key with the client"))
        }
        _ => Ok(()),
    }
}
