//! A hook that is missing, crashes, hangs or cannot write its log: what the runtimes make of it, by themselves and
//! behind ours. `hooks/README.md` tells users.

use std::time::{Duration, Instant};

use super::super::support::host::SimHost;
use super::*;

/// What a runtime says of a hook, in parts.
struct Words {
    runtime: &'static str,
    missing: &'static [&'static str],
    crashed: &'static [&'static str],
    hung: &'static [&'static str],
}

const RUNTIMES: [Words; 2] = [
    Words {
        runtime: "runc",
        missing: &["error running hook", "fork/exec /absent/gpu-preflight-hook: no such file or directory"],
        crashed: &["error running hook", "signal: killed"],
        hung: &["error running hook", "hook ran past specified timeout of 1.0s"],
    },
    Words {
        runtime: "crun",
        // as a rule it names the hook; where nobody had read the state yet, it says "read from the init process"
        missing: &[],
        crashed: &["error executing hook", "(exit code: 137)"],
        hung: &["error executing hook", "(exit code: -1)", "timeout expired for"],
    },
];

/// Starts a container that asks for a GPU on a machine where it was given two, with this hook in its specification;
/// through ours or not.
fn start(runtime: &str, through: bool, bundle: &Bundle) -> (Ended, Duration) {
    let scratch = scratch();
    bundle.write();
    let mut command: Vec<OsString> = Vec::new();
    if through {
        command.extend([shim().into(), "--runtime".into()]);
    }
    command.extend([runtime.into(), "--root".into(), scratch.at("state").into(), "run".into(), "--bundle".into()]);
    command.extend([bundle.dir.clone().into(), id().into()]);
    let begun = Instant::now();
    let ended = SimHost::default().run(command).end();
    (ended, begun.elapsed())
}

fn can_run(runtime: &str) -> bool {
    needs::root() && needs::tools(&[runtime, "cc"])
}

fn is_refused(ended: &Ended, words: &[&str], what: &str) {
    assert!(!ended.status.success() && ended.stdout.is_empty(), "{what}: {ended:?}");
    for part in words {
        assert!(ended.stderr.contains(part), "{what}: {part:?} is not in {}", ended.stderr);
    }
}

#[test]
fn a_registered_hook_that_is_missing_crashes_or_hangs_refuses() {
    let scratch = scratch();
    let [crashes, hangs] = [("crashes", "kill -KILL $$"), ("hangs", "exec sleep 15")].map(|(name, text)| {
        let path = scratch.at(name).join("gpu-preflight-hook");
        script(&path, text);
        path
    });
    for words in RUNTIMES.iter().filter(|words| can_run(words.runtime)) {
        for through in [false, true] {
            for (path, said) in [
                (Path::new("/absent/gpu-preflight-hook"), words.missing),
                (&crashes, words.crashed),
                (&hangs, words.hung),
            ] {
                let mut bundle = Bundle::cdi(&scratch.at("bundle"), 2);
                bundle.hook("createRuntime", path, &[]);
                bundle.spec["hooks"]["createRuntime"][0]["timeout"] = json!(1);
                let (ended, took) = start(words.runtime, through, &bundle);
                let what = format!("{}, through ours: {through}, {}", words.runtime, path.display());
                is_refused(&ended, said, &what);
                assert!(took < Duration::from_secs(10), "{what}: {took:?}");
            }
        }
    }
}

#[test]
fn a_program_that_cannot_be_called_is_never_written_into_a_container() {
    let scratch = scratch();
    let ours = scratch.at("gpu-preflight-runtime");
    std::fs::copy(programs::hook(), &ours).expect("the program");
    for asked in ["/absent/gpu-preflight-hook", "/etc/passwd", "/etc", "bin/true"] {
        let bundle = Bundle::asking(&scratch.at("bundle"));
        bundle.write();
        let dir = bundle.dir.to_str().expect("UTF-8");
        let ended = run(&ours, &["--gpu-preflight-hook", asked, "--runtime", "/bin/true", "create", "-b", dir, "x"]);
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{asked}");
        let text = std::fs::read(bundle.dir.join("config.json")).expect("the spec");
        let spec: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(spec["hooks"]["createRuntime"][0]["path"], json!(ours), "{asked}");
    }
}

#[test]
fn a_log_that_cannot_be_written_changes_no_decision() {
    let scratch = scratch();
    write(&scratch.at("file"), "");
    for words in RUNTIMES.iter().filter(|words| can_run(words.runtime)) {
        for log in ["/proc/absent/hook.jsonl", "/dev/full", scratch.at("file/hook.jsonl").to_str().expect("UTF-8")] {
            for through in [false, true] {
                let made = |spoil: bool| {
                    let mut bundle = Bundle::cdi(&scratch.at("bundle"), 2);
                    let arguments = ["--stage", "createRuntime", "--log", log];
                    bundle.hook("createRuntime", &programs::hook(), &arguments);
                    if spoil {
                        bundle.renumber_uvm(507);
                    }
                    start(words.runtime, through, &bundle).0
                };
                let what = format!("{}, {log}, through ours: {through}", words.runtime);
                let good = made(false);
                assert_eq!((good.code(), good.stdout.as_str()), (0, "the container runs\n"), "{what}: {good:?}");
                let reason = if words.runtime == "crun" && !through { "(exit code: 11)" } else { "uvm-major-mismatch" };
                is_refused(&made(true), &[reason], &what);
            }
        }
    }
}
