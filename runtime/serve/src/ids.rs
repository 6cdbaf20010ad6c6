//! Names of programs, keys, jobs and clients, as they stand in paths: fixed lengths, lower case, nothing else.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A name that is none: what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadName(pub &'static str);

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $len:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $len]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = BadName;

            fn from_str(text: &str) -> Result<Self, BadName> {
                let mut bytes = [0; $len];
                read_hex(text, &mut bytes).ok_or(BadName($expected))?;
                Ok(Self(bytes))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

hex_id!(
    /// The hash of a program file.
    ProgramId, 32, "a program is named by the 64 lower-case hexadecimal digits of its hash"
);
hex_id!(
    /// The id in the header of a client's key files.
    KeyName, 16, "a key is named by the 32 lower-case hexadecimal digits of its id"
);
hex_id!(
    /// The hash of program, key and encrypted input.
    JobId, 32, "a job is named by 64 lower-case hexadecimal digits"
);

impl JobId {
    /// The job of evaluating `program` on the input file that ends with the hash `input`: the same request has the same id.
    pub fn of(program: ProgramId, key: KeyName, input: &[u8; 32]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("fhe-serve 1 job");
        hasher.update(&program.0).update(&key.0).update(input);
        Self(*hasher.finalize().as_bytes())
    }
}

fn read_hex(text: &str, bytes: &mut [u8]) -> Option<()> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if text.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(())
}

/// Whom keys and jobs belong to: the name of a token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Owner(String);

impl Owner {
    /// Whoever talks to a server without tokens; no token may have this name.
    pub fn anonymous() -> Self {
        Self("anonymous".to_owned())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Owner {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        match (1..=32).contains(&text.len()) && text.chars().all(is_fit) && !text.starts_with('-') {
            true => Ok(Self(text.to_owned())),
            false => Err(BadName("a name has 1 to 32 lower-case letters, digits or hyphens")),
        }
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// One client's keys for one program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyRef {
    /// Whose.
    pub owner: Owner,
    /// For which program.
    pub program: ProgramId,
    /// Which.
    pub key: KeyName,
}

/// One client's job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobRef {
    /// Whose.
    pub owner: Owner,
    /// Which.
    pub id: JobId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_what_they_print_and_nothing_else() {
        let key = KeyName([0xa5; 16]);
        assert_eq!(key.to_string().parse(), Ok(key));
        for bad in [
            "",
            "a5",
            &"A5".repeat(16),
            &"g5".repeat(16),
            &"a5".repeat(17),
            "../../../../etc/passwd/../../..",
        ] {
            assert!(bad.parse::<KeyName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_clients_are_fit_for_paths() {
        assert!("clinic-7".parse::<Owner>().is_ok());
        for bad in ["", ".", "..", "a/b", "-a", "A", "a b", &"a".repeat(33)] {
            assert!(bad.parse::<Owner>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_job_is_named_by_program_key_and_input() {
        let job = |p, k, i| JobId::of(ProgramId([p; 32]), KeyName([k; 16]), &[i; 32]);
        assert_eq!(job(1, 2, 3), job(1, 2, 3));
        for other in [job(0, 2, 3), job(1, 0, 3), job(1, 2, 0)] {
            assert_ne!(job(1, 2, 3), other);
        }
    }
}
