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
use nix::fcntl::{FcntlArg, OFlag};
use nix::libc::c_int;
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

/// A child at work.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    pipe: OwnedFd,
    limit: usize,
    fits: bool,
}

/// Runs `work` in a child and returns what it wrote into the file it was given, at most `limit` bytes.
///
/// # Errors
/// As [`start`].
pub fn run(deadline: Instant, limit: usize, work: impl FnOnce(&mut File)) -> io::Result<Answer> {
    Ok(start(limit, work)?.finish(deadline))
}

/// Starts `work` in a child, which may write at most `limit` bytes into the file it is given.
///
/// The child has no standard descriptors, so it cannot hold an engine's pipes open; it is not dumpable
/// and dies with its parent.
///
/// # Errors
/// No pipe or no process could be made.
pub fn start(limit: usize, work: impl FnOnce(&mut File)) -> io::Result<Child> {
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    // Where all of it fits into the pipe, the parent sleeps until the end: to be woken for every piece
    // costs both sides more than the pieces.
    let size = nix::fcntl::fcntl(&write, FcntlArg::F_SETPIPE_SZ(c_int::try_from(limit).unwrap_or(c_int::MAX)));
    let fits = size.is_ok_and(|size| usize::try_from(size).is_ok_and(|size| size >= limit));
    // The child may wait for room, the parent must not wait for words.
    nix::fcntl::fcntl(&write, FcntlArg::F_SETFL(OFlag::empty()))?;
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
            Ok(Child { pid: child, pipe: read, limit, fits })
        }
    }
}

impl Child {
    /// Waits until it has ended, or ends it at the deadline.
    pub fn finish(self, deadline: Instant) -> Answer {
        let (bytes, closed) = listen(&self.pipe, deadline, self.limit, self.fits);
        Answer { bytes, complete: end(self.pid, closed) }
    }
}

/// No descriptors that belong to the engine, no core file, no life of its own.
fn become_a_good_child(parent: Pid) {
    for descriptor in 0..3 {
        let _ = nix::unistd::close(descriptor);
    }
    let _ = nix::sys::prctl::set_dumpable(false);
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    if nix::unistd::getppid() != parent {
        // The parent ended before it could be watched. Nobody listens any more.
        let _ = nix::sys::signal::raise(Signal::SIGKILL);
    }
}

/// Everything until the end of the pipe, the deadline or the limit, and whether it was the end.
fn listen(pipe: &OwnedFd, deadline: Instant, limit: usize, fits: bool) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    // The end is always told.
    let events = if fits { PollFlags::empty() } else { PollFlags::POLLIN };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            // Rounded up, so that the last part of a millisecond is not spent spinning.
            let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            match nix::poll::poll(&mut [PollFd::new(pipe.as_fd(), events)], timeout) {
                Ok(0) | Err(Errno::EINTR) => continue,
                Ok(_) => {}
                Err(_) => return (bytes, false),
            }
        }
        if let Some(ended) = take(pipe, limit, &mut bytes) {
            return (bytes, ended);
        }
        if left.is_zero() {
            return (bytes, false);
        }
    }
}

/// All that is in the pipe; whether that was the end of it, `None` if more may come.
fn take(pipe: &OwnedFd, limit: usize, bytes: &mut Vec<u8>) -> Option<bool> {
    let mut chunk = [0_u8; 8192];
    loop {
        if bytes.len() >= limit {
            return Some(false);
        }
        match nix::unistd::read(pipe, &mut chunk) {
            Ok(0) => return Some(true),
            Ok(n) => bytes.extend(chunk.iter().take(n.min(limit - bytes.len()))),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return None,
            Err(_) => return Some(false),
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
            let _ = out.write_all(&vec![7; 100_000]);
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
