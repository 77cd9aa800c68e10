//! Work that may never end, done by a child that is left behind when it does not.

use std::io::{PipeWriter, pipe};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, close, fork, read};

/// How often a killed child is asked whether it has ended. One that sleeps inside a driver cannot be
/// killed; it is left to whoever inherits it.
const ASKED: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(1);

/// What the work wrote until it ended, the deadline passed or `limit` bytes were there.
pub(super) fn bounded(deadline: Instant, limit: usize, work: impl FnOnce(&mut PipeWriter)) -> Vec<u8> {
    let Ok((reader, writer)) = pipe() else { return Vec::new() };
    // SAFETY: the child calls `work`, which may allocate: glibc keeps its allocator usable in a forked
    // child even when other threads ran, and whatever lock else might be held for ever costs no more
    // than the deadline, which the parent keeps. The child never returns from here.
    #[expect(unsafe_code, reason = "a call that may hang in the kernel can only be bounded from another process")]
    let forked = unsafe { fork() };
    match forked {
        Ok(ForkResult::Child) => {
            drop(reader);
            in_the_child(writer, work)
        }
        Ok(ForkResult::Parent { child }) => {
            drop(writer);
            let (written, ended) = collect(&reader, deadline, limit);
            reap(child, ended);
            written
        }
        Err(_) => Vec::new(),
    }
}

fn in_the_child(mut writer: PipeWriter, work: impl FnOnce(&mut PipeWriter)) -> ! {
    let _ = set_pdeathsig(Signal::SIGKILL);
    // a child that hangs must not hold the output that a runtime reads to its end
    for standard in (0..=2).filter(|fd| *fd != writer.as_raw_fd()) {
        let _ = close(standard);
    }
    let _ = catch_unwind(AssertUnwindSafe(|| work(&mut writer)));
    // SAFETY: ends this process at once; nothing of the parent's is flushed or run twice.
    #[expect(unsafe_code, reason = "a forked child must not run its parent's exit handlers")]
    unsafe {
        libc::_exit(0)
    }
}

/// What came, and whether the child closed its end.
fn collect(reader: &std::io::PipeReader, deadline: Instant, limit: usize) -> (Vec<u8>, bool) {
    let mut written = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || written.len() >= limit {
            return (written, false);
        }
        let timeout = PollTimeout::try_from(left + BETWEEN).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(reader.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(_) => return (written, false),
        }
        match read(reader, &mut buffer) {
            Ok(0) => return (written, true),
            Ok(n) => written.extend(buffer.iter().take(n.min(limit - written.len()))),
            Err(Errno::EINTR) => {}
            Err(_) => return (written, false),
        }
    }
}

fn reap(child: Pid, ended: bool) {
    if !ended {
        let _ = kill(child, Signal::SIGKILL);
    }
    for _ in 0..ASKED {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => std::thread::sleep(BETWEEN),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn what_was_written_comes_back_up_to_the_limit() {
        assert_eq!(bounded(soon(), 100, |out| out.write_all(b"hello").unwrap()), b"hello");
        assert_eq!(bounded(soon(), 3, |out| out.write_all(b"hello").unwrap()), b"hel");
        assert!(bounded(soon(), 100, |_| panic!("caught")).is_empty());
    }

    #[test]
    fn one_that_hangs_is_left_with_what_it_had_written() {
        let began = Instant::now();
        let written = bounded(began + Duration::from_millis(200), 100, |out| {
            out.write_all(b"half").unwrap();
            std::thread::sleep(Duration::from_secs(60));
        });
        assert_eq!(written, b"half");
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}
