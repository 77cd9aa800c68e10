//! Machines that are well, of every age, and each thing that can be wrong with one.

use std::process::{Command, Stdio};

use super::{Age, finding, finds, host_says, ids, judged, of_driver};
use crate::support::host::SimHost;

#[test]
fn machines_that_are_well_have_nothing_against_them() {
    for (says, name, capability) in [
        ("gpus=2", "NVIDIA H100 80GB HBM3", "9.0"),
        ("gpus=8", "NVIDIA H100 80GB HBM3", "9.0"),
        ("gpus=8 fabric=0:3 fabric=1:3", "NVIDIA H100 80GB HBM3", "9.0"),
        ("gpus=1 kind=t4", "Tesla T4", "7.5"),
        ("gpus=1 kind=new", "NVIDIA Z900", "99.7"),
    ] {
        let Some(document) = finds(says, &[]) else { return };
        let nvml = &document["facts"]["host"]["nvml"];
        assert_eq!((&nvml["driver"], &nvml["cuda"]), (&"550.163.01".into(), &"12.4".into()), "{document:#}");
        let gpu = &nvml["gpus"][0];
        assert_eq!((&gpu["name"], &gpu["compute_capability"]), (&name.into(), &capability.into()), "{says}");
        assert_eq!((gpu["pci"].as_str(), gpu.get("trouble")), (Some("0000:01:00.0"), None), "{says}");
        assert!(of_driver(&document).is_empty(), "{says}: {document:#}");
        assert_eq!(document["facts"]["host"]["gpus"][0]["memory"], gpu["memory"], "{says}");
    }
}

#[test]
fn what_a_t4_does_not_have_is_absent() {
    let Some(document) = judged("gpus=1 kind=t4", Age::New) else { return };
    let gpu = &document["facts"]["host"]["nvml"]["gpus"][0];
    assert_eq!((gpu["memory"].as_u64(), gpu["retired_pages"].as_u64()), (Some(15 << 30), Some(0)));
    for absent in ["mig", "mig_devices", "remap_pending", "fabric", "licensed"] {
        assert!(gpu.get(absent).is_none(), "{absent}: {gpu:#}");
    }
}

#[test]
fn one_bad_among_good_ones_is_named_and_the_good_ones_are_offered() {
    let Some(document) = finds("gpus=8 bad=3:999", &[("one-gpu-unhealthy", "error")]) else { return };
    let text = finding(&document, "one-gpu-unhealthy");
    assert!(
        text.contains("GPU 3") && text.contains("device=0,1,2,4,5,6,7") && text.contains("Unknown Error"),
        "{text}"
    );
    let gpus = document["facts"]["host"]["nvml"]["gpus"].as_array().expect("GPUs");
    assert_eq!(gpus.iter().filter(|gpu| gpu.get("trouble").is_none()).count(), 7);
}

#[test]
fn each_fault_is_found() {
    for (says, wanted) in [
        ("bad=1:15", &[("gpu-fallen-off-bus", "error"), ("one-gpu-unhealthy", "error")][..]),
        ("bad=1:16", &[("gpu-reset-required", "error"), ("one-gpu-unhealthy", "error")]),
        ("ecc=1", &[("ecc-uncorrectable", "warning")]),
        ("pending=0", &[("row-remap-pending", "warning")]),
        ("mig=1", &[("mig-enabled-without-instances", "warning")]),
        ("mig=0 mig=1", &[("mig-enabled-without-instances", "error")]),
        ("full=0", &[("gpu-memory-occupied", "warning"), ("gpu-memory-without-process", "warning")]),
        ("exclusive=1", &[("gpu-exclusive-busy", "warning")]),
        ("idle=0", &[("persistence-off", "note")]),
        ("fabric=0:2 fabric=1:1", &[("fabric-not-ready", "error")]),
        ("fabric=0:2 fabric=1:3", &[("fabric-not-ready", "warning")]),
        ("fabric=0:3 fabric=1:3 fabricstatus=23", &[("fabric-not-ready", "warning")]),
        ("vgpu=0", &[("vgpu-unlicensed", "warning")]),
        ("init=18", &[("driver-library-mismatch", "warning")]),
        ("init=4", &[("node-access-refused", "warning")]),
        ("bad=0:4 bad=1:4", &[("node-access-refused", "warning")]),
    ] {
        let Some(document) = finds(says, wanted) else { return };
        let only: Vec<&str> = wanted.iter().map(|(id, _)| *id).collect();
        let others = of_driver(&document);
        assert!(others.iter().all(|id| only.contains(&id.trim_matches('"'))), "{says}: {others:?}");
    }
}

#[test]
fn an_update_without_a_reboot_asks_for_one() {
    // the library lies there under the name of another version
    let rename = "cd usr/lib/*/; mv libnvidia-ml.so.550.163.01 libnvidia-ml.so.550.200.02; ln -sf libnvidia-ml.so.550.200.02 libnvidia-ml.so.1";
    let Some(ended) = host_says("init=18", &SimHost::spoilt(rename), Age::New, &["--format=json"]) else { return };
    let document = serde_json::from_str(&ended.stdout).expect("JSON");
    assert!(ids(&document).contains(&("driver-library-mismatch".to_owned(), "error".to_owned())), "{document:#}");
    let text = finding(&document, "driver-library-mismatch");
    assert!(text.contains("550.200.02") && text.contains("\"reboot\"") && !text.contains("LD_LIBRARY_PATH"), "{text}");
}

#[test]
fn whoever_was_given_some_of_the_gpus_is_not_told_that_the_others_are_sick() {
    let Some(document) = judged("gpus=4 bad=0:4 bad=1:4 bad=3:4", Age::New) else { return };
    assert!(of_driver(&document).is_empty(), "{document:#}");
    assert!(!ids(&document).iter().any(|(id, _)| id == "node-access-refused"), "{document:#}");
}

#[test]
fn codes_that_nobody_knows_are_said_and_harm_nobody() {
    let Some(document) = judged("odd=1:4242", Age::New) else { return };
    assert!(of_driver(&document).is_empty(), "{document:#}");
    let gpu = &document["facts"]["host"]["nvml"]["gpus"][1];
    assert!(gpu["uuid"].is_string() && gpu.get("name").is_none() && gpu.get("trouble").is_none(), "{gpu:#}");
    let Some(document) = finds("bad=1:4242", &[("one-gpu-unhealthy", "error")]) else { return };
    assert!(finding(&document, "one-gpu-unhealthy").contains("code 4242)"), "{document:#}");
    let Some(document) = judged("count=4242", Age::New) else { return };
    assert!(of_driver(&document).is_empty() && document["unknown"].to_string().contains("code 4242"), "{document:#}");
}

#[test]
fn a_call_that_never_returns_costs_the_deadline_and_no_more() {
    // where persistence mode was seen to be on, no GPU may be waking up
    for (says, call, told, severity) in [
        ("hang=init", "nvmlInit_v2", 0, "warning"),
        ("hang=count", "nvmlDeviceGetCount_v2", 0, "warning"),
        ("gpus=8 hang=5", "nvmlDeviceGetHandleByIndex_v2(5)", 5, "error"),
        ("gpus=8 idle=0 hang=5", "nvmlDeviceGetHandleByIndex_v2(5)", 5, "warning"),
        ("gpus=4 hang=processes", "nvmlDeviceGetComputeRunningProcesses_v3(0)", 1, "error"),
    ] {
        let Some(document) = finds(says, &[("driver-call-hung", severity)]) else { return };
        assert!(finding(&document, "driver-call-hung").contains(call), "{says}: {document:#}");
        let gpus = document["facts"]["host"]["nvml"]["gpus"].as_array().expect("GPUs");
        assert_eq!(gpus.len(), told, "what the others said before is kept: {says}");
    }
    finds("die=init", &[("driver-call-hung", "error")]);
}

#[test]
fn an_old_driver_tells_what_it_can() {
    let Some(document) = judged("gpus=2", Age::Old) else { return };
    let gpu = &document["facts"]["host"]["nvml"]["gpus"][0];
    assert_eq!((gpu["memory"].as_u64(), gpu["compute_capability"].as_str()), (Some(80 << 30), Some("9.0")));
    for absent in ["mig", "processes", "graphics", "memory_reserved", "fabric"] {
        assert!(gpu.get(absent).is_none(), "{absent}: {gpu:#}");
    }
    assert!(of_driver(&document).is_empty(), "{document:#}");
    // it counts its own memory as in use, and that nobody holds it proves nothing
    let Some(document) = judged("full=0", Age::Old) else { return };
    assert_eq!(of_driver(&document), ["\"gpu-memory-occupied\""]);
}

#[test]
fn a_driver_from_before_the_interface_is_unknown() {
    let Some(document) = judged("gpus=2", Age::Oldest) else { return };
    assert!(of_driver(&document).is_empty(), "{document:#}");
    assert!(document["unknown"].to_string().contains("nvmlInit_v2 answers with code 13"), "{document:#}");
}

#[test]
fn instances_of_mig_are_told_with_their_size() {
    let Some(document) = judged("mig=0 mig=1 instances=0:2 instances=1:1", Age::New) else { return };
    assert!(of_driver(&document).is_empty(), "{document:#}");
    let devices = document["facts"]["host"]["nvml"]["gpus"][0]["mig_devices"].as_array().expect("instances");
    assert_eq!(devices.len(), 2);
    assert_eq!((&devices[0]["profile"], devices[0]["memory"].as_u64()), (&"1g.10gb".into(), Some(9856 << 20)));
    assert!(devices[0]["uuid"].as_str().expect("a UUID").starts_with("MIG-"), "{devices:#?}");
}

#[test]
fn who_fills_a_gpu_is_named_with_the_command_that_ends_it() {
    let mut sleeper = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().expect("sleep");
    let pid = sleeper.id();
    let document = judged(&format!("full=0 by=0:{pid}"), Age::New);
    sleeper.kill().expect("to end it");
    sleeper.wait().expect("its end");
    let Some(document) = document else { return };
    let text = finding(&document, "gpu-memory-occupied");
    if document["facts"]["host"]["nvml"]["sees_all_processes"] != true {
        // the tests run in a container: the number is nobody's whom we could name
        assert!(text.contains(&format!("by pid {pid} 70000 MiB")) && !text.contains("kill"), "{text}");
        return;
    }
    assert!(text.contains(&format!("by sleep (pid {pid}, user root")), "{text}");
    assert!(text.contains("70000 MiB") && text.contains(&format!("kill {pid}")), "{text}");
    assert_eq!(document["facts"]["host"]["gpu_processes"][pid.to_string()]["user"], "root");
    assert_eq!(of_driver(&document), ["\"gpu-memory-occupied\""], "a process holds it");
}
