//! The figures at the top of the page.

use fhe_bytecode::CheckedProgram;

use super::estimate::{Estimate, cores};
use super::html::escape;
use super::page::Page;
use super::profile::Measured;
use super::units;
use crate::compile::SelfCheck;

/// A number with its name and a remark.
struct Figure {
    name: &'static str,
    value: String,
    remark: String,
    warns: bool,
}

/// What is protected, and the figures that people decide by.
pub(super) fn html(page: &Page<'_>) -> String {
    let program = page.program;
    let estimate = Estimate::new(program);
    let figures = [
        time(&estimate, page.measured),
        upload_once(&estimate),
        upload(&estimate),
        memory(program, &estimate),
        error(program, page.precision_bits),
        agreement(program, page.check),
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
    let (promise, warns) = promise(program);
    format!(
        "<p class=\"promise{}\">{}</p>\n<dl class=\"figures\">\n{}</dl>\n",
        if warns { " warns" } else { "" },
        escape(&promise),
        figures.map(item).concat()
    )
}

/// What is protected, in a sentence or two; and whether it is not.
fn promise(program: &CheckedProgram) -> (String, bool) {
    let params = program.params();
    if params.is_toy() {
        return ("NOT SECURE: a toy ring, which protects nothing.".to_owned(), true);
    }
    if !params.is_secure() {
        let beyond = |segment: &fhe_bytecode::Params| {
            segment.log2_pq() - f64::from(segment.security_cap().unwrap_or(0))
        };
        let beyond = params.segments().map(beyond).fold(0.0, f64::max);
        return (format!("NOT SECURE: the modulus is {beyond:.0} bits beyond the bound for 128 bits."), true);
    }
    let text = "Whoever evaluates this program sees neither inputs nor results: both stay encrypted, with 128 bits of security, \
                and only the client's secret key opens them. The weights are in the program, and are not hidden from whoever has it.";
    (text.to_owned(), false)
}

fn figure(name: &'static str, value: String, remark: String) -> Figure {
    Figure { name, value: escape(&value), remark, warns: false }
}

fn time(estimate: &Estimate, measured: Option<&Measured>) -> Figure {
    let cores = cores();
    let on = if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") };
    let predicted = format!("{} of one core predicted", units::seconds(estimate.core_seconds));
    match measured {
        Some(m) => {
            let runs =
                if m.n_evaluations == 1 { String::new() } else { format!(", mean of {}", m.n_evaluations) };
            figure("Time, measured", units::seconds(m.total_seconds), format!("{predicted}{runs}"))
        }
        None => figure(
            "Time per image",
            units::seconds(estimate.seconds(cores, false)),
            format!(
                "predicted on {on}, plaintexts kept; {} the first time",
                units::seconds(estimate.seconds(cores, true))
            ),
        ),
    }
}

fn upload_once(estimate: &Estimate) -> Figure {
    let remark = "evaluation keys, once per client".to_owned();
    figure("Upload per client", units::bytes(estimate.upload_once_bytes), remark)
}

fn upload(estimate: &Estimate) -> Figure {
    let remark = format!("encrypted; {} come back", units::bytes(estimate.download_bytes));
    figure("Upload per image", units::bytes(estimate.upload_bytes), remark)
}

fn memory(program: &CheckedProgram, estimate: &Estimate) -> Figure {
    let prediction = &program.spec().prediction;
    let remark = format!(
        "at least, {} to be fast; {} of it are keys",
        units::bytes(estimate.memory_bytes),
        units::bytes(prediction.key_bytes),
    );
    figure("Server memory", units::bytes(estimate.least_memory_bytes), remark)
}

/// What noise does to the classes of the calibration inputs, and the room above them.
fn agreement(program: &CheckedProgram, check: Option<&SelfCheck>) -> Figure {
    let Some(SelfCheck { is_real, inputs, summary, .. }) = check else {
        let levels = program.params().max_level().0;
        return figure("Levels", levels.to_string(), "rescaling primes; simulate tells accuracy".to_owned());
    };
    let source = if *is_real { "calibration inputs" } else { "made-up inputs" };
    let advice = if *is_real { "" } else { ": calibrate on real ones" };
    let room = summary.fullest.as_ref().map_or(String::new(), |fullest| {
        format!("; {:.1} bits of headroom at {}", fullest.bits_left, fullest.layer)
    });
    let kept = inputs - summary.changed_classes;
    let remark = format!("{source} keep their class under noise{room}{advice}");
    let warns = summary.changed_classes > 0 || summary.wrapped_samples > 0;
    Figure { warns, ..figure("Agreement", format!("{kept} of {inputs}"), remark) }
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
