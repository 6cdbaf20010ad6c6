//! Key and ciphertext files on disk: written whole or not at all, secrets for the owner only.

use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};

use fhe_bytecode::text::harmless;
use fhe_bytecode::{Fingerprint, Params};
use fhe_ckks::{Context, EvaluationKeys, KeyId, KeyRequest};
use fhe_client::{decode_secret_key, encode_secret_key, secret_key_len};
use fhe_diagnostics::remedy;
use fhe_files::{
    Ciphertexts, Contents, EvaluationKeysWriter, Expected, FormatError, Header, Kind, Request, Role,
    decode_ciphertexts, decode_header, decode_request, decode_requested_keys, encode_ciphertexts,
};
use fhe_host::{Content, WriteError, write_whole};
use fhe_secret::{SecretKey, SeedSource};
use zeroize::Zeroizing;

/// A key or ciphertext file that cannot be used or written, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", harmless(&path.to_string_lossy()))]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub kind: FileErrorKind,
}

/// The reason inside a [`FileError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// The operating system refused.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// Not written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The content is refused.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Made with another secret key.
    #[error("belongs to key {found}, but key {expected} is in use")]
    WrongKey {
        /// Key id in the file.
        found: KeyId,
        /// Key id in use.
        expected: KeyId,
    },
    /// A secret key that other users of the machine can read.
    #[error("holds a secret key, but others can read it (mode {mode:04o})")]
    SecretReadable {
        /// Permission bits.
        mode: u32,
    },
}

impl FileErrorKind {
    /// What the user can do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Io(_) | Self::Format(FormatError::Io(_)) => remedy::READ,
            Self::Write(error) => remedy::write(error),
            Self::Format(FormatError::WrongKind { .. }) => {
                "check the order of the arguments; `fhe-run info FILE` says what a file is"
            }
            Self::Format(FormatError::UnsupportedVersion { .. }) => {
                "use a newer release, or make the file again with this one"
            }
            Self::Format(FormatError::WrongParameters { .. } | FormatError::WrongProgram { .. }) => {
                "make keys and ciphertexts with the very program file that is evaluated"
            }
            Self::WrongKey { .. } => "use the secret key and the evaluation keys of one `fhe-run keygen`",
            Self::Format(FormatError::WrongRole { .. }) => {
                "eval takes what encrypt wrote, or join made of several inputs; decrypt takes what eval wrote"
            }
            Self::Format(FormatError::KeyMissing { .. } | FormatError::KeyNotAsked { .. }) => {
                "make keys for this program with `fhe-run keygen`"
            }
            Self::Format(FormatError::WrongRequest { .. } | FormatError::WrongSamples { .. }) => {
                "ask the server for the result of this request"
            }
            Self::Format(FormatError::NoRequest) => {
                "evaluate again with this release, or leave --request out"
            }
            Self::Format(_) => "copy the file again, or make it again",
            Self::SecretReadable { .. } => "run chmod 600 on it",
        }
    }
}

/// Makes every key of `request` and writes it at once, so that only one is in memory at a time.
///
/// `progress` is told the part that is done after each key.
///
/// # Errors
/// If a key cannot be made or the file cannot be written.
pub fn generate_evaluation_keys(
    path: &Path,
    context: &Context,
    secret: &SecretKey,
    request: &KeyRequest,
    seeds: &mut SeedSource,
    progress: &mut dyn FnMut(f64),
) -> Result<(), FileError> {
    write_atomically(path, Content::New, |file| {
        let mut writer = EvaluationKeysWriter::new(file, context, secret.id(), request)?;
        for (done, wanted) in request.iter().enumerate() {
            let digits = secret.key_digits(context, wanted, seeds).map_err(std::io::Error::other)?;
            writer.write(context, wanted, digits.seed(), digits)?;
            progress((done + 1) as f64 / request.len() as f64);
        }
        writer.finish()?;
        Ok(())
    })
}

/// Reads exactly the evaluation keys of `request`; `progress` is told the part that is read.
///
/// # Errors
/// If the file is damaged or for other parameters, or holds other keys; that is found before a residue is read.
pub fn read_evaluation_keys(
    path: &Path,
    context: &Context,
    request: &KeyRequest,
    progress: &mut dyn FnMut(f64),
) -> Result<EvaluationKeys, FileError> {
    read(path, Kind::EvaluationKeys, |file, len| {
        let counted = Counted { inner: file, read: 0, len, progress };
        decode_requested_keys(counted, len, context, request)
    })
}

/// A reader that tells the part that was read.
struct Counted<'a, R> {
    inner: R,
    read: u64,
    len: u64,
    progress: &'a mut dyn FnMut(f64),
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read += n as u64;
        (self.progress)(self.read as f64 / self.len.max(1) as f64);
        Ok(n)
    }
}

/// Writes samples that look as `expected`; gives the request that such a file of inputs is.
///
/// # Errors
/// If the samples do not look so, or the file cannot be written.
pub fn write_ciphertexts(
    path: &Path,
    context: &Context,
    expected: &Expected,
    ciphertexts: &Ciphertexts,
) -> Result<(), FileError> {
    write_atomically(path, Content::Magic(Kind::Ciphertexts.magic()), |file| {
        encode_ciphertexts(file, context, expected, ciphertexts)?;
        Ok(())
    })
}

/// Reads samples for the parameters of `context` that look as `expected`.
///
/// # Errors
/// If the file is damaged, is for other parameters or another program, or has other levels or scales.
pub fn read_ciphertexts(
    path: &Path,
    context: &Context,
    expected: &Expected,
) -> Result<Ciphertexts, FileError> {
    read(path, Kind::Ciphertexts, |file, len| decode_ciphertexts(file, len, context, expected))
}

/// As [`read_ciphertexts`], with the request that a file of inputs is.
///
/// # Errors
/// As [`read_ciphertexts`].
pub fn read_inputs(
    path: &Path,
    context: &Context,
    expected: &Expected,
) -> Result<(Ciphertexts, Request), FileError> {
    read(path, Kind::Ciphertexts, |file, len| decode_request(file, len, context, expected))
}

/// The request that a file of inputs is.
///
/// # Errors
/// If the file is damaged, no file of inputs, or for other parameters or another program.
pub fn read_request(path: &Path, context: &Context, expected: &Expected) -> Result<Request, FileError> {
    read(path, Kind::Ciphertexts, |file, len| fhe_files::read_request(file, len, context, expected))
}

/// The role of a file of ciphertexts.
///
/// # Errors
/// If the file is none of ciphertexts, or cut short.
pub fn read_role(path: &Path) -> Result<Role, FileError> {
    read(path, Kind::Ciphertexts, fhe_files::read_role)
}

/// Writes a secret key, made for `program`, to a new file that only its owner can read.
///
/// # Errors
/// If the file exists already or cannot be written.
pub fn write_secret_key(
    path: &Path,
    context: &Context,
    key: &SecretKey,
    program: Fingerprint,
) -> Result<(), FileError> {
    write_atomically(path, Content::Secret, |file| {
        Ok(file.write_all(&encode_secret_key(context, key, program)?)?)
    })
}

/// Reads a secret key made for the parameters of `context`, and the program it was made for, if the file tells it.
///
/// # Errors
/// If others can read the file, it is damaged, or it is for other parameters.
pub fn read_secret_key(
    path: &Path,
    context: &Context,
) -> Result<(SecretKey, Option<Fingerprint>), FileError> {
    let read = || -> Result<_, FileErrorKind> {
        let (mut file, len) = open(path, Kind::SecretKey)?;
        let mut data = Zeroizing::new(vec![0; secret_key_len(context)]);
        if len < data.len() as u64 {
            // An older key, or too short for one; the decoder says what is missing, or that this is no key at all.
            data.truncate(len as usize);
        }
        file.read_exact(&mut data)?;
        let key = decode_secret_key(&data, context)?;
        match len - data.len() as u64 {
            0 => Ok(key),
            n_bytes => Err(FormatError::TrailingBytes { n_bytes }.into()),
        }
    };
    read().map_err(|kind| FileError { path: path.to_path_buf(), kind })
}

/// Reads the header of a file of `kind`; says nothing about the rest of it.
///
/// # Errors
/// If the file cannot be read or is of another kind.
pub fn read_header(path: &Path, kind: Kind) -> Result<Header, FileError> {
    read(path, kind, |file, len| decode_header(file, len, kind))
}

/// Reads the front of a ciphertext file; says nothing about the rest of it.
///
/// # Errors
/// If the file cannot be read or is no ciphertext file.
pub fn read_contents(path: &Path) -> Result<Contents, FileError> {
    read(path, Kind::Ciphertexts, fhe_files::read_contents)
}

/// How many keys a file of evaluation keys says that it has.
///
/// # Errors
/// If the file cannot be read or is no such file.
pub fn count_evaluation_keys(path: &Path) -> Result<usize, FileError> {
    read(path, Kind::EvaluationKeys, fhe_files::count_evaluation_keys)
}

/// Refuses a file of `kind` that is for other parameters; reads nothing but its header.
///
/// # Errors
/// If the file cannot be read, is of another kind, or for other parameters.
pub fn check_parameters(path: &Path, kind: Kind, params: &Params) -> Result<(), FileError> {
    read(path, kind, |file, len| decode_header(file, len, kind)?.check_parameters(params))
}

/// Reads a file of `kind` through a buffer.
fn read<T>(
    path: &Path,
    kind: Kind,
    decode: impl FnOnce(BufReader<File>, u64) -> Result<T, FormatError>,
) -> Result<T, FileError> {
    let read = || -> Result<T, FileErrorKind> {
        let (file, len) = open(path, kind)?;
        Ok(decode(BufReader::with_capacity(1 << 16, file), len)?)
    };
    read().map_err(|kind| FileError { path: path.to_path_buf(), kind })
}

/// Refuses a file of ciphertexts before the work for it is done.
///
/// # Errors
/// If the file cannot be written or may not be replaced.
pub fn check_ciphertexts(path: &Path) -> Result<(), FileError> {
    check_target(path, Content::Magic(Kind::Ciphertexts.magic()))
}

/// Refuses any output before the work for it is done.
///
/// # Errors
/// If the file cannot be written or may not be replaced.
pub fn check_target(path: &Path, content: Content) -> Result<(), FileError> {
    fhe_host::check_target(path, content)
        .map_err(|error| FileError { path: path.to_path_buf(), kind: error.into() })
}

/// Writes a file that is there completely or not at all; see [`write_whole`].
///
/// # Errors
/// If the file cannot be written, or `write` fails; then nothing is left behind.
pub fn write_atomically(
    path: &Path,
    content: Content,
    write: impl FnOnce(&mut dyn Write) -> Result<(), FileErrorKind>,
) -> Result<(), FileError> {
    write_whole(path, content, write).map_err(|kind| {
        let kind = match kind {
            FileErrorKind::Io(error) | FileErrorKind::Format(FormatError::Io(error)) => {
                FileErrorKind::Write(WriteError::Io(error))
            }
            other => other,
        };
        FileError { path: path.to_path_buf(), kind }
    })
}

/// Opens a file for reading and gives its length. A secret key that others can read is refused.
///
/// # Errors
/// If the file cannot be opened or is a secret key with too wide permissions.
fn open(path: &Path, kind: Kind) -> Result<(File, u64), FileErrorKind> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let found = first_kind(&mut file)?.unwrap_or(kind);
    #[cfg(unix)]
    // A file of another kind may be readable by all; its decoder says that the kind is wrong.
    if kind == Kind::SecretKey && found == kind {
        use std::os::unix::fs::PermissionsExt;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(FileErrorKind::SecretReadable { mode });
        }
    }
    #[cfg(not(unix))]
    let _ = found;
    Ok((file, metadata.len()))
}

/// The kind that the first bytes tell; the file is at its start afterwards.
fn first_kind(file: &mut File) -> std::io::Result<Option<Kind>> {
    let mut magic = Vec::new();
    Read::by_ref(file).take(8).read_to_end(&mut magic)?;
    file.rewind()?;
    Ok(Kind::of_magic(&magic))
}

/// The kind of a file by its magic; `None` if it is none of ours.
///
/// # Errors
/// If the file cannot be read.
pub fn kind_of(path: &Path) -> Result<Option<Kind>, FileError> {
    let read = || -> Result<Option<Kind>, FileErrorKind> { Ok(first_kind(&mut File::open(path)?)?) };
    read().map_err(|kind| FileError { path: path.to_path_buf(), kind })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use fhe_bytecode::ParamsSpec;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn secret_is_for_the_owner_only_and_refused_otherwise() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_atomically(&path, Content::Secret, |w| Ok(w.write_all(b"one")?)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(open(&path, Kind::SecretKey).is_ok());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(open(&path, Kind::SecretKey), Err(FileErrorKind::SecretReadable { mode: 0o640 })));
        fs::write(&path, Kind::EvaluationKeys.magic()).unwrap();
        assert!(open(&path, Kind::SecretKey).is_ok(), "no secret, so the decoder may say what it is");
    }

    #[test]
    fn longer_secret_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("me.key");
        let towers = fhe_bytecode::params::ntt_primes_below(30, 5, 1, &[]).unwrap();
        let special_primes = fhe_bytecode::params::ntt_primes_below(33, 5, 1, &towers).unwrap();
        let spec = ParamsSpec { insecure: false, ..ParamsSpec::toy(5, towers, special_primes) };
        let context = Context::new(Params::new(spec).unwrap()).unwrap();
        let key = SecretKey::generate(&context, &mut SeedSource::os()).unwrap();
        let mut data = encode_secret_key(&context, &key, Fingerprint([7; 32])).unwrap().to_vec();
        data.push(0);
        write_atomically(&path, Content::Secret, |file| Ok(file.write_all(&data)?)).unwrap();
        let kind = read_secret_key(&path, &context).err().unwrap().kind;
        assert!(matches!(kind, FileErrorKind::Format(FormatError::TrailingBytes { n_bytes: 1 })));
    }
}
