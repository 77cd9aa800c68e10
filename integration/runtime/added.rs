//! Containers that want a GPU: the hook is there, last, once, and called.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;

/// Runs the shim on a bundle before a runtime that only says yes.
fn pass(bundle: &Path, own: &[&str]) -> serde_json::Value {
    let ended = Run::new(shim())
        .args(["--runtime", "/bin/true"])
        .args(own.iter().map(OsString::from))
        .args(["create", "--bundle"].map(OsString::from))
        .args([bundle.into(), OsString::from("x")])
        .end();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
    spec_of(bundle)
}

fn spec_of(bundle: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(bundle.join("config.json")).expect("the spec")).expect("JSON")
}

#[test]
fn the_hook_is_last_and_comes_once() {
    let scratch = scratch();
    let mut bundle = Bundle::asking(&scratch.at("b"));
    bundle.hook("prestart", Path::new("/bin/true"), &["prestart"]);
    bundle.hook("createRuntime", Path::new("/bin/true"), &["first"]);
    bundle.spec["later"] = json!({"unknown": [1.5, null]});
    bundle.write();
    let path = bundle.dir.join("config.json");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("its mode");

    let config = ["--gpu-preflight-config", "/c.toml", "--gpu-preflight-hook-arg=--driver-root=/d"];
    let mut after = pass(&bundle.dir, &config);
    let own = std::fs::canonicalize(programs::hook()).expect("the program");
    let hooks = after["hooks"]["createRuntime"].as_array_mut().expect("a list");
    assert_eq!(
        hooks.pop(),
        Some(json!({
            "path": own,
            "args": ["gpu-preflight-hook", "--stage", "createRuntime", "--config", "/c.toml", "--driver-root=/d"],
            "env": ["PATH=/usr/bin:/bin"],
            "timeout": 5,
        }))
    );
    assert_eq!(after, bundle.spec);
    assert_eq!(names(&bundle.dir), ["config.json", "rootfs"]);
    let status = std::fs::metadata(&path).expect("the spec");
    assert_eq!(status.mode() & 0o7777, 0o640);

    pass(&bundle.dir, &[]);
    let again = std::fs::metadata(&path).expect("the spec");
    assert_eq!((status.ino(), status.mtime_nsec()), (again.ino(), again.mtime_nsec()));
}

#[test]
fn a_registration_of_the_engine_is_enough() {
    let scratch = scratch();
    for stage in ["prestart", "createRuntime", "createContainer"] {
        let mut bundle = Bundle::asking(&scratch.at(stage));
        bundle.hook(stage, Path::new("/opt/elsewhere/gpu-preflight-hook"), &[]);
        bundle.write();
        assert_eq!(pass(&bundle.dir, &[]), bundle.spec);
    }
}

#[test]
fn what_cannot_be_changed_is_handed_on() {
    let scratch = scratch();
    let asking = Bundle::asking(&scratch.at("asking"));
    let spec = serde_json::to_string(&asking.spec).expect("JSON");
    for (name, text) in [
        ("cut", &spec[..spec.len() - 1]),
        ("hooks", &spec.replacen('{', "{\"hooks\":[],", 1)),
        ("stage", &spec.replacen('{', "{\"hooks\":{\"createRuntime\":7},", 1)),
        ("empty", ""),
    ] {
        let path = scratch.at(name).join("config.json");
        write(&path, text);
        let ended =
            run(shim(), &["--runtime", "/bin/true", "run", "-b", scratch.at(name).to_str().expect("UTF-8"), "x"]);
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{name}");
        assert_eq!(std::fs::read_to_string(&path).expect("the spec"), text, "{name}");
    }
    let linked = scratch.at("linked");
    link(asking.dir.join("config.json"), &linked.join("config.json"));
    asking.write();
    let ended = run(shim(), &["--runtime", "/bin/true", "run", "-b", linked.to_str().expect("UTF-8"), "x"]);
    assert_eq!((ended.code(), spec_of(&asking.dir)), (0, asking.spec));
}

#[test]
fn a_bundle_that_cannot_be_written_to_is_handed_on() {
    if !needs::root() || !needs::tools(&["unshare", "mount"]) {
        return;
    }
    let scratch = scratch();
    let bundle = Bundle::asking(&scratch.at("b"));
    bundle.write();
    let dir = bundle.dir.to_str().expect("UTF-8");
    let file = format!("{dir}/config.json");
    // the whole directory read-only; the file itself a mount, which cannot be renamed over
    for script in [
        "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"",
        "mount --bind \"$0/config.json\" \"$0/config.json\" && exec \"$@\"",
    ] {
        let ended = Run::new(needs::find("unshare").expect("unshare"))
            .args(["--mount", "--propagation", "private", "/bin/sh", "-c", script, dir])
            .args([shim().as_os_str(), "--runtime".as_ref(), "/bin/echo".as_ref()])
            .args(["create", "-b", dir, "x"])
            .end();
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{script}");
        assert_eq!(ended.stdout, format!("create -b {dir} x\n"));
        assert_eq!(names(&bundle.dir), ["config.json", "rootfs"]);
        assert_eq!(serde_json::to_vec(&bundle.spec).expect("JSON"), std::fs::read(&file).expect("the spec"));
    }
}

#[test]
fn runc_calls_it_after_the_hooks_that_were_there() {
    if !needs::root() || !needs::tools(&["runc", "cc"]) {
        return;
    }
    let scratch = scratch();
    let hook = |name: &str| {
        let path = scratch.at(name);
        let log = scratch.at("called");
        write(&path, format!("#!/bin/sh\ncat > /dev/null\necho {name} \"$@\" >> {}\n", log.display()));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        path
    };
    let mut bundle = bundle(&scratch.at("b"), &["exit", "7"]);
    bundle.env("NVIDIA_VISIBLE_DEVICES=all");
    bundle.hook("createContainer", &hook("container"), &[]);
    bundle.hook("createRuntime", &hook("there"), &[]);
    bundle.hook("prestart", &hook("prestart"), &[]);
    bundle.write();
    let ours = hook("ours");
    let ended = Run::new(shim())
        .args(["--gpu-preflight-hook", ours.to_str().expect("UTF-8"), "--root"])
        .args([scratch.at("state")])
        .args(["run", "--bundle", bundle.dir.to_str().expect("UTF-8"), &id()])
        .end();
    assert_eq!((ended.code(), ended.stderr.as_str()), (7, ""));
    let called = std::fs::read_to_string(scratch.at("called")).expect("the calls");
    assert_eq!(called, "prestart\nthere\nours --stage createRuntime\ncontainer\n");
}

#[test]
fn many_passes_at_once_leave_one_whole_specification() {
    let scratch = scratch();
    let bundle = Bundle::asking(&scratch.at("b"));
    bundle.write();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| pass(&bundle.dir, &[]));
        }
    });
    assert_eq!(spec_of(&bundle.dir)["hooks"]["createRuntime"].as_array().map(Vec::len), Some(1));
    assert_eq!(names(&bundle.dir), ["config.json", "rootfs"]);
}
