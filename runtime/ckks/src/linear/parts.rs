//! Complex sums of linear maps, taken apart into real results.
//!
//! A complex diagonal times a real input gives two real sums at once, P = A + iB. With Q the conjugate of P,
//! P + Q = 2A and -i·(P - Q) = 2B: the numbers double, and with them the scale. Callers encode the weights at
//! half the scale they would take for real ones.

use fhe_bytecode::Scale;

use crate::{Ciphertext, CkksError, Evaluator, GaloisKeys, Rotation};

/// What the imaginary parts of the sums of a linear map are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    /// Nothing: a sum is an output.
    #[default]
    Real,
    /// A share of the same output, to be rotated: y = 2A + rot(2B, r).
    Rotated(Rotation),
    /// The next output: sum k gives outputs 2k and 2k + 1, of so many.
    Outputs(usize),
}

/// The outputs of a linear map from its sums.
///
/// # Errors
/// When the key of the conjugation or of the rotation is missing.
pub(super) fn take_apart(
    evaluator: &Evaluator<'_>,
    sums: Vec<Ciphertext>,
    parts: Parts,
    keys: &GaloisKeys,
) -> Result<Vec<Ciphertext>, CkksError> {
    if parts == Parts::Real {
        return Ok(sums);
    }
    let context = evaluator.context();
    let minus_i = context.encoder().round_complex(&[0.0], &[-1.0], Scale::ONE)?;
    let mut outputs = Vec::with_capacity(2 * sums.len());
    for sum in sums {
        let conjugate = evaluator.conjugate(&sum, keys)?;
        let minus_i = context.encoder().transform(&minus_i, context.basis(sum.level()));
        let mut second = evaluator.sub(&sum, &conjugate)?;
        evaluator.mul_plain_assign(&mut second, &minus_i)?;
        let mut first = sum;
        evaluator.add_assign(&mut first, &conjugate)?;
        match parts {
            Parts::Real => {}
            Parts::Rotated(rotation) => {
                evaluator.add_assign(&mut first, &evaluator.rotate(&second, rotation, keys)?)?;
                outputs.push(first);
            }
            Parts::Outputs(_) => outputs.extend([first, second]),
        }
    }
    if let Parts::Outputs(count) = parts {
        outputs.truncate(count);
    }
    outputs.iter_mut().for_each(|output| output.scale = output.scale.times(Scale::from_log2(1.0)));
    Ok(outputs)
}
