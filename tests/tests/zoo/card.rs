//! What is kept of a model beside its file: inputs, the original runtime's answers, and what is expected of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What a model does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    Works,
    Approximated,
    Refused,
}

/// An input of the model.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) samples: Vec<Vec<f64>>,
    pub(crate) calibrate: Vec<Vec<f64>>,
}

/// What the original runtime gave for one output, sample by sample.
#[derive(Clone, Debug)]
pub(crate) enum Answers {
    Numbers(Vec<Vec<f64>>),
    Labels(Vec<Vec<String>>),
}

/// A model and what is known about it.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    pub(crate) name: String,
    /// The operator that the model is for, by domain and name; nothing for a model of a trainer.
    pub(crate) operator: Option<String>,
    /// When it works, for an operator that does not always.
    pub(crate) condition: String,
    path: PathBuf,
    pub(crate) source: String,
    pub(crate) what: String,
    pub(crate) expect: Expect,
    pub(crate) because: String,
    pub(crate) remedy: String,
    pub(crate) build: Vec<String>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: BTreeMap<String, Answers>,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../onnx-models").join(name)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().map_or_else(Vec::new, |rows| rows.iter().map(numbers).collect())
}

impl Card {
    /// Models of trainers, by name.
    pub(crate) fn zoo() -> Vec<Self> {
        let names = std::fs::read_dir(folder("zoo")).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<PathBuf> =
            names.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
        names.sort();
        let read = |path: &PathBuf| Self::read(path, &json(path));
        names.iter().map(read).collect()
    }

    /// A model for every operator, by name.
    pub(crate) fn operators() -> Vec<Self> {
        let folder = folder("operators");
        let all = json(&folder.join("cards.json"));
        let all = all.as_object().unwrap().iter();
        all.map(|(name, card)| Self::read(&folder.join(format!("{name}.json")), card)).collect()
    }

    /// The model itself.
    pub(crate) fn model(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap()
    }

    fn read(path: &Path, json: &Value) -> Self {
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        let input = |(name, value): (&String, &Value)| Input {
            name: name.clone(),
            samples: rows(&value["samples"]),
            calibrate: rows(&json["calibrate"][name]),
        };
        let answers = |(name, value): (&String, &Value)| {
            let is_text = value[0][0].is_string();
            let label = |x: &Value| x.as_str().unwrap().to_owned();
            let labels = |row: &Value| row.as_array().unwrap().iter().map(label).collect();
            let answers = match is_text {
                true => Answers::Labels(value.as_array().unwrap().iter().map(labels).collect()),
                false => Answers::Numbers(rows(value)),
            };
            (name.clone(), answers)
        };
        let build = json["build"].as_array().map_or_else(Vec::new, |all| {
            all.iter().map(|option| option.as_str().unwrap().to_owned()).collect()
        });
        Card {
            path: path.with_extension("onnx"),
            operator: json["operator"].as_str().map(str::to_owned),
            condition: text("condition"),
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            source: text("source"),
            what: text("what"),
            expect: match text("expect").as_str() {
                "works" => Expect::Works,
                "approximated" => Expect::Approximated,
                "refused" => Expect::Refused,
                other => panic!("{}: {other}", path.display()),
            },
            because: text("because"),
            remedy: text("remedy"),
            build,
            inputs: json["inputs"].as_object().unwrap().iter().map(input).collect(),
            outputs: json["outputs"].as_object().unwrap().iter().map(answers).collect(),
        }
    }
}
