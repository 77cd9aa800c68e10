//! Work that may block or die, in a child process with a deadline.
//!
//! Reading a sleeping GPU's files, or a root file system whose server never answers, can block a
//! process so that even SIGKILL does not end it. A thread in that state would keep its whole process
//! from ending; a child is killed, or left behind, and the parent goes on.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus};
use nix::unistd::{ForkResult, Pid};

/// What a child said, and whether it came to its end.
#[derive(Debug)]
pub struct Answer {
    /// All that it wrote before the deadline.
    pub bytes: Vec<u8>,
    /// It ended by itself, in time, and well.
    pub complete: bool,
}

/// Runs `work` in a child and returns what it wrote into the file it was given, at most `limit` bytes.
///
/// The child has no standard descriptors, so it cannot hold an engine's pipes open; it is not dumpable
/// and dies with its parent.
///
/// # Errors
/// No pipe or no process could be made.
pub fn run(deadline: Instant, limit: usize, work: impl FnOnce(&mut File)) -> io::Result<Answer> {
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    let parent = nix::unistd::getpid();
    // SAFETY: the child calls `work`, which may allocate: glibc keeps its allocator usable in a forked
    // child even where other threads run, and whatever else might stay locked costs no more than the
    // deadline, which the parent keeps. The child never returns from here.
    #[expect(unsafe_code, reason = "fork is how a process gets a child that runs the same code")]
    let forked = unsafe { nix::unistd::fork()? };
    match forked {
        ForkResult::Child => {
            drop(read);
            become_a_good_child(parent);
            let mut out = File::from(write);
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                work(&mut out);
                out.flush()
            }));
            let status = i32::from(!matches!(ended, Ok(Ok(()))));
            // SAFETY: _exit does not return and runs none of the parent's exit handlers.
            #[expect(unsafe_code, reason = "a forked child must not run the exit handlers of its parent")]
            unsafe {
                nix::libc::_exit(status)
            }
        }
        ForkResult::Parent { child } => {
            drop(write);
            let (bytes, closed) = listen(&read, deadline, limit);
            Ok(Answer { bytes, complete: end(child, closed) })
        }
    }
}

/// No descriptors that belong to the engine, no core file, no life of its own.
fn become_a_good_child(parent: Pid) {
    if let Ok(null) = nix::fcntl::open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, nix::sys::stat::Mode::empty()) {
        let _ = nix::unistd::dup2_stdin(&null);
        let _ = nix::unistd::dup2_stdout(&null);
        let _ = nix::unistd::dup2_stderr(&null);
    } else {
        for descriptor in 0..3 {
            let _ = nix::unistd::close(descriptor);
        }
    }
    let _ = nix::sys::prctl::set_dumpable(false);
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    if nix::unistd::getppid() != parent {
        // The parent ended before it could be watched. Nobody listens any more.
        let _ = nix::sys::signal::raise(Signal::SIGKILL);
    }
}

/// Everything until the end of the pipe, the deadline or the limit, and whether it was the end.
fn listen(pipe: &OwnedFd, deadline: Instant, limit: usize) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 8192];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || bytes.len() >= limit {
            return (bytes, false);
        }
        // Rounded up, so that the last part of a millisecond is not spent spinning.
        let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        match nix::poll::poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(_) => return (bytes, false),
        }
        match nix::unistd::read(pipe, &mut chunk) {
            Ok(0) => return (bytes, true),
            Ok(n) => bytes.extend(chunk.iter().take(n.min(limit - bytes.len()))),
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(_) => return (bytes, false),
        }
    }
}

/// Ends the child and says whether it had ended well. A child that not even SIGKILL ends is left behind.
fn end(child: Pid, closed: bool) -> bool {
    if !closed {
        let _ = nix::sys::signal::kill(child, Signal::SIGKILL);
    }
    let patience = Instant::now() + Duration::from_millis(50);
    loop {
        // A child that closed its pipe is about to end: waiting is shorter than asking again.
        let flags = if closed { None } else { Some(WaitPidFlag::WNOHANG) };
        match nix::sys::wait::waitpid(child, flags) {
            Ok(WaitStatus::Exited(_, status)) => return closed && status == 0,
            Ok(WaitStatus::StillAlive) if Instant::now() < patience => std::thread::sleep(Duration::from_micros(500)),
            Ok(WaitStatus::Signaled(..) | WaitStatus::StillAlive) => return false,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon(milliseconds: u64) -> Instant {
        Instant::now() + Duration::from_millis(milliseconds)
    }

    #[test]
    fn what_a_child_writes_arrives_whole() {
        let answer = run(soon(5000), 1 << 20, |out| {
            let _ = out.write_all(&[7; 100_000]);
        })
        .unwrap();
        assert!(answer.complete);
        assert_eq!(answer.bytes.len(), 100_000);
    }

    #[test]
    fn a_child_that_does_not_end_is_ended_and_what_it_said_stays() {
        let start = Instant::now();
        let answer = run(soon(100), 100, |out| {
            let _ = out.write_all(b"so far");
            std::thread::sleep(Duration::from_secs(60));
        })
        .unwrap();
        assert!(!answer.complete);
        assert_eq!(answer.bytes, b"so far");
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_child_that_dies_is_not_taken_for_one_that_ended() {
        let answer = run(soon(5000), 100, |out| {
            let _ = out.write_all(b"half");
            let _ = nix::sys::signal::raise(Signal::SIGKILL);
        })
        .unwrap();
        assert!(!answer.complete);
    }
}
