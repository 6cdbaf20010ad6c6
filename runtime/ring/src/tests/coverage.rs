//! The suites compare every instruction set that the CPU has, and say which.

use std::io::Write;

use super::{INSTRUCTIONS, PRIMES};
use crate::kernels::{Instructions, Kernels};
use crate::modulus::Modulus;
use crate::ntt::Ntt;
use crate::shared::SharedKernel;

/// One kind of kernels, as the suites meet it.
struct Kind {
    name: &'static str,
    /// Whether the CPU has it, asked without our own detection.
    has: bool,
    /// Engine of a transform of a prime below 2^50.
    engine: &'static str,
    /// What the element-wise kernels and the sums with shared factors show of themselves.
    marks: [&'static str; 2],
}

#[cfg(target_arch = "x86_64")]
fn kinds() -> Vec<Kind> {
    use std::arch::is_x86_feature_detected as has;
    let four = has!("avx2") && has!("fma");
    let eight = has!("avx512f") && has!("avx512bw") && has!("avx512dq");
    let widest = if eight { "avx512-fma" } else { "avx2-fma" };
    vec![
        Kind { name: "AVX2 and FMA", has: four, engine: "avx2-fma", marks: ["Four(", "Four("] },
        Kind { name: "AVX512", has: eight, engine: "avx512-fma", marks: ["Eight(", "Eight("] },
        Kind {
            name: "AVX512-IFMA",
            has: eight && has!("avx512ifma"),
            engine: widest,
            marks: ["integer: Some(", "Integer("],
        },
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn kinds() -> Vec<Kind> {
    Vec::new()
}

/// Whether some choice that the suites make has these kernels.
fn is_compared(kind: &Kind) -> bool {
    // A prime that every kernel takes.
    let q = Modulus::new(PRIMES[1]);
    INSTRUCTIONS.into_iter().any(|choice: Instructions| {
        let shown = [format!("{:?}", Kernels::new(q, choice)), format!("{:?}", SharedKernel::new(q, choice))];
        Ntt::new(q, 1 << 12, choice).unwrap().engine_name() == kind.engine
            && shown.iter().zip(kind.marks).all(|(shown, mark)| shown.contains(mark))
    })
}

#[test]
fn every_instruction_set_of_the_cpu_is_compared() {
    for kind in kinds() {
        let compared = is_compared(&kind);
        // Past the capture of the test harness: whoever reads a log should see what it proves.
        let says = if compared { "compared with scalar code" } else { "NOT compared, the CPU has none" };
        writeln!(std::io::stderr(), "kernels for {}: {says}", kind.name).unwrap();
        assert_eq!(compared, kind.has, "the CPU and the suites disagree on {}", kind.name);
    }
    let library = Ntt::new(Modulus::new(PRIMES[8]), 1 << 12, Instructions::Best).unwrap();
    writeln!(std::io::stderr(), "transforms of primes above 2^50: {}", library.engine_name()).unwrap();
    assert!(library.engine_name().starts_with("library"), "large primes have a faster engine");
}
