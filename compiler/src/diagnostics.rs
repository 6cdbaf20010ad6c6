//! Words and remedies for what the compiler refuses; how they look is `fhe_diagnostics`'.

use fhe_diagnostics::remedy;
pub use fhe_diagnostics::{Diagnostic, Kind, Place};
use fhec_passes::PassError;
use indexmap::IndexMap;

use crate::import::{ImportError, Malformed, Refusal};
use crate::pipeline::BuildError;
use crate::search::ScheduleError;
use crate::{CompileError, Statistic};

/// Words for the errors of the compiler.
pub trait Words {
    /// An import that failed, about the model called `model`.
    fn import(model: &str, error: &ImportError) -> Diagnostic;
    /// A compilation that failed, of the model called `model`.
    fn compile(model: &str, error: &CompileError) -> Diagnostic;
    /// A pass that failed on the model called `model`.
    fn pass(model: &str, error: &PassError) -> Diagnostic;
}

impl Words for Diagnostic {
    fn import(model: &str, error: &ImportError) -> Self {
        let about = |text: String| format!("{model}: {text}");
        match error {
            ImportError::Io { source, .. } => {
                Diagnostic::new(Kind::Cannot, about(format!("cannot be read: {source}")))
                    .with_help(remedy::READ)
            }
            ImportError::Malformed(malformed) => {
                let found = Diagnostic::new(Kind::Cannot, about(error.to_string()));
                match malformed {
                    Malformed::Tensor { problem, .. } if problem.contains("external data") => found
                        .with_help(
                            "put the data file itself beside the model, or export with the weights inside",
                        ),
                    _ => found.with_help("export the model again; the file is damaged or not ONNX"),
                }
            }
            ImportError::Refused(refusals) => {
                let mut found = Diagnostic::new(Kind::Cannot, about(refusals.to_string()));
                found.places = grouped(&refusals.nodes);
                match &refusals.spared[..] {
                    [] => found,
                    outputs => {
                        let options: Vec<String> =
                            outputs.iter().map(|name| format!("`--model-output {name}`")).collect();
                        found.with_help(format!(
                            "{} leaves away the outputs that need what is refused",
                            options.join(" ")
                        ))
                    }
                }
            }
            ImportError::NoSuchOutput { .. } => Diagnostic::new(Kind::Usage, about(error.to_string()))
                .with_help("name one of its outputs, or leave `--model-output` away for all of them"),
            ImportError::Verify(errors) => Diagnostic::bug(about(format!("the import went wrong: {errors}"))),
        }
    }

    fn compile(model: &str, error: &CompileError) -> Self {
        let about =
            |kind: Kind, help: &str| Diagnostic::new(kind, format!("{model}: {error}")).with_help(help);
        match error {
            CompileError::NoModel => {
                Diagnostic::new(Kind::Usage, error.to_string()).with_help("give an ONNX file")
            }
            CompileError::Import { model, source } => Self::import(model, source),
            CompileError::Ensemble(_) => Diagnostic::new(Kind::Cannot, error.to_string())
                .with_help("an ensemble is of models of one architecture, trained apart"),
            CompileError::Preprocessing { what, given, channels } => {
                let what =
                    format!("{given} numbers for `--{}`, the model has {channels} channels", option(*what));
                Diagnostic::new(Kind::Usage, what)
                    .with_help("give one number for all channels, or one for each")
            }
            CompileError::Statistic { what, .. } => {
                let help =
                    format!("`--{}` is of pixels from 0 to 1, and deviations are positive", option(*what));
                Diagnostic::new(Kind::Usage, error.to_string()).with_help(help)
            }
            CompileError::Classes { .. } => {
                Diagnostic::new(Kind::Usage, error.to_string()).with_help("give one label for every score")
            }
            CompileError::Toy { .. } => Diagnostic::new(Kind::Usage, error.to_string())
                .with_help("add `--toy` if this is only a test"),
            CompileError::Calibration { kind, .. } => {
                Diagnostic::new(Kind::Cannot, error.to_string()).with_help(remedy::input(kind))
            }
            CompileError::NoCalibration => Diagnostic::new(Kind::Cannot, error.to_string())
                .with_help("give a file with at least one image to `--calibrate`"),
            CompileError::Unlike { .. } => {
                about(Kind::Cannot, "build without `--like`, and let clients make keys for the new program")
            }
            CompileError::Batch { .. } => {
                about(Kind::Usage, "build one model with `--batch` 2, 4, 8, …, or without it")
            }
            CompileError::ApproximateEnsemble => about(
                Kind::Usage,
                "approximate one model at a time; an ensemble is of models with polynomials",
            ),
            CompileError::ApproximateBlindly => about(
                Kind::Usage,
                "give inputs of the kind that the model will see with `--calibrate IMAGES`",
            ),
            CompileError::NoValue(_) => {
                about(Kind::Cannot, "change the layer, such as by a limit from below, and train again")
            }
            CompileError::Drowned { .. } => about(
                Kind::Cannot,
                "ask for more `--precision` or a larger ring (`--log-n`); where you gave neither, use fewer activations or such of a lower degree",
            ),
            CompileError::Pass(error) => Self::pass(model, error),
            CompileError::Verify(_) | CompileError::Simulation(_) => Self::bug(format!("{model}: {error}")),
            CompileError::Build(build) => match build {
                BuildError::Linear(source) => Self::bug(format!("{model}: {error}: {source}")),
                BuildError::Stage(_) => Self::bug(format!("{model}: {error}")),
                BuildError::Check(source) => Self::bug(format!("{model}: {error}: {source}")),
                BuildError::Schedule(ScheduleError::NotInPaper { .. }) => about(
                    Kind::Cannot,
                    "leave `--params paper` away: the search finds parameters for every network",
                ),
                BuildError::Schedule(_) | BuildError::Deep { .. } => about(
                    Kind::Cannot,
                    "ask for less `--precision` or a larger ring (`--log-n`); where you gave neither, use fewer activations or such of a lower degree",
                ),
                BuildError::Overflow { .. } => about(
                    Kind::Cannot,
                    "divide the weights and the bias of that layer by a constant, or train with the clip-range penalty; if only odd inputs lead there, give others with `--calibrate IMAGES`",
                ),
                BuildError::Vanish { size: 0.0, .. } => about(
                    Kind::Cannot,
                    "give inputs whose scores are not all zero with `--calibrate`; a model whose scores are always zero has no program",
                ),
                BuildError::Vanish { .. } => about(
                    Kind::Cannot,
                    "multiply the weights and the bias of that layer by a constant: a common factor of the scores changes no class",
                ),
                BuildError::Memory { .. } => about(
                    Kind::Cannot,
                    "allow more with `--memory`, or try `--layout hw`, which needs fewer keys",
                ),
                BuildError::Layout(_) => {
                    about(Kind::Cannot, "use a larger ring (`--log-n`) or a smaller input")
                }
                BuildError::Empty { depth: 0, .. } => about(
                    Kind::Cannot,
                    "whoever has the input can compute it in the clear; to encrypt, compile a model with a layer",
                ),
                BuildError::Arity { .. } | BuildError::NotMerged | BuildError::Empty { .. } => about(
                    Kind::Cannot,
                    "compile a network with one input, one output and at least one layer with weights",
                ),
            },
        }
    }

    fn pass(model: &str, error: &PassError) -> Self {
        match error {
            PassError::NoSuchPass { name } => {
                Diagnostic::new(Kind::Usage, format!("there is no pass `{name}`"))
                    .with_help("`fhec levels --list-passes` shows their names")
            }
            other => Diagnostic::bug(format!("{model}: {other}")),
        }
    }
}

/// The option that gives a statistic.
fn option(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Mean => "mean",
        Statistic::Deviation => "std",
    }
}

/// Names of nodes that one place shows.
const MAX_NAMES: usize = 64;

/// One place for all nodes of one operator that are refused for one reason, in the order of the model.
fn grouped(refusals: &[Refusal]) -> Vec<Place> {
    let mut groups: IndexMap<(&str, String), Vec<&Refusal>> = IndexMap::new();
    for refusal in refusals {
        groups.entry((&refusal.op, refusal.reason.to_string())).or_default().push(refusal);
    }
    let place = |((op, why), members): ((&str, String), Vec<&Refusal>)| {
        let at = match &members[..] {
            [only] => only.to_string(),
            _ => {
                let names: Vec<&str> = members.iter().take(MAX_NAMES).map(|r| r.node.as_str()).collect();
                let rest = members.len() - names.len();
                let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
                format!("{} nodes ({op}): {}{more}", members.len(), names.join(", "))
            }
        };
        Place { at, why, help: Some(members[0].reason.help().to_owned()) }
    };
    groups.into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{Reason, Refusals};

    #[test]
    fn refusals_of_one_kind_are_one_place_with_every_name() {
        let relu = |i: usize| Refusal {
            node: format!("/relu{i}"),
            op: "Relu".into(),
            shape: Some(vec![1, i, 8, 8]),
            reason: Reason::Activation("ReLU"),
        };
        let pool = Refusal { op: "MaxPool".into(), reason: Reason::MaxPool, ..relu(9) };
        let (refusals, spared) = (vec![relu(1), relu(2), pool, relu(3)], vec!["label".into()]);
        let found = Diagnostic::import("m.onnx", &ImportError::Refused(Refusals { nodes: refusals, spared }));
        let places: Vec<&str> = found.places.iter().map(|p| p.at.as_str()).collect();
        assert_eq!(places, ["3 nodes (Relu): /relu1, /relu2, /relu3", "/relu9 (MaxPool, [1, 9, 8, 8])"]);
        assert!(found.what.contains("4 nodes"), "{}", found.what);
        assert!(found.to_string().contains("`--model-output label` leaves away"), "{found}");
    }

    #[test]
    fn refusals_name_every_node_with_reason_and_remedy() {
        let refusal =
            |node: &str, op: &str, shape, reason| Refusal { node: node.into(), op: op.into(), shape, reason };
        let nodes = vec![
            refusal("/relu", "Relu", Some(vec![1, 4, 8, 8]), Reason::Activation("ReLU")),
            refusal("/pool", "MaxPool", None, Reason::MaxPool),
        ];
        let error = ImportError::Refused(Refusals { nodes, spared: Vec::new() });
        insta::assert_snapshot!(Diagnostic::import("m.onnx", &error), @r"
        error: m.onnx: 2 nodes of the model cannot be evaluated on encrypted data
          at /relu (Relu, [1, 4, 8, 8])
            why:  ReLU is not a polynomial
            help: add `--approximate --calibrate IMAGES`, which fits a polynomial to every layer, or retrain with a polynomial activation
          at /pool (MaxPool)
            why:  a maximum is not a polynomial
            help: use average pooling and retrain; the two agree on where a feature is
        ");
    }
}
