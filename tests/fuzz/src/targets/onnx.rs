//! ONNX models: the import, then the passes and a build of what it accepts.

use std::path::Path;

use fhec::diagnostics::{Diagnostic, Words};
use fhec::import::{ImportError, ImportOptions, Imported, import_bytes};
use fhec::levels::{LevelsOptions, analyze};
use fhec::{Model, Request, compile};
use fhec_onnx::{GraphProto, ModelProto, TypeValue};
use fhec_oracle::Oracle;
use fhec_tests::models::random::Random;
use fhec_tests::models::specimen::specimen;
use prost::Message;

use crate::mutate;
use crate::run::Target;

/// Values a graph may have to be worth analysing again and again.
const MAX_VALUES: usize = 4096;
/// One in so many accepted models goes through the passes,
const ANALYSED: usize = 32;
/// and one in so many is compiled.
const BUILT: usize = 256;

/// Models of several exporters.
pub(super) struct Onnx {
    seeds: Vec<(Vec<u8>, ModelProto)>,
}

/// An accepted model with its bytes.
pub(super) struct Accepted {
    bytes: Vec<u8>,
    imported: Imported,
}

impl Onnx {
    pub(super) fn new() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../onnx-models/exporters");
        let mut models = vec![specimen()];
        for name in ["sklearn-linear.onnx", "sklearn-mlp.onnx", "keras-nhwc.onnx"] {
            models.extend(std::fs::read(folder.join(name)));
        }
        let decoded = models.into_iter().filter_map(|bytes| {
            let proto = ModelProto::decode(&bytes[..]).ok()?;
            Some((bytes, proto))
        });
        Self { seeds: decoded.collect() }
    }
}

impl Target for Onnx {
    type Read = Accepted;
    const NAME: &'static str = "onnx";

    fn input(&self, random: &mut Random) -> Vec<u8> {
        // The first one is the smallest and has most operators.
        let which = if random.below(4) != 0 { 0 } else { random.below(self.seeds.len()) };
        let (bytes, proto) = &self.seeds[which];
        let (other, _) = &self.seeds[random.below(self.seeds.len())];
        match random.below(3) {
            0 => mutate::bytes(bytes, other, random),
            _ => message(proto, random),
        }
    }

    fn read(&self, input: &[u8]) -> Option<Accepted> {
        match import_bytes(input.to_vec(), &ImportOptions::default()) {
            Ok(imported) => Some(Accepted { bytes: input.to_vec(), imported }),
            Err(ImportError::Verify(errors)) => panic!("an invalid graph got out: {errors}"),
            Err(error) => {
                // Every error must be printable.
                assert!(!Diagnostic::import("model", &error).to_string().is_empty());
                None
            }
        }
    }

    fn memory_bound(&self, len: usize) -> usize {
        // Elements of one byte become numbers of eight, in the message, the table and the graph; a small model may compute
        // with 2^24 numbers.
        64 * len + (160 << 20)
    }

    fn exercise(&self, accepted: Accepted, random: &mut Random) -> Result<(), String> {
        let graph = &accepted.imported.graph;
        let largest = graph.ids().map(|id| graph.shape(id).len()).max().unwrap_or(0);
        if largest > MAX_VALUES {
            return Ok(());
        }
        if random.below(ANALYSED) == 0 {
            // Its panics must stay inside; its errors are its own business.
            let _ = Oracle::from_bytes(&accepted.bytes, &accepted.imported);
            analyze("model", graph, &LevelsOptions::default()).map_err(|e| format!("passes: {e}"))?;
        }
        if random.below(BUILT) == 0 {
            let (toy, log_n, precision) = (true, Some(9..=9), Some(4.0));
            let model = Model::imported("model", accepted.imported.clone());
            let request = Request { toy, log_n, precision, insecure: true, ..Request::new(model) };
            match compile(&request, &mut ()) {
                Err(error) if error.is_bug() => return Err(format!("build: {error}")),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }
}

/// One or two random changes of fields of the decoded message.
fn message(proto: &ModelProto, random: &mut Random) -> Vec<u8> {
    let mut proto = proto.clone();
    if let Some(graph) = proto.graph.as_mut() {
        for _ in 0..=random.below(2) {
            change(graph, random);
        }
    }
    proto.encode_to_vec()
}

fn change(graph: &mut GraphProto, random: &mut Random) {
    const SIZES: [i64; 9] = [0, -1, 1, 2, 7, i64::MAX, i64::MIN, 1 << 31, 1 << 40];
    const OPS: &[&str] = &[
        "Relu",
        "MaxPool",
        "Add",
        "Mul",
        "Gemm",
        "MatMul",
        "Reshape",
        "Transpose",
        "Concat",
        "Slice",
        "Pad",
        "Split",
        "Squeeze",
        "Unsqueeze",
        "Expand",
        "ConstantOfShape",
        "Loop",
        "Sum",
        "Softmax",
        "Flatten",
        "Div",
        "Sub",
        "Neg",
        "Pow",
        "Conv",
        "BatchNormalization",
        "AveragePool",
        "GlobalAveragePool",
        "ReduceMean",
        "Identity",
        "Constant",
        "Clip",
        "Dropout",
        "Cast",
        "Gather",
        "Shape",
        "Sqrt",
        "Reciprocal",
        "ConvTranspose",
        "Resize",
        "DepthToSpace",
        "SpaceToDepth",
        "Einsum",
        "Tile",
        "Where",
        "ReduceSum",
        "Equal",
    ];
    let size = SIZES[random.below(SIZES.len())];
    let node = random.below(graph.node.len().max(1));
    let tensor = random.below(graph.initializer.len().max(1));
    let (has_node, has_tensor) = (node < graph.node.len(), tensor < graph.initializer.len());
    match random.below(11) {
        0 if has_tensor => {
            let dims = &mut graph.initializer[tensor].dims;
            let at = random.below(dims.len() + 1);
            if at < dims.len() { dims[at] = size } else { dims.push(size) }
        }
        1 if has_tensor => graph.initializer[tensor].data_type = random.below(25) as i32,
        2 if has_tensor => {
            let raw = &mut graph.initializer[tensor].raw_data;
            let keep = random.below(raw.len() + 1);
            raw.truncate(keep);
        }
        3 if has_tensor => {
            let raw = &mut graph.initializer[tensor].raw_data;
            let value = if random.below(2) == 0 { size as u64 } else { f64::NAN.to_bits() };
            raw.chunks_exact_mut(8).for_each(|c| c.copy_from_slice(&value.to_le_bytes()));
        }
        4 if has_node => graph.node[node].op_type = OPS[random.below(OPS.len())].into(),
        5 | 6 if has_node => {
            let n = graph.node[node].input.len();
            let at = random.below(n.max(1));
            if at < n && random.below(2) == 0 {
                graph.node[node].input.remove(at);
            } else {
                let value = value_name(graph, random);
                let inputs = &mut graph.node[node].input;
                inputs.insert(at.min(inputs.len()), value);
            }
        }
        7 if has_node => {
            let n = graph.node[node].attribute.len();
            if let Some(attribute) = graph.node[node].attribute.get_mut(random.below(n.max(1))) {
                attribute.i = size;
                let at = random.below(attribute.ints.len() + 1);
                attribute.ints.iter_mut().skip(at).for_each(|v| *v = size);
            }
        }
        8 if has_node => drop(graph.node.remove(node)),
        9 => {
            let input = graph.input.first_mut().and_then(|i| i.r#type.as_mut());
            if let Some(TypeValue::TensorType(tensor)) = input.and_then(|t| t.value.as_mut())
                && let Some(shape) = tensor.shape.as_mut()
            {
                let at = random.below(shape.dim.len().max(1));
                shape.dim.truncate(at + random.below(3));
            }
        }
        _ if has_node => {
            let copy = graph.node[node].clone();
            graph.node.push(copy);
        }
        _ => {}
    }
}

/// A value that some node makes, or a constant.
fn value_name(graph: &GraphProto, random: &mut Random) -> String {
    let made = graph.node.iter().flat_map(|n| n.output.iter());
    let constants = graph.initializer.iter().map(|t| &t.name);
    let names: Vec<&String> = made.chain(constants).collect();
    names.get(random.below(names.len().max(1))).map_or_else(String::new, |name| (*name).clone())
}
