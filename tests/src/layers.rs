//! Who may depend on whom. `cargo xtask tidy` holds the manifests to this table, and a test what a server links.

/// The crates of the workspace, lowest first, and the crates of this workspace that each may depend on. What only tests, benches
/// and `xtask` are made of may depend on anything and stands in [`FREE`].
pub const LAYERS: &[(&str, &[&str])] = &[
    ("fhe-bytecode", &[]),
    ("fhe-host", &[]),
    ("fhe-input", &["fhe-bytecode"]),
    ("fhe-ring", &[]),
    ("fhe-ckks", &["fhe-bytecode", "fhe-ring"]),
    ("fhe-files", &["fhe-bytecode", "fhe-ckks", "fhe-ring"]),
    ("fhe-machine", &["fhe-bytecode", "fhe-ckks", "fhe-host", "fhe-ring"]),
    ("fhe-secret", &["fhe-bytecode", "fhe-ckks", "fhe-ring"]),
    ("fhe-client", &["fhe-bytecode", "fhe-ckks", "fhe-files", "fhe-secret"]),
    (
        "fhe-runtime",
        &[
            "fhe-bytecode",
            "fhe-ckks",
            "fhe-client",
            "fhe-diagnostics",
            "fhe-files",
            "fhe-host",
            "fhe-input",
            "fhe-machine",
            "fhe-secret",
        ],
    ),
    ("fhe-diagnostics", &["fhe-bytecode", "fhe-host", "fhe-input"]),
    ("fhe-serve", &["fhe-bytecode", "fhe-ckks", "fhe-files", "fhe-host", "fhe-machine"]),
    ("fhe-fixed-seeds", &["fhe-secret"]),
    ("fhec-web", &["fhe-bytecode", "fhe-ckks", "fhe-client", "fhe-files", "fhe-secret"]),
    ("fhec-ir", &[]),
    ("fhec-onnx", &[]),
    ("fhec-passes", &["fhec-ir"]),
    (
        "fhec",
        &["fhe-bytecode", "fhe-diagnostics", "fhe-host", "fhe-input", "fhec-ir", "fhec-onnx", "fhec-passes"],
    ),
    ("fhec-oracle", &["fhe-bytecode", "fhec"]),
    (
        "fhec-python",
        &[
            "fhe-bytecode",
            "fhe-ckks",
            "fhe-client",
            "fhe-diagnostics",
            "fhe-files",
            "fhe-host",
            "fhe-input",
            "fhe-machine",
            "fhe-runtime",
            "fhe-secret",
            "fhec",
        ],
    ),
    ("fhec-command", &["fhe-bytecode", "fhe-runtime", "fhec", "fhec-oracle"]),
    ("xtask", &[]),
];

/// Crates that no other crate builds on.
pub const FREE: &[&str] = &["fhec-examples", "fhec-fuzz", "fhec-tests", "xtask-lab"];

/// What evaluates: everything a server needs, and nothing that knows a secret.
pub const SERVER: &[&str] = &["fhe-ring", "fhe-ckks", "fhe-files", "fhe-machine"];

/// Secret keys and decryption, randomness of the operating system, and what belongs to commands.
pub const NOT_ON_A_SERVER: &[&str] =
    &["fhe-secret", "fhe-client", "getrandom", "clap", "indicatif", "comfy-table", "tempfile", "ctrlc"];

/// The server as a command: it has a command line, TLS and tokens, so randomness, too.
pub const SERVER_COMMAND: &str = "fhe-serve";

/// Secret keys, encryption and decryption: what no server may have, whatever else it has.
pub const SECRET_CODE: &[&str] = &["fhe-secret", "fhe-client", "fhe-runtime"];

/// The crates of what is installed: commands, server, Python module.
pub const TOOLS: &[&str] = &["fhec-command", "fhe-runtime", "fhe-serve", "fhec-python"];

/// Seeds that repeat, and other things of tests, which no tool may link.
pub const NOT_IN_A_TOOL: &[&str] = &["fhe-fixed-seeds", "fhec-tests", "fhec-fuzz"];

/// Why tools make no seeds of their own.
const SYSTEM_SEEDS: &str = "seeds of tools come from the operating system";

/// Folders, words that must not stand in their code, and why. Tests are free.
pub const UNKNOWN: &[(&str, &[&str], &str)] = &[
    ("compiler/src", &["fhe_ring", "fhe_ckks", "fhe_secret"], "a compiler computes with no ring and no keys"),
    (
        "compiler/src/import",
        &["crate::timed", "crate::schedule", "crate::layout", "crate::search", "crate::report", "crate::cli"],
        "an import knows no later stage",
    ),
    (
        "compiler/src/lower",
        &["crate::timed", "crate::layout", "crate::schedule", "crate::search", "crate::report", "crate::cli"],
        "a circuit knows no later stage",
    ),
    (
        "compiler/src/measure",
        &["crate::timed", "crate::layout", "crate::schedule", "crate::search"],
        "values are measured whatever becomes of them",
    ),
    (
        "compiler/src/timed",
        &["crate::layout", "crate::schedule", "crate::search", "fhe_bytecode"],
        "times know circuits only",
    ),
    (
        "compiler/src/layout",
        &["crate::schedule", "crate::search", "crate::emit"],
        "layouts know times and nothing of schedules",
    ),
    ("compiler/src/report", &["crate::cli", "indicatif"], "a page knows no command"),
    (
        "compiler/src/schedule",
        &["crate::search", "crate::emit", "crate::report", "crate::cli", "crate::import", "tract"],
        "a schedule knows circuits only",
    ),
    (
        "compiler/ir/src",
        &["tract", "egg::", "std::fs", "println!"],
        "a tensor graph knows no files and no rewriting",
    ),
    (
        "passes/src",
        &["tract", "fhe_bytecode", "std::fs", "std::env", "println!"],
        "a pass depends on its graph only",
    ),
    (
        "runtime/bytecode/src",
        &["std::fs", "std::env", "rayon", "println!"],
        "the contract knows bytes, not files",
    ),
    (
        "runtime/ring/src",
        &["fhe_bytecode::codec", "std::fs", "println!"],
        "arithmetic knows no encryption and no files",
    ),
    (
        "runtime/ckks/src",
        &["std::fs", "getrandom", "SecretKey", "println!"],
        "an evaluator knows no secret and no randomness",
    ),
    ("runtime/serve/src", &["SecretKey::", "fhe_client", "fhe_secret"], "a server has no secret"),
    (
        "runtime/python/src/server",
        &["fhe_secret", "fhe_client", "SecretKey", "decrypt"],
        "a server knows no secret",
    ),
    (
        "runtime/machine/src",
        &["std::fs", "SecretKey", "println!"],
        "a machine reads no files and knows no secret",
    ),
    ("runtime/src", &["from_rng"], SYSTEM_SEEDS),
    ("runtime/client/src", &["from_rng"], SYSTEM_SEEDS),
    ("runtime/python/src", &["from_rng"], SYSTEM_SEEDS),
    ("compiler/command/src", &["from_rng"], SYSTEM_SEEDS),
    ("runtime/host/src", &["FHEBC", "FHEIF"], "the host knows no format"),
];
