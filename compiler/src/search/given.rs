//! Parameters that are not searched: the paper's, or a user's own.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use fhe_bytecode::ParamsSpec;
use fhe_bytecode::params::{ntt_primes_below, ntt_primes_near, security_cap};
use serde::{Deserialize, Serialize};

use super::balance::uniform_sizes;
use super::key_switching::ScheduleError;
use super::like::Like;
use crate::schedule::Problem;
use crate::schedule::{ChainError, Sizes};

/// Largest parameter file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Where the parameters come from.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamsChoice {
    /// The smallest that keep the precision.
    Search,
    /// The sizes of paper §F.
    Paper,
    /// A file with a [`GivenParams`].
    File(PathBuf, Box<GivenParams>),
    /// Those of another program.
    Like(Box<Like>),
}

/// Parameters and scales fixed by hand, as read from RON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenParams {
    /// The moduli.
    pub params: ParamsSpec,
    /// Bits of the scale of the input.
    pub input_scale_bits: f64,
    /// Bits of the scale after every rescale; weight scales follow from the towers.
    pub activation_scale_bits: f64,
}

/// One row of paper §F: everything follows from the scale.
#[derive(Clone, Copy)]
struct PaperRow {
    levels: u32,
    log_n: u32,
    scale_bits: u32,
    first_bits: u32,
    special_bits: u32,
}

/// VGG-16, ResNet-18, ResNet-20 and ResNet-32, told apart by their levels.
const PAPER: [PaperRow; 4] = [
    PaperRow { levels: 16, log_n: 15, scale_bits: 25, first_bits: 26, special_bits: 54 },
    PaperRow { levels: 18, log_n: 15, scale_bits: 22, first_bits: 23, special_bits: 54 },
    PaperRow { levels: 20, log_n: 15, scale_bits: 21, first_bits: 22, special_bits: 44 },
    PaperRow { levels: 32, log_n: 16, scale_bits: 26, first_bits: 27, special_bits: 54 },
];

impl FromStr for ParamsChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "search" => Ok(Self::Search),
            "paper" => Ok(Self::Paper),
            path => {
                let content = fhe_host::read_bounded(Path::new(path), MAX_FILE_BYTES)
                    .map_err(|e| format!("{path}: cannot be read: {e}"))?;
                let given = ron::de::from_bytes(&content).map_err(|e| format!("{path}: {e}"))?;
                Ok(Self::File(PathBuf::from(path), Box::new(given)))
            }
        }
    }
}

impl ParamsChoice {
    /// The ring degree that goes with the choice, as log2.
    ///
    /// # Errors
    /// When the paper has no parameters for this number of levels.
    pub fn fixed_log_n(&self, levels: u32) -> Result<Option<u32>, ScheduleError> {
        match self {
            Self::Search => Ok(None),
            Self::Paper => paper_row(levels).map(|row| Some(row.log_n)),
            Self::File(_, given) => Ok(Some(given.params.log_n)),
            Self::Like(like) => Ok(Some(like.params.log_n)),
        }
    }

    /// Moduli and scales, if they are not searched.
    ///
    /// # Errors
    /// When the paper has no parameters for this number of levels, or no primes of its sizes exist.
    pub fn given(
        &self,
        problem: &Problem<'_>,
        insecure: bool,
    ) -> Result<Option<(ParamsSpec, Sizes)>, ScheduleError> {
        let positions = problem.positions();
        match self {
            Self::Search | Self::Like(_) => Ok(None),
            Self::File(_, given) => {
                let mut spec = given.params.clone();
                spec.insecure |= insecure;
                let (input, activation) = (given.input_scale_bits, given.activation_scale_bits);
                Ok(Some((spec, uniform_sizes(positions, input, activation, problem.rooms()))))
            }
            Self::Paper => {
                let row = paper_row(positions.n_levels())?;
                let spec = paper_spec(row, insecure).map_err(ChainError::from)?;
                let bits = f64::from(row.scale_bits);
                Ok(Some((spec, uniform_sizes(positions, bits, bits, problem.rooms()))))
            }
        }
    }
}

fn paper_row(levels: u32) -> Result<PaperRow, ScheduleError> {
    PAPER.into_iter().find(|row| row.levels == levels).ok_or(ScheduleError::NotInPaper { levels })
}

/// Towers near the square of the scale, a first one for the first convolution, one special prime.
fn paper_spec(row: PaperRow, insecure: bool) -> Result<ParamsSpec, fhe_bytecode::params::PrimeSearchError> {
    let square = f64::from(2 * row.scale_bits).exp2();
    let mut towers = ntt_primes_near(square, row.log_n, row.levels as usize, &[])?;
    let first = ntt_primes_below(row.first_bits, row.log_n, 1, &towers)?;
    towers.extend(first);
    let special_primes = ntt_primes_below(row.special_bits, row.log_n, 1, &towers)?;
    let toy = security_cap(row.log_n).is_none();
    Ok(ParamsSpec {
        log_n: row.log_n,
        towers,
        special_primes,
        digit_size: 1,
        pool: None,
        lower: Vec::new(),
        insecure,
        toy,
    })
}
