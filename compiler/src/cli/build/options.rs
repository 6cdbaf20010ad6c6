//! The options of a build on the command line, and the request they make.

use std::path::{Path, PathBuf};

use fhe_bytecode::{Cpu, Preprocessing};
use fhe_host::parse_bytes;

use super::super::program::read_program;
use super::super::relu;
use crate::cluster::{ClusterOptions, MAX_CENTROIDS, Method, Order};
use crate::diagnostics::{Diagnostic, Kind, Words};
use crate::fit::FitSpec;
use crate::pipeline::{LayoutChoice, ParamsChoice, RingChoice, Segmentation, SpecialChoice, TowerChoice};
use crate::schedule::LEAST_HEADROOM;
use crate::{Calibration, Compiled, ImageFile, Model, Observer, Request, compile};

/// Largest image file that is read.
const MAX_IMAGE_BYTES: u64 = 512 << 20;

/// More bits above a value than anybody needs.
const MOST_HEADROOM: f64 = 40.0;

/// A kind of CPU to build for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum CpuChoice {
    /// That of this machine
    Native,
    /// No vector instructions that kernels know
    Scalar,
    /// AVX2 and FMA
    Avx2,
    /// AVX512
    Avx512,
    /// AVX512 with 52-bit integer products
    #[default]
    Avx512Ifma,
}

impl CpuChoice {
    fn cpu(self) -> Cpu {
        match self {
            Self::Native => Cpu::native(),
            Self::Scalar => Cpu::Scalar,
            Self::Avx2 => Cpu::Avx2,
            Self::Avx512 => Cpu::Avx512,
            Self::Avx512Ifma => Cpu::Avx512Ifma,
        }
    }
}

/// What may be asked of a build, whatever becomes of its program.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Options {
    /// How channels share ciphertexts
    #[arg(long, value_enum, default_value_t = LayoutChoice::Auto)]
    layout: LayoutChoice,
    /// Multiplications per level; 1 switches tower reuse off
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=8))]
    sublevels: u32,
    /// Bits between the largest score and the deviation of its error [default: 6 to 9, as much as costs little]
    #[arg(long)]
    precision: Option<f64>,
    /// Bits that every value keeps free below half its modulus, from 1.5 [default: 1.5, or 3 and more where they cost nothing]
    #[arg(long, value_name = "BITS", value_parser = headroom)]
    headroom: Option<f64>,
    /// What the moduli of the levels are made of
    #[arg(long, value_enum, default_value_t)]
    towers: TowerChoice,
    /// Rings of the levels
    #[arg(long, value_enum, default_value_t)]
    rings: RingChoice,
    /// Special primes and digits of the levels
    #[arg(long, value_enum, default_value_t)]
    special: SpecialChoice,
    /// CPU of the server, for what operations cost; the same for everybody unless given, so that builds are reproducible
    #[arg(long, value_enum, default_value_t)]
    cpu: CpuChoice,
    /// Measure values on these images (CIFAR-10 binary, idx, npy, PNG, a folder of pictures) instead of made-up pictures, and
    /// keep their classes
    #[arg(long, value_name = "IMAGES")]
    calibrate: Option<PathBuf>,
    /// `search`, `paper`, or a RON file with parameters and scales
    #[arg(long, default_value = "search", value_name = "WHICH")]
    params: ParamsChoice,
    /// Take parameters, layout and keys of this program, so that clients keep theirs; refused where the network is another one
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["params", "log_n", "layout", "precision"])]
    like: Option<PathBuf>,
    /// log2 of the ring degree, instead of the smallest that fits
    #[arg(long, value_parser = clap::value_parser!(u32).range(5..=17))]
    log_n: Option<u32>,
    /// Memory that keys, plaintexts and ciphertexts of one evaluation may take, such as 8G
    #[arg(long, value_parser = parse_bytes, default_value = "16G")]
    memory: u64,
    /// Images that are evaluated together, a power of two: where their values leave slots free they share ciphertexts, so that
    /// each takes less time than alone
    #[arg(long, default_value_t = 1, value_name = "N")]
    batch: usize,
    /// Build for a ring that protects nothing, to try things out
    #[arg(long)]
    toy: bool,
    /// Accept parameters below 128 bits of security
    #[arg(long)]
    insecure: bool,
    /// Mean of each channel of pixels from 0 to 1
    #[arg(long, value_delimiter = ',', num_args = 1..)]
    mean: Vec<f64>,
    /// Deviation of each channel of pixels from 0 to 1
    #[arg(long, value_delimiter = ',', num_args = 1..)]
    std: Vec<f64>,
    /// Replace convolution weights by the entries of codebooks, so that plaintexts are shared
    #[arg(long, value_enum, value_name = "METHOD")]
    cluster: Option<Method>,
    /// Most entries of a codebook
    #[arg(long, default_value_t = 64, value_name = "K", requires = "cluster",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CENTROIDS)))]
    centroids: u32,
    /// Seed of the first centroids
    #[arg(long, default_value_t = 1, value_name = "SEED", requires = "cluster")]
    cluster_seed: u64,
    /// Whether codebooks are for the weights of the model or for those that are encoded
    #[arg(long, value_enum, default_value_t = Order::After, value_name = "ORDER", requires = "cluster")]
    cluster_order: Order,
    /// Names of the classes
    #[arg(long, value_delimiter = ',', num_args = 1..)]
    labels: Vec<String>,
    /// Replace ReLU and its relatives, as `quadratic[,c=2,b=10]`
    #[arg(long, value_parser = relu::parse, value_name = "SPEC")]
    relu: Option<FitSpec>,
    /// Replace functions that are no polynomials (ReLU, SiLU, Tanh, …) by polynomials fitted to what the images of `--calibrate`
    /// lead to, layer by layer
    #[arg(long, requires = "calibrate", conflicts_with = "relu")]
    approximate: bool,
    /// Compute this output of the model and no other (may be repeated) [default: all of them]
    #[arg(long, value_name = "NAME")]
    model_output: Vec<String>,
    /// Switch node fusing (F) off
    #[arg(long)]
    no_fuse: bool,
    /// Switch weight redistribution (R) off
    #[arg(long)]
    no_redistribute: bool,
}

fn headroom(text: &str) -> Result<f64, String> {
    let bits: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    let allowed = LEAST_HEADROOM..=MOST_HEADROOM;
    if allowed.contains(&bits) { Ok(bits) } else { Err(format!("{bits} is not in {allowed:?}")) }
}

impl Options {
    /// Memory that an evaluation may take.
    pub(in crate::cli) fn memory(&self) -> u64 {
        self.memory
    }

    /// Compiles models as the options ask.
    pub(in crate::cli) fn compile(
        &self,
        models: &[PathBuf],
        observer: &mut dyn Observer,
    ) -> Result<Compiled, Diagnostic> {
        let request = self.request(models)?;
        let name = request.models.first().map_or_else(String::new, |model| model.name.clone());
        compile(&request, observer).map_err(|error| Diagnostic::compile(&name, &error))
    }

    /// What they would be compiled to without `--like`; nothing if there is no `--like`, or no such program.
    pub(in crate::cli) fn otherwise(&self, models: &[PathBuf]) -> Option<Compiled> {
        let request = self.request(models).ok()?;
        request.like.as_ref()?;
        compile(&Request { like: None, ..request }, &mut ()).ok()
    }

    fn request(&self, models: &[PathBuf]) -> Result<Request, Diagnostic> {
        let read = |path: &PathBuf| {
            Model::file(path).map_err(|error| Diagnostic::compile(&path.display().to_string(), &error))
        };
        Ok(Request {
            models: models.iter().map(read).collect::<Result<_, _>>()?,
            relu: self.relu,
            approximate: self.approximate,
            outputs: self.model_output.clone(),
            preprocessing: Preprocessing { mean: self.mean.clone(), std: self.std.clone() },
            classes: self.labels.clone(),
            calibration: self.calibrate.as_deref().map_or(Ok(Calibration::MadeUp), calibration)?,
            cluster: self.cluster.map(|method| ClusterOptions {
                method,
                centroids: self.centroids,
                seed: self.cluster_seed,
                order: self.cluster_order,
            }),
            fuse: !self.no_fuse,
            redistribute: !self.no_redistribute,
            layout: self.layout,
            sublevels: self.sublevels,
            precision: self.precision,
            params: self.params.clone(),
            like: self.like.as_deref().map(read_program).transpose()?.map(Box::new),
            log_n: self.log_n.map(|log_n| log_n..=log_n),
            toy: self.toy,
            batch: self.batch,
            headroom: self.headroom,
            towers: self.towers,
            segmentation: Segmentation { rings: self.rings, special: self.special },
            costs: self.cpu.cpu().costs(),
            insecure: self.insecure,
            memory: self.memory,
        })
    }
}

/// A file of images, or all pictures of a folder in the order of their names.
fn calibration(path: &Path) -> Result<Calibration, Diagnostic> {
    let files = fhe_input::files(&[path.to_owned()]).map_err(|e| Diagnostic::input(&e))?;
    let read = |path: &PathBuf| {
        let cannot = |why: String| Diagnostic::new(Kind::Cannot, format!("{}: {why}", path.display()));
        let bytes = fhe_host::read_bounded(path, MAX_IMAGE_BYTES)
            .map_err(|e| cannot(format!("cannot be read: {e}")).with_help(fhe_diagnostics::remedy::READ))?;
        match bytes.len() as u64 > MAX_IMAGE_BYTES {
            true => Err(cannot(format!("larger than the limit of {MAX_IMAGE_BYTES} bytes"))
                .with_help("give fewer images; some hundred show the range of most models")),
            false => Ok(ImageFile { name: path.display().to_string(), bytes }),
        }
    };
    Ok(Calibration::Files(files.iter().map(read).collect::<Result<_, _>>()?))
}
