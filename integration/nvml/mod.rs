//! `host` beside a driver library that stands in for NVIDIA's: what it says is found, and that it says nothing.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::host::SimHost;
use crate::support::process::compile_c;
use crate::support::{needs, programs, repository};

/// What `host` may take however sick a GPU is, and what a busy machine is granted besides.
const LIMIT: Duration = Duration::from_secs(8);

fn library(old: bool) -> PathBuf {
    static BUILT: OnceLock<[PathBuf; 2]> = OnceLock::new();
    let source = repository().join("integration/nvml/stand_in.c");
    let built = BUILT.get_or_init(|| {
        let flags = ["-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"];
        let new = compile_c(&source, "libnvidia-ml.so.new", &flags);
        [new, compile_c(&source, "libnvidia-ml.so.old", &[flags.as_slice(), &["-DOLD"]].concat())]
    });
    built[usize::from(old)].clone()
}

/// The report on a machine with two GPUs whose NVML says this.
fn judged(says: &str, old: bool) -> Option<Value> {
    if !needs::root() || !needs::tools(&["cc", "unshare"]) {
        return None;
    }
    let host = SimHost { nvml: Some(library(old)), ..SimHost::gpus(2) };
    let before = Instant::now();
    let run = host.run([programs::cli().into_os_string(), "host".into(), "--format=json".into()]);
    let ended = run.env("STAND_IN_NVML", says).limit(LIMIT).end();
    let document = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert!(before.elapsed() < LIMIT, "{says}");
    Some(document)
}

fn ids(document: &Value) -> Vec<(String, String)> {
    let findings = document["findings"].as_array().expect("findings").iter();
    let words = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    findings.map(|finding| (words(finding, "id"), words(finding, "severity"))).collect()
}

#[track_caller]
fn finds(says: &str, wanted: &[(&str, &str)]) -> Option<Value> {
    let document = judged(says, false)?;
    let found = ids(&document);
    for (id, severity) in wanted {
        assert!(found.contains(&((*id).to_owned(), (*severity).to_owned())), "{says}: {id} in {found:?}");
    }
    Some(document)
}

#[test]
fn gpus_that_are_well() {
    let Some(document) = finds("gpus=2", &[]) else { return };
    let nvml = &document["facts"]["host"]["nvml"];
    assert_eq!((&nvml["driver"], &nvml["cuda"]), (&"550.163.01".into(), &"12.4".into()), "{document:#}");
    assert_eq!(nvml["gpus"].as_array().map(Vec::len), Some(2));
    assert_eq!(nvml["gpus"][1]["pci"], "0000:02:00.0");
    assert_eq!(document["facts"]["host"]["gpus"][0]["memory"], 80_u64 << 30);
}

#[test]
fn one_bad_among_good_ones_is_named_and_the_good_ones_are_offered() {
    let Some(document) = finds("gpus=8 bad=3:999", &[("one-gpu-unhealthy", "error")]) else { return };
    let finding = document["findings"].as_array().expect("findings").iter().find(|f| f["id"] == "one-gpu-unhealthy");
    let text = finding.expect("the finding").to_string();
    assert!(text.contains("GPU 3") && text.contains("device=0,1,2,4,5,6,7"), "{text}");
    let gpus = document["facts"]["host"]["nvml"]["gpus"].as_array().expect("GPUs");
    assert_eq!(gpus.iter().filter(|gpu| gpu.get("trouble").is_none()).count(), 7);
}

#[test]
fn each_fault_is_found() {
    for (says, wanted) in [
        ("bad=1:16", ("gpu-reset-required", "error")),
        ("ecc=1", ("ecc-uncorrectable", "error")),
        ("pending=0", ("row-remap-pending", "warning")),
        ("mig=1", ("mig-enabled-without-instances", "warning")),
        ("full=0", ("gpu-memory-occupied", "warning")),
        ("exclusive=1", ("gpu-exclusive-busy", "warning")),
        ("idle=0", ("persistence-off", "note")),
    ] {
        finds(says, &[wanted]);
    }
}

#[test]
fn a_call_that_never_returns_costs_the_deadline_and_no_more() {
    let Some(document) = finds("hang=init", &[("driver-call-hung", "warning")]) else { return };
    assert!(document.to_string().contains("nvmlInit_v2"));
    let Some(document) = finds("gpus=8 hang=5", &[("driver-call-hung", "warning")]) else { return };
    let gpus = document["facts"]["host"]["nvml"]["gpus"].as_array().expect("GPUs");
    assert_eq!(gpus.len(), 5, "what the others said before is kept");
    finds("die=init", &[("driver-call-hung", "error")]);
}

#[test]
fn an_old_driver_tells_what_it_can() {
    let Some(document) = judged("gpus=2", true) else { return };
    let gpu = &document["facts"]["host"]["nvml"]["gpus"][0];
    assert_eq!((gpu["memory"].as_u64(), gpu["compute_capability"].as_str()), (Some(80 << 30), Some("9.0")));
    assert!(gpu.get("mig").is_none() && gpu.get("processes").is_none());
    let findings = document["findings"].as_array().expect("findings");
    let of_driver: Vec<_> = findings.iter().filter(|finding| finding["subject"] == "driver").collect();
    assert!(of_driver.is_empty(), "{of_driver:#?}");
}
