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

/// What the document allows and forbids, as another program reads it.
#[test]
#[ignore = "needs schemathesis; cargo xtask cluster --contract"]
fn another_program_finds_the_contract_kept() {
    let folder = tempfile::tempdir().unwrap();
    let server = crate::fixture::start(&crate::fixture::options(folder.path()));
    let client = crate::client::TestClient::new(1, None);
    client.upload(&server);
    let built = std::path::Path::new(env!("CARGO_BIN_EXE_fhe-serve")).ancestors().nth(2).unwrap();
    let program = std::env::var_os("FHE_SCHEMATHESIS")
        .map_or_else(|| built.join("tools/schemathesis"), std::path::PathBuf::from);
    let url = format!("http://{}/v1/openapi.json", server.address);
    let checks =
        "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
    let status = std::process::Command::new(program)
        .args(["run", &url, "--checks", checks, "--max-examples", "30", "--seed", "1", "--no-color"])
        .args(["--exclude-path", "/v1/jobs/{job}/events"])
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(status.success());
    // It is alive and well after that; the other program may have found the keys, and deleted them.
    if server.get(&client.keys_path()).status != 200 {
        client.upload(&server);
    }
    let input = client.encrypt(&client.tensor(1), 1);
    let job =
        server.send("POST", &format!("{}&wait=60", client.jobs_path()), &[], &input).expect(200, "").json();
    assert_eq!(job["state"], "done");
}
