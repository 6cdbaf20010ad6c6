//! The grammar of the command line.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, Parser, Subcommand, ValueEnum};
use fhe_host::parse_bytes;

use super::remote::Remote;
use super::selection::Selection;

/// Version of the command, and of the files it reads and writes.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{} (program format {}, key and ciphertext format {})",
        env!("CARGO_PKG_VERSION"),
        fhe_bytecode::codec::VERSION,
        fhe_files::VERSION
    )
});

/// Evaluate compiled networks on encrypted inputs.
#[derive(Debug, Parser)]
#[command(
    name = "fhe-run",
    version = VERSION.as_str(),
    max_term_width = 110,
    after_help = "\
Examples:
  fhe-run infer model.fhebc cat.png                     everything in one process, for trying out
  fhe-run keygen model.fhebc --secret-key me.key --eval-keys me.evk
  fhe-run encrypt model.fhebc cat.png --secret-key me.key -o cat.ct
  fhe-run eval model.fhebc cat.ct --eval-keys me.evk -o result.ct
  fhe-run decrypt model.fhebc result.ct --secret-key me.key

Exit codes: 0 done, 1 cannot do that, 2 usage, 3 a bug in fhe-run, 130 interrupted.
Results go to standard output, everything else to standard error. NO_COLOR is respected."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Number of threads (default: all cores)
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Say nothing but results and errors
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a secret key and the evaluation keys a program needs
    #[command(
        after_help = "Example:\n  fhe-run keygen model.fhebc --secret-key me.key --eval-keys me.evk\n\n\
        The secret key stays with the client; the evaluation keys go to the server."
    )]
    Keygen(Keygen),
    /// Encrypt inputs with the secret key
    #[command(
        after_help = "Examples:\n  fhe-run encrypt model.fhebc cat.png --secret-key me.key -o cat.ct\n  \
        fhe-run encrypt model.fhebc test_batch.bin --index 0..8 --secret-key me.key -o eight.ct\n  \
        fhe-run encrypt model.fhebc facts.csv --model-input facts --secret-key me.key -o facts.ct"
    )]
    Encrypt(Encrypt),
    /// Join inputs of a model with several that were encrypted one by one; needs no secret
    #[command(after_help = "Example:\n  fhe-run join model.fhebc image.ct facts.ct -o both.ct")]
    Join(Join),
    /// Evaluate a program on ciphertexts; needs no secret
    #[command(
        after_help = "Example:\n  fhe-run eval model.fhebc cat.ct --eval-keys me.evk -o result.ct --profile"
    )]
    Eval(Eval),
    /// Decrypt results and show the best classes
    #[command(
        after_help = "Example:\n  fhe-run decrypt model.fhebc result.ct --secret-key me.key --format json"
    )]
    Decrypt(Decrypt),
    /// Make keys, encrypt, evaluate and decrypt in one process, for trying out
    #[command(
        after_help = "Examples:\n  fhe-run infer model.fhebc cat.png\n  fhe-run infer model.fhebc test_batch.bin --index 0..8 --check"
    )]
    Infer(Infer),
    /// Show a whole run on one input, with time, memory, security and precision
    #[command(after_help = "Example:\n  fhe-run demo model.fhebc cat.png\n\n\
        Exit code 1 if the class is not that of the clear evaluation, or the error is beyond what the program predicts.")]
    Demo(Demo),
    /// Measure evaluation time, memory and error
    #[command(after_help = "Example:\n  fhe-run bench model.fhebc --runs 5 --format json\n\n\
        Exit code 1 if a class is not that of the clear evaluation, or an error is beyond what the program predicts.")]
    Bench(Bench),
    /// Say what a program, interface, key or ciphertext file is
    #[command(after_help = "Example:\n  fhe-run info me.evk")]
    Info(Info),
    /// Have a server evaluate inputs that are encrypted here
    #[command(after_help = "Examples:\n  fhe-run remote http://127.0.0.1:8080 cat.png\n  \
        fhe-run remote http://127.0.0.1:8080 --keys-only\n\n\
        Keys are made once for a program and kept in your configuration folder; the server gets the evaluation keys only.")]
    Remote(Box<Remote>),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct Keygen {
    /// Program to make keys for, or its interface (.fhei)
    pub program: PathBuf,
    /// New file for the secret key; never overwritten, readable by you only
    #[arg(long, value_name = "FILE")]
    pub secret_key: PathBuf,
    /// New file for the evaluation keys; never overwritten
    #[arg(long, value_name = "FILE")]
    pub eval_keys: PathBuf,
    /// Most bytes that the evaluation keys may take on disk, as in 2GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub max_key_bytes: Option<u64>,
    #[command(flatten)]
    pub insecure: InsecureArg,
    #[command(flatten)]
    pub summary: SummaryArg,
}

#[derive(Debug, Args)]
pub(crate) struct Encrypt {
    /// Program the input is for, or its interface (.fhei)
    pub program: PathBuf,
    #[command(flatten)]
    pub input: InputArgs,
    /// Secret key of the client
    #[arg(long, value_name = "FILE")]
    pub secret_key: PathBuf,
    /// New ciphertext file
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Of a model with several inputs, encrypt this one alone; `fhe-run join` puts them together
    #[arg(long, value_name = "NAME")]
    pub model_input: Option<String>,
    /// Leave out the names of the samples, which the server could read
    #[arg(long)]
    pub no_names: bool,
    #[command(flatten)]
    pub summary: SummaryArg,
}

#[derive(Debug, Args)]
pub(crate) struct Join {
    /// Program the inputs are for, or its interface (.fhei)
    pub program: PathBuf,
    /// What `encrypt --model-input` wrote, one file for each of the model's inputs
    #[arg(required = true)]
    pub parts: Vec<PathBuf>,
    /// New ciphertext file, for eval
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub summary: SummaryArg,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Program to evaluate
    pub program: PathBuf,
    /// Encrypted inputs
    pub ciphertexts: PathBuf,
    /// Evaluation keys of the client
    #[arg(long, value_name = "FILE")]
    pub eval_keys: PathBuf,
    /// New file for the encrypted results
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub summary: SummaryArg,
}

#[derive(Debug, Args)]
pub(crate) struct Decrypt {
    /// Program that made the result, or its interface (.fhei)
    pub program: PathBuf,
    /// Encrypted results
    pub ciphertexts: PathBuf,
    /// Secret key of the client
    #[arg(long, value_name = "FILE")]
    pub secret_key: PathBuf,
    /// The encrypted inputs that the results must answer; stale, swapped and foreign results are refused
    #[arg(long, value_name = "FILE")]
    pub request: Option<PathBuf>,
    #[command(flatten)]
    pub show: ShowArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Infer {
    /// Program to evaluate
    pub program: PathBuf,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Compare every result with the clear evaluation; exit code 1 if a class differs or an error is beyond the bound
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub show: ShowArgs,
    #[command(flatten)]
    pub insecure: InsecureArg,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Program to evaluate
    pub program: PathBuf,
    #[command(flatten)]
    pub sample: SampleArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    pub format: TextFormat,
    #[command(flatten)]
    pub insecure: InsecureArg,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Program to measure
    pub program: PathBuf,
    #[command(flatten)]
    pub sample: SampleArgs,
    /// Measured evaluations; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Evaluations before the first measured one (they fill the plaintext cache)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub warmup: u32,
    /// Images evaluated at once, which share plaintexts and keys; seconds are those of one image
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub batch: u32,
    #[command(flatten)]
    pub run: RunArgs,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    pub format: TextFormat,
    #[command(flatten)]
    pub insecure: InsecureArg,
}

#[derive(Debug, Args)]
pub(crate) struct Info {
    /// Program (.fhebc), interface (.fhei), key or ciphertext file
    pub file: PathBuf,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    pub format: TextFormat,
}

#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Pictures or folders of them, .npy, .npz, .csv, CIFAR-10 .bin or idx files (each may be gzipped)
    #[arg(required = true)]
    pub inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub taken: TakenArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TakenArgs {
    /// Which samples of a file that holds several: 3, 0..8 or all (default: all, of up to 100)
    #[arg(long, value_name = "RANGE")]
    pub index: Option<Selection>,
    /// Stretch pictures of another size to the model's
    #[arg(long)]
    pub resize: bool,
    /// Accept inputs far outside those the model was calibrated on
    #[arg(long)]
    pub any_range: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    /// An input; without one, a random input is made
    pub input: Option<PathBuf>,
    /// Which sample of the input file
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub index: usize,
    /// Stretch a picture of another size to the model's
    #[arg(long)]
    pub resize: bool,
    /// Accept an input far outside those the model was calibrated on
    #[arg(long)]
    pub any_range: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Memory for keys, ciphertexts and cached plaintexts, as in 8GiB (default: what is available)
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory: Option<u64>,
    /// Say where the time went; with FILE write it as JSON, or as a Chrome trace if FILE ends in .trace.json
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub profile: Option<Option<PathBuf>>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// How to print the result
    #[arg(long, value_enum, default_value_t = ResultFormat::Text)]
    format: ResultFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Show scores, rounded to what the noise leaves; keep them from the server (see docs/security.md)
    #[arg(long)]
    pub scores: bool,
    /// Number of best classes to show with --scores
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub top: usize,
    /// Show every decrypted value unrounded; a file of them is for you only, and they must never reach the server (see
    /// docs/security.md)
    #[arg(long)]
    pub raw: bool,
    /// Write the result to a file instead
    #[arg(long = "result", value_name = "FILE")]
    pub result_file: Option<PathBuf>,
}

impl ShowArgs {
    /// How to print the result.
    pub(crate) fn format(&self) -> ResultFormat {
        if self.json { ResultFormat::Json } else { self.format }
    }
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct SummaryArg {
    /// Sum up on standard error, or as JSON on standard output
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    pub format: TextFormat,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct InsecureArg {
    /// Accept a program whose parameters are below 128 bits of security
    #[arg(long)]
    pub insecure: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultFormat {
    /// A table
    Text,
    /// For programs
    Json,
    /// For spreadsheets: a row for every sample
    Csv,
    /// A NumPy array of all scores; needs --raw and --result
    Npy,
}
