//! What a client needs of a program: parameters, input and output, keys, what to expect, and the program's hash. No weights.
//!
//! A client makes keys, encrypts and decrypts with an [`Interface`] alone. It comes from a checked program, from an
//! interface file, or from the first sections of a program file ([`crate::codec::read_interface`]); all three give the same. What
//! it says of the evaluation, the prediction above all, is the author's word.

use crate::check::{CheckErrors, Keys, check_interface};
use crate::ids::LayoutId;
use crate::layout::{Layout, LayoutSpec};
use crate::params::{Fingerprint, Level, Params, ParamsSpec};
use crate::program::{InputSpec, Origin, OutputSpec, Prediction, RotationKey, SegmentKeys, batch};
use crate::scale::Scale;
use serde::{Deserialize, Serialize};

/// An interface as written in a file; not yet checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceSpec {
    /// Fingerprint of the program file.
    pub program: Fingerprint,
    /// Scheme parameters.
    pub params: ParamsSpec,
    /// Where the program comes from.
    pub origin: Origin,
    /// What it reads.
    pub input: InputSpec,
    /// What it computes.
    pub output: OutputSpec,
    /// Level of the output.
    pub output_level: Level,
    /// Scale of the output.
    pub output_scale: Scale,
    /// The layouts of input and output.
    pub layouts: Vec<LayoutSpec>,
    /// Rotation keys that the program uses, sorted by rotation.
    pub rotation_keys: Vec<RotationKey>,
    /// Highest level of a relinearization, if there is one.
    pub relin_level: Option<Level>,
    /// Highest level of a conjugation, if there is one.
    pub conjugation_level: Option<Level>,
    /// Keys of the segments below the first, as many as there are.
    #[serde(default)]
    pub lower_keys: Vec<SegmentKeys>,
    /// What the compiler expects.
    pub prediction: Prediction,
}

/// An interface that is well formed in itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Interface {
    spec: InterfaceSpec,
    params: Params,
    layouts: Vec<Layout>,
}

impl Interface {
    /// Checks an interface. Layouts that neither input nor output uses are left out.
    ///
    /// # Errors
    /// Everything that does not hold, with its place.
    pub fn new(mut spec: InterfaceSpec) -> Result<Self, CheckErrors> {
        reduce(&mut spec);
        let (params, layouts) = check_interface(&spec)?;
        Ok(Self { spec, params, layouts })
    }

    /// The interface as plain data.
    pub fn spec(&self) -> &InterfaceSpec {
        &self.spec
    }

    /// Fingerprint of the program file: ciphertexts and keys are bound to it.
    pub fn program(&self) -> Fingerprint {
        self.spec.program
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// What the program reads.
    pub fn input(&self) -> &InputSpec {
        &self.spec.input
    }

    /// What the program computes.
    pub fn output(&self) -> &OutputSpec {
        &self.spec.output
    }

    /// Layout of the input.
    pub fn input_layout(&self) -> &Layout {
        &self.layouts[self.spec.input.layout.index()]
    }

    /// Layout of the output.
    pub fn output_layout(&self) -> &Layout {
        &self.layouts[self.spec.output.layout.index()]
    }

    /// Inputs that one evaluation takes, and results it gives; one unless the program was built for a batch.
    pub fn batch(&self) -> usize {
        batch(&self.spec.input.ports, self.input_layout().shape().len())
    }

    /// Ciphertexts of one encrypted input, of a whole batch if there is one.
    pub fn input_ciphertexts(&self) -> usize {
        self.input_layout().n_cts() * self.input_layout().lanes(self.batch())
    }

    /// Ciphertexts of one encrypted result, of a whole batch if there is one.
    pub fn output_ciphertexts(&self) -> usize {
        self.output_layout().n_cts() * self.output_layout().lanes(self.batch())
    }

    /// The same interface as one input of a batch sees it: what scores mean, what numbers may be.
    #[must_use]
    pub fn of_one(&self) -> Self {
        let (mut one, batch) = (self.clone(), self.batch());
        one.spec.input.ports.truncate(self.spec.input.ports.len() / batch);
        one.spec.output.ports.truncate(self.spec.output.ports.len() / batch);
        one
    }

    /// Level of the output.
    pub fn output_level(&self) -> Level {
        self.spec.output_level
    }

    /// Scale of the output.
    pub fn output_scale(&self) -> Scale {
        self.spec.output_scale
    }

    /// Number of evaluation keys.
    pub fn n_keys(&self) -> usize {
        Keys::from(self).places().count()
    }

    /// Bytes of all evaluation keys in memory, computed.
    pub fn key_bytes(&self) -> u64 {
        Keys::from(self).bytes(&self.params)
    }
}

/// Leaves the layouts of input and output, in this order, once if they are equal.
fn reduce(spec: &mut InterfaceSpec) {
    let layout = |id: LayoutId| spec.layouts.get(id.index()).cloned();
    // Ids that lead nowhere stay what they are for the check to find.
    let (Some(input), Some(output)) = (layout(spec.input.layout), layout(spec.output.layout)) else { return };
    let is_one = input == output;
    spec.input.layout = LayoutId(0);
    spec.output.layout = LayoutId(u32::from(!is_one));
    spec.layouts = if is_one { vec![input] } else { vec![input, output] };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckedProgram;
    use crate::rotation::Rotation;
    use crate::testing::sample_program;

    fn sample() -> InterfaceSpec {
        CheckedProgram::new(sample_program()).unwrap().interface().spec().clone()
    }

    fn check(change: impl FnOnce(&mut InterfaceSpec), expected: &str) {
        let mut spec = sample();
        change(&mut spec);
        let errors = Interface::new(spec).expect_err("the change breaks the interface");
        let found: Vec<String> = errors.list().iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|message| message == expected), "expected {expected:?} among {found:#?}");
    }

    #[test]
    fn a_program_and_its_interface_agree() {
        let program = CheckedProgram::new(sample_program()).unwrap();
        let interface = program.interface();
        assert_eq!(interface.params(), program.params());
        assert_eq!(interface.input_layout(), program.input_layout());
        assert_eq!(interface.output_layout(), program.output_layout());
        assert_eq!(interface.output_level(), program.output_level());
        assert_eq!(interface.output_scale(), program.output_scale());
        assert_eq!(interface.spec().rotation_keys, program.spec().rotation_keys);
        assert_eq!(interface.spec().layouts.len(), 2);
        assert_eq!(interface.n_keys(), program.spec().rotation_keys.len() + 2);
        assert_eq!(Interface::new(interface.spec().clone()).unwrap(), interface);
    }

    #[test]
    fn ill_formed_interfaces_are_refused() {
        check(|i| i.params.digit_size = 0, "header: digits of 0 towers in a chain of 4");
        check(|i| i.input.layout = LayoutId(9), "header: layout l9 does not exist");
        check(|i| i.layouts[1].slots = 128, "layout l1: 128 slots in a ring of 256");
        check(|i| i.input.level = Level(4), "header: level L4 is above the chain's L3");
        check(|i| i.output_level = Level(4), "header: level L4 is above the chain's L3");
        check(
            |i| i.output_scale = Scale::from_log2(46.0),
            "header: scale 2^46.0000 does not fit the modulus of 2^45.00 at level L0",
        );
        check(|i| i.output_scale = Scale::from_log2(-1.0), "header: scale 2^-1.0000 is below one");
        check(|i| i.output.labels = vec!["a".into()], "header: labels has 1 values for 5 channels");
        check(|i| i.relin_level = Some(Level(4)), "keys: level L4 is above the chain's L3");
        check(|i| i.prediction.seconds = f64::NAN, "header: prediction NaN is negative or not finite");
    }

    #[test]
    fn keys_are_normalized_and_in_order() {
        let useless = |r: Rotation| {
            format!(
                "keys: the key for rotation {r} is out of order, not normalized, above its use, or of no use"
            )
        };
        let second = sample().rotation_keys[1].rotation;
        check(|i| i.rotation_keys[0].rotation = second, &useless(second));
        check(|i| i.rotation_keys[0].rotation = Rotation::ZERO, &useless(Rotation::ZERO));
        let far = Rotation::new(200, 65536);
        check(|i| i.rotation_keys.push(RotationKey { rotation: far, level: Level(0) }), &useless(far));
        check(|i| i.rotation_keys[0].level = Level(9), "keys: level L9 is above the chain's L3");
    }
}
