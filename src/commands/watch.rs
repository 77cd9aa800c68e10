//! What goes on beside long work: a line for whoever waits at a terminal, and an end at once when told to stop.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, PipeReader, PipeWriter, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::collect::image::source::Progress;
use crate::collect::tree::{Kind, Tree};
use crate::model::wording::quote;

/// What is done sooner needs no line.
const PATIENCE: Duration = Duration::from_millis(400);
/// How often the line is drawn anew, in milliseconds.
const PERIOD: u16 = 100;
/// To the line's beginning, and all of it gone.
const ERASE: &str = "\r\u{1b}[K";

/// Watches over work until it is dropped. Threads that the work starts must be started later.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Its end tells the thread to stop.
    wake: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
    before: SigSet,
}

impl Watch {
    /// Begins to watch. `what` is being read; a line says so where somebody may see it and wants to (`shown`).
    pub(crate) fn start(what: &str, progress: Arc<Progress>, shown: bool) -> io::Result<Self> {
        let signals = wanted();
        let before = SigSet::thread_get_mask()?;
        let descriptor = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let (stopped, wake) = io::pipe()?;
        // before the thread is started, so that no thread takes the signals as they would end the process
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&signals), None)?;
        let mut watch = Self { wake: Some(wake), thread: None, before };
        let line = (shown && io::stderr().is_terminal()).then(|| quote(what));
        let of_thread = Watching { signals: descriptor, stopped, progress, line, drawn: false };
        watch.thread = Some(std::thread::Builder::new().name("watch".to_owned()).spawn(move || of_thread.run())?);
        Ok(watch)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // what came in between now does what it does by default
        let _ = self.before.thread_set_mask();
    }
}

/// Ctrl-C and a request to end, but not where the caller has them ignored, as `nohup` and a shell's background do.
fn wanted() -> SigSet {
    let ignored = ignored().unwrap_or(0);
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        if ignored >> (signal as i32 - 1) & 1 == 0 {
            signals.add(signal);
        }
    }
    signals
}

fn ignored() -> Option<u64> {
    let proc = Tree::open(std::path::Path::new("/proc"), Kind::Host).ok()?;
    let status = proc.read_text("self/status", 1 << 14).ok()??;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

struct Watching {
    signals: SignalFd,
    stopped: PipeReader,
    progress: Arc<Progress>,
    line: Option<String>,
    drawn: bool,
}

impl Watching {
    fn run(mut self) {
        let begun = Instant::now();
        loop {
            let timeout = if self.line.is_some() { PollTimeout::from(PERIOD) } else { PollTimeout::NONE };
            let mut events = [
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.stopped.as_fd(), PollFlags::POLLIN),
            ];
            let told = poll(&mut events, timeout).is_ok_and(|n| n > 0);
            let is_over = told && events[1].any().unwrap_or(true);
            if let Ok(Some(signal)) = self.signals.read_signal() {
                self.erase();
                end(&self.progress, signal.ssi_signo);
            }
            if is_over {
                self.erase();
                return;
            }
            if begun.elapsed() >= PATIENCE {
                self.draw();
            }
        }
    }

    fn draw(&mut self) {
        let Some(what) = &self.line else { return };
        let done = self.progress.done.load(Ordering::Relaxed);
        let total = self.progress.total.load(Ordering::Relaxed);
        let line = cut(&said(what, done, total), width());
        let _ = write!(io::stderr().lock(), "{ERASE}{line}");
        self.drawn = true;
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(io::stderr().lock(), "{ERASE}");
        }
    }
}

/// Nothing was printed yet, nothing is written anywhere, and whatever is being read may take long to notice.
#[expect(clippy::exit, clippy::disallowed_methods, reason = "the work may be where nothing else ends it in time")]
fn end(progress: &Progress, signal: u32) -> ! {
    progress.cancelled.store(true, Ordering::Relaxed);
    std::process::exit(i32::try_from(signal).map_or(1, |signal| 128 + signal))
}

/// `reading "torch:latest": 1.2 of 4.7 GB`
fn said(what: &str, done: u64, total: u64) -> String {
    let mut line = format!("reading {what}");
    if total >= done && total > 0 {
        let _ = write!(line, ": {} of {} ({} %)", size(done), size(total), u128::from(done) * 100 / u128::from(total));
    } else if done > 0 {
        let _ = write!(line, ": {}", size(done));
    }
    line
}

/// In the unit in which it has few digits.
fn size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit / (unit / 10));
    match bytes {
        0..1_000_000 => format!("{} kB", bytes / 1000),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}

fn width() -> usize {
    terminal_size::terminal_size_of(io::stderr()).map_or(80, |(terminal_size::Width(columns), _)| usize::from(columns))
}

/// A line that goes on in the next could not be erased.
fn cut(line: &str, columns: usize) -> String {
    line.chars().take(columns.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is() {
        assert_eq!(said("\"a\"", 0, 0), "reading \"a\"");
        assert_eq!(said("\"a\"", 1_234_567, 0), "reading \"a\": 1 MB");
        assert_eq!(said("\"a\"", 1_250_000_000, 5_000_000_000), "reading \"a\": 1.2 GB of 5.0 GB (25 %)");
        assert_eq!(said("\"a\"", 9, 5), "reading \"a\": 0 kB", "a total that is too small is none");
        assert_eq!(size(u64::MAX), "18446744073.7 GB");
        assert_eq!(cut("abcdef", 4), "abc");
    }

    #[test]
    fn it_ends_with_the_work() {
        let begun = Instant::now();
        drop(Watch::start("x", Arc::default(), true).unwrap());
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
}
