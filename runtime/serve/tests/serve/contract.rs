//! The contract as a document.

/// After a change of the contract: `cargo run --release -p fhe-serve -- openapi > runtime/serve/openapi.json`.
#[test]
fn the_committed_document_is_the_generated_one() {
    let committed = include_str!("../../openapi.json");
    assert!(
        committed == fhe_serve::http::document().unwrap(),
        "runtime/serve/openapi.json is not up to date"
    );
}

#[test]
fn every_route_of_the_document_answers() {
    let folder = tempfile::tempdir().unwrap();
    let server = crate::fixture::start(&crate::fixture::options(folder.path()));
    let document = server.get("/v1/openapi.json").json();
    let mut n_routes = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let path = path.replace("{program}", &"0".repeat(64)).replace("{key}", &"0".repeat(32));
            let path = path.replace("{job}", &"0".repeat(64));
            let answer = server.send(&method.to_uppercase(), &path, &[], b"");
            assert!(answer.status < 405, "{method} {path}: {answer:?}");
            let is_known = answer.status == 200 || answer.code() != "no-such-route";
            assert!(is_known, "{method} {path}: {answer:?}");
            n_routes += 1;
        }
    }
    assert!(n_routes >= 17, "{n_routes}");
}
