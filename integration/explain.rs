//! `explain` and `checks` through the built program.

use serde_json::Value;

use crate::support::bundle::Bundle;
use crate::support::host::SimHost;
use crate::support::process::Ended;
use crate::support::programs::gpu_preflight;
use crate::support::scene::Scene;
use crate::support::{needs, scratch};

fn causes(ended: &Ended) -> Vec<(String, Value)> {
    let document: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let causes = document["causes"].as_array().unwrap_or_else(|| panic!("{document:#}")).clone();
    causes.into_iter().map(|cause| (cause["id"].as_str().expect("an id").to_owned(), cause)).collect()
}

fn ids(ended: &Ended) -> Vec<String> {
    causes(ended).into_iter().map(|(id, _)| id).collect()
}

#[test]
fn a_text_as_argument_and_on_standard_input_gets_the_same_answer() {
    let text = "Failed to initialize NVML: Unknown Error";
    let argument = gpu_preflight(&["explain", text, "--format", "json"]).end();
    assert_eq!(argument.code(), 0, "{argument:?}");
    assert_eq!(ids(&argument)[0], "cgroup-lost-after-daemon-reload");
    assert!(ids(&argument).len() > 2, "a text of several causes has several");
    let words: Vec<&str> = ["explain"].into_iter().chain(text.split(' ')).chain(["--format", "json"]).collect();
    assert_eq!(gpu_preflight(&words).end().stdout, argument.stdout);
    for args in [&["explain", "--format", "json"][..], &["explain", "-", "--format", "json"]] {
        let stdin = gpu_preflight(args).stdin(text).end();
        assert_eq!(stdin.stdout, argument.stdout, "{args:?}");
    }
}

#[test]
fn for_people_each_cause_has_its_way_out() {
    let ended = gpu_preflight(&["explain", "Error 804: forward compatibility was attempted on non supported HW"]).end();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.starts_with("line 1  Error 804: forward"), "{}", ended.stdout);
    for wanted in ["[compat-on-unsupported-gpu]", "told by", "verify", "gpu-preflight container ID", "    do  "] {
        assert!(ended.stdout.contains(wanted), "{wanted}: {}", ended.stdout);
    }
}

#[test]
fn a_name_shows_its_page_whether_a_check_judges_it_or_not() {
    for id in ["uvm-node-missing", "gvisor-driver-unsupported", "torch-load-map-location"] {
        let [explain, checks] = ["explain", "checks"].map(|command| gpu_preflight(&[command, id]).end());
        assert_eq!(explain.code(), 0, "{explain:?}");
        assert!(explain.stdout.starts_with(id), "{}", explain.stdout);
        assert_eq!(explain.stdout, checks.stdout);
    }
    let list = gpu_preflight(&["checks"]).end();
    for wanted in ["uvm-node-missing", "*gvisor-driver-unsupported", "known to explain only", "torch-load-map-location"]
    {
        assert!(list.stdout.contains(wanted), "{wanted}: {}", list.stdout);
    }
    let unknown = gpu_preflight(&["explain", "uvm-node-mising"]).end();
    assert_eq!(unknown.code(), 2);
    assert!(unknown.stderr.contains("uvm-node-missing"), "{unknown:?}");
}

#[test]
fn what_nobody_knows_is_not_guessed() {
    for text in ["the printer is out of paper", ""] {
        let ended = gpu_preflight(&["explain"]).stdin(text).end();
        assert_eq!((ended.code(), ended.stdout.as_str()), (2, ""), "{ended:?}");
        assert!(ended.line().contains("no line of it is known"), "{ended:?}");
        let ended = gpu_preflight(&["explain", "--format", "json"]).stdin(text).end();
        let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!((ended.code(), &document["command"]), (2, &Value::from("explain")), "{document:#}");
        assert!(document["error"]["try"].is_string(), "{document:#}");
    }
}

#[test]
fn what_is_harmless_is_called_benign() {
    let text = "Failed to detect the name of this container. Proceeding without GPU telemetry.";
    let ended = gpu_preflight(&["explain", text, "--format", "json"]).end();
    assert_eq!((ended.code(), ids(&ended)), (0, vec!["benign".to_owned()]));
}

#[test]
fn verify_says_which_cause_it_is() {
    let scene = Scene::on(&SimHost { modules: "nvidia", ..SimHost::default() });
    let root = scene.host().to_string_lossy().into_owned();
    let ended =
        gpu_preflight(&["explain", "cuInit(0) = 999", "--verify", "--host-root", &root, "--format", "json"]).end();
    assert_eq!(ended.code(), 0, "{ended:?}");
    let all = causes(&ended);
    assert_eq!((all[0].0.as_str(), &all[0].1["verified"]["result"]), ("uvm-module-not-loaded", &"confirmed".into()));
    assert!(all[0].1["verified"]["message"].as_str().is_some_and(|m| m.contains("nvidia_uvm")), "{:#}", all[0].1);

    if !needs::root() {
        return;
    }
    let scene = Scene::on(&SimHost::default());
    let root = scene.host().to_string_lossy().into_owned();
    let mut bundle = Bundle::cdi(&scene.bundle(), 2);
    bundle.renumber_uvm(507);
    bundle.write();
    let target = scene.bundle().to_string_lossy().into_owned();
    let args =
        ["explain", "cuInit(0) = 999", "--verify", "--container", &target, "--host-root", &root, "--format", "json"];
    let all = causes(&gpu_preflight(&args).end());
    assert_eq!((all[0].0.as_str(), &all[0].1["verified"]["result"]), ("uvm-major-mismatch", &"confirmed".into()));
    let module = all.iter().find(|(id, _)| id == "uvm-module-not-loaded").expect("the cause");
    assert_eq!(module.1["verified"]["result"], "ruled-out");
}

/// 5 MB of noise, one line of it without an end, take no more memory than a few lines.
#[test]
fn a_log_is_read_in_constant_memory() {
    let scratch = scratch();
    let noise =
        "2026-11-03T10:00:00Z INFO step 17 loss 0.3118 lr 2.5e-5 of the run on host-7, cuda:0 busy\n".repeat(40_000);
    let mut log = noise.clone();
    log.push_str("nvidia-container-cli: device error: 7: unknown device: unknown.\n");
    log.push_str(&noise.replace('\n', " "));
    let run = |text: &str| gpu_preflight(&["explain", "--format", "json"]).stdin(text).end_with_memory(scratch.path());
    let (ended, large) = run(&log);
    assert_eq!(ids(&ended)[0], "visible-devices-index-out-of-range");
    let (_, small) = run("nvidia-container-cli: device error: 7: unknown device: unknown.\n");
    // what of a program lies in memory differs by a megabyte from one run to the next
    assert!(large < small + 3 * 1024, "{small} kB of a line, {large} kB of {} bytes", log.len());
}
