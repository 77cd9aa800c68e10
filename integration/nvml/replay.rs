//! What NVML said is recorded, and judged elsewhere as it was here.

use std::path::Path;

use serde_json::Value;

use super::{Age, host_says, ids};
use crate::support::host::SimHost;
use crate::support::process::Ended;
use crate::support::programs::gpu_preflight;
use crate::support::scene::Scene;
use crate::support::{scratch, write};

fn report(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

fn replayed(args: &[&str], file: &Path) -> Ended {
    let file = file.to_string_lossy().into_owned();
    gpu_preflight(&[&["host", "--format=json", "--nvml", &file], args].concat()).end()
}

#[test]
fn a_recording_is_judged_as_the_machine_was() {
    let scratch = scratch();
    let file = scratch.at("nvml.json");
    for says in [
        "gpus=2",
        "bad=1:15",
        "ecc=1 pending=0 idle=1",
        "mig=0 mig=1 instances=0:1",
        "full=0 by=0:4711 exclusive=1",
        "full=1",
        "fabric=0:2 fabric=1:2",
        "vgpu=0",
        "hang=1",
        "init=4",
        "count=999",
    ] {
        let path = file.to_string_lossy().into_owned();
        let Some(ended) = host_says(says, &SimHost::default(), Age::New, &["--format=json", "--save-nvml", &path])
        else {
            return;
        };
        let here = report(&ended);
        let text = std::fs::read_to_string(&file).expect("a recording");
        assert!(!text.contains("4711") && !text.contains("pid"), "{says}: {text}");
        // with the machine's files
        let scene = Scene::on(&SimHost::default());
        let root = scene.host().to_string_lossy().into_owned();
        let there = report(&replayed(&["--host-root", &root], &file));
        // engines are those of the machine that the tests run on
        let of_machine = |document: &Value| {
            let findings = document["findings"].as_array().expect("findings").iter();
            let ours = findings.filter(|f| f["subject"] == "driver" || f["subject"] == "nodes");
            ours.map(|f| (f["id"].to_string(), f["severity"].to_string())).collect::<Vec<_>>()
        };
        assert_eq!(of_machine(&here), of_machine(&there), "{says}");
        crate::schema::check_report(&there);
        // and alone: of the GPUs the same is said, and nothing of what nobody recorded
        let alone = report(&replayed(&[], &file));
        let of_nvml = |document: &Value| {
            let sources = |finding: &Value| finding["evidence"].to_string().contains("host.nvml");
            let findings = document["findings"].as_array().expect("findings").iter();
            findings
                .filter(|f| sources(f))
                .map(|f| (f["id"].to_string(), f["severity"].to_string()))
                .collect::<Vec<_>>()
        };
        assert_eq!(of_nvml(&here), of_nvml(&alone), "{says}");
        assert_eq!(ids(&alone).len(), of_nvml(&alone).len(), "{says}: {alone:#}");
        crate::schema::check_report(&alone);
    }
}

#[test]
fn a_recording_that_is_none_is_said_with_exit_code_2() {
    let scratch = scratch();
    for (name, text) in [("empty", ""), ("other", "{\"schema_version\": 1, \"kind\": \"host-profile\", \"nvml\": {}}")]
    {
        let file = scratch.at(name);
        write(&file, text);
        let ended = replayed(&[], &file);
        assert_eq!(ended.code(), 2, "{name}: {ended:?}");
        let document = report(&ended);
        assert!(document["error"]["reason"].as_str().expect("a reason").contains("no recording"), "{document:#}");
    }
    assert_eq!(replayed(&[], &scratch.at("absent")).code(), 2);
    let fifo = scratch.at("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    assert_eq!(replayed(&[], &fifo).code(), 2);
    let ended = gpu_preflight(&["host", "--nvml", "a", "--no-nvml"]).end();
    assert_eq!(ended.code(), 2, "{ended:?}");
}

#[test]
fn where_nothing_was_said_nothing_is_recorded_and_that_is_told() {
    let scratch = scratch();
    let scene = Scene::on(&SimHost::default());
    let root = scene.host().to_string_lossy().into_owned();
    let file = scratch.at("nvml.json");
    let path = file.to_string_lossy().into_owned();
    let ended = gpu_preflight(&["host", "--host-root", &root, "--save-nvml", &path]).end();
    assert_eq!(ended.code(), 2, "{ended:?}");
    assert!(ended.stderr.contains("NVML was not asked") && !file.exists(), "{ended:?}");
}
