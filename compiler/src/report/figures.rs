//! The figures at the top of the page.

use fhe_bytecode::CheckedProgram;

use super::html::escape;
use super::profile::Measured;
use super::stages::Stages;
use super::units;

/// A number with its name and a remark.
struct Figure {
    name: &'static str,
    value: String,
    remark: String,
    warns: bool,
}

/// The figures of a program as HTML.
pub(super) fn html(
    program: &CheckedProgram,
    stages: Option<&Stages>,
    precision_bits: Option<f64>,
    measured: Option<&Measured>,
) -> String {
    let figures = [
        levels(program, stages),
        ring(program),
        security(program),
        time(program, measured),
        memory(program),
        error(program, precision_bits),
    ];
    let item = |f: Figure| {
        format!(
            "<div class=\"figure{}\"><dt>{}</dt><dd>{}</dd><p>{}</p></div>\n",
            if f.warns { " warns" } else { "" },
            f.name,
            f.value,
            escape(&f.remark),
        )
    };
    format!("<dl class=\"figures\">\n{}</dl>\n", figures.map(item).concat())
}

fn figure(name: &'static str, value: String, remark: String) -> Figure {
    Figure { name, value: escape(&value), remark, warns: false }
}

fn levels(program: &CheckedProgram, stages: Option<&Stages>) -> Figure {
    let remark = match stages.and_then(|s| s.stages.first()) {
        Some(first) => format!("{} multiplications deep as imported", first.depth),
        None => "rescaling primes".to_owned(),
    };
    figure("Levels", program.params().max_level().0.to_string(), remark)
}

fn ring(program: &CheckedProgram) -> Figure {
    let params = program.params();
    let value = format!("2<sup>{}</sup>", params.n().trailing_zeros());
    let remark =
        format!("{} slots, {} layout", units::count(params.n() as u64 / 2), program.spec().origin.packing);
    Figure { value, ..figure("Ring degree", String::new(), remark) }
}

fn security(program: &CheckedProgram) -> Figure {
    let params = program.params();
    let bits = params.log2_pq();
    let value = format!("{bits:.0} bits");
    let (remark, warns) = match (params.security_cap(), params.is_secure()) {
        (Some(cap), true) => (format!("modulus of the keys; up to {cap} is 128-bit secure"), false),
        (Some(cap), false) => {
            (format!("NOT SECURE: {:.0} bits beyond the bound of {cap}", bits - f64::from(cap)), true)
        }
        (None, _) => ("NOT SECURE: a toy ring, protects nothing".to_owned(), true),
    };
    Figure { warns, ..figure("Modulus", value, remark) }
}

fn time(program: &CheckedProgram, measured: Option<&Measured>) -> Figure {
    let prediction = &program.spec().prediction;
    let predicted = format!("{} predicted on one core", units::seconds(prediction.seconds));
    match measured {
        Some(m) => {
            let runs =
                if m.n_evaluations == 1 { String::new() } else { format!(", mean of {}", m.n_evaluations) };
            figure("Time, measured", units::seconds(m.total_seconds), format!("{predicted}{runs}"))
        }
        None => figure(
            "Core time, predicted",
            units::seconds(prediction.seconds),
            format!("and {} to encode plaintexts once", units::seconds(prediction.encode_seconds)),
        ),
    }
}

fn memory(program: &CheckedProgram) -> Figure {
    let prediction = &program.spec().prediction;
    let remark = format!(
        "keys {}, plaintexts {} if all are kept, ciphertexts {}",
        units::bytes(prediction.key_bytes),
        units::bytes(prediction.plaintext_bytes),
        units::bytes(prediction.ciphertext_bytes)
    );
    let least = prediction.key_bytes + prediction.ciphertext_bytes;
    figure("Memory, at least", units::bytes(least), remark)
}

fn error(program: &CheckedProgram, precision_bits: Option<f64>) -> Figure {
    let bound = program.spec().prediction.max_abs_error;
    let value = if bound > 0.0 { units::two_digits(bound) } else { "unknown".to_owned() };
    let remark = match precision_bits {
        Some(bits) => {
            format!("no score is expected to be off by more; {bits:.1} bits below the largest (deviation)")
        }
        None => "no score is expected to be off by more".to_owned(),
    };
    figure("Error, at most", value, remark)
}
