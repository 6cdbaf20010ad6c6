//! Writes small ONNX models: a thin layer over the protobuf types, with generated names.
//!
//! ```
//! use fhec_tests::onnx::OnnxWriter;
//! let mut w = OnnxWriter::new("square");
//! let x = w.input("x", &[None, Some(4)]);
//! let y = w.node("Mul", &[&x, &x]);
//! let bytes = w.finish(&y, &[None, Some(4)]);
//! assert!(!bytes.is_empty());
//! ```

use fhec_onnx::{self as pb, AttributeType, DataType, Dimension, DimensionValue, TensorType, TypeValue};
use prost::Message;

/// One attribute of a node, by value.
#[derive(Clone, Debug)]
pub enum Attr {
    /// A 64-bit integer.
    Int(i64),
    /// A 32-bit float.
    Float(f32),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A string.
    Str(String),
}

/// Collects nodes and initializers of one graph; every value is known by its name.
#[derive(Debug)]
pub struct OnnxWriter {
    graph: pb::GraphProto,
    metadata: Vec<(String, String)>,
    opset: i64,
    fresh: usize,
}

impl OnnxWriter {
    /// An empty graph at operator set 17.
    pub fn new(name: &str) -> Self {
        let graph = pb::GraphProto { name: name.into(), ..Default::default() };
        OnnxWriter { graph, metadata: Vec::new(), opset: 17, fresh: 0 }
    }

    /// Sets the operator set version.
    pub fn set_opset(&mut self, version: i64) {
        self.opset = version;
    }

    /// Adds a float graph input; `None` is a symbolic dimension.
    pub fn input(&mut self, name: &str, dims: &[Option<i64>]) -> String {
        self.graph.input.push(value_info(name, dims));
        name.to_owned()
    }

    /// Adds a float initializer.
    pub fn tensor(&mut self, name: &str, dims: &[usize], data: &[f32]) -> String {
        let raw = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.initializer(name, dims, DataType::Float, raw)
    }

    /// Adds an integer initializer, for shapes, axes and slices.
    pub fn ints(&mut self, name: &str, data: &[i64]) -> String {
        let raw = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.initializer(name, &[data.len()], DataType::Int64, raw)
    }

    /// Adds a scalar float initializer.
    pub fn scalar(&mut self, value: f32) -> String {
        let name = self.fresh("const");
        self.tensor(&name, &[], &[value])
    }

    /// Adds a node with one output and no attributes; the value it makes is returned.
    pub fn node(&mut self, op: &str, inputs: &[&str]) -> String {
        self.node_with(op, inputs, &[])
    }

    /// Adds a node with one output; the value it makes is returned.
    pub fn node_with(&mut self, op: &str, inputs: &[&str], attrs: &[(&str, Attr)]) -> String {
        let name = self.fresh(op);
        let output = format!("{name}_out");
        self.graph.node.push(pb::NodeProto {
            name: format!("/{name}"),
            op_type: op.into(),
            input: inputs.iter().map(|s| s.to_string()).collect(),
            output: vec![output.clone()],
            attribute: attrs.iter().map(|(n, a)| attribute(n, a)).collect(),
            ..Default::default()
        });
        output
    }

    /// Adds a line of model metadata.
    pub fn metadata(&mut self, key: &str, value: &str) {
        self.metadata.push((key.into(), value.into()));
    }

    /// Makes `output` the graph's output and encodes the model.
    pub fn finish(self, output: &str, dims: &[Option<i64>]) -> Vec<u8> {
        self.finish_proto(output, dims).encode_to_vec()
    }

    /// Makes `output` the graph's output and returns the message, for tests that damage it.
    pub fn finish_proto(mut self, output: &str, dims: &[Option<i64>]) -> pb::ModelProto {
        self.graph.output.push(value_info(output, dims));
        pb::ModelProto {
            ir_version: 8,
            opset_import: vec![pb::OperatorSetIdProto { domain: String::new(), version: self.opset }],
            producer_name: "fhec-tests".into(),
            graph: Some(self.graph),
            metadata_props: self
                .metadata
                .into_iter()
                .map(|(key, value)| pb::StringStringEntryProto { key, value })
                .collect(),
            ..Default::default()
        }
    }

    /// A name not used before, starting with `prefix`.
    pub fn fresh(&mut self, prefix: &str) -> String {
        self.fresh += 1;
        format!("{prefix}_{}", self.fresh)
    }

    fn initializer(&mut self, name: &str, dims: &[usize], kind: DataType, raw: Vec<u8>) -> String {
        self.graph.initializer.push(pb::TensorProto {
            name: name.into(),
            dims: dims.iter().map(|&d| d as i64).collect(),
            data_type: kind as i32,
            raw_data: raw,
            ..Default::default()
        });
        name.to_owned()
    }
}

fn attribute(name: &str, value: &Attr) -> pb::AttributeProto {
    let mut proto = pb::AttributeProto { name: name.into(), ..Default::default() };
    match value {
        Attr::Int(i) => (proto.r#type, proto.i) = (AttributeType::Int as i32, *i),
        Attr::Float(f) => (proto.r#type, proto.f) = (AttributeType::Float as i32, *f),
        Attr::Ints(v) => (proto.r#type, proto.ints) = (AttributeType::Ints as i32, v.clone()),
        Attr::Str(s) => (proto.r#type, proto.s) = (AttributeType::String as i32, s.clone().into_bytes()),
    }
    proto
}

fn value_info(name: &str, dims: &[Option<i64>]) -> pb::ValueInfoProto {
    let dim = dims.iter().map(|d| {
        let value = match d {
            Some(v) => DimensionValue::DimValue(*v),
            None => DimensionValue::DimParam("batch".into()),
        };
        Dimension { value: Some(value), ..Default::default() }
    });
    let shape = pb::TensorShapeProto { dim: dim.collect() };
    let tensor = TensorType { elem_type: DataType::Float as i32, shape: Some(shape) };
    pb::ValueInfoProto {
        name: name.into(),
        r#type: Some(pb::TypeProto { value: Some(TypeValue::TensorType(tensor)), ..Default::default() }),
        ..Default::default()
    }
}
