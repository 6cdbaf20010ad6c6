//! The options of a compilation, and the request they make.

use fhe_bytecode::{CheckedProgram, Preprocessing};
use fhec::cli::parse_relu;
use fhec::cluster::{ClusterOptions, Method, Order};
use fhec::pipeline::{LayoutChoice, ParamsChoice};
use fhec::{Calibration, Model, Request};
use serde::Deserialize;

use crate::fault::{Class, Fault};

/// What `fhec.compile` may be asked for; the names are those of the options of `fhec build`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {
    pub(super) memory: u64,
    layout: String,
    sublevels: u32,
    precision: Option<f64>,
    headroom: Option<f64>,
    log_n: Option<u32>,
    toy: bool,
    insecure: bool,
    mean: Vec<f64>,
    std: Vec<f64>,
    labels: Vec<String>,
    relu: Option<String>,
    approximate: bool,
    outputs: Vec<String>,
    cluster: Option<String>,
    centroids: u32,
    fuse: bool,
    redistribute: bool,
    pub(super) check: bool,
}

pub(super) fn wrong(option: &str, found: impl std::fmt::Display, wanted: &str) -> Fault {
    Fault::new(Class::Usage, "option", format!("{option} is {found}"))
        .with_remedy(format!("{option} is {wanted}"))
}

impl Options {
    /// Reads what `fhec.compile` made of its arguments.
    pub(super) fn parse(options: &str) -> Result<Self, Fault> {
        serde_json::from_str(options).map_err(|error| {
            Fault::new(Class::Usage, "option", error.to_string())
                .with_remedy("see help(fhec.compile) for what options take")
        })
    }

    /// What the compiler is asked for; `like` is a program whose keys are to serve.
    pub(super) fn request(
        &self,
        models: Vec<Model>,
        calibration: Calibration,
        like: Option<CheckedProgram>,
    ) -> Result<Request, Fault> {
        let layout = match self.layout.as_str() {
            "auto" => LayoutChoice::Auto,
            "hw" => LayoutChoice::Hw,
            "packed" => LayoutChoice::Packed,
            other => return Err(wrong("layout", format!("{other:?}"), "\"auto\", \"hw\" or \"packed\"")),
        };
        let method = match self.cluster.as_deref() {
            None => None,
            Some("full") => Some(Method::Full),
            Some("slice") => Some(Method::Slice),
            Some(other) => return Err(wrong("cluster", format!("{other:?}"), "None, \"full\" or \"slice\"")),
        };
        if !(1..=8).contains(&self.sublevels) {
            return Err(wrong("sublevels", self.sublevels, "a number from 1 to 8"));
        }
        if self.log_n.is_some_and(|log_n| !(5..=17).contains(&log_n)) {
            return Err(wrong("log_n", self.log_n.unwrap_or_default(), "a number from 5 to 17"));
        }
        let relu = self.relu.as_deref().map(parse_relu).transpose();
        Ok(Request {
            models,
            relu: relu.map_err(|why| {
                wrong("relu", why, "\"quadratic\", or with range and bits \"quadratic,c=2,b=10\"")
            })?,
            approximate: self.approximate,
            outputs: self.outputs.clone(),
            like: like.map(Box::new),
            preprocessing: Preprocessing { mean: self.mean.clone(), std: self.std.clone() },
            classes: self.labels.clone(),
            calibration,
            cluster: method.map(|method| ClusterOptions {
                method,
                centroids: self.centroids,
                seed: 1,
                order: Order::After,
            }),
            fuse: self.fuse,
            redistribute: self.redistribute,
            layout,
            sublevels: self.sublevels,
            precision: self.precision,
            params: ParamsChoice::Search,
            log_n: self.log_n.map(|log_n| log_n..=log_n),
            toy: self.toy,
            headroom: self.headroom,
            insecure: self.insecure,
            memory: self.memory,
            ..Request::default()
        })
    }
}
