//! Programs within a memory budget: what a build predicts is what the machine counts, and a smaller budget gives a
//! program with fewer keys.

mod networks;

use std::sync::Arc;

use fhe_bytecode::{CheckedProgram, CostModel};
use fhe_ckks::{Context, key_request};
use fhe_fixed_seeds::fixed_seeds;
use fhe_machine::{Model, Options, Session};
use fhe_secret::SecretKey;
use fhec::pipeline::{BuildError, LayoutChoice};
use fhec::{CompileError, Request, compile};
use networks::{RESNET, graph, toy_request};

/// A program whose every key is cheap, so that there is something to save.
fn built(memory: u64) -> Result<CheckedProgram, CompileError> {
    let costs = CostModel { key_byte_s: 1e-11, ..CostModel::default() };
    let request = Request { memory, costs, layout: LayoutChoice::Packed, ..toy_request(graph(RESNET)) };
    compile(&request, &mut ()).map(|compiled| compiled.built.program)
}

fn needed(program: &CheckedProgram) -> u64 {
    program.spec().prediction.key_bytes + program.spec().prediction.ciphertext_bytes
}

#[test]
fn predicted_memory_is_what_the_machine_counts() {
    let program = built(u64::MAX).unwrap();
    let context = Context::new(program.params().clone()).unwrap();
    let mut seeds = fixed_seeds(7);
    let secret = SecretKey::generate(&context, &mut seeds).unwrap();
    let request = key_request(&context, &program);
    let keys = secret.evaluation_keys(&context, &request, &mut seeds).unwrap();
    let options = Options { memory: 4 << 30, n_evaluations: 1 };
    let model = Arc::new(Model::new(&program, context, options).unwrap());
    let memory = Session::new(model, Arc::new(keys)).unwrap().memory();
    let prediction = &program.spec().prediction;
    assert_eq!((prediction.key_bytes, prediction.ciphertext_bytes), (memory.key_bytes, memory.working_bytes));
}

#[test]
fn smaller_budget_gives_a_program_with_fewer_keys() {
    let free = built(u64::MAX).unwrap();
    let budget = needed(&free) - 1;
    let tight = built(budget).unwrap();
    assert!(needed(&tight) <= budget);
    assert!(tight.spec().prediction.key_bytes < free.spec().prediction.key_bytes);
}

#[test]
fn budget_below_the_least_is_refused_with_the_missing_bytes_and_the_layer() {
    match built(100_000) {
        Err(CompileError::Build(BuildError::Memory { keys, working, budget, layer, layer_bytes })) => {
            assert!(keys + working > budget && budget == 100_000);
            assert!(!layer.is_empty() && layer_bytes > 0);
        }
        other => panic!("expected a memory error, not {other:?}"),
    }
}
