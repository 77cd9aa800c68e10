//! Under a runtime that hides what hooks say, ours says it before: never of a container that the hook would have
//! started.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::support::Scratch;
use super::super::support::bundle::{devices, libraries};
use super::super::support::host::SimHost;
use super::super::support::words;
use super::*;

/// One container, on one machine.
struct Case {
    name: &'static str,
    host: SimHost,
    make: fn(&mut Bundle, &Scratch),
    /// What the runtime refuses it for by itself.
    refused: Option<&'static str>,
    /// It starts where only the hook decides.
    starts: bool,
}

impl Case {
    fn new(name: &'static str, make: fn(&mut Bundle, &Scratch), refused: Option<&'static str>, starts: bool) -> Self {
        Self { name, host: SimHost::default(), make, refused, starts }
    }
}

/// Two GPUs by CDI in place of none.
fn cdi(bundle: &mut Bundle) {
    *bundle = Bundle::cdi(&bundle.dir.clone(), 2);
}

fn too_new(bundle: &Bundle, packages: &str) {
    let packages = bundle.rootfs().join(packages);
    write(&packages.join("torch-2.11.0.dist-info/METADATA"), "");
    write(&packages.join("torch/version.py"), "__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n");
}

fn mount(bundle: &mut Bundle, source: &Path, destination: &str) {
    let mount = json!({"destination": destination, "source": source, "type": "bind", "options": ["rbind"]});
    bundle.spec["mounts"].as_array_mut().expect("a list").push(mount);
}

/// As NVIDIA's hook loads what is not loaded yet; the simulated host's files can be written.
const LOAD: &str = "
if [ ! -e /sys/module/nvidia_uvm ]; then
  mkdir /sys/module/nvidia_uvm
  echo live >/sys/module/nvidia_uvm/initstate
  devices=$(sed '/^ *5 /a 511 nvidia-uvm' /proc/devices)
  printf '%s\\n' \"$devices\" >/proc/devices
fi
";

/// A hook that makes the nodes and brings the library, into the container and, where they lack, on the machine.
fn bring(bundle: &mut Bundle, scratch: &Scratch, name: &str) {
    let program = scratch.at(name);
    let mut text = LOAD.to_owned();
    let _ = write!(
        text,
        "pid=$(sed 's/.*\"pid\": *\\([0-9]*\\).*/\\1/')\nroot=/proc/$pid/root{}\ncp -P /{lib}/libcuda.so.* $root/{lib}/\n",
        bundle.rootfs().display(),
        lib = libraries()
    );
    for (path, major, minor) in devices(2) {
        let node = format!("c {major} {minor}");
        let _ = writeln!(text, "[ -e {path} ] || mknod -m 666 {path} {node}\nmknod -m 666 $root{path} {node}");
        let rule = json!({"allow": true, "type": "c", "major": major, "minor": minor, "access": "rw"});
        bundle.spec["linux"]["resources"]["devices"].as_array_mut().expect("a list").push(rule);
    }
    script(&program, &text);
    bundle.hook("prestart", &program, &["prestart"]);
}

fn cases() -> Vec<Case> {
    let too_new_for_it = Some("framework-cuda-newer-than-driver");
    let mut cases = vec![
        Case::new("all is well", |bundle, _| cdi(bundle), None, true),
        Case::new("no GPU was given", |_, _| {}, Some("gpu-not-requested"), false),
        Case::new(
            "numbers of an earlier boot",
            |bundle, _| {
                cdi(bundle);
                bundle.renumber_uvm(507);
            },
            Some("uvm-major-mismatch"),
            false,
        ),
        Case::new(
            "a framework too new",
            |bundle, _| {
                cdi(bundle);
                too_new(bundle, "usr/local/lib/python3.12/site-packages");
            },
            too_new_for_it,
            false,
        ),
        Case::new(
            "the same with a folder of the user's, in which another might lie",
            |bundle, scratch| {
                cdi(bundle);
                too_new(bundle, "usr/local/lib/python3.12/site-packages");
                write(&scratch.at("data/file"), "");
                mount(bundle, &scratch.at("data"), "/data");
            },
            None,
            false,
        ),
        Case::new(
            "a link leads to a folder in whose place another is mounted",
            |bundle, scratch| {
                cdi(bundle);
                too_new(bundle, "data/lib/python3.12/site-packages");
                link("/data", &bundle.rootfs().join("opt/venv"));
                write(&scratch.at("data/lib/python3.12/site-packages/file"), "");
                mount(bundle, &scratch.at("data"), "/data");
            },
            None,
            true,
        ),
        Case::new("the container wants no refusal", |bundle, _| bundle.env("GPU_PREFLIGHT=warn"), None, true),
        Case::new(
            "the container ignores the finding",
            |bundle, _| bundle.env("GPU_PREFLIGHT_IGNORE=gpu-not-requested"),
            None,
            true,
        ),
        Case::new(
            "a hook of docker's joins its network",
            |bundle, _| bundle.hook("prestart", Path::new("/bin/true"), &["libnetwork-setkey", "c1"]),
            Some("gpu-not-requested"),
            false,
        ),
        Case::new("a hook of the site's makes the nodes", |bundle, scratch| bring(bundle, scratch, "site"), None, true),
        Case::new(
            "NVIDIA's hook makes the nodes",
            |bundle, scratch| bring(bundle, scratch, "nvidia-container-runtime-hook"),
            None,
            true,
        ),
        Case::new(
            "NVIDIA's hook makes no framework older",
            |bundle, scratch| {
                bring(bundle, scratch, "nvidia-container-runtime-hook");
                too_new(bundle, "usr/local/lib/python3.12/site-packages");
            },
            too_new_for_it,
            false,
        ),
        Case::new(
            "the nodes are bound from another place than /dev",
            |bundle, scratch| {
                for (path, major, minor) in devices(2) {
                    let node = scratch.at(path.trim_start_matches("/dev/"));
                    let made = Run::new("/bin/mknod")
                        .args(["-m", "666"])
                        .args([&node])
                        .args(["c".into(), major.to_string(), minor.to_string()])
                        .end();
                    assert_eq!(made.code(), 0, "{made:?}");
                    mount(bundle, &node, &path);
                    let rule = json!({"allow": true, "type": "c", "major": major, "minor": minor, "access": "rw"});
                    bundle.spec["linux"]["resources"]["devices"].as_array_mut().expect("a list").push(rule);
                }
                bundle.mount_driver();
            },
            None,
            true,
        ),
    ];
    for (name, host) in [
        ("NVIDIA's hook makes the machine's nodes as well", SimHost::spoilt("rm dev/nvidia*")),
        ("NVIDIA's hook loads a module", SimHost { modules: "nvidia nvidia_modeset", ..SimHost::default() }),
    ] {
        let make = |bundle: &mut Bundle, scratch: &Scratch| bring(bundle, scratch, "nvidia-container-runtime-hook");
        cases.push(Case { host, ..Case::new(name, make, None, true) });
    }
    let of_a_group = SimHost::spoilt("chmod 660 dev/nvidia*; chgrp 44 dev/nvidia*");
    cases.push(Case {
        host: of_a_group,
        ..Case::new(
            "who may open the nodes shows when they are there",
            |bundle, _| {
                cdi(bundle);
                bundle.spec["process"]["user"] = json!({"uid": 1000, "gid": 1000, "additionalGids": [44]});
                for device in bundle.spec["linux"]["devices"].as_array_mut().expect("a list") {
                    device["fileMode"] = json!(0o660);
                }
            },
            None,
            false,
        )
    });
    cases
}

/// What became of a start.
struct Started {
    ended: Ended,
    decisions: Vec<Value>,
    /// The entries of the runtime's log.
    entries: Vec<Value>,
    spec_changed: bool,
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Starts a container by `crun`, through ours or with the hook alone.
fn start(case: &Case, through: bool, more: &[OsString]) -> Started {
    let scratch = scratch();
    let (decisions, entries) = (scratch.at("hook.jsonl"), scratch.at("crun.json"));
    let mut bundle = Bundle::asking(&scratch.at("bundle"));
    (case.make)(&mut bundle, &scratch);
    let log = format!("--log={}", decisions.display());
    if !through {
        bundle.hook("createRuntime", &programs::hook(), &["--stage", "createRuntime", &log]);
    }
    bundle.write();
    let spec = || std::fs::read(bundle.dir.join("config.json")).expect("the spec");
    let before = spec();
    let mut command: Vec<OsString> = Vec::new();
    if through {
        command.extend([
            shim().into(),
            "--runtime".into(),
            "crun".into(),
            "--gpu-preflight-hook-arg".into(),
            log.into(),
        ]);
        command.extend(more.iter().cloned());
    } else {
        command.push("crun".into());
    }
    command.extend(["--root".into(), scratch.at("containers").into(), "--log".into(), entries.clone().into()]);
    command.extend(["--log-format", "json", "run", "--bundle"].map(OsString::from));
    command.extend([bundle.dir.clone().into(), id().into()]);
    let ended = case.host.run(command).end();
    let left = std::fs::read_dir(scratch.at("containers")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "{}: containers are left", case.name);
    Started { ended, decisions: lines(&decisions), entries: lines(&entries), spec_changed: spec() != before }
}

fn can_run() -> bool {
    needs::root() && needs::tools(&["crun", "cc"])
}

#[test]
fn what_the_hook_would_start_is_started_and_the_rest_is_said_in_its_words() {
    if !can_run() {
        return;
    }
    for case in cases() {
        let name = case.name;
        let by_hook = start(&case, false, &[]);
        assert_eq!(by_hook.ended.status.success(), case.starts, "{name}: {:?} {:?}", by_hook.ended, by_hook.decisions);
        let through = start(&case, true, &[]);
        let [decision] = &through.decisions[..] else { panic!("{name}: {:?} {:?}", through.decisions, through.ended) };
        let Some(check) = case.refused else {
            assert_eq!(through.ended.status.success(), case.starts, "{name}: {:?}", through.ended);
            assert_eq!(decision["stage"], "createRuntime", "{name}: the hook decides");
            continue;
        };
        words::check_refusal(&through.ended, 1, check);
        assert_eq!((&decision["stage"], &decision["decision"]), (&json!("runtime"), &json!("refuse")), "{name}");
        let message = |decisions: &[Value]| decisions[0]["findings"][0].clone();
        assert_eq!(message(&through.decisions), message(&by_hook.decisions), "{name}");
        let [entry] = &through.entries[..] else { panic!("{name}: {:?}", through.entries) };
        assert_eq!((&entry["level"], &entry["msg"]), (&json!("error"), &json!(through.ended.stderr.trim_end())));
        assert!(!through.spec_changed, "{name}");
    }
}

#[test]
fn a_warning_is_the_hooks_to_give() {
    if !can_run() {
        return;
    }
    let scratch = scratch();
    write(&scratch.at("config.toml"), "mode = \"warn\"\n");
    let config = ["--gpu-preflight-config".into(), scratch.at("config.toml").into()];
    let started = start(&Case::new("no GPU was given", |_, _| {}, None, true), true, &config);
    assert_eq!(started.ended.stdout, "the container runs\n", "{:?}", started.ended);
    let [decision] = &started.decisions[..] else { panic!("{:?}", started.decisions) };
    assert_eq!((&decision["stage"], &decision["mode"]), (&json!("createRuntime"), &json!("warn")));
}

#[test]
fn a_machine_that_boots_is_waited_for() {
    if !can_run() {
        return;
    }
    let scratch = scratch();
    write(&scratch.at("config.toml"), "wait_for_driver = \"1s\"\n");
    let config = ["--gpu-preflight-config".into(), scratch.at("config.toml").into()];
    let case = |host| Case { host, ..Case::new("booting", |bundle, _| cdi(bundle), None, false) };
    let begun = std::time::Instant::now();
    let started = start(&case(SimHost { modules: "nvidia nvidia_modeset", ..SimHost::default() }), true, &config);
    words::check_refusal(&started.ended, 1, "uvm-module-not-loaded");
    let decided_after = started.decisions[0]["ms"].as_f64().expect("a time");
    assert!(decided_after > 700.0 && begun.elapsed().as_secs() < 15, "{decided_after} ms");
}

/// Between us and the last runtime stands one that gives the GPU: only the pass behind it sees what will be.
#[test]
fn the_last_pass_judges() {
    if !can_run() {
        return;
    }
    let scratch = scratch();
    let given = Bundle::cdi(&scratch.at("given"), 2);
    given.write();
    for (gives, refused) in [(true, false), (false, true)] {
        let bundle = Bundle::asking(&scratch.at("bundle"));
        let own = |word: &str| format!("s,{},{word},g", given.dir.display());
        let edit = format!(
            "sed '{}' {}/config.json > {}/config.json",
            own(bundle.dir.to_str().expect("UTF-8")),
            given.dir.display(),
            bundle.dir.display()
        );
        bundle.write();
        let nvidia = scratch.at("nvidia-container-runtime");
        let log = format!("--gpu-preflight-hook-arg=--log={}", scratch.at("hook.jsonl").display());
        script(
            &nvidia,
            &format!("{}\nexec {} --runtime crun {log} \"$@\"", if gives { &edit } else { "" }, shim().display()),
        );
        let command =
            [shim().into(), OsString::from("--runtime"), nvidia.into(), "--root".into(), scratch.at("state").into()];
        let rest = ["run".into(), OsString::from("-b"), bundle.dir.clone().into(), id().into()];
        // the hook that the first pass adds logs elsewhere
        let ended = SimHost::default().run([&command[..], &[log.into()], &rest].concat()).end();
        if refused {
            words::check_refusal(&ended, 1, "gpu-not-requested");
        } else {
            assert_eq!((ended.code(), ended.stdout.as_str()), (0, "the container runs\n"), "{ended:?}");
        }
    }
}

#[test]
fn runc_says_it_itself() {
    if !needs::root() || !needs::tools(&["runc", "cc"]) {
        return;
    }
    let scratch = scratch();
    let bundle = Bundle::asking(&scratch.at("bundle"));
    bundle.write();
    let log = format!("--gpu-preflight-hook-arg=--log={}", scratch.at("hook.jsonl").display());
    let ended = SimHost::default()
        .run(
            [
                shim().into(),
                OsString::from("--runtime"),
                "runc".into(),
                log.into(),
                "--root".into(),
                scratch.at("state").into(),
            ]
            .into_iter()
            .chain(["run".into(), OsString::from("-b"), bundle.dir.clone().into(), id().into()]),
        )
        .end();
    assert!(ended.stderr.contains("exit status 10") && ended.stderr.contains("[gpu-not-requested]"), "{ended:?}");
    assert_eq!(lines(&scratch.at("hook.jsonl"))[0]["stage"], "createRuntime");
}
