//! Clustering and ensembles of a ResNet-20 at full size and 128 bits of security: what they do to the time of one image.

use fhe_machine::{Options, Silent};
use fhe_runtime::Trial;
use fhe_secret::SeedSource;
use fhec::cluster::{ClusterOptions, Method, Order};
use fhec::lower::eval;
use fhec::pipeline::{Built, LayoutChoice};
use fhec::{Model, Request, compile};
use fhec_tests::models::{Network, Spec, generate};

fn built(n_members: u64, cluster: Option<ClusterOptions>) -> Built {
    let member = |seed: u64| {
        let spec = Spec { seed, ..Spec::new(Network::Resnet20) };
        Model::onnx(format!("member {seed}"), generate(&spec))
    };
    let models = (0..n_members).map(member).collect();
    let request = Request { models, layout: LayoutChoice::Hw, cluster, ..Request::default() };
    compile(&request, &mut ()).unwrap().built
}

/// Seconds of one encrypted image whose decrypted scores are those of the clear circuit.
fn seconds(built: &Built, what: &str) -> f64 {
    let input: Vec<f64> = (0..3072).map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0).collect();
    let expected = eval::scores(built.circuit(), &[&input]);
    let mut seeds = SeedSource::os();
    let options = Options { memory: 16 << 30, n_evaluations: 1 };
    let trial = Trial::new(&built.program, options, &mut seeds).unwrap();
    let found = trial.run(&input, &mut seeds, &Silent).unwrap();
    let error = found.decrypted.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let params = &built.schedule().params;
    eprintln!(
        "{what}: {:.1} s, {} plaintexts encoded, log2 PQ {:.0}, {} special primes, digits of {}, error {error:.2e}",
        found.eval_seconds,
        found.profile.n_encoded,
        params.log2_pq(),
        params.special_primes().len(),
        params.digit_size(),
    );
    assert!(error < 6.0 * built.schedule().error, "{what}: off by {error}");
    found.eval_seconds
}

fn slices(centroids: u32) -> Option<ClusterOptions> {
    Some(ClusterOptions { method: Method::Slice, centroids, seed: 1, order: Order::After })
}

#[test]
#[ignore = "takes minutes and 16 GiB; run with cargo xtask slow"]
fn resnet20_with_64_centroids_a_slice_is_faster_than_without() {
    let clustered = seconds(&built(1, slices(64)), "64 centroids a slice");
    let plain = seconds(&built(1, None), "no clustering");
    eprintln!("{:.2} times as fast", plain / clustered);
    assert!(plain > 1.5 * clustered);
}

#[test]
#[ignore = "takes minutes and 16 GiB; run with cargo xtask slow"]
fn four_resnet20_take_as_long_as_one() {
    let one = seconds(&built(1, slices(64)), "one member");
    let four = seconds(&built(4, slices(64)), "four members");
    eprintln!("four members take {:+.1} %", 100.0 * (four / one - 1.0));
    assert!(four < 1.3 * one);
}
