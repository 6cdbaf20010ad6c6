//! Files below a megabyte that a stranger wrote: every command that is given one refuses it with exit code 1, a short message
//! that no terminal obeys, less than a second of processor time and less than 64 MiB of memory.
//!
//! One test, because the memory of ended children is counted for all of them together.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fhe_bytecode::CheckedProgram;
use fhe_bytecode::codec::{encode, encode_interface};
use fhe_bytecode::params::primes::ntt_primes_below;
use fhe_bytecode::text::is_harmless;
use fhec_onnx::{ModelProto, StringStringEntryProto};
use fhec_tests::binaries::output;
use fhec_tests::models::specimen::specimen;
use fhec_tests::onnx::OnnxWriter;
use fhec_tests::sections::{long_lists, long_segment_lists, sealed, with_section};
use nix::sys::resource::{UsageWho, getrusage};
use prost::Message;

#[path = "common/large_ring.rs"]
#[allow(dead_code, unreachable_pub)]
mod large_ring;

use large_ring::one_number;

const MOST_SECONDS: f64 = 1.0;
const MOST_KIB: i64 = 64 << 10;
const MOST_MESSAGE: usize = 16 << 10;
const MEGABYTE: u64 = 1 << 20;

/// Commands that read a program; `X` stands for it.
const OF_PROGRAMS: [&str; 15] = [
    "fhe-run info X",
    "fhe-run keygen X --secret-key new.key --eval-keys new.evk --insecure --max-key-bytes 1",
    "fhe-run encrypt X input.csv --secret-key me.key -o new.ct",
    "fhe-run eval X input.ct --eval-keys me.evk -o new.ct",
    "fhe-run decrypt X result.ct --secret-key me.key",
    "fhe-run infer X input.csv --insecure",
    "fhe-run demo X --insecure --memory 64MiB",
    "fhe-run bench X --insecure --memory 64MiB",
    "fhec inspect X",
    "fhec simulate X input.csv",
    "fhec interface X -o new.fhei",
    "fhec report X -o new.html",
    "fhe-run join X part.ct -o new.ct",
    LIKE,
    SERVE,
];
/// Commands that work with a program that they take: seconds and more memory, or for ever.
const LIKE: &str = "fhec build model.onnx -o new.fhebc --toy --like X";
const SERVE: &str = "fhe-serve run X --listen 127.0.0.1:0 --store store --memory 64MiB --insecure";
/// Commands that a client gives an interface.
const OF_INTERFACES: [&str; 5] =
    [OF_PROGRAMS[0], OF_PROGRAMS[1], OF_PROGRAMS[2], OF_PROGRAMS[4], OF_PROGRAMS[12]];

/// What ended children took in all: seconds of processors, and KiB of the one that had most.
fn taken() -> (f64, i64) {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    (seconds(usage.user_time()) + seconds(usage.system_time()), usage.max_rss())
}

/// Programs that pass the checker: commands that evaluate nothing may take them. They cost as little.
const SOUND: [&str; 2] = ["layers.fhebc", "large-tensor.fhebc"];

/// What is wrong with how a command refuses a file. A command that reads no more of a program than its interface may take one
/// whose code is at fault.
fn fault(folder: &Path, line: &str, file: &str) -> Option<String> {
    let line = line.replace('X', file);
    let may_take = line.starts_with("fhec interface") || SOUND.contains(&file);
    assert!(fs::metadata(folder.join(file)).unwrap().len() < MEGABYTE, "{file}");
    let (before, _) = taken();
    let output = output(folder, &line);
    let (after, kib) = taken();
    let said = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    let what = if code != Some(1) && !(may_take && code == Some(0)) {
        format!("exit code {code:?}: {said}")
    } else if after - before >= MOST_SECONDS {
        format!("{:.2} s", after - before)
    } else if kib >= MOST_KIB {
        format!("{kib} KiB")
    } else if said.len() >= MOST_MESSAGE {
        format!("a message of {} bytes", said.len())
    } else if !said.lines().all(is_harmless) {
        format!("says {said:?}")
    } else {
        return None;
    };
    Some(format!("{line}: {what}"))
}

#[test]
fn refused_files_cost_little_whatever_the_command() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let write = |name: &str, data: &[u8]| fs::write(folder.join(name), data).unwrap();
    let golden =
        |name: &str| fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)).unwrap();
    for (from, to) in [
        ("secret-key", "me.key"),
        ("evaluation-keys", "me.evk"),
        ("inputs", "input.ct"),
        ("results", "result.ct"),
    ] {
        write(to, &golden(&format!("files-v2/{from}.bin")));
    }
    write("input.csv", b"1,0.5,-1,0\n");
    write("sound.fhebc", &golden("v2.fhebc"));
    write("part.ct", &golden("files-v2/inputs.bin"));
    write("model.onnx", &specimen());
    fs::set_permissions(folder.join("me.key"), fs::Permissions::from_mode(0o600)).unwrap();

    let mut faults = Vec::new();
    let of_rings = long_segment_lists(&golden("rings.fhebc"));
    for (name, data) in programs(&golden("v3.fhebc")).into_iter().chain(of_rings) {
        let file = format!("{}.fhebc", name.replace(' ', "-"));
        write(&file, &data);
        let is_taken = |line: &&&str| SOUND.contains(&file.as_str()) && [LIKE, SERVE].contains(line);
        let lines = OF_PROGRAMS.iter().filter(|line| !is_taken(line));
        faults.extend(lines.filter_map(|line| fault(folder, line, &file)));
    }
    for (name, data) in interfaces() {
        let file = format!("{}.fhei", name.replace(' ', "-"));
        write(&file, &data);
        faults.extend(OF_INTERFACES.iter().filter_map(|line| fault(folder, line, &file)));
    }
    for (name, line, data) in keys_and_ciphertexts(folder) {
        let file = name.replace(' ', "-");
        write(&file, &data);
        fs::set_permissions(folder.join(&file), fs::Permissions::from_mode(0o600)).unwrap();
        faults.extend(fault(folder, line, &file));
    }
    for (name, data) in models() {
        let file = format!("{}.onnx", name.replace(' ', "-"));
        write(&file, &data);
        let commands = ["fhec build X -o new.fhebc", "fhec levels X"];
        faults.extend(commands.iter().filter_map(|line| fault(folder, line, &file)));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Programs that are refused: ill-formed, over their budget, or larger than the memory that is given.
fn programs(golden: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut all = long_lists(golden);
    let body = &golden[..golden.len() - 32];
    all.push(("no bytes", Vec::new()));
    all.push(("zeros", vec![0; MEGABYTE as usize - 1]));
    all.push(("half", sealed(body[..body.len() / 2].to_vec())));
    all.push(("longer", sealed([body, &[0; 9]].concat())));
    // A port that does not fit, with a name that clears the screen and goes on for long.
    let name = [&b"\x1b[2J\xe2\x80\xae"[..], &[b'x'; 120]].concat();
    let port = [&[1, b'y', 0, 0, 0, 1, name.len() as u8][..], &name, &[1, 0xff, 0x7f, 0, 0, 0]].concat();
    all.push(("name", with_section(golden, b"OUTP", &port)));
    // Accepted by the checker, for an evaluation of gigabytes.
    all.push(("large tensor", encode(&CheckedProgram::new(one_number()).unwrap())));
    all
}

/// Interfaces that a client refuses: ill-formed, or for other parameters than its key's, whose tables would be large.
fn interfaces() -> Vec<(&'static str, Vec<u8>)> {
    let mut towers = one_number();
    towers.params.towers = ntt_primes_below(45, 17, 70, &towers.params.special_primes).unwrap();
    let sound = encode_interface(&CheckedProgram::new(towers).unwrap().interface());
    let body = sound.len() - 32;
    let mut changed = sound.clone();
    changed[body / 2] ^= 1;
    let mut reserved = sound[..body].to_vec();
    // The first section says that it has 2^63 bytes.
    reserved[80] = 0;
    reserved[87] = 0x80;
    reserved.extend_from_slice(&blake3::derive_key("fhec 1 interface file", &reserved.clone()));
    vec![("changed", changed), ("section", reserved), ("cut", sound[..body / 2].to_vec())]
}

/// Files of keys and ciphertexts for the sound program, each with the command that is given it.
fn keys_and_ciphertexts(folder: &Path) -> Vec<(&'static str, &'static str, Vec<u8>)> {
    const KEY: &str = "fhe-run encrypt sound.fhebc input.csv --secret-key X -o new.ct";
    const KEYS: &str = "fhe-run eval sound.fhebc input.ct --eval-keys X -o new.ct";
    const INPUT: &str = "fhe-run eval sound.fhebc X --eval-keys me.evk -o new.ct";
    const RESULT: &str = "fhe-run decrypt sound.fhebc X --secret-key me.key";
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let resealed = |mut data: Vec<u8>, change: &dyn Fn(&mut Vec<u8>)| {
        data.truncate(data.len() - 40);
        change(&mut data);
        data.extend_from_slice(&(data.len() as u64).to_le_bytes());
        let hash = *blake3::hash(&data).as_bytes();
        data.extend_from_slice(&hash);
        data
    };
    let count_at = |at: usize| move |data: &mut Vec<u8>| data[at..at + 4].fill(0xff);
    vec![
        ("short.key", KEY, resealed(read("me.key"), &|data| data.truncate(200))),
        ("wrong.key", KEY, resealed(read("me.key"), &|data| data[300] = 3)),
        ("other.key", KEY, resealed(read("me.key"), &|data| data[20] ^= 1)),
        ("kind.key", KEY, read("me.evk")),
        ("many.evk", KEYS, resealed(read("me.evk"), &count_at(60))),
        ("few.evk", KEYS, read("me.evk")),
        ("secret.evk", KEYS, read("me.key")),
        ("many.ct", INPUT, resealed(read("input.ct"), &count_at(93))),
        ("zeros.ct", INPUT, resealed(read("input.ct"), &|data| data.resize(1_000_000, 0))),
        ("result.ct", INPUT, read("result.ct")),
        ("many.result", RESULT, resealed(read("result.ct"), &count_at(93))),
        ("program.result", RESULT, resealed(read("result.ct"), &|data| data[60] ^= 1)),
        ("level.result", RESULT, resealed(read("result.ct"), &|data| data.resize(1_000_000, 0xff))),
        ("key.result", RESULT, resealed(read("result.ct"), &|data| data[50] ^= 1)),
        ("input.result", RESULT, read("input.ct")),
    ]
}

/// Models that are refused before they cost anything.
fn models() -> Vec<(&'static str, Vec<u8>)> {
    let changed = |change: &dyn Fn(&mut ModelProto)| {
        let mut proto = ModelProto::decode(&specimen()[..]).unwrap();
        change(&mut proto);
        proto.encode_to_vec()
    };
    let dims = |dims: &[i64]| {
        let dims = dims.to_vec();
        changed(&move |proto| {
            let tensor = &mut proto.graph.as_mut().unwrap().initializer[0];
            tensor.dims.clone_from(&dims);
            tensor.raw_data.clear();
            tensor.float_data.clear();
        })
    };
    let mut squares = OnnxWriter::new("squares");
    let x = squares.input("x", &[None, Some(4)]);
    let last = (0..12_000).fold(x, |y, _| squares.node("Mul", &[&y, &y]));
    let mut wide = OnnxWriter::new("wide");
    let x = wide.input("x", &[None, Some(1 << 40)]);
    let y = wide.node("Mul", &[&x, &x]);
    vec![
        ("zero and huge", dims(&[0, 1 << 50])),
        ("huge", dims(&[1 << 50])),
        ("negative", dims(&[-1, 4])),
        (
            "strings",
            changed(&|proto| {
                let tensor = &mut proto.graph.as_mut().unwrap().initializer[0];
                tensor.data_type = 8;
                tensor.raw_data.clear();
                tensor.string_data = vec![b"1".to_vec(); 72];
            }),
        ),
        (
            "hidden data",
            changed(&|proto| {
                let tensor = &mut proto.graph.as_mut().unwrap().initializer[0];
                tensor.raw_data.clear();
                tensor.data_location = Some(1);
                let location = ("location".to_owned(), "me.key\x1b[2J".to_owned());
                tensor.external_data = vec![StringStringEntryProto { key: location.0, value: location.1 }];
            }),
        ),
        ("wide", wide.finish(&y, &[None, Some(1 << 40)])),
        ("squares", squares.finish(&last, &[None, Some(4)])),
        ("nothing", Vec::new()),
        ("noise", (0..500_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()),
    ]
}
