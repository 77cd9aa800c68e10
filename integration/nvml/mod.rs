//! `host` beside a driver library that stands in for NVIDIA's: what it says is found, and that it says nothing.

mod machines;
mod nvidias;
mod replay;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::host::SimHost;
use crate::support::process::{Ended, compile_c};
use crate::support::{needs, programs, repository};

/// What `host` may take however sick a GPU is, and what a busy machine is granted besides.
const LIMIT: Duration = Duration::from_secs(8);

/// How old a driver's library is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Age {
    New,
    Old,
    Oldest,
}

pub(crate) fn library(age: Age) -> PathBuf {
    static BUILT: OnceLock<[PathBuf; 3]> = OnceLock::new();
    let source = repository().join("integration/nvml/stand_in.c");
    let built = BUILT.get_or_init(|| {
        let flags = ["-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"];
        let with = |name: &str, more: &[&str]| compile_c(&source, name, &[flags.as_slice(), more].concat());
        [
            with("libnvidia-ml.so.new", &[]),
            with("libnvidia-ml.so.old", &["-DOLD"]),
            with("libnvidia-ml.so.oldest", &["-DOLD", "-DOLDEST"]),
        ]
    });
    built[age as usize].clone()
}

/// What `host` says of a machine whose NVML says this; `None`: it cannot be asked here.
fn host_says(says: &str, machine: &SimHost, age: Age, args: &[&str]) -> Option<Ended> {
    if !needs::root() || !needs::tools(&["cc", "unshare"]) {
        return None;
    }
    let host = SimHost { nvml: Some(library(age)), ..machine.clone() };
    let before = Instant::now();
    let command = [programs::cli().into_os_string(), "host".into()];
    let run = host.run(command.into_iter().chain(args.iter().map(Into::into)));
    let ended = run.env("STAND_IN_NVML", says).limit(LIMIT).end();
    assert!(before.elapsed() < LIMIT, "{says}");
    Some(ended)
}

/// The report on a machine with as many GPUs as its NVML says, or two.
fn judged(says: &str, age: Age) -> Option<Value> {
    let gpus = says.split(' ').find_map(|word| word.strip_prefix("gpus=")?.parse().ok()).unwrap_or(2);
    let ended = host_says(says, &SimHost::gpus(gpus), age, &["--format=json"])?;
    let document = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    crate::schema::check_report(&document);
    Some(document)
}

fn ids(document: &Value) -> Vec<(String, String)> {
    let findings = document["findings"].as_array().expect("findings").iter();
    let words = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    findings.map(|finding| (words(finding, "id"), words(finding, "severity"))).collect()
}

/// The finding of a name, as text.
fn finding(document: &Value, id: &str) -> String {
    let found = document["findings"].as_array().expect("findings").iter().find(|finding| finding["id"] == id);
    found.unwrap_or_else(|| panic!("{id} in {document:#}")).to_string()
}

/// What is found of the driver itself: files lack this or that on a simulated machine.
fn of_driver(document: &Value) -> Vec<String> {
    let findings = document["findings"].as_array().expect("findings").iter();
    findings.filter(|f| f["subject"] == "driver").map(|f| f["id"].to_string()).collect()
}

#[track_caller]
fn finds(says: &str, wanted: &[(&str, &str)]) -> Option<Value> {
    let document = judged(says, Age::New)?;
    let found = ids(&document);
    for (id, severity) in wanted {
        assert!(found.contains(&((*id).to_owned(), (*severity).to_owned())), "{says}: {id} in {found:?}");
    }
    Some(document)
}
