//! Measured times and memory: the profile of `fhe-run bench` or `fhe-run eval`, matched with the program it is of.

use fhe_bytecode::CheckedProgram;
use serde::Deserialize;

/// What was measured, layer by layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Wall-clock seconds of one evaluation.
    pub total_seconds: f64,
    /// Evaluations that the profile has.
    pub n_evaluations: usize,
    /// By layer of the program: seconds of one evaluation.
    pub seconds: Vec<f64>,
    /// By layer of the program: largest resident memory in bytes, where the profile tells it.
    pub resident_bytes: Vec<Option<u64>>,
}

/// Why a profile cannot be shown beside a program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Not JSON, or not that of a profile.
    #[error("this is no profile: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The numbers of operations do not fit.
    #[error("the profile has {found} operations, an evaluation of this program {expected}")]
    Length {
        /// Operations of the profile.
        found: usize,
        /// Instructions of the program.
        expected: usize,
    },
    /// An operation is another one.
    #[error(
        "operation {index} of the profile is `{found}` of layer {layer:?}, that of the program is another one"
    )]
    OtherProgram {
        /// Which one.
        index: usize,
        /// Name of the operation.
        found: String,
        /// Name of the layer.
        layer: String,
    },
}

#[derive(Deserialize)]
struct ProfileSpec {
    total_seconds: f64,
    events: Vec<EventSpec>,
}

#[derive(Deserialize)]
struct EventSpec {
    layer: String,
    operation: String,
    seconds: f64,
    #[serde(default)]
    resident_bytes: Option<u64>,
}

impl Measured {
    /// Reads a profile in JSON.
    ///
    /// # Errors
    /// When it is none, or that of another program.
    pub fn new(json: &[u8], program: &CheckedProgram) -> Result<Self, ProfileError> {
        let profile: ProfileSpec = serde_json::from_slice(json)?;
        let instructions = &program.spec().instructions;
        let (found, expected) = (profile.events.len(), instructions.len());
        if found == 0 || expected == 0 || !found.is_multiple_of(expected) {
            return Err(ProfileError::Length { found, expected });
        }
        let n_evaluations = found / expected;
        let layers = &program.spec().layers;
        let mut seconds = vec![0.0; layers.len()];
        let mut resident_bytes = vec![None; layers.len()];
        for (index, (event, instruction)) in
            profile.events.iter().zip(instructions.iter().cycle()).enumerate()
        {
            let layer = instruction.layer.index();
            if event.layer != layers[layer].name || event.operation != instruction.op.name() {
                let (found, layer) = (event.operation.clone(), event.layer.clone());
                return Err(ProfileError::OtherProgram { index, found, layer });
            }
            seconds[layer] += event.seconds / n_evaluations as f64;
            resident_bytes[layer] = resident_bytes[layer].max(event.resident_bytes);
        }
        let total_seconds = profile.total_seconds / n_evaluations as f64;
        Ok(Self { total_seconds, n_evaluations, seconds, resident_bytes })
    }
}
