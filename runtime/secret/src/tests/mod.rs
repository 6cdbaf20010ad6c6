//! What samplers give and how long secrets take, for which no public interface would do.

mod samplers;
mod timing;

use std::sync::Arc;

use fhe_bytecode::{Params, ParamsSpec};
use fhe_ckks::Context;
use fhe_ring::kernels::Instructions;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::SeedSource;

/// A ring of 4096 with three towers of 50, 38 and 60 bits and a special prime.
fn context() -> Arc<Context> {
    let params = Params::new(ParamsSpec::toy(
        12,
        vec![1_125_899_904_679_937, 274_876_334_081, 1_152_921_504_606_584_833],
        vec![140_737_487_306_753],
    ));
    Context::with_instructions(params.unwrap(), Instructions::Best).unwrap()
}

fn seeds() -> SeedSource {
    fixed(14)
}

/// The same seeds every time.
fn fixed(seed: u64) -> SeedSource {
    SeedSource::from_rng(ChaCha20Rng::seed_from_u64(seed))
}
