//! One account of an evaluation's memory, for the compiler that plans within a budget and the machine that spends it.

use crate::check::CheckedProgram;

/// Part of a budget that stays free of plaintexts, for tables and the program itself: one in so many bytes.
pub const RESERVE: u64 = 16;
/// Most bytes of dropped buffers that wait for their next use.
pub const POOL_BYTES: u64 = 1 << 30;

/// What an evaluation cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of the evaluation keys.
    pub keys: u64,
    /// Most bytes of ciphertexts, rotated inputs and sums at one time.
    pub working: u64,
}

impl Memory {
    /// What a program cannot do without.
    pub fn of(program: &CheckedProgram) -> Self {
        Self { keys: program.key_bytes(), working: program.peak_bytes() }
    }

    /// Bytes in all.
    pub fn needed(&self) -> u64 {
        self.keys.saturating_add(self.working)
    }

    /// Bytes that a budget leaves for plaintexts; nothing if keys and ciphertexts do not fit.
    pub fn spare(&self, budget: u64) -> Option<u64> {
        let rest = budget.checked_sub(self.needed())?;
        // Dropped buffers wait beside what is in use.
        let waiting = self.working.saturating_mul(2).min(POOL_BYTES);
        Some(rest.saturating_sub(budget / RESERVE).saturating_sub(waiting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample_program;

    #[test]
    fn a_budget_holds_keys_and_work_before_plaintexts() {
        let memory = Memory { keys: 600, working: 100 };
        assert_eq!(memory.spare(699), None);
        assert_eq!(memory.spare(700), Some(0));
        assert_eq!(memory.spare(1600), Some(1600 - 700 - 100 - 200));
        assert_eq!(Memory { keys: u64::MAX, working: 1 }.spare(u64::MAX), Some(0));
    }

    #[test]
    fn the_account_of_a_program_is_that_of_its_steps() {
        let program = CheckedProgram::new(sample_program()).unwrap();
        let memory = Memory::of(&program);
        assert_eq!(memory.working, program.steps().map(|s| s.live_bytes + s.working_bytes).max().unwrap());
        assert_eq!(memory.keys, program.interface().key_bytes());
    }
}
