//! What may be asked of a compilation. One set of defaults serves every caller.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use fhe_bytecode::{CheckedProgram, CostModel, Preprocessing};
use fhec_ir::Graph;

use super::CompileError;
use super::calibration::Calibration;
use crate::cluster::ClusterOptions;
use crate::fit::FitSpec;
use crate::import::{self, ImportOptions, Imported, InputInfo};
use crate::pipeline::{LayoutChoice, ParamsChoice, Segmentation, TowerChoice};

/// Memory that an evaluation may take unless the caller says otherwise.
const DEFAULT_MEMORY: u64 = 16 << 30;

/// What to compile and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// The model; several of one architecture become an ensemble whose scores are averaged.
    pub models: Vec<Model>,
    /// Replaces ReLU and its relatives by the best polynomial of this specification.
    pub relu: Option<FitSpec>,
    /// Replaces functions that are no polynomials by polynomials fitted to what the calibration inputs lead to.
    pub approximate: bool,
    /// Names of the model's outputs to compute; empty: all of them.
    pub outputs: Vec<String>,
    /// Mean and deviation of pixels from 0 to 1: one number for all channels, or one for each; empty: as the model says.
    pub preprocessing: Preprocessing,
    /// Names of the classes, one for every score; empty: as the model says.
    pub classes: Vec<String>,
    /// What values and errors are measured on.
    pub calibration: Calibration,
    /// Codebooks for the convolutions.
    pub cluster: Option<ClusterOptions>,
    /// Node fusing (F).
    pub fuse: bool,
    /// Weight redistribution (R).
    pub redistribute: bool,
    /// How channels share ciphertexts.
    pub layout: LayoutChoice,
    /// Multiplications per level; 1 switches tower reuse (T) off.
    pub sublevels: u32,
    /// Bits between the largest result and the deviation of its error. None: 6 to 9, as much as costs little, and more
    /// where a class of the calibration inputs needs it.
    pub precision: Option<f64>,
    /// Where the parameters come from.
    pub params: ParamsChoice,
    /// A program whose keys are to serve: its parameters and layout are taken, and no key that it does not need.
    pub like: Option<Box<CheckedProgram>>,
    /// log2 of the ring degrees that may be used, the smallest that fits first; None: all that protect.
    pub log_n: Option<RangeInclusive<u32>>,
    /// Accept rings that protect nothing.
    pub toy: bool,
    /// Bits between every value and half the modulus it is in; without a wish at least 1.5, and 3 or more where they cost
    /// nothing.
    pub headroom: Option<f64>,
    /// What the moduli of the levels are made of.
    pub towers: TowerChoice,
    /// What lower levels may have of their own: rings, special primes and digits.
    pub segmentation: Segmentation,
    /// Accept a modulus beyond the security bound.
    pub insecure: bool,
    /// Inputs that are evaluated together, a power of two: where layouts leave slots free, they share ciphertexts.
    pub batch: usize,
    /// Bytes that keys, plaintexts and ciphertexts of one evaluation may take.
    pub memory: u64,
    /// What operations cost on the machine that evaluates.
    pub costs: CostModel,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            relu: None,
            approximate: false,
            outputs: Vec::new(),
            preprocessing: Preprocessing::default(),
            classes: Vec::new(),
            calibration: Calibration::MadeUp,
            cluster: None,
            fuse: true,
            redistribute: true,
            layout: LayoutChoice::Auto,
            sublevels: 2,
            precision: None,
            params: ParamsChoice::Search,
            like: None,
            log_n: None,
            toy: false,
            headroom: None,
            towers: TowerChoice::default(),
            segmentation: Segmentation::default(),
            insecure: false,
            batch: 1,
            memory: DEFAULT_MEMORY,
            costs: CostModel::default(),
        }
    }
}

impl Request {
    /// Everything by default, for one model.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self { models: vec![model], ..Self::default() }
    }
}

/// One model, and how messages call it. The program is named after the last part of the name, without its ending.
#[derive(Clone, Debug)]
pub struct Model {
    /// The name.
    pub name: String,
    /// The network.
    pub source: Source,
}

/// Where a network comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The bytes of an ONNX file.
    Onnx {
        /// The bytes.
        bytes: Vec<u8>,
        /// The folder of the files that hold tensors outside the model. Bytes alone cannot name them: without a
        /// folder, a model with external data is refused.
        external: Option<PathBuf>,
    },
    /// A model that was read before.
    Imported(Box<Imported>),
}

impl Model {
    /// An ONNX model whose tensors are all inside.
    #[must_use]
    pub fn onnx(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), source: Source::Onnx { bytes, external: None } }
    }

    /// An ONNX file, with the folder it lies in for external tensors.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn file(path: &Path) -> Result<Self, CompileError> {
        let name = path.display().to_string();
        let bytes = import::read_file(path)
            .map_err(|source| CompileError::Import { model: name.clone(), source: Box::new(source) })?;
        Ok(Self { name, source: Source::Onnx { bytes, external: Some(import::folder_of(path)) } })
    }

    /// A model that was read before.
    #[must_use]
    pub fn imported(name: impl Into<String>, imported: Imported) -> Self {
        Self { name: name.into(), source: Source::Imported(Box::new(imported)) }
    }

    /// A network without a file: its inputs and outputs have no names, and nothing is known about using it.
    #[must_use]
    pub fn graph(name: impl Into<String>, graph: Graph) -> Self {
        let inputs = graph.inputs().iter().map(|&id| InputInfo::unnamed(graph.shape(id))).collect();
        let outputs = graph.outputs().iter().map(|_| String::new()).collect();
        let imported = Imported {
            graph,
            inputs,
            outputs,
            ports: Vec::new(),
            tails: Vec::new(),
            gaps: Vec::new(),
            labels: None,
            preprocessing: None,
            notes: Vec::new(),
            producer: String::new(),
            opset: 0,
        };
        Self::imported(name, imported)
    }

    /// Reads the model.
    pub(super) fn import(&self, options: &ImportOptions) -> Result<Imported, CompileError> {
        match &self.source {
            Source::Onnx { bytes, external } => {
                import::import(bytes.clone(), external.as_deref(), options).map_err(|source| {
                    CompileError::Import { model: self.name.clone(), source: Box::new(source) }
                })
            }
            Source::Imported(imported) => Ok(Imported::clone(imported)),
        }
    }

    /// The name of its program.
    pub(super) fn stem(&self) -> String {
        Path::new(&self.name).file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned())
    }
}
