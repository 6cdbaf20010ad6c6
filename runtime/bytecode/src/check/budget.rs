//! One budget for the work of checking a program, charged before the work is done.
//!
//! What a program says in few bytes may take long to look at: a pooling names a window, a layout a size. So the checker
//! may spend steps in proportion to the bytes that a program has in a file, computed from the program itself, and
//! refuses what needs more.

use crate::constants::{Constants, TensorData};
use crate::program::{LinearMap, Op, ProgramSpec};

/// Steps that every program may take.
const FREE_STEPS: u64 = 1 << 21;
/// Steps per byte.
const STEPS_PER_BYTE: u64 = 16;

/// Steps that are left.
#[derive(Debug)]
pub(super) struct Budget {
    allowed: u64,
    left: u64,
}

/// More than a program of this size may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "takes {needed} steps to check, of {left} that are left to a program of this size ({allowed} in all)"
)]
pub(super) struct OverBudget {
    needed: u64,
    left: u64,
    allowed: u64,
}

impl Budget {
    /// What a program of this size may take.
    pub(super) fn of(spec: &ProgramSpec) -> Self {
        let allowed = FREE_STEPS.saturating_add(STEPS_PER_BYTE.saturating_mul(bytes(spec)));
        Self { allowed, left: allowed }
    }

    /// Takes so many steps, or says that there are not as many.
    pub(super) fn charge(&mut self, needed: u64) -> Result<(), OverBudget> {
        match self.left.checked_sub(needed) {
            Some(left) => self.left = left,
            None => return Err(OverBudget { needed, left: self.left, allowed: self.allowed }),
        }
        Ok(())
    }
}

/// Bytes that a program has in a file, not more than it really has.
fn bytes(spec: &ProgramSpec) -> u64 {
    let of_map = |map: &LinearMap| 1 + 2 * map.plan.splits.len() + 4 * map.terms.len();
    let splits = spec.maps.iter().map(of_map).sum::<usize>();
    let code = spec.instructions.iter().map(|instruction| match &instruction.op {
        Op::Linear { src, .. } => 8 + 2 * src.len(),
        _ => 4,
    });
    let tables = 15 * spec.layouts.len() + 2 * spec.rotation_keys.len() + splits + code.sum::<usize>();
    constant_bytes(&spec.constants).saturating_add(tables as u64)
}

fn constant_bytes(constants: &Constants) -> u64 {
    let tensors = constants.tensors.iter().map(|tensor| match &tensor.data {
        TensorData::Dense(values) => 4 * values.len() as u64,
        TensorData::Exact(values) => 8 * values.len() as u64,
        TensorData::Clustered { indices, .. } => {
            let bits = indices.iter().max().map_or(0, |max| u16::BITS - max.leading_zeros()).max(1);
            (indices.len() as u64 * u64::from(bits)).div_ceil(8)
        }
    });
    let codebooks = constants.codebooks.iter().map(|book| 4 * book.values.len() as u64);
    tensors.chain(codebooks).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CheckedProgram;
    use crate::constants::{Codebook, Tensor};
    use crate::ids::CodebookId;
    use crate::testing::sample_program;

    /// A program with weights of every kind, so that each counts.
    fn programs() -> [ProgramSpec; 2] {
        let mut heavy = sample_program();
        heavy.constants.push(Tensor {
            members: 1,
            shape: vec![4000],
            data: TensorData::Exact(vec![0.5; 4000]),
        });
        heavy.constants.codebooks.push(Codebook { members: 1, values: vec![0.5; 3000] });
        let codebooks = vec![CodebookId(heavy.constants.codebooks.len() as u32 - 1)];
        let indices = (0..9000).map(|i| i % 3000).collect();
        heavy.constants.push(Tensor {
            members: 1,
            shape: vec![9000],
            data: TensorData::Clustered { codebooks, indices },
        });
        [sample_program(), heavy]
    }

    #[test]
    fn a_program_may_take_steps_for_most_of_its_bytes_and_for_no_more() {
        for spec in programs() {
            let len = crate::codec::encode(&CheckedProgram::new(spec.clone()).unwrap()).len() as u64;
            let counted = bytes(&spec);
            assert!(counted <= len && 20 * counted >= 17 * len, "{counted} of {len}");
            let mut budget = Budget::of(&spec);
            budget.charge(FREE_STEPS + STEPS_PER_BYTE * counted).unwrap();
            assert_eq!(budget.charge(1).unwrap_err().needed, 1);
        }
    }

    #[test]
    fn every_item_of_a_table_counts() {
        let spec = sample_program();
        let more = |change: &dyn Fn(&mut ProgramSpec)| {
            let mut longer = spec.clone();
            change(&mut longer);
            bytes(&longer) - bytes(&spec)
        };
        let linear = |n: usize| {
            let found = spec.instructions.iter().find(|i| matches!(i.op, Op::Linear { .. }));
            let mut linear = found.expect("the sample has a map").clone();
            if let Op::Linear { src, .. } = &mut linear.op {
                *src = vec![src[0]; n];
            }
            linear
        };
        let split = spec.maps[0].plan.splits[0];
        assert_eq!(more(&|spec| spec.maps[0].plan.splits.push(split)), 2);
        let term = spec.maps[0].terms[0].clone();
        assert_eq!(more(&|spec| spec.maps[0].terms.push(term.clone())), 4);
        assert_eq!(more(&|spec| spec.layouts.push(spec.layouts[0].clone())), 15);
        assert_eq!(more(&|spec| spec.rotation_keys.push(spec.rotation_keys[0])), 2);
        assert_eq!(more(&|spec| spec.instructions.push(spec.instructions[0].clone())), 4);
        assert_eq!(more(&|spec| spec.instructions.push(linear(5))), 18);
        let tensor = |tensor: Tensor| {
            more(&|spec| {
                spec.constants.push(tensor.clone());
            })
        };
        assert_eq!(tensor(Tensor::dense(vec![3], vec![0.5; 3])), 12);
        let clustered = |largest: u16, n: usize| {
            let data = TensorData::Clustered { codebooks: vec![CodebookId(0)], indices: vec![largest; n] };
            Tensor { members: 1, shape: vec![n as u32], data }
        };
        for (largest, n, expected) in [(0, 9, 2), (1, 8, 1), (2, 8, 2), (300, 8, 9)] {
            assert_eq!(tensor(clustered(largest, n)), expected);
        }
    }
}
