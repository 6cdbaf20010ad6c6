//! Imports a model and compares the graph with tract.
#![allow(dead_code, reason = "every test file uses its own part")]

use fhec::import::{ImportError, ImportOptions, Imported, Refusal, import_bytes};
use fhec::levels::agreement;
use fhec_oracle::Oracle;

/// Imports a model that must be accepted.
pub(crate) fn accepted(bytes: Vec<u8>) -> Imported {
    import_bytes(bytes, &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}: {e:?}"))
}

/// Imports a model that must be refused and returns the reasons.
pub(crate) fn refused(bytes: Vec<u8>) -> Vec<Refusal> {
    match import_bytes(bytes, &ImportOptions::default()) {
        Err(ImportError::Refused(refusals)) => refusals.nodes,
        other => panic!("expected refusals, not {other:?}"),
    }
}

/// Imports a model and asserts that the graph computes what tract computes.
pub(crate) fn check(name: &str, bytes: Vec<u8>) -> Imported {
    let imported = match import_bytes(bytes.clone(), &ImportOptions::default()) {
        Ok(imported) => imported,
        Err(e) => panic!("{name}: {e}: {e:?}"),
    };
    let oracle = Oracle::from_bytes(&bytes, &imported).unwrap_or_else(|e| panic!("{name}: {e}"));
    let found = agreement(&imported.graph, &oracle, 3).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(found.error < 1e-4, "{name}: off by {:e}\n{}", found.error, imported.graph);
    imported
}

/// The mnemonics of a graph in order.
pub(crate) fn ops(imported: &Imported) -> Vec<&'static str> {
    let graph = &imported.graph;
    graph.topo_order().into_iter().map(|id| graph.op(id).mnemonic()).collect()
}
