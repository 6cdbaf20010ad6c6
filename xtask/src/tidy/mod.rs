//! `cargo xtask tidy`: what no compiler checks about the tree, found in a second and named by file and line.

mod citations;
mod dependencies;
mod fixtures;
mod instructions;
mod layers;
mod links;
mod tree;
mod widths;

use std::io;

use self::tree::Tree;

/// One check: what must hold, in words, and a function that finds where it does not.
type Check = (&'static str, fn(&Tree) -> Vec<String>);

const CHECKS: &[Check] = &[
    ("crates depend on what the table allows", layers::crates),
    ("folders know nothing that the table forbids", layers::modules),
    ("unsafe code is in the ring only", layers::unsafe_code),
    ("no dependency is unused, and each has a reason in the architecture", dependencies::check),
    ("citations name a section of the paper", citations::check),
    ("links and paths in documents lead somewhere", links::check),
    ("every pass has fixtures with snapshots", fixtures::check),
    ("every instruction is in the format's specification", instructions::check),
    ("comments are not too wide", widths::comments),
    ("no path of anybody's machine", widths::machine_paths),
];

/// Runs all checks and lists everything that is found.
pub(crate) fn run() -> io::Result<()> {
    let tree = Tree::read()?;
    let mut n_findings = 0;
    for (what, check) in CHECKS {
        let findings = check(&tree);
        println!("{} {what}", if findings.is_empty() { "ok  " } else { "FAIL" });
        findings.iter().for_each(|finding| println!("       {finding}"));
        n_findings += findings.len();
    }
    match n_findings {
        0 => Ok(()),
        n => Err(io::Error::other(format!("tidy found {n} place(s) to mend"))),
    }
}
