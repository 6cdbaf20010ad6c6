//! A program for people: parameters, input and output, and the instructions layer by layer.

use std::fmt::Write;

use fhe_bytecode::{CheckedProgram, Interval, Keys};
use fhe_host::show_bytes;

/// Parameters, then the instructions with what they define, layer by layer.
#[must_use]
pub fn program_text(program: &CheckedProgram) -> String {
    let (spec, params) = (program.spec(), program.params());
    let bits = |primes: &[u64]| {
        primes.iter().map(|&p| format!("{:.1}", (p as f64).log2())).collect::<Vec<_>>().join(" ")
    };
    let mut out = format!(
        "N = {}, log2(Q) = {:.1}, log2(PQ) = {:.1}{}\ntowers (bits) {}\nspecial primes (bits) {}, at most {} towers per digit\n",
        params.n(),
        params.log2_q(),
        params.log2_pq(),
        if params.is_secure() { ", 128-bit security" } else { ", NOT SECURE" },
        bits(params.towers()),
        bits(params.special_primes()),
        params.digit_size(),
    );
    for segment in params.segments().skip(1) {
        let _ = writeln!(
            out,
            "from {} on N = {}, log2(PQ) = {:.1}, special primes (bits) {}, at most {} towers per digit",
            segment.max_level(),
            segment.n(),
            segment.log2_pq(),
            bits(segment.special_primes()),
            segment.digit_size(),
        );
    }
    let input = program.input_layout();
    let _ = writeln!(
        out,
        "input {:?} {} in {} ciphertext(s) at {} scale {}",
        spec.input.name,
        input.shape(),
        input.n_cts(),
        spec.input.level,
        spec.input.scale
    );
    let output = program.output_layout();
    let _ = writeln!(
        out,
        "output {:?} {} in {} ciphertext(s) at {} scale {}",
        spec.output.name,
        output.shape(),
        output.n_cts(),
        program.output_level(),
        program.output_scale()
    );
    let _ = writeln!(
        out,
        "rotation keys {}, constants {}, keys of {}, ciphertexts and sums of {}",
        Keys::from(program).n_rotations(),
        spec.constants.tensors.len(),
        show_bytes(program.key_bytes()),
        show_bytes(program.peak_bytes()),
    );
    let range = |range: Option<Interval>| range.map_or("unknown".to_owned(), |range| range.to_string());
    let _ = writeln!(
        out,
        "the file claims: model {:?} by {:?}, {:?} layout, inputs in {}, scores in {}, {:.2} core-seconds, errors below {:.2e}",
        spec.origin.model,
        spec.origin.producer,
        spec.origin.packing,
        range(spec.input.range),
        range(spec.output.range),
        spec.prediction.seconds,
        spec.prediction.max_abs_error,
    );
    let mut layer = None;
    for step in program.steps() {
        let instruction = step.instruction;
        if layer != Some(instruction.layer) {
            layer = Some(instruction.layer);
            let _ = writeln!(out, "\n{}", spec.layers[instruction.layer.index()].name.escape_debug());
        }
        let _ = write!(out, "  {instruction}");
        if let Some(fact) = step.result {
            let _ = write!(
                out,
                " : {} @{} scale={}",
                program.layout(fact.layout).shape(),
                fact.level,
                fact.scale
            );
        }
        out.push('\n');
    }
    out
}
