//! The built hook, state on stdin, against laid-out hosts.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::bundle::Bundle;
use crate::support::host::SimHost;
use crate::support::process::Run;
use crate::support::scene::{HOOK_LIMIT, Scene};
use crate::support::words::{check_refusal, check_start};
use crate::support::{needs, programs, write};

#[test]
fn a_container_without_a_gpu_is_none_of_its_business() {
    let scene = Scene::on(&SimHost::default());
    let ended = scene.judge(&Bundle::plain(&scene.bundle()));
    check_start(&ended);
    assert!(scene.logged().is_empty());
}

#[test]
fn a_container_with_all_that_it_needs_starts_and_is_logged() {
    if !needs::root() {
        return;
    }
    let scene = Scene::on(&SimHost::default());
    check_start(&scene.judge(&Bundle::cdi_laid_out(&scene.bundle(), 2)));
    let [line] = &scene.logged()[..] else { panic!("{:?}", scene.logged()) };
    assert_eq!(line["decision"], "start");
    assert_eq!(line["stage"], "createContainer");
    assert_eq!(line["mode"], "enforce");
    assert_eq!(line["wants_gpu"], "environment");
    assert_eq!(line["gpu_given"], "cdi");
    assert_eq!(line["verdict"], "pass", "{line}");
    assert_eq!(line["findings"], json!([]));
    for name in ["time", "id", "engine", "unknown", "ms"] {
        assert!(!line[name].is_null(), "{name} is not in {line}");
    }
}

/// One defect in each family: the exit code is all that crun shows.
#[test]
fn the_exit_code_is_the_family_of_the_first_error() {
    if !needs::root() {
        return;
    }
    let ask = |scene: &Scene| Bundle::asking(&scene.bundle());
    let cdi = |scene: &Scene| Bundle::cdi_laid_out(&scene.bundle(), 2);
    let good = SimHost::default;

    let scene = Scene::on(&good());
    check_refusal(&scene.judge(&ask(&scene)), 10, "gpu-not-requested");

    let scene = Scene::on(&good());
    let bundle = cdi(&scene);
    std::fs::remove_file(bundle.rootfs().join("dev/nvidia-uvm")).expect("a node");
    bundle.make_node("/dev/nvidia-uvm", 507, 0);
    check_refusal(&scene.judge(&bundle), 11, "uvm-major-mismatch");

    let scene = Scene::on(&SimHost { modules: "nvidia nvidia_modeset", ..good() });
    let bundle = cdi(&scene);
    for node in ["nvidia-uvm", "nvidia-uvm-tools"] {
        std::fs::remove_file(bundle.rootfs().join("dev").join(node)).expect("a node");
    }
    check_refusal(&scene.judge(&bundle), 12, "uvm-module-not-loaded");

    // `ctr --gpus`: NVIDIA's hook comes after ours, and refuses in a mode that leaves its work to CDI.
    let mode = "cd etc; mkdir nvidia-container-runtime; cd nvidia-container-runtime
        printf '[nvidia-container-runtime]\nmode = \"cdi\"\n' >config.toml";
    let scene = Scene::on(&SimHost::spoilt(mode));
    let mut bundle = ask(&scene);
    bundle.hook("createRuntime", &programs::hook(), &["--stage", "createRuntime"]);
    bundle.hook("createRuntime", Path::new("/usr/bin/nvidia-container-runtime-hook"), &["prestart"]);
    bundle.write();
    let ended = scene.hook().args(["--stage", "createRuntime"]).stdin(bundle.state(1)).end();
    check_refusal(&ended, 13, "toolkit-mode-conflict");

    let scene = Scene::on(&good());
    let mut bundle = cdi(&scene);
    bundle.env("CUDA_VISIBLE_DEVICES=7");
    check_refusal(&scene.judge(&bundle), 15, "cuda-visible-devices-out-of-range");
}

#[test]
fn a_refusal_is_logged_with_its_finding() {
    if !needs::root() {
        return;
    }
    let scene = Scene::on(&SimHost::default());
    scene.judge(&Bundle::asking(&scene.bundle()));
    let [line] = &scene.logged()[..] else { panic!("{:?}", scene.logged()) };
    assert_eq!((&line["decision"], &line["verdict"]), (&json!("refuse"), &json!("fail")));
    assert_eq!(line["findings"][0]["id"], "gpu-not-requested");
    assert_eq!(line["findings"][0]["severity"], "error");
}

/// crun shows nothing but an exit code: what the hook said must be read elsewhere, to the last word.
#[test]
fn status_shows_the_last_refusals_as_the_hook_said_them() {
    if !needs::root() {
        return;
    }
    let scene = Scene::on(&SimHost::default());
    let bundle = Bundle::asking(&scene.bundle());
    bundle.write();
    std::fs::create_dir_all(scene.host().join("var/log")).expect("a directory");
    let hook = Run::new(programs::hook()).args(["--stage", "createContainer", "--host-root"]).args([scene.host()]);
    let said = hook.stdin(bundle.state(1)).limit(HOOK_LIMIT).end();
    check_refusal(&said, 10, "gpu-not-requested");
    let shown = programs::gpu_preflight(&["status", "--last", "--host-root"]).args([scene.host()]).end();
    assert!(said.stderr.contains("To start anyway: ") && said.stderr.lines().count() > 0, "{said:?}");
    for line in said.stderr.lines() {
        assert!(shown.stdout.lines().any(|shown| shown.trim() == line), "{line}: {shown:?}");
    }
}

/// Who tries it by hand is no engine.
#[test]
fn the_command_answers_who_asks_what_it_is_and_logs_nothing() {
    let scene = Scene::on(&SimHost::default());
    std::fs::create_dir_all(scene.host().join("var/log")).expect("a directory");
    let root = scene.host().display().to_string();
    for option in ["--help", "-h"] {
        let ended = programs::gpu_preflight(&["hook", "--host-root", &root, option]).end();
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{ended:?}");
        assert!(ended.stdout.contains("--driver-root") && ended.stdout.contains("ociVersion"), "{ended:?}");
    }
    let ended = programs::gpu_preflight(&["hook", "--host-root", &root]).stdin(" \n").end();
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(ended.stderr.contains("standard input held no state"), "{ended:?}");
    assert!(!scene.host().join("var/log/gpu-preflight").exists());
}

#[test]
fn a_state_without_sense_starts_the_container() {
    let scene = Scene::on(&SimHost::default());
    let nowhere = json!({"ociVersion": "1.0.2", "id": "x", "status": "creating", "pid": 1, "bundle": "/nonexistent"});
    let relative = json!({"ociVersion": "1.0.2", "id": "x", "status": "creating", "pid": 1, "bundle": "."});
    let blanks = vec![b' '; 1 << 20];
    let states: [&[u8]; 12] = [
        b"",
        b"{",
        b"{}",
        b"[]",
        b"null",
        b"\"state\"",
        b"\x00\xff\xfe",
        br#"{"ociVersion":"1.0.2","id":"x","status":"creating","pid":-5,"bundle":7}"#,
        br#"{"ociVersion":"1.0.2","id":"x","status":"crea"#,
        &blanks,
        nowhere.to_string().leak().as_bytes(),
        relative.to_string().leak().as_bytes(),
    ];
    for state in states {
        let ended = scene.hook().stdin(state).end();
        let shown = String::from_utf8_lossy(&state[..state.len().min(60)]).into_owned();
        assert_eq!(ended.code(), 0, "{shown:?}: {ended:?}");
    }
}

#[test]
fn a_state_that_never_ends_starts_the_container_in_time() {
    let scene = Scene::on(&SimHost::default());
    let mut child = Command::new(programs::hook())
        .args(scene.hook_args())
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the hook");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(b"{\"ociVersion\":").expect("the beginning of a state");
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("waiting") {
            break status;
        }
        if start.elapsed() > HOOK_LIMIT {
            let _ = child.kill();
            panic!("the hook waits for a state that never ends");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    drop(pipe);
    assert_eq!(status.code(), Some(0));
}

#[test]
fn an_argument_it_does_not_know_stops_nothing() {
    let scene = Scene::on(&SimHost::default());
    let bundle = Bundle::plain(&scene.bundle());
    bundle.write();
    let ended = scene.hook().args(["--from-the-future", "x", "--stage", "someday"]).stdin(bundle.state(1)).end();
    check_start(&ended);
}

#[test]
fn the_container_may_say_that_it_wants_to_start_anyway() {
    if !needs::root() {
        return;
    }
    let scene = Scene::on(&SimHost::default());
    let asking = || Bundle::asking(&scene.bundle());
    let annotated = |name: &str, value: &str| {
        let mut bundle = asking();
        bundle.spec["annotations"] = json!({name: value});
        bundle
    };
    let with = |variable: &str| {
        let mut bundle = asking();
        bundle.env(variable);
        bundle
    };
    for bundle in [
        with("GPU_PREFLIGHT_IGNORE=gpu-not-requested"),
        with("GPU_PREFLIGHT=off"),
        with("GPU_PREFLIGHT=warn"),
        annotated("io.gpu-preflight.ignore", "gpu-not-requested"),
        annotated("io.gpu-preflight.mode", "warn"),
    ] {
        let ended = scene.judge(&bundle);
        assert_eq!(ended.code(), 0, "{:?}: {ended:?}", bundle.spec);
    }
    check_refusal(&scene.judge(&with("GPU_PREFLIGHT_IGNORE=another-check")), 10, "gpu-not-requested");
}

#[test]
fn the_administrator_has_the_last_word() {
    if !needs::root() {
        return;
    }
    let scene = Scene::on(&SimHost::default());
    let judge = |config: &str| {
        let mut bundle = Bundle::asking(&scene.bundle());
        bundle.env("GPU_PREFLIGHT=off");
        bundle.write();
        write(&scene.at("config.toml"), config);
        scene.hook().args(["--config".into(), scene.at("config.toml")]).stdin(bundle.state(1)).end()
    };
    check_refusal(&judge("allow_override = false\n"), 10, "gpu-not-requested");
    assert_eq!(judge("allow_override = false\nmode = \"off\"\n").code(), 0);
    assert_eq!(judge("allow_override = false\nmode = \"warn\"\n").code(), 0);
    assert_eq!(judge("allow_override = false\nignore = [\"gpu-not-requested\"]\n").code(), 0);
    assert_eq!(judge("allow_override = false\n[severity]\ngpu-not-requested = \"warning\"\n").code(), 0);
    // A configuration that cannot be read is no configuration: the defaults hold.
    assert_eq!(judge("allow_override = \n").code(), 0, "by default the container may switch it off");
}
