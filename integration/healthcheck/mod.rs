//! `healthcheck`, inside containers of several kinds and beside a driver library that stands in for NVIDIA's.
//!
//! No kernel here has NVIDIA's driver, and to open a node that nobody serves fails. So the control nodes have the
//! numbers of `/dev/null` and its kin, below a directory whose `proc/devices` says that these are the driver's.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::support::host::SimHost;
use crate::support::process::{Ended, Run, compile_c};
use crate::support::{Scratch, needs, programs, repository, scratch};

mod bounds;
mod cgroups;
mod docker;
mod faults;
mod hostile;
mod podman;
mod roots;

/// libnvidia-ml as another driver brings it.
const OTHER_LIBRARY: &str = "mkdir old; mv $LIBRARIES/libnvidia-ml.* old/; mv other $LIBRARIES/libnvidia-ml.so.560.28.03; \
    ln -s libnvidia-ml.so.560.28.03 $LIBRARIES/libnvidia-ml.so.1";

/// What it may take whatever hangs.
const LONGEST: Duration = Duration::from_secs(5);

/// What docker keeps of an answer.
const KEPT: usize = 4096;

/// The nodes with numbers that every kernel serves: `/dev/null`, `/dev/zero`, `/dev/full`.
const NODES: [(&str, &str); 3] = [("nvidiactl", "/dev/null"), ("nvidia0", "/dev/zero"), ("nvidia-uvm", "/dev/full")];

/// Takes the nodes that nobody serves out of the laid machine, and says that memory's driver is NVIDIA's.
const SERVED: &str = "rm -f dev/nvidia*; sed -i -e '/^ *1 mem/d' -e 's/^195 /1 /' -e 's/^51[01] /1 /' proc/devices";

/// What stands for libnvidia-ml.
struct Libraries {
    answers: PathBuf,
    hangs: PathBuf,
    /// It is of another version than the driver, and says so.
    other: PathBuf,
}

fn nvml() -> &'static Libraries {
    static BUILT: OnceLock<Libraries> = OnceLock::new();
    let compiled = |source: &str, name: &str, more: &[&str]| {
        let flags = ["-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"];
        compile_c(&repository().join(source), name, &[&flags, more].concat())
    };
    BUILT.get_or_init(|| Libraries {
        answers: compiled("integration/nvml/stand_in.c", "libnvidia-ml.so.answers", &[]),
        hangs: compiled("integration/healthcheck/broken.c", "libnvidia-ml.so.hangs", &[]),
        other: compiled("integration/healthcheck/broken.c", "libnvidia-ml.so.other", &["-DCODE=18"]),
    })
}

/// Lays the machine out without nodes.
fn lay(dir: &Path) {
    SimHost { gpus: 1, nvml: Some(nvml().answers.clone()), spoil: SERVED, ..SimHost::default() }.lay(dir);
}

/// The machine with nodes, outside any container.
struct Laid(Scratch);

impl Laid {
    /// `None`: said and skipped.
    fn out() -> Option<Self> {
        if !needs::root() || !needs::tools(&["cc", "setpriv"]) {
            return None;
        }
        let laid = Self(scratch());
        lay(&laid.at(""));
        for (name, like) in NODES {
            let made = Run::new("cp").args(["-a", like]).args([laid.at(&format!("dev/{name}"))]).end();
            assert!(made.status.success(), "{made:?}");
        }
        // MIG's, which nobody writes
        laid.shell(
            "mkdir dev/nvidia-caps; cp -a /dev/null dev/nvidia-caps/nvidia-cap3; chmod 444 dev/nvidia-caps/nvidia-cap3",
        );
        Some(laid)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.at("sim").join(path)
    }

    fn shell(&self, script: &str) {
        let script = format!("LIBRARIES=usr/lib/{}-linux-gnu; {script}", std::env::consts::ARCH);
        let ended = Run::new("sh").args(["-euc", &script]).current_dir(&self.at("")).end();
        assert!(ended.status.success(), "{script}: {ended:?}");
    }

    /// A check of a container that was given it. What it remembers lies beside it.
    fn run(&self, program: Program, arguments: &[&str]) -> Run {
        self.run_by(Run::new("env"), program, arguments)
    }

    /// The same, started by another command, whose last arguments it is.
    fn run_by(&self, by: Run, program: Program, arguments: &[&str]) -> Run {
        // Who may load modules may be about to set the machine up, and is judged mildly.
        let run = by.args(["setpriv", "--bounding-set=-all", "--inh-caps=-all"]);
        let run = match program {
            Program::Dynamic => run.args([programs::cli()]).args(["healthcheck"]),
            Program::Static => run.args([programs::healthcheck()]),
        };
        std::fs::create_dir_all(self.0.at("run")).expect("a directory");
        run.env("XDG_RUNTIME_DIR", self.0.at("run"))
            .env("NVIDIA_VISIBLE_DEVICES", "all")
            .env("NVIDIA_DRIVER_CAPABILITIES", "compute,utility")
            .args([std::ffi::OsString::from("--host-root"), self.at("").into()])
            .args(arguments.iter().copied())
    }

    fn check(&self, program: Program, arguments: &[&str]) -> (Ended, Duration) {
        let run = self.run(program, arguments);
        let before = Instant::now();
        let ended = run.end();
        let took = before.elapsed();
        assert!(ended.stdout.len() <= KEPT, "{ended:?}");
        assert!(ended.stderr.is_empty(), "{ended:?}");
        (ended, took)
    }

    fn said(&self, program: Program, arguments: &[&str]) -> (i32, String) {
        let (ended, _) = self.check(program, arguments);
        (ended.code(), ended.stdout.lines().next().unwrap_or_default().to_owned())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Dynamic,
    Static,
}

const BOTH: [Program; 2] = [Program::Dynamic, Program::Static];

#[track_caller]
fn is_healthy(said: &(i32, String)) {
    assert_eq!(*said, (0, "healthy: 1 GPU, driver 550.163.01".to_owned()));
}

#[track_caller]
fn is_unhealthy(said: &(i32, String), id: &str) {
    assert!(said.0 == 1 && said.1.starts_with(&format!("unhealthy [{id}]: ")), "{id}: {said:?}");
}

#[test]
fn what_works_is_healthy_and_each_fault_is_named() {
    if !needs::released() {
        return;
    }
    let Some(laid) = Laid::out() else { return };
    for program in BOTH {
        is_healthy(&laid.said(program, &[]));
        is_healthy(&laid.said(program, &["--open"]));
        for (spoil, repair, id) in [
            ("mv dev/nvidiactl gone", "mv gone dev/nvidiactl", "control-node-missing"),
            ("mv dev/nvidia-uvm gone", "mv gone dev/nvidia-uvm", "uvm-node-missing"),
            ("mv dev/nvidia0 gone", "mv gone dev/nvidia0", "gpu-node-missing"),
            ("mv dev/nvidia-uvm gone; touch dev/nvidia-uvm", "mv gone dev/nvidia-uvm", "node-not-a-device"),
            ("mv dev/nvidia-uvm gone; mknod dev/nvidia-uvm c 511 0", "mv gone dev/nvidia-uvm", "uvm-major-mismatch"),
            (
                "cp proc/devices was; sed -i 's/^1 nv/195 nv/' proc/devices; rm dev/nvidiactl; mknod -m 666 dev/nvidiactl c 195 255",
                "mv was proc/devices; rm dev/nvidiactl; cp -a /dev/null dev/nvidiactl",
                "driver-not-loaded",
            ),
            (OTHER_LIBRARY, "rm $LIBRARIES/libnvidia-ml.*; mv old/* $LIBRARIES/; rmdir old", "driver-library-mismatch"),
            ("mv usr gone", "mv gone usr", "passthrough-incomplete"),
        ] {
            std::fs::copy(&nvml().other, laid.at("other")).expect("a library");
            laid.shell(spoil);
            is_unhealthy(&laid.said(program, &[]), id);
            laid.shell(repair);
            is_healthy(&laid.said(program, &[]));
        }
    }
}

#[test]
fn what_was_lost_is_told_from_what_was_never_there() {
    let Some(laid) = Laid::out() else { return };
    let missing = |laid: &Laid| {
        let (ended, _) = laid.check(Program::Dynamic, &[]);
        assert_eq!(ended.code(), 1, "{ended:?}");
        ended.stdout
    };
    laid.shell("mv dev/nvidia-uvm gone");
    assert!(missing(&laid).contains("it was not passed in"));
    laid.shell("mv gone dev/nvidia-uvm");
    is_healthy(&laid.said(Program::Dynamic, &[]));
    laid.shell("rm -r dev/*");
    let said = missing(&laid);
    assert!(
        said.starts_with("unhealthy [control-node-missing]") && said.contains("it had one since its start"),
        "{said}"
    );
    assert!(said.contains("error [gpu-node-missing]") && said.contains("error [uvm-node-missing]"), "{said}");
    std::fs::remove_dir_all(laid.0.at("run")).expect("its memory");
    assert!(missing(&laid).starts_with("unhealthy [gpu-not-requested]"), "{}", missing(&laid));
}

#[test]
fn cuda_is_started_where_that_is_asked_for() {
    let Some(laid) = Laid::out() else { return };
    let library = laid.at(&format!("usr/lib/{}-linux-gnu/libcuda.so.550.163.01", std::env::consts::ARCH));
    let source = repository().join("integration/healthcheck/cuda.c");
    let built = compile_c(&source, "libcuda.so.stand-in", &["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]);
    std::fs::copy(built, library).expect("a library");
    let with = |says: &str, arguments: &[&str]| {
        let before = Instant::now();
        let ended = laid.run(Program::Dynamic, arguments).env("STAND_IN_CUDA", says).end();
        assert!(before.elapsed() <= LONGEST, "{says}");
        (ended.code(), ended.stdout.lines().next().unwrap_or_default().to_owned())
    };
    is_healthy(&with("999", &[]));
    is_healthy(&with("0", &["--cuda"]));
    for (says, meaning) in
        [("999", "cuInit answers 999"), ("802", "cuInit answers 802"), ("hang", "cuInit did not come back")]
    {
        let said = with(says, &["--cuda"]);
        is_unhealthy(&said, "cuda-does-not-start");
        assert!(said.1.contains(meaning), "{said:?}");
    }
    if needs::released() {
        let (ended, _) = laid.check(Program::Static, &["--cuda"]);
        assert!(ended.code() == 0 && ended.stdout.contains("unknown [cuda-does-not-start]"), "{ended:?}");
    }
}

#[test]
fn free_memory_is_asked_of_nvml() {
    let Some(laid) = Laid::out() else { return };
    is_healthy(&laid.said(Program::Dynamic, &["--min-free-memory", "60GiB"]));
    is_unhealthy(&laid.said(Program::Dynamic, &["--min-free-memory=100GiB"]), "gpu-memory-occupied");
    if needs::released() {
        let (ended, _) = laid.check(Program::Static, &["--min-free-memory=100GiB"]);
        assert!(ended.code() == 0 && ended.stdout.contains("unknown [gpu-memory-occupied]"), "{ended:?}");
    }
}

#[test]
fn exit_codes_are_two_and_the_verdict_comes_first() {
    let Some(laid) = Laid::out() else { return };
    laid.shell("rm dev/nvidia-uvm");
    let (ended, _) = laid.check(Program::Dynamic, &["--format", "json", "--fail-on", "never"]);
    assert!(ended.code() == 1 && ended.stdout.starts_with(r#"{"verdict":"fail","#), "{ended:?}");
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(document["findings"][0]["id"], "uvm-node-missing");
    assert!(document.get("facts").is_none());
    crate::schema::check_report(&document);
    let ignored = laid.said(Program::Dynamic, &["--ignore", "uvm-node-missing"]);
    assert_eq!(ignored.0, 0, "{ignored:?}");
    assert_eq!(programs::gpu_preflight(&["healthcheck", "--opne"]).end().code(), 1);
    // what was set for another command
    let other = laid.run(Program::Dynamic, &[]).env("GPU_PREFLIGHT_FORMAT", "sarif").end();
    assert!(other.stdout.starts_with("unhealthy [uvm-node-missing]: "), "{other:?}");
}

#[test]
fn who_wants_no_gpu_and_has_none_is_healthy() {
    let scratch = scratch();
    SimHost::bare().lay(&scratch.at("sim"));
    let root = scratch.at("sim").to_string_lossy().into_owned();
    let ended = programs::gpu_preflight(&["healthcheck", "--host-root", &root]).end();
    assert_eq!((ended.code(), ended.stdout.as_str()), (0, "healthy: no GPU is wanted or given\n"));
}
