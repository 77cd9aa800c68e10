//! Images made against whoever reads them: an answer comes in time, little memory is taken, and nothing panics.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::support::layout::{PACKAGES, blob, descriptor, lay_out, reference};
use crate::support::process::{Ended, Run};
use crate::support::programs::{self, gpu_preflight};
use crate::support::{link, needs, scratch, write};

/// Resident memory in kilobytes.
const MOST: u64 = 64_000;
const CONFIG: &[u8] = br#"{"architecture":"amd64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":[]}}"#;

/// A trap's name, and how it is set in a file's place.
type Trap<'a> = (&'a str, &'a dyn Fn(&Path));

/// Reads an image to an end, in little memory.
fn read(what: &str, reference: &str) -> Ended {
    // not optimized it takes many times as long
    let limit = Duration::from_secs(if programs::released() { 10 } else { 60 });
    let run = gpu_preflight(&["image", reference, "--driver", "580.95.05"]).limit(limit);
    let (ended, kilobytes) = run.end_with_memory(scratch().path());
    check(what, &ended);
    assert!(kilobytes < MOST, "{what}: {kilobytes} kB resident");
    ended
}

fn check(what: &str, ended: &Ended) {
    assert!(ended.code() <= 2 && !ended.stderr.contains("panicked"), "{what}: {ended:?}");
}

/// An archive's entry, as plain as there is; `kind` as the formats write it.
fn entry(archive: &mut Vec<u8>, kind: u8, name: &str, target: &str, bytes: &[u8]) {
    for (kind, long) in [(b'L', name), (b'K', target)] {
        if long.len() > 100 {
            header(archive, kind, "././@LongLink", "", long.len());
            fill(archive, long.as_bytes());
        }
    }
    header(archive, kind, &name[..name.len().min(100)], &target[..target.len().min(100)], bytes.len());
    fill(archive, bytes);
}

fn header(archive: &mut Vec<u8>, kind: u8, name: &str, target: &str, size: usize) {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[157..157 + target.len()].copy_from_slice(target.as_bytes());
    header[100..107].copy_from_slice(b"0000755");
    header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    header[148..156].copy_from_slice(b"        ");
    header[156] = kind;
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    archive.extend(header);
}

fn fill(archive: &mut Vec<u8>, bytes: &[u8]) {
    archive.extend(bytes);
    archive.resize(archive.len().next_multiple_of(512), 0);
}

fn with_layer(what: &str, layer: &[u8]) -> Ended {
    let scratch = scratch();
    let layer = descriptor(&blob(scratch.path(), layer), "layer.v1.tar");
    lay_out(scratch.path(), CONFIG, &[layer]);
    read(what, &reference(scratch.path()))
}

/// A name of each kind that is kept, by its number.
type Kind = (&'static str, fn(&mut Vec<u8>, usize));

const KINDS: [Kind; 9] = [
    ("libraries", |all, n| entry(all, b'0', &format!("usr/lib/lib{n}.so"), "", b"")),
    ("runtimes", |all, n| entry(all, b'0', &format!("{n}/libcudart.so.12.1.{n}"), "", b"no library at all")),
    ("links", |all, n| entry(all, b'2', &format!("usr/lib/{n}"), &format!("{}", n + 1), b"")),
    ("second names of nothing", |all, n| entry(all, b'1', &format!("usr/lib/{n}.so"), &format!("no/{n}"), b"")),
    ("packages", |all, n| entry(all, b'0', &format!("{PACKAGES}/torch-2.{n}.dist-info/METADATA"), "", b"")),
    ("packages beside their needs", |all, n| {
        let name = if n % 2 == 0 { format!("tensorflow-2.{n}") } else { format!("x{n}-1") };
        entry(all, b'0', &format!("{PACKAGES}/{name}.dist-info/METADATA"), "", b"");
    }),
    ("environments", |all, n| entry(all, b'0', &format!("usr/local/{n}/x-1.dist-info/METADATA"), "", b"")),
    ("toolkits", |all, n| {
        entry(all, b'0', &format!("usr/local/cuda-{n}/version.json"), "", br#"{"cuda":{"version":"12.4.1"}}"#);
    }),
    ("packages of conda", |all, n| entry(all, b'0', &format!("opt/conda/conda-meta/libcublas-12.{n}-0.json"), "", b"")),
];

#[test]
fn names_that_are_kept_take_little_memory_however_many_they_are() {
    // about as many as there is room for, which is when all is made of them that can be, and more
    let most = if needs::long() { &[60_000, 75_000, 90_000, 1_000_000][..] } else { &[60_000] };
    for many in most {
        for (what, one) in KINDS {
            let mut layer = Vec::new();
            (0..*many).for_each(|n| one(&mut layer, n));
            with_layer(&format!("{many} {what}"), &layer);
        }
    }
}

#[test]
fn names_that_lead_through_each_other_come_to_an_end() {
    let mut links = Vec::new();
    for n in 0..45 {
        entry(&mut links, b'2', &format!("m{n}"), &format!("m{}/../", n + 1).repeat(400), b"");
    }
    let mut deep = Vec::new();
    entry(&mut deep, b'2', "l", "x", b"");
    for n in 0..20_000 {
        entry(&mut links, b'0', &format!("m0/{}/{n}.so", n % 2), "", b"");
        if n < 3000 {
            entry(&mut deep, b'0', &format!("{}{n}/{n}", "a/".repeat(2000)), "", b"");
        }
    }
    let mut nested = Vec::new();
    for n in 0..8000 {
        entry(&mut nested, b'0', &format!("{}x-{n}.dist-info/METADATA", "a/".repeat(n % 1000)), "", b"");
    }
    for (what, layer) in [("links", &links), ("deep directories", &deep), ("packages in each other", &nested)] {
        with_layer(what, layer);
    }
}

#[test]
fn frames_of_nothing_are_read_as_fast_as_any() {
    // an empty block in a frame of no bytes, and a frame for programs
    let frames = [&[0x28, 0xB5, 0x2F, 0xFD, 0x20, 0, 1, 0, 0][..], &[0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0]].concat();
    let many = if needs::long() { 3_000_000 } else { 300_000 };
    assert_eq!(with_layer("empty frames", &frames.repeat(many)).code(), 0);
}

#[test]
fn zeros_are_bounded_for_all_layers_together() {
    if !needs::long() {
        return;
    }
    let zeros = zstd::bulk::compress(&vec![0; 64 << 20], 1).expect("zeros");
    let scratch = scratch();
    let layers: Vec<Value> = (0..40)
        .map(|n| {
            let mut start = Vec::new();
            header(&mut start, b'0', &format!("{n}"), "", 63 * (64 << 20));
            let layer = [zstd::bulk::compress(&start, 1).expect("a header"), zeros.repeat(63)].concat();
            descriptor(&blob(scratch.path(), &layer), "layer.v1.tar+zstd")
        })
        .collect();
    lay_out(scratch.path(), CONFIG, &layers);
    let ended = read("zeros", &reference(scratch.path()));
    assert!(ended.stdout.contains("expands to more than 200 times its size"), "{ended:?}");
}

#[test]
fn documents_of_a_million_values_take_little_memory() {
    let many = |value: &str| format!("{value},").repeat(8_000_000 / (value.len() + 1));
    let labels = (0..600_000).fold(String::new(), |mut text, n| {
        write!(text, r#""{n}":"","#).expect("a String");
        text
    });
    for (what, config) in [
        ("variables", format!(r#"{{"config":{{"Env":[{}""]}}}}"#, many(r#""""#))),
        ("labels", format!(r#"{{"config":{{"Labels":{{{labels}"x":""}}}}}}"#)),
        ("digests", format!(r#"{{"rootfs":{{"diff_ids":[{}""]}}}}"#, many(r#""""#))),
        ("arrays", "[".repeat(8_000_000)),
    ] {
        let scratch = scratch();
        lay_out(scratch.path(), config.as_bytes(), &[]);
        assert_eq!(read(what, &reference(scratch.path())).code(), 2, "{what}");
    }
    let environment: Vec<String> = (0..90_000).map(|n| format!("NVIDIA_REQUIRE_{n}=cuda>=12.4")).collect();
    let scratch = scratch();
    lay_out(scratch.path(), json!({"config": {"Env": environment}}).to_string().as_bytes(), &[]);
    assert_eq!(read("requirements", &reference(scratch.path())).code(), 2);
    let index = format!(r#"{{"manifests":[{}{{}}]}}"#, many(r#"{"digest":""}"#));
    write(&scratch.at("index.json"), index);
    assert_eq!(read("images", &reference(scratch.path())).code(), 2);
}

#[test]
fn lists_that_lead_to_lists_come_to_an_end() {
    let scratch = scratch();
    let layer = descriptor(&blob(scratch.path(), &[0; 1024]), "layer.v1.tar");
    let one = lay_out(scratch.path(), CONFIG, &vec![layer; 5000]);
    let ended = read("5000 layers", &reference(scratch.path()));
    assert!(ended.code() == 2 && ended.stderr.contains("more than 500 layers"), "{ended:?}");
    // neither an image nor none: as many looks as entries of each, multiplied
    for inner in [one, descriptor(&blob(scratch.path(), br#"{"manifests":[]}"#), "index.v1+json")] {
        let mut inner = inner;
        for _ in 0..2 {
            let index = json!({"schemaVersion": 2, "manifests": vec![inner; 1000]});
            inner = descriptor(&blob(scratch.path(), index.to_string().as_bytes()), "index.v1+json");
        }
        write(&scratch.at("index.json"), json!({"schemaVersion": 2, "manifests": vec![inner; 1000]}).to_string());
        assert_eq!(read("indexes", &reference(scratch.path())).code(), 2);
    }
}

#[test]
fn members_of_long_names_take_little_memory() {
    let scratch = scratch();
    let mut archive = Vec::new();
    for n in 0..15_000 {
        entry(&mut archive, b'2', &format!("{}{n}", "d".repeat(4000)), &"t".repeat(4000), b"");
    }
    let at = scratch.at("image.tar");
    write(&at, &archive);
    let ended = read("members", &format!("docker-archive:{}", at.display()));
    assert!(ended.code() == 2 && ended.stderr.contains("more members than are read"), "{ended:?}");
}

#[test]
fn what_never_ends_is_not_waited_for() {
    let program = programs::cli();
    for (what, from) in [("zeros", "/dev/zero"), ("nothing", "/dev/null"), ("anything", "/dev/urandom")] {
        let ended =
            Run::new("sh").args(["-c", "exec \"$0\" image - <\"$1\""]).args([program.as_os_str(), from.as_ref()]).end();
        check(what, &ended);
        assert_eq!(ended.code(), 2, "{what}: {ended:?}");
    }
}

#[test]
fn what_is_no_file_of_the_layout_is_not_opened() {
    let fifo = |at: &Path| mkfifo(at, Mode::from_bits_truncate(0o666)).expect("a FIFO");
    let outside = |at: &Path| link("/etc/passwd", at);
    let device = |at: &Path| link("/dev/zero", at);
    let round = |at: &Path| link(at.file_name().expect("a name"), at);
    let traps: [Trap<'_>; 4] = [
        ("a FIFO", &fifo),
        ("a link out of it", &outside),
        ("a link to a device", &device),
        ("a link to itself", &round),
    ];
    for (what, set) in traps {
        for place in ["layer", "index"] {
            let scratch = scratch();
            let layer = blob(scratch.path(), &[0; 1024]);
            let at = match place {
                "layer" => scratch.at("blobs").join(layer.0.replace(':', "/")),
                _ => scratch.at("index.json"),
            };
            lay_out(scratch.path(), CONFIG, &[descriptor(&layer, "layer.v1.tar")]);
            std::fs::remove_file(&at).expect("a file");
            set(&at);
            let ended = read(&format!("{what} as {place}"), &reference(scratch.path()));
            let said = if place == "index" { ended.code() == 2 } else { ended.stdout.starts_with("UNKNOWN") };
            assert!(said && !ended.stdout.contains("root:") && !ended.stderr.contains("root:"), "{what}: {ended:?}");
        }
    }
}
