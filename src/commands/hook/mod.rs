//! The OCI hook: state on standard input, judge, exit.
//!
//! It reads no environment variable of its own process: at createContainer runc hands it the image's.
//! It never opens a device node, executes nothing, and starts a container rather than to stand in its
//! way when it cannot tell: whatever goes wrong in here means *start*, and is logged.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};

mod arguments;
pub mod configuration;
mod gather;
pub mod journal;
mod judge;
pub mod process;

use arguments::Arguments;

/// The hook decides within this time with what it has.
pub(super) const BUDGET: Duration = Duration::from_secs(1);

/// A longer state is none. It holds the annotations, of which CRI-O has all of the pod's, twice.
const STATE_LIMIT: usize = 1 << 20;

/// Runs the hook with the arguments behind the program's name; returns its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let started = Instant::now();
    decide(args, started, || read_state(started + BUDGET))
}

/// The same, tried by hand: without any state there is nothing to judge, and nothing to log.
#[cfg(feature = "cli")]
pub fn tried(args: impl IntoIterator<Item = OsString>) -> u8 {
    let started = Instant::now();
    let state = read_state(started + BUDGET);
    if state.trim_ascii().is_empty() {
        let words = "gpu-preflight hook: standard input held no state of a container; gpu-preflight hook --help\n";
        let _ = std::io::stderr().write_all(words.as_bytes());
        return 0;
    }
    decide(args, started, || state)
}

fn decide(args: impl IntoIterator<Item = OsString>, started: Instant, state: impl FnOnce() -> Vec<u8>) -> u8 {
    let own_program = std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let arguments = Arguments { own_program, ..Arguments::parse(args) };
    // A panic means that the container starts; its words would stand before those that a user must see.
    std::panic::set_hook(Box::new(|_| {}));
    let judged =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| judge::container(&arguments, &state(), started)));
    let decision = judged.unwrap_or_default();
    if !decision.text.is_empty() {
        let _ = std::io::stderr().write_all(decision.text.as_bytes());
    }
    decision.code
}

/// What is said of a container that its hook, called with these arguments, is certain to refuse; `None`: it may start,
/// or its hook decides. For a child process, whose words nobody reads.
pub fn before_start(args: &[String], id: &str, bundle: &Path) -> Option<String> {
    let started = Instant::now();
    let arguments = Arguments::parse(args.iter().map(OsString::from));
    let decided = judge::before_start(&arguments, id, bundle, started);
    (decided.code != 0).then_some(decided.text)
}

/// Standard input up to its end or the deadline: a runtime writes the state and closes. What is longer
/// than the limit is read and thrown away: crun fails a start whose hook leaves part of the state unread.
fn read_state(deadline: Instant) -> Vec<u8> {
    let input = std::io::stdin();
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return bytes;
        }
        let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        match nix::poll::poll(&mut [PollFd::new(input.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(_) => return bytes,
        }
        match nix::unistd::read(&input, &mut chunk) {
            Ok(0) => return bytes,
            Ok(n) if bytes.len() <= STATE_LIMIT => bytes.extend_from_slice(chunk.get(..n).unwrap_or_default()),
            Ok(_) | Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(_) => return bytes,
        }
    }
}
