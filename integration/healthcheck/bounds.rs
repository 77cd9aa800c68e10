//! How long it takes, and what it leaves behind.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{BOTH, LONGEST, Laid, Program, is_healthy, nvml};
use crate::support::process::{Run, compile_c};
use crate::support::{mounts, needs, repository};

/// What it may take if nothing hangs.
const QUICK: Duration = Duration::from_millis(50);

/// Makes NVML one that never answers.
fn hang(laid: &Laid) {
    let library = laid.at(&format!("usr/lib/{}-linux-gnu/libnvidia-ml.so.1", std::env::consts::ARCH));
    std::fs::copy(&nvml().hangs, library).expect("the library");
}

/// Processes that have the laid machine's name in their arguments, once those that are ending have ended.
fn left_behind(laid: &Laid) -> String {
    let name = laid.at("").to_string_lossy().into_owned();
    let until = Instant::now() + Duration::from_secs(2);
    loop {
        let found = Run::new("pgrep").args(["-a", "-f", &name]).end().stdout;
        if found.is_empty() || Instant::now() > until {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn it_is_quick_and_bounded_whatever_hangs() {
    if !needs::released() {
        return;
    }
    let Some(laid) = Laid::out() else { return };
    for program in BOTH {
        let fastest = (0..7).map(|_| laid.check(program, &[]).1).min().expect("seven runs");
        assert!(fastest <= QUICK, "{program:?}: {fastest:?}");
    }
    hang(&laid);
    // it answered before, when the GPUs may have been awake for somebody else
    for (arguments, longest) in [(&[][..], LONGEST), (&["--timeout", "1s"], Duration::from_secs(1))] {
        let (ended, took) = laid.check(Program::Dynamic, arguments);
        assert!(ended.code() == 0 && ended.stdout.contains("\nwarning [driver-call-hung]: nvmlInit_v2"), "{ended:?}");
        assert!(took <= longest, "{took:?}");
    }
    assert_eq!(left_behind(&laid), "");
}

/// GPUs that sleep take their time, those of a program that runs do not.
#[test]
fn what_hangs_at_once_is_an_error_where_a_program_has_the_gpu() {
    let Some(laid) = Laid::out() else { return };
    hang(&laid);
    let check = || laid.said(Program::Dynamic, &["--timeout=1s"]);
    for _ in 0..2 {
        assert_eq!(check().0, 0, "it never answered in time, and may need more each time");
    }
    let source = repository().join("integration/healthcheck/sleep.c");
    // with no more rights than the check has, as in a container, so that it may be looked into
    let mut user = Command::new("setpriv")
        .args(["--bounding-set=-all", "--inh-caps=-all"])
        .arg(compile_c(&source, "sleep-of-a-container", &["-static"]))
        .arg(laid.at("dev/nvidia0"))
        .spawn()
        .expect("a program");
    let said = check();
    user.kill().and_then(|()| user.wait()).expect("its end");
    super::is_unhealthy(&said, "driver-call-hung");
}

#[test]
fn nothing_is_left_of_one_that_is_killed_or_that_nobody_hears() {
    let Some(laid) = Laid::out() else { return };
    hang(&laid);
    for killed in [true, false] {
        let command = format!(
            "exec env {} healthcheck --host-root {}",
            crate::support::programs::cli().display(),
            laid.at("").display()
        );
        let mut child = Command::new("sh")
            .args(["-c", &command])
            .env("NVIDIA_VISIBLE_DEVICES", "all")
            .env("XDG_RUNTIME_DIR", laid.at(""))
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        std::thread::sleep(Duration::from_millis(700));
        if killed {
            child.kill().expect("SIGKILL");
        } else {
            drop(child.stdout.take());
        }
        let before = Instant::now();
        let status = child.wait().expect("its end");
        assert!(before.elapsed() <= LONGEST, "{:?}", before.elapsed());
        assert!(killed || status.code() == Some(0), "{status:?}");
        assert_eq!(left_behind(&laid), "", "killed: {killed}");
    }
}

/// Where the answer goes is no affair of its; a pipe that is full and that nobody reads is not waited for.
#[test]
fn an_answer_that_nobody_takes_changes_nothing() {
    let Some(laid) = Laid::out() else { return };
    laid.shell("mkfifo full");
    let full = format!("exec 3<>{}; timeout 0.2 cat /dev/zero >&3;", laid.at("full").display());
    for (prepare, redirect) in [("", ">&-"), ("", ">/dev/full"), ("", "<&- >&- 2>&-"), (&*full, ">&3")] {
        let line = format!("{prepare} \"$@\" {redirect}");
        for (spoil, repair, code) in [("", "", 0), ("mv dev/nvidia-uvm gone", "mv gone dev/nvidia-uvm", 1)] {
            laid.shell(spoil);
            let before = Instant::now();
            let ended = laid.run_by(Run::new("sh").args(["-c", &line, "sh"]), Program::Dynamic, &[]).end();
            assert_eq!(ended.code(), code, "{redirect}: {ended:?}");
            assert!(before.elapsed() <= LONGEST, "{redirect}");
            laid.shell(repair);
        }
    }
}

#[test]
fn many_at_once_agree() {
    let Some(laid) = Laid::out() else { return };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| laid.said(Program::Dynamic, &[]))).collect();
        for one in all {
            is_healthy(&one.join().expect("a thread"));
        }
    });
    let kept = std::fs::read_dir(laid.0.at("run")).expect("its memory").count();
    assert_eq!(kept, 1, "one file, and nothing half written");
}

#[test]
fn files_that_never_answer_harm_nobody() {
    let Some(laid) = Laid::out() else { return };
    mounts::alone(|| {
        std::fs::create_dir(laid.at("silent")).expect("a directory");
        let server = mounts::silent_fuse(&laid.at("silent"));
        for program in [Program::Dynamic, Program::Static] {
            if program == Program::Static && !needs::released() {
                continue;
            }
            let before = Instant::now();
            let ended = laid.run(program, &["--timeout=1s"]).env("LD_LIBRARY_PATH", "/silent").end();
            assert!(before.elapsed() <= Duration::from_secs(1), "{:?}", before.elapsed());
            let expected = "healthy: nothing could be judged: its files did not answer in time\n";
            assert_eq!((ended.code(), ended.stdout.as_str()), (0, expected));
        }
        drop(server);
    });
}
