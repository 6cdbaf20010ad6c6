//! One ONNX node with typed access to its attributes.

use std::collections::BTreeMap;

use fhec_onnx::{AttributeProto, AttributeType, NodeProto};

use super::constant::Constant;
use super::error::Malformed;
use super::external::ExternalData;
use super::limits::Budget;
use super::tensor::{self, Read, text};

/// An operator applied to named values.
#[derive(Debug)]
pub(super) struct Node {
    /// ONNX name, or one made from operator and position.
    pub(super) name: String,
    /// Operator domain; empty for standard ONNX.
    pub(super) domain: String,
    /// Operator.
    pub(super) op: String,
    /// Names of the operands; empty where an optional one is left out.
    pub(super) inputs: Vec<String>,
    /// Names of the results.
    pub(super) outputs: Vec<String>,
    attributes: BTreeMap<String, Attribute>,
}

#[derive(Debug)]
enum Attribute {
    Int(i64),
    Float(f32),
    Text(String),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Texts(Vec<String>),
    Tensor(Constant),
    /// Strings in tensors, graphs, sparse tensors and types: present, never used.
    Other,
}

impl Node {
    /// Takes a node out of the protobuf.
    pub(super) fn read(
        proto: NodeProto,
        external: &mut ExternalData,
        budget: &mut Budget,
    ) -> Result<Self, Malformed> {
        let name = proto.name;
        let mut attributes = BTreeMap::new();
        for mut attribute in proto.attribute {
            let key = attribute.name.clone();
            if let Some(tensor) = attribute.t.as_mut().filter(|t| t.name.is_empty()) {
                tensor.name = format!("{name}.{key}");
            }
            attributes.insert(key, Attribute::read(attribute, external, budget)?);
        }
        let domain = if proto.domain == "ai.onnx" { String::new() } else { proto.domain };
        Ok(Node { name, domain, op: proto.op_type, inputs: proto.input, outputs: proto.output, attributes })
    }

    /// What stands for an input or output of the model where messages name a node.
    pub(super) fn end(name: &str, op: &str) -> Self {
        Node {
            name: name.into(),
            domain: String::new(),
            op: op.into(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            attributes: BTreeMap::new(),
        }
    }

    /// The name of an operand, unless it is left out.
    pub(super) fn input(&self, slot: usize) -> Option<&str> {
        self.inputs.get(slot).map(String::as_str).filter(|s| !s.is_empty())
    }

    /// Whether there is an attribute of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.attributes.contains_key(name)
    }

    /// An integer attribute.
    pub(super) fn int(&self, name: &str, default: i64) -> Result<i64, Malformed> {
        match self.attributes.get(name) {
            None => Ok(default),
            Some(Attribute::Int(v)) => Ok(*v),
            Some(_) => Err(self.malformed(format!("has an attribute {name} that is no integer"))),
        }
    }

    /// A floating-point attribute.
    pub(super) fn float(&self, name: &str, default: f32) -> Result<f64, Malformed> {
        match self.attributes.get(name) {
            None => Ok(f64::from(default)),
            Some(Attribute::Float(v)) => Ok(f64::from(*v)),
            Some(_) => Err(self.malformed(format!("has an attribute {name} that is no number"))),
        }
    }

    /// A string attribute.
    pub(super) fn text(&self, name: &str, default: &str) -> Result<String, Malformed> {
        match self.attributes.get(name) {
            None => Ok(default.into()),
            Some(Attribute::Text(v)) => Ok(v.clone()),
            Some(_) => Err(self.malformed(format!("has an attribute {name} that is no string"))),
        }
    }

    /// A list of integers.
    pub(super) fn ints(&self, name: &str) -> Result<Option<&[i64]>, Malformed> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(Attribute::Ints(v)) => Ok(Some(v)),
            Some(_) => Err(self.malformed(format!("has an attribute {name} that is no list of integers"))),
        }
    }

    /// A list of numbers.
    pub(super) fn floats(&self, name: &str) -> Result<Option<&[f32]>, Malformed> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(Attribute::Floats(v)) => Ok(Some(v)),
            Some(_) => Err(self.malformed(format!("has an attribute {name} that is no list of numbers"))),
        }
    }

    /// A list of strings; empty if there is none.
    pub(super) fn texts(&self, name: &str) -> &[String] {
        match self.attributes.get(name) {
            Some(Attribute::Texts(v)) => v,
            _ => &[],
        }
    }

    /// A tensor attribute.
    pub(super) fn tensor(&self, name: &str) -> Option<&Constant> {
        match self.attributes.get(name) {
            Some(Attribute::Tensor(constant)) => Some(constant),
            _ => None,
        }
    }

    /// An error that names this node.
    pub(super) fn malformed(&self, problem: impl Into<String>) -> Malformed {
        Malformed::Node { node: self.name.clone(), op: self.op.clone(), problem: problem.into() }
    }
}

impl Attribute {
    fn read(
        proto: AttributeProto,
        external: &mut ExternalData,
        budget: &mut Budget,
    ) -> Result<Self, Malformed> {
        Ok(match AttributeType::try_from(proto.r#type) {
            Ok(AttributeType::Int) => Attribute::Int(proto.i),
            Ok(AttributeType::Float) => Attribute::Float(proto.f),
            Ok(AttributeType::String) => Attribute::Text(text(&proto.s)),
            Ok(AttributeType::Strings) => {
                Attribute::Texts(proto.strings.iter().map(|bytes| text(bytes)).collect())
            }
            Ok(AttributeType::Ints) => Attribute::Ints(proto.ints),
            Ok(AttributeType::Floats) => Attribute::Floats(proto.floats),
            Ok(AttributeType::Tensor) => match proto.t {
                Some(tensor) => match tensor::read(tensor, external, budget)? {
                    Read::Numbers(constant) => Attribute::Tensor(constant),
                    Read::Text(_) => Attribute::Other,
                },
                None => Attribute::Other,
            },
            _ => Attribute::Other,
        })
    }
}
