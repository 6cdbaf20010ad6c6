//! Parameter files in RON, as `fhec build --params FILE` reads them.

use fhe_bytecode::Params;
use fhec::pipeline::ParamsChoice;
use fhec::search::given::GivenParams;
use fhec::{Model, Request, compile};
use fhec_tests::models::random::Random;

use super::specimen::{DENSE, model};
use crate::mutate;
use crate::run::Target;

/// Sound parameters for two dense layers in a ring of degree 32, without and with a smaller ring for the lowest level.
const SOUND: &str = "(
    // A comment.
    params: (
        log_n: 5,
        towers: [1073741441, 1073740609, 1073739649],
        special_primes: [1073739457],
        digit_size: 1,
        insecure: false,
        toy: true,
    ),
    input_scale_bits: 14.5,
    activation_scale_bits: 15.0,
)
";
const RINGS: &str = "(
    params: (
        log_n: 5,
        towers: [1073741441, 1073740609, 1073739649],
        special_primes: [1073739457],
        digit_size: 1,
        lower: [(log_n: 4, level: 0, special_primes: [1073738977, 1073738753], digits: [1])],
        insecure: false,
        toy: true,
    ),
    input_scale_bits: 14.5,
    activation_scale_bits: 15.0,
)
";
const WORDS: &[&str] = &[
    "(", ")", "[", "]", ",", ":", "true", "nan", "inf", "-1", "1e400", "Some(", "/*", "\"", "r#\"", "#![",
    "12289", "65537", "17", "18", "64", "params", "towers", "lower", "level", "digits",
];
/// One in so many accepted files is used for a build.
const BUILT: usize = 8;

/// Parameter files, and a network they are used for.
pub(super) struct Parameters {
    model: Model,
}

impl Parameters {
    pub(super) fn new() -> Self {
        Self { model: model(DENSE) }
    }
}

impl Target for Parameters {
    type Read = GivenParams;
    const NAME: &'static str = "parameters";

    fn input(&self, random: &mut Random) -> Vec<u8> {
        let sound = [SOUND, RINGS][random.below(2)];
        mutate::text(sound, WORDS, random)
    }

    fn read(&self, input: &[u8]) -> Option<GivenParams> {
        let read: Result<GivenParams, _> = ron::from_str(std::str::from_utf8(input).ok()?);
        let given = read.inspect_err(|e| assert!(!e.to_string().is_empty())).ok()?;
        // Wrong parameters go on to the build, which must refuse them.
        if let Err(error) = Params::new(given.params.clone()) {
            assert!(!error.to_string().is_empty());
        }
        Some(given)
    }

    fn memory_bound(&self, len: usize) -> usize {
        256 * len + (64 << 10)
    }

    fn exercise(&self, given: GivenParams, random: &mut Random) -> Result<(), String> {
        if random.below(BUILT) != 0 || given.params.log_n > 10 {
            return Ok(());
        }
        let params = ParamsChoice::File("given.ron".into(), Box::new(given));
        let request = Request { params, toy: true, ..Request::new(self.model.clone()) };
        match compile(&request, &mut ()) {
            Err(error) if error.is_bug() => Err(format!("build: {error}")),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
