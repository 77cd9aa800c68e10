//! `gpu-preflight healthcheck` and the static `gpu-preflight-healthcheck`: inside a container, are its GPUs usable now?
//!
//! Whoever is unhealthy is killed by an orchestrator, so only errors make a container so: what could not be judged, and
//! not judging in time, leaves it healthy, and is said.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use serde::{Deserialize, Serialize};

use crate::collect::child;
use crate::report::health;

mod amount;
mod arguments;
#[cfg(feature = "cli")]
mod command;
mod driver;
mod judge;

pub(crate) use amount::bytes;
#[cfg(feature = "cli")]
pub(crate) use arguments::duration;
#[cfg(feature = "cli")]
pub(crate) use command::run;
pub(crate) use driver::Driver;

/// How long it may take whatever hangs; docker's own default for a health check is 30 s.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// What the child says is what is printed, and a few words around it.
const LIMIT: usize = 4 * health::LIMIT;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Also open the GPUs' nodes, which wakes GPUs that sleep.
    pub(crate) open: bool,
    /// Also start CUDA.
    pub(crate) cuda: bool,
    /// Bytes of GPU memory that are to be free.
    pub(crate) min_free_memory: Option<u64>,
    /// The whole of it takes no longer.
    pub(crate) timeout: Duration,
    pub(crate) host_root: Option<PathBuf>,
    pub(crate) driver_root: Option<String>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) ignore: Vec<String>,
    pub(crate) json: bool,
    /// Also notes, and all that is unknown.
    pub(crate) verbose: bool,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            open: false,
            cuda: false,
            min_free_memory: None,
            timeout: TIMEOUT,
            host_root: None,
            driver_root: None,
            config: None,
            ignore: Vec::new(),
            json: false,
            verbose: false,
        }
    }
}

/// What it came to.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    healthy: bool,
    text: String,
}

/// The static program under its name as health check; `args` without the program's name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match arguments::parse(args) {
        Ok(arguments::Parsed::Wish(wish)) => ExitCode::from(check(&wish, None)),
        Ok(arguments::Parsed::Text(text)) => {
            print(&text);
            ExitCode::SUCCESS
        }
        Err(reason) => {
            print(&format!("gpu-preflight-healthcheck: {reason}\n{}", arguments::USAGE));
            ExitCode::FAILURE
        }
    }
}

/// Judges, prints, and returns the exit code: 0 healthy, 1 not. `libraries`: how those of the driver are asked; `None`:
/// they cannot be.
fn check(wish: &Wish, libraries: Option<&Driver<'_>>) -> u8 {
    let started = Instant::now();
    // The driver's share ends first, so that what hangs in it has a name; then that of all files.
    let reserve = (wish.timeout / 10).min(Duration::from_millis(400));
    let driver = started + wish.timeout.saturating_sub(reserve);
    let files = started + wish.timeout.saturating_sub(reserve / 2);
    let child = child::run(files, LIMIT, |out| {
        // Nobody starts this who may not look into it, and as another's it could not read its own files in /proc.
        let _ = nix::sys::prctl::set_dumpable(true);
        // Where the container's memory is used up it is this that is to go, not what the container is for.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        let (answer, afterwards) = judge::judge(wish, libraries, driver);
        let _ = out.write_all(&serde_json::to_vec(&answer).unwrap_or_default());
        // Whatever becomes of this process by writing, the answer is given.
        if let Some((memory, remembered)) = afterwards {
            memory.keep(&remembered);
        }
    });
    let answer = match child {
        Ok(child) => {
            let text = child.bytes.strip_suffix(b"\x04").unwrap_or(&child.bytes);
            serde_json::from_slice::<Answer>(text).unwrap_or_else(|_| {
                let late = Instant::now() >= files;
                unjudged(wish, if late { "its files did not answer in time" } else { "this program failed" })
            })
        }
        Err(error) => unjudged(wish, &format!("no process could be made to look in ({:?})", error.kind())),
    };
    print(&answer.text);
    u8::from(!answer.healthy)
}

/// Nothing was found, since nothing could be looked at.
fn unjudged(wish: &Wish, reason: &str) -> Answer {
    Answer { healthy: true, text: health::unjudged(reason, wish.json) }
}

/// A reader that is gone is no error, and one that does not read is not waited for.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let mut room = [PollFd::new(out.as_fd(), PollFlags::POLLOUT)];
    if nix::poll::poll(&mut room, PollTimeout::from(100_u8)) == Ok(0) {
        return;
    }
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n"));
}
