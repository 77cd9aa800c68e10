//! `gpu-preflight image` as whoever deploys meets it: the answer, for which machine, and in which form.

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::world::findings;
use crate::support::host::SimHost;
use crate::support::layout::{Layout, endless, reference};
use crate::support::process::{Ended, Run};
use crate::support::programs::{self, gpu_preflight};
use crate::support::scene::Scene;
use crate::support::{Scratch, needs, scratch, write};

/// An image of its own for a test.
struct Laid {
    scratch: Scratch,
}

impl Laid {
    fn out(layout: &Layout) -> Self {
        let laid = Self { scratch: scratch() };
        layout.lay(&laid.scratch.at("image"));
        laid
    }

    fn run(&self, args: &[&str]) -> Run {
        gpu_preflight(&["image", &reference(&self.scratch.at("image"))]).args(args).current_dir(self.scratch.path())
    }

    fn end(&self, args: &[&str]) -> Ended {
        self.run(args).end()
    }

    fn json(&self, args: &[&str]) -> Value {
        let ended = self.run(args).args(["--format", "json"]).end();
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {ended:?}"))
    }
}

fn torch_13() -> Laid {
    Laid::out(&Layout::torch("2.11.0", "13.0"))
}

#[test]
fn the_answer_comes_first_and_the_exit_code_follows_it() {
    let laid = torch_13();
    let old = laid.end(&["--driver", "535.183.01"]);
    assert_eq!(old.code(), 1, "{old:?}");
    let first = old.stdout.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("FAIL  it will not work with driver 535.183.01: a framework was built for a newer CUDA"),
        "{first}"
    );
    for line in [
        "    found in    OCI layout, files read",
        "    frameworks  torch 2.11.0 (CUDA 13.0)",
        "    driver      580.65.06 or newer",
        "    judged for  stated: driver 535.183.01, GPUs not stated",
        "error [framework-cuda-newer-than-driver]",
        "    do    Install driver 580.65.06 or newer on the host.",
    ] {
        assert!(old.stdout.contains(&format!("\n{line}")), "{line:?} is not in\n{}", old.stdout);
    }
    let new = laid.end(&["--driver", "580.95.05"]);
    assert_eq!(new.code(), 0, "{new:?}");
    assert!(new.stdout.starts_with("PASS  nothing is found against it with driver 580.95.05"), "{new:?}");
    let tolerant = laid.end(&["--driver", "535.183.01", "--fail-on", "never"]);
    assert_eq!((tolerant.code(), tolerant.stdout), (0, old.stdout));
    let quiet = laid.end(&["--driver", "535.183.01", "--quiet"]);
    assert_eq!(quiet.stdout.lines().count(), 2, "the answer and the error: {quiet:?}");
    assert_eq!(quiet.stderr, "");
}

#[test]
fn a_gpu_alone_is_enough_to_judge_the_code_for_it() {
    let laid = torch_13();
    for gpu in ["V100", "sm_70", "7.0", "Tesla V100-SXM2-32GB"] {
        let report = laid.json(&["--gpu", gpu]);
        assert_eq!(findings(&report), [("gpu-generation-dropped".to_owned(), "error".to_owned())], "{gpu}");
        assert_eq!(report["facts"]["host"]["gpus"][0]["compute_capability"], "7.0");
        assert_eq!(report["facts"]["host"]["driver"]["version"], Value::Null);
    }
    let well = laid.end(&["--gpu", "H100"]);
    assert_eq!(well.code(), 0);
    assert!(well.stdout.contains("; it needs driver 580.65.06 or newer, and none was stated"), "{well:?}");
}

#[test]
fn several_kinds_of_gpu_are_a_matrix() {
    let laid = torch_13();
    let args = ["--driver", "580.95.05", "--gpu", "V100", "--gpu", "H100,A100-SXM4-80GB"];
    let report = laid.json(&args);
    assert_eq!((&report["verdict"], &report["command"]), (&Value::from("fail"), &Value::from("image")));
    let results = report["results"].as_array().expect("results");
    let told: Vec<_> = results.iter().map(|one| [&one["host"], &one["verdict"]].map(|v| v.as_str().unwrap())).collect();
    assert_eq!(
        told,
        [
            ["driver 580.95.05, V100", "fail"],
            ["driver 580.95.05, H100", "pass"],
            ["driver 580.95.05, A100-SXM4-80GB", "pass"]
        ]
    );
    let text = laid.end(&args);
    assert_eq!(text.code(), 1);
    assert!(text.stdout.starts_with("FAIL  it will not work on 1 of 3 hosts\n"), "{text:?}");
    assert_eq!(text.stdout.matches("[gpu-generation-dropped]").count(), 1, "{text:?}");
    assert!(text.stdout.contains("\n    on    driver 580.95.05, V100\n"), "{text:?}");
    assert_eq!(laid.end(&["--driver", "580.95.05", "--gpu", "H100", "--gpu", "A100"]).code(), 0);
}

#[test]
fn hosts_are_known_by_their_profiles() {
    let laid = torch_13();
    let old = Scene::on(&SimHost { driver: "535.183.01", ..SimHost::default() });
    let new = Scene::on(&SimHost { driver: "580.95.05", ..SimHost::default() });
    for (scene, name) in [(&old, "old.json"), (&new, "new.json")] {
        let host = scene.host().display().to_string();
        let save = || {
            let saved = gpu_preflight(&["host", "--host-root", &host, "--save", name]).current_dir(laid.scratch.path());
            assert!(saved.end().code() <= 1);
            std::fs::read_to_string(laid.scratch.at(name)).expect("a profile")
        };
        assert_eq!(save(), save(), "two looks at one machine differ");
    }
    let one = laid.json(&["--host-profile", "new.json"]);
    let known = |report: &Value| report["facts"]["host"]["gpus"][0]["name"].clone();
    assert_eq!((&one["verdict"], known(&one)), (&Value::from("pass"), Value::from("NVIDIA H100 80GB HBM3")));
    let both = laid.end(&["--host-profile", "new.json", "--host-profile", "old.json"]);
    assert_eq!(both.code(), 1);
    assert!(both.stdout.starts_with("FAIL  it will not work on 1 of 2 hosts\n"), "{both:?}");
    let rows = "old.json  535.183.01  2 x NVIDIA H100 80GB HBM3  FAIL     framework-cuda-newer-than-driver\n";
    assert!(both.stdout.contains(rows), "{both:?}");
    // the profile and the machine itself are judged alike
    let there = laid.json(&["--host-root", &old.host().display().to_string()]);
    assert_eq!(findings(&laid.json(&["--host-profile", "old.json"])), findings(&there));
}

#[test]
fn what_is_asked_wrongly_is_said_with_the_way_out() {
    let laid = torch_13();
    write(&laid.scratch.at("no.json"), r#"{"schema_version": 9, "kind": "host-profile", "facts": {"host": {}}}"#);
    for (args, says) in [
        (&["--gpu", "H1000"][..], "H100"),
        (&["--gpu", "RTX 6000"], "RTX 6000 Ada"),
        (&["--gpu", "sm_91"], "sm_90"),
        (&["--driver", "535"], "535.183.01"),
        (&["--platform", "windows/amd64"], "linux/arm64"),
        (&["--host-profile", "absent.json"], "absent"),
        (&["--host-profile", "no.json"], "schema_version is 9"),
        (&["--host-profile", "."], "regular file"),
        (&["--host-profile", "no.json", "--driver", "535.183.01"], "cannot be used with"),
    ] {
        let ended = laid.end(args);
        assert_eq!((ended.code(), ended.stdout.as_str()), (2, ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(says), "{args:?}: {ended:?}");
    }
    let absent = gpu_preflight(&["image", "oci:/nonexistent", "--format", "json"]).end();
    let error: Value = serde_json::from_str(&absent.stdout).expect("JSON");
    assert_eq!((absent.code(), &error["command"]), (2, &Value::from("image")));
}

#[test]
fn the_configuration_alone_is_judged_where_that_is_wished() {
    let mut layout = Layout::torch("2.11.0", "13.0");
    layout.env.push("NVIDIA_REQUIRE_CUDA=cuda>=12.8".to_owned());
    let laid = Laid::out(&layout);
    let report = laid.json(&["--depth", "config", "--driver", "535.183.01"]);
    let ids: Vec<_> = findings(&report).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["require-cuda-unsatisfied"]);
    assert_eq!(report["facts"]["image"]["depth"], "config");
    assert_eq!(report["facts"]["image"]["requirements"][0], "NVIDIA_REQUIRE_CUDA=cuda>=12.8");
    assert_eq!(report["unknown"].as_array().map(Vec::len), Some(0), "what was not asked is not unknown: {report:#}");
}

#[test]
fn an_image_without_cuda_is_one() {
    let laid = Laid::out(&Layout::plain());
    let ended = laid.end(&["--driver", "535.183.01", "--gpu", "T4"]);
    assert_eq!(ended.code(), 0);
    assert!(ended.stdout.starts_with("PASS  nothing in it needs a GPU\n"), "{ended:?}");
}

#[test]
fn pipelines_get_sarif() {
    let laid = torch_13();
    let ended = laid.end(&["--driver", "580.95.05", "--gpu", "V100,H100", "--format", "sarif"]);
    assert_eq!(ended.code(), 1);
    let log: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    assert!(rules.len() > 5, "the checks that were asked are rules: {rules:#?}");
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), 1, "{results:#?}");
    let index = usize::try_from(results[0]["ruleIndex"].as_u64().expect("an index")).expect("small");
    assert_eq!(rules[index]["id"], "gpu-generation-dropped");
    assert_eq!((&results[0]["ruleId"], &results[0]["level"]), (&rules[index]["id"], &Value::from("error")));
    assert_eq!(results[0]["properties"]["host"], "driver 580.95.05, V100");
    let ignored = laid.end(&["--gpu", "V100", "--format", "sarif", "--ignore", "gpu-generation-dropped"]);
    let log: Value = serde_json::from_str(&ignored.stdout).expect("JSON");
    assert_eq!((ignored.code(), log["runs"][0]["results"][0]["suppressions"].as_array().map(Vec::len)), (0, Some(1)));
}

#[test]
fn pipelines_get_junit() {
    let laid = torch_13();
    let ended = laid.end(&["--driver", "580.95.05", "--gpu", "V100,H100", "--format", "junit"]);
    assert_eq!(ended.code(), 1);
    let text = &ended.stdout;
    well_formed(text);
    assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "), "{text}");
    assert_eq!((text.matches("<testsuite ").count(), text.matches("<failure ").count()), (2, 1), "{text}");
    assert!(text.contains("name=\"gpu-generation-dropped\"><failure type=\"error\""), "{text}");
    assert!(text.contains("<testcase ") && text.contains("<skipped "), "{text}");
}

#[test]
fn every_command_with_a_report_has_all_forms_and_the_others_say_that_they_have_not() {
    let scene = Scene::on(&SimHost::default());
    let root = scene.host().display().to_string();
    let bundle = crate::support::bundle::Bundle::asking(&scene.bundle());
    bundle.write();
    let bundle = scene.bundle().display().to_string();
    for (command, code) in [(&["host"][..], 0), (&["container", &bundle], 1)] {
        let run = |format| gpu_preflight(command).args(["--host-root", &root, "--format", format]).end();
        let (sarif, junit) = (run("sarif"), run("junit"));
        assert_eq!((sarif.code(), junit.code()), (code, code), "{sarif:?}");
        let log: Value = serde_json::from_str(&sarif.stdout).expect("JSON");
        assert_eq!(log["runs"][0]["results"].as_array().is_some_and(|all| !all.is_empty()), code == 1, "{log:#}");
        well_formed(&junit.stdout);
        assert_eq!(junit.stdout.contains("<failure "), code == 1, "{junit:?}");
    }
    for command in [&["explain", "cuInit failed: 999"][..], &["checks"]] {
        for format in ["sarif", "junit"] {
            let ended = gpu_preflight(command).args(["--format", format]).end();
            assert_eq!((ended.code(), ended.stdout.as_str()), (2, ""), "{ended:?}");
            assert!(ended.stderr.contains("host, container and image"), "{ended:?}");
        }
    }
}

/// Every tag is closed by its own, and quotes are paired.
fn well_formed(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in text.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').unwrap_or_else(|| panic!("an open tag in {text}"));
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{text}");
        } else if !tag.starts_with('?') && !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap_or_default());
        }
    }
    assert!(open.is_empty(), "{open:?} in {text}");
}

/// An image that takes about so many seconds; programs that are not optimised are slower.
fn slow(place: &Path, seconds: u64) -> String {
    let a_second = if programs::released() { 100 } else { 1 };
    Layout::plain().lay_with(place, &endless(seconds * a_second));
    reference(place)
}

#[test]
fn told_to_stop_it_stops_at_once_and_leaves_nothing() {
    let scratch = scratch();
    let target = slow(&scratch.at("image"), 10);
    let home = scratch.at("home");
    std::fs::create_dir(&home).expect("a directory");
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let mut child = Command::new(programs::cli())
            .args(["image", &target, "--driver", "535.183.01", "--format", "json"])
            .env_clear()
            .env("TMPDIR", &home)
            .env("HOME", &home)
            .current_dir(&home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        std::thread::sleep(Duration::from_millis(300));
        assert!(child.try_wait().expect("a child").is_none(), "it was done before it could be stopped");
        let told = Instant::now();
        kill(Pid::from_raw(child.id().cast_signed()), signal).expect("a signal");
        let status = child.wait().expect("its end");
        let took = told.elapsed();
        assert_eq!((status.code(), status.signal()), (Some(code), None));
        assert!(took < Duration::from_millis(200), "{took:?}");
        let mut said = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
        child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        assert_eq!(said, "");
        assert_eq!(std::fs::read_dir(&home).expect("a directory").count(), 0);
    }
}

#[test]
fn a_terminal_sees_how_far_it_is_and_a_pipe_does_not() {
    if !needs::tools(&["script"]) {
        return;
    }
    let scratch = scratch();
    let target = slow(&scratch.at("image"), 2);
    let program = programs::cli().display().to_string();
    let on_terminal = |quiet: &str| {
        let command = format!("{program} image {target} --driver 535.183.01 {quiet}");
        Run::new("script").args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").end()
    };
    let seen = on_terminal("").stdout;
    assert!(seen.contains("\r\u{1b}[Kreading \"oci:"), "{seen:?}");
    let (_, behind) = seen.rsplit_once("reading \"oci:").expect("a line");
    let (_, rest) = behind.split_once("\r\u{1b}[K").expect("erased at the end");
    assert!(rest.contains("PASS"), "{seen:?}");
    assert!(!on_terminal("--quiet").stdout.contains("reading"));
    let piped = gpu_preflight(&["image", &target, "--driver", "535.183.01"]).end();
    assert!(piped.stderr.is_empty() && piped.stdout.starts_with("PASS"), "{piped:?}");
}
