//! Programs for batches: inputs that share ciphertexts where their values leave slots free, each with the result that it has
//! alone.

mod networks;

use std::sync::Arc;

use fhe_bytecode::check::Fact;
use fhe_bytecode::codec;
use fhe_bytecode::{CheckedProgram, Op};
use fhe_ckks::Context;
use fhe_client::{Client, joined};
use fhe_fixed_seeds::fixed_seeds;
use fhe_machine::{Options, Silent};
use fhe_runtime::Trial;
use fhe_secret::SecretKey;
use fhec::pipeline::LayoutChoice;
use fhec::simulate::simulate;
use fhec::{CompileError, Model, Request, compile};
use fhec_ir::{Graph, MemberIdx, evaluate};
use networks::{BRANCHES, LENET, RESNET, TOY_LOG_N, VGG, graph};

fn request(graph: &Graph, layout: LayoutChoice, batch: usize) -> Request {
    let model = Model::graph("network", graph.clone());
    let log_n = Some(TOY_LOG_N..=TOY_LOG_N);
    Request { layout, batch, toy: true, log_n, precision: Some(7.0), ..Request::new(model) }
}

fn built(graph: &Graph, layout: LayoutChoice, batch: usize) -> CheckedProgram {
    compile(&request(graph, layout, batch), &mut ()).unwrap().built.program
}

/// Inputs that differ.
fn inputs(graph: &Graph, n: usize) -> Vec<Vec<f64>> {
    let len = graph.shape(graph.inputs()[0]).len();
    let input = |k: usize| (0..len).map(|i| ((i * 37 + 11 + k * 29) % 101) as f64 / 50.0 - 1.0).collect();
    (0..n).map(input).collect()
}

/// The most inputs that share a ciphertext.
fn most_members(program: &CheckedProgram) -> usize {
    let members = |fact: &Fact| program.layout(fact.layout).members();
    program.steps().filter_map(|step| step.result).map(members).max().unwrap()
}

fn options() -> Options {
    Options { memory: 4 << 30, n_evaluations: 2 }
}

/// Every input of every batch, the last one not full, has the result of the clear evaluator within the predicted error.
fn check(nodes: &str, layout: LayoutChoice, batch: usize) -> CheckedProgram {
    let graph = graph(nodes);
    let program = built(&graph, layout, batch);
    assert_eq!((program.batch(), program.interface().batch()), (batch, batch));
    assert_eq!(codec::decode(&codec::encode(&program), codec::DEFAULT_LIMIT).unwrap().spec(), program.spec());
    let inputs = inputs(&graph, batch + batch / 2);
    let mut seeds = fixed_seeds(7);
    let trial = Trial::new(&program, options(), &mut seeds).unwrap();
    let tensors: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
    let outcomes = trial.run_batch(&tensors, &mut seeds, &Silent).unwrap();
    assert_eq!(outcomes.len(), inputs.len());
    let bound = program.spec().prediction.max_abs_error;
    for (i, (outcome, input)) in outcomes.iter().zip(&inputs).enumerate() {
        let expected = evaluate(&graph, &[input], MemberIdx::FIRST).unwrap().remove(0).data;
        let worst = |found: &[f64]| {
            assert_eq!(found.len(), expected.len());
            found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        let size = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        assert!(
            worst(&outcome.clear) < 1e-5 * size,
            "{layout:?}, input {i} in the clear: off by {}",
            worst(&outcome.clear)
        );
        assert!(
            worst(&outcome.decrypted) < bound,
            "{layout:?}, input {i}: off by {}, at most {bound}",
            worst(&outcome.decrypted)
        );
    }
    program
}

#[test]
fn residual_network_has_the_results_of_its_inputs_alone() {
    for batch in [4, 8, 16] {
        check(RESNET, LayoutChoice::Packed, batch);
    }
    check(RESNET, LayoutChoice::Hw, 4);
}

#[test]
fn other_networks_have_the_results_of_their_inputs_alone() {
    for nodes in [LENET, VGG, BRANCHES] {
        check(nodes, LayoutChoice::Packed, 4);
    }
    check(LENET, LayoutChoice::Hw, 2);
}

/// Whatever shares a ciphertext, every value has all inputs of its batch.
#[test]
fn lanes_come_together_where_slots_are_free() {
    let graph = graph(RESNET);
    for batch in [4, 8, 16] {
        let program = built(&graph, LayoutChoice::Packed, batch);
        for fact in program.steps().filter_map(|step| step.result.copied()) {
            let members = program.layout(fact.layout).members();
            assert_eq!(fact.lanes as usize * members, batch, "{members} members in {} lanes", fact.lanes);
        }
        assert!(most_members(&program) > 1, "a batch of {batch} shares nothing");
    }
    assert_eq!(most_members(&built(&graph, LayoutChoice::Packed, 1)), 1);
}

#[test]
fn results_have_the_same_bits_for_any_number_of_threads() {
    let graph = graph(RESNET);
    let program = built(&graph, LayoutChoice::Packed, 4);
    let inputs = inputs(&graph, 3);
    let with_threads = |n: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| {
            let mut seeds = fixed_seeds(7);
            let trial = Trial::new(&program, options(), &mut seeds).unwrap();
            let tensors: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
            let outcomes = trial.run_batch(&tensors, &mut seeds, &Silent).unwrap();
            outcomes.into_iter().map(|outcome| outcome.decrypted).collect::<Vec<_>>()
        })
    };
    assert_eq!(with_threads(1), with_threads(3));
}

/// The interface tells a client what a batch is; one input alone is refused with what the program takes.
#[test]
fn clients_are_told_what_a_batch_is() {
    let graph = graph(LENET);
    let program = built(&graph, LayoutChoice::Packed, 2);
    let interface = program.interface();
    let again =
        codec::read_interface(&codec::encode_interface(&interface)[..], codec::INTERFACE_LIMIT).unwrap();
    assert_eq!((again.batch(), again.of_one().batch()), (2, 1));
    assert_eq!(again.input_ciphertexts(), program.input_layout().n_cts() * program.input_layout().lanes(2));
    let context = Context::new(program.params().clone()).unwrap();
    let mut seeds = fixed_seeds(3);
    let key = SecretKey::generate(&context, &mut seeds).unwrap();
    let client = Client::new(Arc::new(interface), context, key).unwrap();
    let one = inputs(&graph, 1).remove(0);
    let refused = client.encrypt(&one, &mut seeds).unwrap_err();
    assert_eq!(refused.to_string(), "the program takes 2 inputs at once and gives as many results");
    assert!(client.encrypt(&joined(&[&one], 2), &mut seeds).is_ok());
}

#[test]
fn simulation_has_a_result_for_every_sample() {
    let graph = graph(LENET);
    let program = built(&graph, LayoutChoice::Packed, 4);
    let samples = inputs(&graph, 6);
    let simulation = simulate(&program, &samples, 1, &mut |_, _| ()).unwrap();
    assert_eq!((simulation.results.len(), simulation.summary.samples), (6, 6));
    assert!(simulation.summary.max_abs_error < program.spec().prediction.max_abs_error);
}

#[test]
fn keys_of_a_batch_serve_another_model_of_the_same_batch_only() {
    let graph = graph(LENET);
    let first = built(&graph, LayoutChoice::Packed, 4);
    let like = |batch| Request {
        like: Some(Box::new(first.clone())),
        ..request(&graph, LayoutChoice::Packed, batch)
    };
    let like = |batch| compile(&Request { log_n: None, precision: None, ..like(batch) }, &mut ());
    assert!(like(4).is_ok());
    let Err(CompileError::Unlike { what }) = like(1) else { panic!("another batch is accepted") };
    assert_eq!(what, "it takes 4 inputs at once");
}

/// Lanes of one map share its plaintexts: a batch has no more maps than an input alone.
#[test]
fn maps_are_not_repeated_for_every_input() {
    let graph = graph(RESNET);
    let maps = |batch| {
        let program = built(&graph, LayoutChoice::Packed, batch);
        program.steps().filter(|step| matches!(step.op(), Op::Linear { .. })).count()
    };
    assert!(maps(16) <= maps(1), "{} and {} maps", maps(16), maps(1));
}

#[test]
fn batches_that_nothing_is_placed_for_are_refused() {
    let graph = graph(LENET);
    let refused = |request: Request| match compile(&request, &mut ()) {
        Err(error @ CompileError::Batch { .. }) => error.to_string(),
        other => panic!("{:?}", other.map(|_| ())),
    };
    let asked = |batch| request(&graph, LayoutChoice::Packed, batch);
    assert_eq!(refused(asked(3)), "a batch of 3 inputs is no power of two up to 64");
    assert_eq!(refused(asked(128)), "a batch of 128 inputs is no power of two up to 64");
    let models = vec![Model::graph("a", graph.clone()), Model::graph("b", graph.clone())];
    assert_eq!(refused(Request { models, ..asked(2) }), "a batch of 2 inputs does not go with an ensemble");
}
