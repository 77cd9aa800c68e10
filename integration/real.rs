//! The hook under real runtimes, at every stage that a registration may name: a good container starts, a bad one
//! does not, and the decision log says what was decided. crun shows its user nothing but the exit code.

use serde_json::Value;

use crate::support::bundle::Bundle;
use crate::support::host::SimHost;
use crate::support::{needs, programs, scratch};

const STAGES: [&str; 3] = ["prestart", "createRuntime", "createContainer"];

#[test]
fn runc_starts_the_good_and_refuses_the_bad() {
    at_every_stage("runc");
}

#[test]
fn crun_starts_the_good_and_refuses_the_bad() {
    at_every_stage("crun");
}

/// CRI-O puts all of a pod's annotations into the spec, and so into the state that a hook reads. crun fails a
/// start whose hook leaves part of it unread.
#[test]
fn a_long_state_is_read_to_its_end() {
    if !needs::root() || !needs::tools(&["runc", "crun", "cc"]) {
        return;
    }
    for (runtime, kilobytes) in [("crun", 300), ("crun", 3000), ("runc", 3000)] {
        let ran = run(runtime, "createRuntime", |bundle| {
            bundle.spec["annotations"] = serde_json::json!({"example.org/long": "x".repeat(kilobytes << 10)});
        });
        assert_eq!(ran.code, 0, "{runtime}, {kilobytes} kB: {ran:?}");
        assert_eq!(ran.stdout, "the container runs\n", "{runtime}, {kilobytes} kB");
        assert_eq!(ran.log["decision"], "start", "{runtime}, {kilobytes} kB");
    }
}

fn at_every_stage(runtime: &str) {
    if !needs::root() || !needs::tools(&[runtime, "cc"]) {
        return;
    }
    for stage in STAGES {
        let good = run(runtime, stage, |_| {});
        assert_eq!(good.code, 0, "{runtime}, {stage}: {good:?}");
        assert_eq!(good.stdout, "the container runs\n", "{runtime}, {stage}");
        assert_eq!(good.log["decision"], "start", "{runtime}, {stage}");
        assert_eq!(good.log["verdict"], "pass", "{runtime}, {stage}: {}", good.log);
        assert_eq!(good.log["stage"], stage);

        let bad = run(runtime, stage, |bundle| bundle.renumber_uvm(507));
        assert_ne!(bad.code, 0, "{runtime}, {stage}");
        assert_eq!(bad.stdout, "", "{runtime}, {stage}: the program ran");
        assert_eq!(bad.hook_code(), Some(11), "{runtime}, {stage}: {bad:?}");
        assert_eq!(bad.log["decision"], "refuse", "{runtime}, {stage}");
        assert_eq!(bad.log["findings"][0]["id"], "uvm-major-mismatch", "{runtime}, {stage}: {}", bad.log);
        if runtime == "runc" {
            assert!(bad.stderr.contains("uvm-major-mismatch"), "{stage}: runc shows the line: {}", bad.stderr);
        }
    }
}

#[derive(Debug)]
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
    log: Value,
}

impl Ran {
    /// The hook's own exit code, from the runtime's words.
    fn hook_code(&self) -> Option<u8> {
        let after = ["exit status ", "(exit code: "].iter().find_map(|words| self.stderr.split(words).nth(1))?;
        after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    }
}

/// Runs a container with two GPUs by CDI, spoilt, and the hook at a stage, on a simulated host.
fn run(runtime: &str, stage: &str, spoil: impl FnOnce(&mut Bundle)) -> Ran {
    let scratch = scratch();
    let log = scratch.at("hook.jsonl");
    let mut bundle = Bundle::cdi(&scratch.at("bundle"), 2);
    let arguments = ["--stage", stage, "--log", log.to_str().expect("a path in UTF-8")];
    bundle.hook(stage, &programs::hook(), &arguments);
    spoil(&mut bundle);
    bundle.write();
    let place = scratch.at("");
    let unique = place.file_name().map(|name| name.to_string_lossy().replace('.', "")).unwrap_or_default();
    let id = format!("gpu-preflight-{runtime}-{stage}-{unique}");
    let command = [
        runtime.into(),
        "--root".into(),
        scratch.at("containers"),
        "run".into(),
        "--bundle".into(),
        bundle.dir.clone(),
        id.into(),
    ];
    let ended = SimHost::default().run(command).end();
    let logged = std::fs::read_to_string(&log).unwrap_or_default();
    let lines: Vec<&str> = logged.lines().collect();
    assert_eq!(lines.len(), 1, "{runtime}, {stage}: {lines:?}, {ended:?}");
    Ran {
        code: ended.code(),
        stdout: ended.stdout,
        stderr: ended.stderr,
        log: serde_json::from_str(lines[0]).expect("a line of JSON"),
    }
}
