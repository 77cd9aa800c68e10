//! The files of `hooks/` for places that are no container engine: each script as that place calls it, with the
//! environment that it gives, on machines that are well and machines that are not.
//!
//! What a script gets wrong drains nodes and stops services, so most of this is about when it holds its tongue.

mod enroot;
mod kubernetes;
mod lxc;
mod slurm;

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::host::SimHost;
use crate::support::process::{Ended, Run};
use crate::support::{Scratch, programs, repository, scratch, write};

/// The driver's module was updated beneath its libraries' feet, and is gone from the kernel.
const NOT_LOADED: &str = "rm -r sys/module/nvidia* proc/driver/nvidia dev/nvidia*
    sed -i /nvidia/d proc/modules proc/devices";

/// A script of `hooks/`, put where its place would have it.
struct Place {
    scratch: Scratch,
    script: &'static str,
    program: PathBuf,
    edits: Vec<(String, String)>,
}

impl Place {
    /// On a host, with gpu-preflight installed.
    fn on(host: &SimHost, script: &'static str) -> Self {
        let place = Self { scratch: scratch(), script, program: programs::cli(), edits: Vec::new() };
        host.lay(&place.at("host"));
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.scratch.at(path)
    }

    /// Instead of gpu-preflight, a shell script: `checks` is answered by the real one.
    fn program(mut self, body: &str) -> Self {
        let text = format!("[ \"$1\" != checks ] || exec {} checks\n{body}", programs::cli().display());
        self.program = self.executable("program", &text);
        self
    }

    /// Replaces text of the script that is there, as who installs it elsewhere would.
    fn edit(mut self, from: &str, to: impl Into<String>) -> Self {
        self.edits.push((from.to_owned(), to.into()));
        self
    }

    fn executable(&self, name: &str, body: &str) -> PathBuf {
        let path = self.at(name);
        write(&path, format!("#!/bin/sh\n{body}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        path
    }

    /// The script as it is run.
    fn installed(&self) -> PathBuf {
        let mut text = std::fs::read_to_string(repository().join("hooks").join(self.script)).expect("the script");
        let program = format!("gpu_preflight={}", self.program.display());
        for (from, to) in std::iter::once(&("gpu_preflight=/usr/bin/gpu-preflight".into(), program)).chain(&self.edits)
        {
            assert!(text.contains(from.as_str()), "{from:?} is not in {}", self.script);
            text = text.replace(from, to);
        }
        self.executable("script", text.trim_start_matches("#!/bin/sh\n"))
    }

    /// A run with that environment, which is all there is but PATH.
    fn run(&self, environment: &[(&str, &str)], args: &[&str]) -> Ended {
        let host = OsString::from(self.at("host"));
        let run = Run::new(self.installed()).args(args).env("GPU_PREFLIGHT_HOST_ROOT", host);
        environment.iter().fold(run, |run, (name, value)| run.env(name, *value)).end()
    }
}

/// How a place calls its script for something that wants a GPU.
struct Case {
    script: &'static str,
    prepare: fn(Place) -> Place,
    environment: fn(&Place) -> Vec<(&'static str, String)>,
    args: &'static [&'static str],
    /// Its exit code where an error is certain.
    refuses: i32,
}

fn cases() -> [Case; 5] {
    [slurm::prolog(), slurm::health_check(), enroot::hook(), lxc::pre_start(), lxc::hookscript()]
}

impl Case {
    fn on(&self, host: &SimHost, prepare: impl FnOnce(Place) -> Place) -> Ended {
        let place = prepare((self.prepare)(Place::on(host, self.script)));
        let environment = (self.environment)(&place);
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        place.run(&environment, self.args)
    }
}

fn silent(ended: &Ended, script: &str) {
    assert_eq!((ended.code(), ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""), "{script}");
}

#[test]
fn a_good_machine_is_passed_without_a_word() {
    for case in cases() {
        silent(&case.on(&SimHost::default(), |place| place), case.script);
    }
}

#[test]
fn a_machine_without_any_part_of_nvidia_s_is_passed_without_a_word() {
    for case in cases() {
        silent(&case.on(&SimHost::bare(), |place| place), case.script);
    }
}

#[test]
fn a_driver_that_is_not_loaded_is_told_in_one_line() {
    for case in cases() {
        let ended = case.on(&SimHost::spoilt(NOT_LOADED), |place| place);
        assert_eq!(ended.code(), case.refuses, "{}: {ended:?}", case.script);
        let told = ended.stdout + &ended.stderr;
        assert!(told.lines().count() == 1 && told.starts_with("gpu-preflight: "), "{}: {told}", case.script);
        assert!(told.contains("[driver-not-loaded]"), "{}: {told}", case.script);
    }
}

#[test]
fn without_gpu_preflight_nothing_is_said_or_stopped() {
    for case in cases() {
        let absent = |mut place: Place| {
            place.program = place.at("absent");
            place
        };
        silent(&case.on(&SimHost::spoilt(NOT_LOADED), absent), case.script);
    }
}

/// What could not be judged, a warning, a crash, an answer without an error: nothing to stop anything for.
#[test]
fn nothing_but_an_error_counts() {
    for body in ["exit 2", "exit 3", "kill -9 $$", "echo 'FAIL  something'; exit 1", "echo 'error [x] y.'; exit 0"] {
        for case in cases() {
            let ended = case.on(&SimHost::default(), |place| place.program(body));
            // The shell names a signal that ended a child.
            assert_eq!((ended.code(), ended.stdout.as_str()), (0, ""), "{}, {body}", case.script);
        }
    }
}

#[test]
fn who_hangs_is_waited_for_no_longer_than_the_limit() {
    for case in cases() {
        let since = Instant::now();
        let hanging =
            |place: Place| place.program("trap '' TERM; exec sleep 600").edit("timeout -k 1 10", "timeout -k 1 1");
        let ended = case.on(&SimHost::default(), hanging);
        assert_eq!((ended.code(), ended.stdout.as_str()), (0, ""), "{}", case.script);
        assert!(since.elapsed() < Duration::from_secs(10), "{} took {:?}", case.script, since.elapsed());
    }
}

/// An engine that none of these places uses is set up wrongly.
#[test]
fn how_a_container_engine_is_set_up_is_nobody_s_concern_here() {
    let spoil = "mkdir -p usr/bin; printf '#!' >usr/bin/dockerd; chmod 755 usr/bin/dockerd";
    let host = scratch();
    SimHost::spoilt(spoil).lay(host.path());
    let alone = programs::gpu_preflight(&["host", "--quiet"]).env("GPU_PREFLIGHT_HOST_ROOT", host.path()).end();
    assert_eq!(alone.code(), 1, "the machine has no such error: {alone:?}");
    for case in cases() {
        silent(&case.on(&SimHost::spoilt(spoil), |place| place), case.script);
    }
}

#[test]
fn every_file_is_in_the_readme_and_every_script_can_be_executed() {
    let directory = repository().join("hooks");
    let readme = std::fs::read_to_string(directory.join("README.md")).expect("the README");
    for entry in std::fs::read_dir(directory).expect("hooks/").map(|entry| entry.expect("an entry")) {
        let name = entry.file_name().into_string().expect("a name");
        assert!(name == "README.md" || readme.contains(&format!("`{name}`")), "{name} is not in hooks/README.md");
        let mode = entry.metadata().expect("metadata").permissions().mode();
        assert_eq!(mode & 0o111 != 0, Path::new(&name).extension().is_some_and(|e| e == "sh"), "{name}: {mode:o}");
    }
}
