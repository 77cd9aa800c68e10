//! Work that may block or die, in a child process with a deadline.
//!
//! Reading a sleeping GPU's files, or a root file system whose server never answers, can block a
//! process so that even SIGKILL does not end it. A thread in that state would keep its whole process
//! from ending; a child is killed, or left behind, and the parent goes on.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag};
use nix::libc::{self, c_int};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus};
use nix::unistd::{ForkResult, Pid};

mod starved;

/// The last byte of an answer that is whole (ASCII's end of transmission), which no text contains: where the
/// starter ignores SIGCHLD, nobody learns how a child ended.
const DONE: u8 = 4;

/// For a child that closed its pipe, or was killed: it has only to end.
const PATIENCE: Duration = Duration::from_millis(50);
/// A child that closed its pipe ends within microseconds: so often it is asked for before anybody sleeps.
const ROUNDS: u32 = 50;

/// Where descriptors have to be tried one by one, so many: a limit of millions is common and none is used up.
const MOST_TRIED: u32 = 65_536;

/// Enough for the nodes of many GPUs.
#[cfg(feature = "cli")]
const MOST_DESCRIPTORS: u64 = 4096;

/// What a child said, and whether it came to its end.
#[derive(Debug)]
pub struct Answer {
    /// All that it wrote before the deadline.
    pub bytes: Vec<u8>,
    /// It said all that it had to say, in time.
    pub complete: bool,
    /// It was not done at the deadline for want of a processor, not because something in it did not come back.
    pub starved: bool,
    /// The child itself, which may still be taking its memory down.
    pub ending: Ending,
}

impl Answer {
    /// Why it says nothing of the work that it is not complete: it got no processor, or something from outside ended it.
    pub fn excuse(&mut self) -> Option<String> {
        if self.starved {
            return Some("this process was not run for so long".to_owned());
        }
        // What the kernel sends where memory or a limit is used up, or a call is forbidden; to our own SIGKILL at the
        // deadline the child has not closed its pipe.
        let outside = [Signal::SIGKILL, Signal::SIGSYS, Signal::SIGXCPU, Signal::SIGXFSZ, Signal::SIGTERM];
        let signal = self.ending.signal_if_closed().filter(|signal| outside.contains(signal))?;
        Some(format!("its process was ended by {signal}, as where memory is used up"))
    }
}

/// A child that has nothing more to say. Dropping it waits for its end, for which it has little time, and ends it
/// else. One that not even SIGKILL ends is left behind.
#[derive(Debug)]
#[must_use = "dropping it waits"]
pub struct Ending {
    pid: Pid,
    closed: bool,
    over: bool,
}

impl Ending {
    /// Which signal ended it where it ended before we did it; `None`: none, or nobody knows.
    fn signal_if_closed(&mut self) -> Option<Signal> {
        if !self.closed || self.over {
            return None;
        }
        self.over = true;
        match end(self.pid, self.closed) {
            Some(WaitStatus::Signaled(_, signal, _)) => Some(signal),
            _ => None,
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !self.over {
            end(self.pid, self.closed);
        }
    }
}

/// This process has closed what it inherited, but for the three standard descriptors.
static ALONE: AtomicBool = AtomicBool::new(false);

/// Says that no descriptor above 2 is anybody else's, so that no child has to look for such.
pub fn is_alone() {
    ALONE.store(true, Ordering::Relaxed);
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

/// Starts `work` in a child, which may write at most `limit` bytes of text into the file it is given.
///
/// The child has no standard descriptors, nor any other that its starter left open, so it cannot hold an engine's
/// pipes open; it is not dumpable and dies with its parent.
///
/// # Errors
/// No pipe or no process could be made.
pub fn start(limit: usize, work: impl FnOnce(&mut File)) -> io::Result<Child> {
    let limit = limit.saturating_add(1); // for DONE
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
                out.write_all(&[DONE])
            }));
            // closed here: the parent need not wait until this process has taken its memory down
            drop(out);
            let status = i32::from(!matches!(ended, Ok(Ok(()))));
            // SAFETY: _exit does not return and runs none of the parent's exit handlers.
            #[expect(unsafe_code, reason = "a forked child must not run the exit handlers of its parent")]
            unsafe {
                libc::_exit(status)
            }
        }
        ForkResult::Parent { child } => {
            drop(write);
            Ok(Child { pid: child, pipe: read, limit, fits })
        }
    }
}

impl Child {
    /// Waits until it has said all, or ends it at the deadline.
    pub fn finish(self, deadline: Instant) -> Answer {
        let begun = Instant::now();
        let (mut bytes, closed) = listen(&self.pipe, deadline, self.limit, self.fits);
        let complete = closed && bytes.pop_if(|last| *last == DONE).is_some();
        let starved = !closed && starved::is(self.pid, begun, deadline);
        Answer { bytes, complete, starved, ending: Ending { pid: self.pid, closed, over: false } }
    }
}

/// For a child that loads a library of the driver's. NVML asks the persistence daemon by RPC, whose code (`SunRPC`) makes a
/// table with a place for each descriptor that the limit allows: at docker's usual 2^30 that takes 24 s and 52 GB
/// (nvidia-container-toolkit issue 1053, 2025).
#[cfg(feature = "cli")]
pub fn few_descriptors() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, soft.min(MOST_DESCRIPTORS), hard);
    }
}

/// No descriptors that belong to the engine, no core file, no life of its own.
fn become_a_good_child(parent: Pid) {
    close_inherited();
    let _ = nix::sys::prctl::set_dumpable(false);
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    if nix::unistd::getppid() != parent {
        // The parent ended before it could be watched. Nobody listens any more.
        let _ = nix::sys::signal::raise(Signal::SIGKILL);
    }
}

/// Closes what this process did not open itself: only that is not closed on exec, for it came through one. A
/// runtime waits for the end of its log's pipe, and a child may be left behind.
fn close_inherited() {
    if ALONE.load(Ordering::Relaxed) {
        for descriptor in 0..3 {
            let _ = nix::unistd::close(descriptor);
        }
        return;
    }
    for descriptor in listed().unwrap_or_else(|_| (0..most_descriptors().cast_signed()).collect()) {
        // SAFETY: takes two integers and changes nothing.
        #[expect(unsafe_code, reason = "nix asks only of descriptors that have an owner")]
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
        if flags >= 0 && flags & libc::FD_CLOEXEC == 0 {
            let _ = nix::unistd::close(descriptor);
        }
    }
}

/// The descriptors that are open, and that of the list.
fn listed() -> nix::Result<Vec<RawFd>> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut directory = Dir::open("/proc/self/fd", flags, nix::sys::stat::Mode::empty())?;
    let mut found = Vec::new();
    for entry in directory.iter() {
        found.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<RawFd>().ok()));
    }
    Ok(found)
}

/// Descriptors are below this number, as far as it is worth trying each. Allocates nothing.
pub(super) fn most_descriptors() -> u32 {
    let soft = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).map_or(u64::MAX, |l| l.0);
    u32::try_from(soft).unwrap_or(u32::MAX).min(MOST_TRIED)
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

/// How it ended; `None`: nobody knows, or it is left behind.
fn end(child: Pid, closed: bool) -> Option<WaitStatus> {
    if !closed {
        let _ = nix::sys::signal::kill(child, Signal::SIGKILL);
    }
    let until = Instant::now() + PATIENCE;
    let mut rounds = 0;
    let mut pause = Duration::from_micros(50);
    loop {
        match nix::sys::wait::waitpid(child, Some(WaitPidFlag::WNOHANG)) {
            // ended, or the starter ignores SIGCHLD and the kernel keeps no ends
            Ok(ended @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..))) => return Some(ended),
            Err(Errno::ECHILD) => return None,
            Ok(_) | Err(Errno::EINTR) if rounds < ROUNDS => {
                rounds += 1;
                std::thread::yield_now();
            }
            Ok(_) | Err(Errno::EINTR) if Instant::now() < until => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
            Ok(_) | Err(_) => {
                let _ = nix::sys::signal::kill(child, Signal::SIGKILL);
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests;
