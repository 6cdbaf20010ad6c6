//! Complex sums of linear maps, taken apart into real results.
//!
//! A complex diagonal times a real input gives two real sums at once, P = A + iB. With Q the conjugate of P,
//! P + Q = 2A and -i·(P - Q) = 2B: the numbers double, and with them the scale. Callers encode the weights at
//! half the scale they would take for real ones. Everything happens before the division by P.

use fhe_bytecode::{Level, Scale};

use super::outer::{add_assign, moved};
use crate::key_switch::Halves;
use crate::{CkksError, Context, Galois, GaloisKeys, Rotation};

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

impl Parts {
    /// What the scale of sums is multiplied by when they are taken apart.
    pub(super) fn factor(self) -> Scale {
        if self == Self::Real { Scale::ONE } else { Scale::from_log2(1.0) }
    }
}

/// The outputs of a linear map from its sums.
///
/// # Errors
/// When the key of the conjugation or of the rotation is missing.
pub(super) fn take_apart(
    context: &Context,
    level: Level,
    sums: Vec<Halves>,
    parts: Parts,
    keys: &GaloisKeys,
) -> Result<Vec<Halves>, CkksError> {
    if parts == Parts::Real {
        return Ok(sums);
    }
    let (ring, encoder) = (context.ring(), context.encoder());
    let minus_i = encoder.round_complex(&[0.0], &[-1.0], Scale::ONE)?;
    let minus_i = encoder.transform(&minus_i, context.key_basis(level));
    let mut outputs = Vec::with_capacity(2 * sums.len());
    for mut sum in sums {
        let conjugate = moved(context, level, &sum, Galois::Conjugation, keys)?;
        let mut second = sum.clone();
        second.iter_mut().zip(&conjugate).for_each(|(half, conjugate)| ring.sub_assign(half, conjugate));
        ring.mul_each_assign(&mut second, &minus_i.poly);
        add_assign(context, &mut sum, &conjugate);
        match parts {
            Parts::Real => {}
            Parts::Rotated(rotation) => {
                if !rotation.is_zero() {
                    second = moved(context, level, &second, rotation.into(), keys)?;
                }
                add_assign(context, &mut sum, &second);
                outputs.push(sum);
            }
            Parts::Outputs(_) => outputs.extend([sum, second]),
        }
    }
    if let Parts::Outputs(count) = parts {
        outputs.truncate(count);
    }
    Ok(outputs)
}
