//! Polynomials are recognized by arithmetic, whatever the exporter's spelling.

mod common;

use common::check;
use fhec::import::Imported;
use fhec_ir::Op;
use fhec_tests::models::activation::{N_SPELLINGS, Polynomial, write};
use fhec_tests::onnx::OnnxWriter;

/// A convolution, a body over its result, and a convolution behind it.
fn between_layers(body: impl FnOnce(&mut OnnxWriter, &str) -> String) -> Vec<u8> {
    let mut w = OnnxWriter::new("poly");
    let x = w.input("x", &[None, Some(2), Some(4), Some(4)]);
    let weight = w.tensor("w", &[2, 2, 1, 1], &[0.5, -0.3, 0.2, 0.7]);
    let y = w.node("Conv", &[&x, &weight]);
    let y = body(&mut w, &y);
    let y = w.node("Conv", &[&y, &weight]);
    w.finish(&y, &[])
}

/// Two convolutions of the input, a body over both, and a convolution behind it.
fn between_branches(body: impl FnOnce(&mut OnnxWriter, &str, &str) -> String) -> Vec<u8> {
    let mut w = OnnxWriter::new("poly");
    let x = w.input("x", &[None, Some(2), Some(4), Some(4)]);
    let weights = [("u", [0.5, -0.3, 0.2, 0.7]), ("v", [0.1, 0.4, -0.6, 0.3])];
    let [u, v] = weights.map(|(name, data)| w.tensor(name, &[2, 2, 1, 1], &data));
    let (a, b) = (w.node("Conv", &[&x, &u]), w.node("Conv", &[&x, &v]));
    let y = body(&mut w, &a, &b);
    let y = w.node("Conv", &[&y, &u]);
    w.finish(&y, &[])
}

fn ops(imported: &Imported) -> Vec<&'static str> {
    common::ops(imported)
}

/// The coefficient table of the only polynomial.
fn coefficients(imported: &Imported) -> Vec<f64> {
    let graph = &imported.graph;
    let mut tables = graph.ids().filter_map(|id| match graph.op(id) {
        Op::Poly { coeffs } | Op::Bivar { coeffs } => Some(graph.tensor(*coeffs).to_f64().into_owned()),
        _ => None,
    });
    let table = tables.next().expect("a polynomial");
    assert!(tables.next().is_none(), "one polynomial only");
    table
}

#[test]
fn every_spelling_gives_the_same_node() {
    for polynomial in [Polynomial::quadratic(), Polynomial::quartic()] {
        for spelling in 0..N_SPELLINGS {
            let bytes = between_layers(|w, x| write(w, x, &polynomial, spelling));
            let imported = check(&format!("spelling {spelling}"), bytes);
            assert_eq!(
                ops(&imported),
                ["input", "conv2d", "poly", "conv2d", "output"],
                "spelling {spelling}"
            );
            for (found, expected) in coefficients(&imported).iter().zip(&polynomial.0) {
                assert!(
                    (found - f64::from(*expected)).abs() < 1e-6,
                    "spelling {spelling}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn coefficients_may_differ_between_channels() {
    let bytes = between_layers(|w, x| {
        let a = w.tensor("a", &[2, 1, 1], &[0.25, 0.5]);
        let b = w.tensor("b", &[1, 2, 1, 1], &[1.0, -2.0]);
        let slope = w.node("Mul", &[&a, x]);
        let slope = w.node("Add", &[&slope, &b]);
        w.node("Mul", &[&slope, x])
    });
    let imported = check("per channel", bytes);
    assert_eq!(ops(&imported), ["input", "conv2d", "poly", "conv2d", "output"]);
    assert_eq!(coefficients(&imported), [0.0, 0.0, 1.0, -2.0, 0.25, 0.5]);
}

#[test]
fn polynomials_of_polynomials_are_one_polynomial() {
    let bytes = between_layers(|w, x| {
        let square = w.node("Mul", &[x, x]);
        let sum = w.node("Add", &[&square, x]);
        let exponent = w.scalar(3.0);
        w.node("Pow", &[&sum, &exponent])
    });
    let imported = check("(x^2 + x)^3", bytes);
    assert_eq!(coefficients(&imported), [0.0, 0.0, 0.0, 1.0, 3.0, 3.0, 1.0]);
}

#[test]
fn terms_that_cancel_are_gone() {
    let bytes = between_layers(|w, x| {
        let square = w.node("Mul", &[x, x]);
        let sum = w.node("Add", &[&square, x]);
        w.node("Sub", &[&sum, &square])
    });
    assert_eq!(ops(&check("x^2 + x - x^2", bytes)), ["input", "conv2d", "conv2d", "output"]);
}

#[test]
fn an_activation_of_a_sum_is_a_polynomial_of_an_add() {
    let polynomial = Polynomial::quadratic();
    for spelling in 0..N_SPELLINGS {
        let bytes = between_branches(|w, a, b| {
            let sum = w.node("Add", &[a, b]);
            write(w, &sum, &polynomial, spelling)
        });
        let imported = check("residual", bytes);
        assert_eq!(ops(&imported), ["input", "conv2d", "conv2d", "add", "poly", "conv2d", "output"]);
    }
}

#[test]
fn two_sources_with_mixed_terms_are_one_bivariate_polynomial() {
    let bytes = between_branches(|w, a, b| {
        let squares = [w.node("Mul", &[a, a]), w.node("Mul", &[b, b])];
        let mixed = w.node("Mul", &[a, b]);
        let three = w.scalar(3.0);
        let mixed = w.node("Mul", &[&mixed, &three]);
        w.node("Sum", &[&squares[0], &squares[1], &mixed, a])
    });
    let imported = check("x^2 + 3xy + y^2 + x", bytes);
    assert_eq!(ops(&imported), ["input", "conv2d", "conv2d", "bivar", "conv2d", "output"]);
    assert_eq!(coefficients(&imported), [0.0, 1.0, 0.0, 1.0, 3.0, 1.0]);
}

#[test]
fn separate_terms_stay_separate() {
    let bytes = between_branches(|w, a, b| {
        let square = w.node("Mul", &[a, a]);
        w.node("Add", &[&square, b])
    });
    let imported = check("x^2 + y", bytes);
    assert_eq!(ops(&imported), ["input", "conv2d", "conv2d", "poly", "add", "conv2d", "output"]);
}

#[test]
fn a_plain_product_is_a_product() {
    let bytes = between_branches(|w, a, b| w.node("Mul", &[a, b]));
    assert_eq!(ops(&check("xy", bytes)), ["input", "conv2d", "conv2d", "mul", "conv2d", "output"]);
}

#[test]
fn an_activation_that_is_also_a_shortcut_has_its_own_node() {
    let bytes = between_branches(|w, a, b| {
        let weight = w.tensor("z", &[2, 2, 1, 1], &[0.3, 0.1, -0.2, 0.5]);
        let act = w.node("Mul", &[a, a]);
        let branch = w.node("Conv", &[&act, &weight]);
        let sum = w.node("Add", &[&branch, &act]);
        let sum = w.node("Add", &[&sum, b]);
        w.node("Mul", &[&sum, &sum])
    });
    let imported = check("shortcut", bytes);
    let polynomials = ops(&imported).into_iter().filter(|op| *op == "poly").count();
    assert_eq!(polynomials, 2, "{}", imported.graph);
}

#[test]
fn degrees_beyond_the_limit_are_split_into_nodes() {
    let bytes = between_layers(|w, x| {
        let quarter = w.scalar(0.25);
        (0..7).fold(x.to_owned(), |y, _| {
            let square = w.node("Mul", &[&y, &y]);
            w.node("Add", &[&square, &quarter])
        })
    });
    let imported = check("degree 128", bytes);
    assert_eq!(ops(&imported), ["input", "conv2d", "poly", "poly", "conv2d", "output"]);
}
