//! Containers that neither want nor have a GPU: no runtime and no user can tell the difference.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use super::super::support::Scratch;
use super::*;

/// Where one test's containers live.
struct Place {
    scratch: Scratch,
    real: PathBuf,
}

impl Place {
    /// Needs root and the real runtime.
    fn of(name: &str) -> Option<Self> {
        if !needs::root() || !needs::tools(&["cc"]) {
            return None;
        }
        Some(Self { scratch: scratch(), real: real(name)? })
    }

    /// A run of the shim, with the runtime's state kept apart.
    fn through(&self, args: &[&str]) -> Run {
        let own = [OsString::from("--runtime"), self.real.clone().into()];
        Run::new(shim()).args(own).args(self.root()).args(args.iter().map(OsString::from))
    }

    /// The same of the real runtime.
    fn direct(&self, args: &[&str]) -> Run {
        Run::new(&self.real).args(self.root()).args(args.iter().map(OsString::from))
    }

    fn root(&self) -> [OsString; 2] {
        [OsString::from("--root"), self.scratch.at("state").into()]
    }

    fn bundle(&self, args: &[&str]) -> Bundle {
        let bundle = bundle(&self.scratch.at(&args.join("-")), args);
        bundle.write();
        bundle
    }
}

#[test]
fn its_specification_stays_and_its_exit_code_arrives() {
    let Some(place) = Place::of("runc") else { return };
    for (args, shared, code) in [
        (&["exit", "0"][..], false, 0),
        (&["exit", "7"], false, 7),
        (&["exit", "255"], false, 255),
        (&["signal", "9"], true, 137),
        (&["signal", "15"], true, 143),
    ] {
        let mut bundle = place.bundle(args);
        if shared {
            let namespaces = bundle.spec["linux"]["namespaces"].as_array_mut().expect("a list");
            namespaces.retain(|namespace| namespace["type"] != "pid");
            bundle.write();
        }
        let spec = bundle.dir.join("config.json");
        let before = (std::fs::read(&spec).expect("the spec"), std::fs::metadata(&spec).expect("the spec"));
        let dir = bundle.dir.to_str().expect("UTF-8");
        let bundle_option = format!("--bundle={dir}");
        for options in [&["--bundle", dir][..], &[&bundle_option], &["-b", dir], &["--keep=false", "-bundle", dir], &[]]
        {
            let container = id();
            let run = place.through(&[&["run"], options, &[&container]].concat()).current_dir(&bundle.dir);
            let ended = run.end();
            assert_eq!((ended.code(), ended.stderr.as_str()), (code, ""), "{args:?} {options:?}");
        }
        let after = (std::fs::read(&spec).expect("the spec"), std::fs::metadata(&spec).expect("the spec"));
        assert_eq!(before.0, after.0);
        assert_eq!((before.1.ino(), before.1.mtime_nsec()), (after.1.ino(), after.1.mtime_nsec()));
    }
}

#[test]
fn input_and_output_pass() {
    let Some(place) = Place::of("runc") else { return };
    let bundle = place.bundle(&["cat"]);
    let text = "a line\n".repeat(20_000);
    let ended = place.through(&["run", &id()]).current_dir(&bundle.dir).stdin(text.clone()).end();
    assert_eq!((ended.code(), ended.stdout == text, ended.stderr.as_str()), (0, true, ""));
}

#[test]
fn descriptors_are_inherited() {
    let Some(place) = Place::of("runc") else { return };
    let bundle = place.bundle(&["fds"]);
    std::fs::write(place.scratch.at("three"), "third").expect("a file");
    std::fs::write(place.scratch.at("four"), "fourth").expect("a file");
    let script = format!("exec \"$@\" 3<{0}/three 4<{0}/four", place.scratch.path().display());
    let state = place.scratch.at("state");
    let ended = Run::new("/bin/sh")
        .args(["-c", &script, "sh"])
        .args([shim().as_os_str(), "--runtime".as_ref(), place.real.as_os_str(), "--root".as_ref(), state.as_os_str()])
        .args(["run", "--preserve-fds", "2", &id()])
        .current_dir(&bundle.dir)
        .end();
    assert_eq!((ended.code(), ended.stdout.as_str()), (0, "3: third\n4: fourth\n"), "{}", ended.stderr);
}

#[test]
fn a_container_lives_through_its_commands() {
    let Some(place) = Place::of("runc") else { return };
    let bundle = place.bundle(&["wait"]);
    let dir = bundle.dir.to_str().expect("UTF-8");
    let container = id();
    let pid_file = place.scratch.at("pid");
    let create = ["create", "--bundle", dir, "--pid-file", pid_file.to_str().expect("UTF-8"), &container];
    assert_eq!(quiet(&place, &create).code(), 0);
    let pid = std::fs::read_to_string(&pid_file).expect("the pid");
    let state = |status: &str| {
        let state = place.through(&["state", &container]).end();
        assert_eq!(state.stdout, place.direct(&["state", &container]).end().stdout);
        let state: serde_json::Value = serde_json::from_str(&state.stdout).expect("JSON");
        assert_eq!((&state["status"], &state["pid"]), (&json!(status), &json!(pid.parse::<u32>().expect("a number"))));
    };
    state("created");
    assert_eq!(quiet(&place, &["start", &container]).code(), 0);
    state("running");
    assert_eq!(place.through(&["exec", &container, "/tool", "exit", "9"]).end().code(), 9);
    assert_eq!(place.through(&["kill", &container, "KILL"]).end().code(), 0);
    let until = Instant::now() + Duration::from_secs(10);
    while !place.through(&["state", &container]).end().stdout.contains("stopped") {
        assert!(Instant::now() < until, "it does not stop");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(place.through(&["delete", &container]).end().code(), 0);
    assert_eq!(place.through(&["list", "-q"]).end().stdout, "");
}

/// A run whose output the container keeps open: into files, not pipes.
fn quiet(place: &Place, args: &[&str]) -> Ended {
    let command = [OsString::from("-c"), "exec \"$@\" >/dev/null 2>&1 </dev/null".into(), "sh".into()];
    let own = [shim().into(), OsString::from("--runtime"), place.real.clone().into()];
    Run::new("/bin/sh").args(command).args(own).args(place.root()).args(args.iter().map(OsString::from)).end()
}

/// A user's way: the runtime hands its own terminal on. Arguments: the command.
const OWN_TERMINAL: &str = "
import os, pty, subprocess, sys
master, slave = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
code = process.wait(15)
print(os.read(master, 4096).decode().strip())
sys.exit(code)
";

/// An engine's way: the terminal is sent over a socket. Arguments: the command up to its subcommand, the id.
const CONSOLE_SOCKET: &str = "
import os, socket, subprocess, sys
*command, container = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
listener.bind('console')
listener.listen(1)
listener.settimeout(15)
process = subprocess.Popen([*command, 'create', '--console-socket', 'console', container])
_, terminals, _, _ = socket.recv_fds(listener.accept()[0], 4096, 1)
assert process.wait(15) == 0
subprocess.check_call([*command, 'start', container])
print(os.read(terminals[0], 100).decode().strip())
subprocess.check_call([*command, 'delete', '-f', container])
";

#[test]
fn a_terminal_stays_one() {
    let Some(place) = Place::of("runc") else { return };
    if !needs::tools(&["python3"]) {
        return;
    }
    let mut bundle = place.bundle(&["tty"]);
    bundle.spec["process"]["terminal"] = json!(true);
    bundle.spec["mounts"].as_array_mut().expect("a list").push(json!({
        "destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["newinstance", "ptmxmode=0666"],
    }));
    bundle.write();
    let python = |script: &str, words: &[String]| {
        let ended = Run::new(needs::find("python3").expect("python3"))
            .args(["-c", script])
            .args([shim().as_os_str(), "--runtime".as_ref(), place.real.as_os_str()])
            .args(place.root())
            .args(words)
            .current_dir(&bundle.dir)
            .end();
        assert_eq!((ended.code(), ended.stdout.trim()), (0, "111"), "{}", ended.stderr);
    };
    python(OWN_TERMINAL, &["run".into(), id()]);
    python(CONSOLE_SOCKET, &[id()]);
}

#[test]
fn the_tightest_limits_that_the_real_runtime_bears_are_borne() {
    let Some(place) = Place::of("runc") else { return };
    let mut bundle = place.bundle(&["exit", "7"]);
    for (memory, pids) in [(6 << 20, 4), (12 << 20, 4), (64 << 20, 16)] {
        bundle.spec["linux"]["resources"]["memory"] = json!({"limit": memory});
        bundle.spec["linux"]["resources"]["pids"] = json!({"limit": pids});
        bundle.write();
        let direct = place.direct(&["run", &id()]).current_dir(&bundle.dir).end();
        let through = place.through(&["run", &id()]).current_dir(&bundle.dir).end();
        assert_eq!(direct.code(), through.code(), "{memory} bytes, {pids} processes: {}", through.stderr);
    }
}

#[test]
fn many_starts_leave_nothing_behind() {
    let Some(place) = Place::of("runc") else { return };
    let bundle = place.bundle(&["exit", "0"]);
    let mut wanting = super::bundle(&place.scratch.at("wanting"), &["exit", "0"]);
    wanting.env("NVIDIA_VISIBLE_DEVICES=all");
    wanting.write();
    let starts = if std::env::var_os("GPU_PREFLIGHT_TEST_LONG").is_some() { 1000 } else { 50 };
    let before = (names(&bundle.dir), names(&wanting.dir), left(&place));
    for _ in 0..starts {
        assert_eq!(place.through(&["run", &id()]).current_dir(&bundle.dir).end().code(), 0);
    }
    for _ in 0..starts / 10 {
        let hook = ["--gpu-preflight-hook", "/bin/true", "run", &id()];
        assert_eq!(place.through(&hook).current_dir(&wanting.dir).end().code(), 0);
    }
    assert_eq!((names(&bundle.dir), names(&wanting.dir), left(&place)), before);
    assert_eq!(place.direct(&["list", "-q"]).end().stdout, "");
}

/// Mounts and processes that have to do with a place.
fn left(place: &Place) -> Vec<String> {
    let name = place.scratch.path().to_str().expect("UTF-8");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
    let mut left: Vec<_> = mounts.lines().filter(|line| line.contains(name)).map(str::to_owned).collect();
    for pid in names(Path::new("/proc")) {
        let cwd = std::fs::read_link(Path::new("/proc").join(&pid).join("cwd")).unwrap_or_default();
        if cwd.starts_with(place.scratch.path()) {
            left.push(format!("process {}", pid.display()));
        }
    }
    left
}

#[test]
fn crun_starts_them_as_well() {
    let Some(place) = Place::of("crun") else { return };
    if !needs::tools(&["unshare"]) {
        return;
    }
    let bundle = place.bundle(&["exit", "7"]);
    // crun takes no cgroups of both versions side by side
    let script = "umount /sys/fs/cgroup/unified 2>/dev/null; exec \"$@\"";
    let state = place.scratch.at("state");
    let dir = bundle.dir.to_str().expect("UTF-8");
    for options in [format!("-b{dir}"), format!("--bund={dir}"), format!("--bundle={dir}")] {
        let ended = Run::new(needs::find("unshare").expect("unshare"))
            .args(["--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh"])
            .args([shim().as_os_str(), "--runtime".as_ref(), "crun".as_ref(), "--root".as_ref(), state.as_os_str()])
            .args(["run", &options, &id()])
            .end();
        assert_eq!((ended.code(), ended.stderr.as_str()), (7, ""), "{options}");
    }
}
