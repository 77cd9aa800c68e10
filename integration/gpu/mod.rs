//! `integration/gpu/run.sh`, which is for machines with a real GPU, beside stand-ins; and every machine that it recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use serde_json::Value;

use crate::nvml::{Age, library};
use crate::support::host::SimHost;
use crate::support::process::Ended;
use crate::support::programs::gpu_preflight;
use crate::support::{link, needs, programs, repository, scratch, write};

/// It is said to take less than five minutes.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs the script on a simulated machine with two GPUs, whose nvidia-smi lies about a field.
fn script(machine: &Path, lie: &str) -> Option<Ended> {
    if !needs::root() || !needs::released() || !needs::tools(&["cc", "unshare", "bash", "awk"]) {
        return None;
    }
    let script = repository().join("integration/gpu/run.sh");
    let tools = scratch();
    link(repository().join("integration/gpu/nvidia-smi"), &tools.at("nvidia-smi"));
    let path = std::env::var("PATH").unwrap_or_default();
    let builder = "sed -i '1s/$/ (alice@node7)/' proc/driver/nvidia/version";
    let host = SimHost { nvml: Some(library(Age::New)), ..SimHost::spoilt(builder) };
    let run = host.run([script.as_os_str(), machine.as_os_str()]);
    let run = run.env("STAND_IN_NVML", "gpus=2 fabric=0:3 fabric=1:3").env("STAND_IN_LIE", lie);
    let run = run.env("PATH", format!("{}:{path}", tools.path().display()));
    Some(run.env("GPU_PREFLIGHT_BIN", programs::cli().parent().expect("a directory")).limit(LIMIT).end())
}

#[test]
fn the_script_runs_to_its_end_and_what_it_recorded_is_judged_as_the_machine_was() {
    let scratch = scratch();
    let machine = scratch.at("machine");
    let Some(ended) = script(&machine, "") else { return };
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(ended.stdout.contains("fields of 2 GPUs compared, 0 differ"), "{ended:?}");
    for name in ["nvml.json", "profile.json"] {
        let text = fs::read_to_string(machine.join(name)).expect(name);
        assert!(text.contains("GPU-0000000") && !text.contains("000000000001\""), "{name} has its UUIDs yet: {text}");
    }
    let version = fs::read_to_string(machine.join("root/proc/driver/nvidia/version")).expect("a version");
    assert!(version.contains("(builder)") && !version.contains("alice"), "{version}");
    replay(&machine);
}

#[test]
fn a_field_of_which_the_two_say_different_things_is_named() {
    for lie in ["name", "memory.total"] {
        let scratch = scratch();
        let Some(ended) = script(&scratch.at("machine"), lie) else { return };
        assert_eq!(ended.code(), 1, "{ended:?}");
        let field = lie.split('.').next().expect("a word");
        assert!(ended.stdout.contains(&format!("GPU 1, {field}: NVML said ")), "{ended:?}");
        assert!(!ended.stdout.contains("GPU 0, "), "{ended:?}");
    }
}

#[test]
fn every_recorded_machine_is_judged_as_it_was() {
    let machines = recorded();
    assert!(!machines.is_empty(), "integration/machines has none");
    for machine in machines {
        replay(&machine);
    }
}

fn recorded() -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join("integration/machines")).expect("integration/machines");
    let mut all: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    all.sort();
    all
}

/// What is found of the driver is what was found there.
fn replay(machine: &Path) {
    if !needs::root() {
        return;
    }
    let scratch = scratch();
    let root = scratch.at("root");
    copy(&machine.join("root"), &root);
    make_nodes(&machine.join("nodes"), &root);
    let [root, nvml] = [root, machine.join("nvml.json")].map(|path| path.to_string_lossy().into_owned());
    let ended = gpu_preflight(&["host", "--host-root", &root, "--nvml", &nvml, "--format=json"]).end();
    let document: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    crate::schema::check_report(&document);
    let findings = document["findings"].as_array().expect("findings").iter();
    let ours = findings.filter(|f| f["subject"] == "driver");
    let mut found: Vec<String> =
        ours.map(|f| [&f["severity"], &f["id"]].map(|word| word.as_str().expect("a word")).join(" ")).collect();
    found.sort();
    let expected = fs::read_to_string(machine.join("expected")).expect("expected");
    assert_eq!(found, expected.lines().collect::<Vec<_>>(), "{}: {document:#}", machine.display());
    let driver = fs::read_to_string(machine.join("root/proc/driver/nvidia/version")).expect("a driver");
    let version = document["facts"]["host"]["driver"]["version"].as_str().expect("a version");
    assert!(driver.contains(version), "{}: {version}", machine.display());
    assert!(document["facts"]["host"]["nvml"]["gpus"][0]["uuid"].is_string(), "{}", machine.display());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_symlink() {
            link(fs::read_link(&path).expect("a link"), &target);
        } else if path.is_dir() {
            copy(&path, &target);
        } else {
            write(&target, fs::read(&path).expect("a file"));
        }
    }
}

/// `PATH MAJOR MINOR MODE UID GID`, a node a line.
fn make_nodes(list: &Path, root: &Path) {
    for line in fs::read_to_string(list).expect("nodes").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let path = root.join(words[0].trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        let mode = u32::from_str_radix(words[3], 8).expect("a mode");
        mknod(&path, SFlag::S_IFCHR, Mode::empty(), makedev(number(1), number(2))).expect("a node");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("a mode");
        let [uid, gid] = [4, 5].map(|at| u32::try_from(number(at)).expect("an id"));
        std::os::unix::fs::chown(&path, Some(uid), Some(gid)).expect("an owner");
    }
}
