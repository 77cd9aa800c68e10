//! The child's life: born, heard, waited for, and never longer than the deadline.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, pipe2, write};

use super::act::{self, Join, Plan};
use super::cgroup::Door;
use super::sheet::Sheet;
use super::sys::{self, Fork};

/// For a child that has answered, or was killed: it has only to end. One that sleeps where no signal
/// reaches it (a frozen v1 cgroup) is left behind; it ends when it wakes.
const PATIENCE: Duration = Duration::from_millis(100);
/// Before a fork that failed for want of processes is tried once more.
const PAUSE: Duration = Duration::from_millis(1);

/// Why a child gave no answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Silence {
    /// It could not be made.
    Unborn(Errno),
    /// It ended before it answered: somebody killed it.
    Killed,
    /// It did not answer in time.
    Late,
}

/// Plays the plan in a child that enters the cgroup behind the door, if there is one.
///
/// `door` is an error where there is a cgroup to enter and no way in.
pub(super) fn in_child(
    plan: &mut Plan<'_>,
    door: Result<Option<&Door>, ()>,
    deadline: Instant,
) -> Result<Sheet, Silence> {
    let mut sheet = Sheet::blank(plan.questions.len());
    let mut buffer = vec![0; sheet.length()];
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).map_err(Silence::Unborn)?;
    let parent = getpid();
    let inside = door.ok().flatten();
    let born = inside.and_then(|door| Some((sys::fork(Some(door.birthplace()?.as_fd())).ok()?, &door.group)));
    let handle: Option<OwnedFd>;
    let (fork, join) = if let Some((fork, group)) = born {
        handle = None;
        (fork, Join::Born(group))
    } else {
        handle = inside.and_then(|door| door.handle().ok());
        let join = match (door, &handle) {
            (Ok(None), _) => Join::Nothing,
            (Ok(Some(door)), Some(handle)) => Join::Write(&door.group, handle.as_fd()),
            _ => Join::Impossible,
        };
        (fork_twice().map_err(Silence::Unborn)?, join)
    };
    match fork {
        Fork::Child => {
            close_others([
                Some(plan.root),
                plan.user_namespace,
                handle.as_ref().map(OwnedFd::as_fd),
                Some(writer.as_fd()),
            ]);
            act::as_child(plan, join, parent, &mut sheet);
            sheet.write(&mut buffer);
            send(writer.as_fd(), &buffer);
            sys::leave()
        }
        Fork::Parent(child) => {
            drop((writer, handle));
            let heard = hear(reader, &mut buffer, deadline);
            if heard.is_err() {
                let _ = kill(child, Signal::SIGKILL);
            }
            if !reap(child) && heard.is_ok() {
                let _ = kill(child, Signal::SIGKILL);
                reap(child);
            }
            heard.and_then(|()| Sheet::read(&buffer).ok_or(Silence::Killed))
        }
    }
}

fn fork_twice() -> nix::Result<Fork> {
    match sys::fork(None) {
        Err(Errno::EAGAIN) => {
            std::thread::sleep(PAUSE);
            sys::fork(None)
        }
        result => result,
    }
}

/// In the child. It closes its standard descriptors, too: a runtime waits for their end.
fn close_others(keep: [Option<BorrowedFd<'_>>; 4]) {
    let kept = keep.map(|fd| fd.and_then(|fd| u32::try_from(fd.as_raw_fd()).ok()));
    let mut from = 0;
    while let Some(next) = kept.into_iter().flatten().filter(|fd| *fd >= from).min() {
        if next > from {
            sys::close_range(from, next - 1);
        }
        from = next.saturating_add(1);
    }
    sys::close_range(from, u32::MAX);
}

/// In the child. What the parent does not read, nobody misses.
fn send(pipe: BorrowedFd<'_>, mut rest: &[u8]) {
    while !rest.is_empty() {
        match write(pipe, rest) {
            Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
            Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

fn hear(pipe: OwnedFd, buffer: &mut [u8], deadline: Instant) -> Result<(), Silence> {
    let mut pipe = File::from(pipe);
    let mut length = 0;
    while let Some(free) = buffer.get_mut(length..).filter(|free| !free.is_empty()) {
        if !readable(pipe.as_fd(), deadline) {
            return Err(Silence::Late);
        }
        match pipe.read(free) {
            Ok(0) => return Err(Silence::Killed),
            Ok(read) => length += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Silence::Killed),
        }
    }
    Ok(())
}

/// Waits for the child to end; false: it has not.
fn reap(child: Pid) -> bool {
    let until = Instant::now() + PATIENCE;
    let end = sys::pidfd(child).ok();
    loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => {}
            // an error: it is nobody's to wait for, since the hook's starter ignores SIGCHLD
            Ok(_) | Err(_) => return true,
        }
        match &end {
            _ if Instant::now() >= until => return false,
            Some(end) => drop(readable(end.as_fd(), until)),
            None => std::thread::sleep(PAUSE),
        }
    }
}

/// Waits until there is something to read, or an end; false: the deadline came first.
fn readable(fd: BorrowedFd<'_>, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // rounded up: a wait of 0 ms would be none
        let left = u16::try_from(left.as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
        let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::from(left)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use nix::fcntl::{FcntlArg, fcntl};

    use super::*;
    use crate::collect::child;
    use crate::collect::testing::{Call, forbid};

    #[test]
    fn a_pipe_that_stays_silent_is_late_and_one_that_ends_was_killed() {
        let (reader, writer) = pipe2(OFlag::O_CLOEXEC).unwrap();
        send(writer.as_fd(), &[7; 8]);
        let mut buffer = [0; 16];
        let soon = Instant::now() + Duration::from_millis(5);
        assert_eq!(hear(reader.try_clone().unwrap(), &mut buffer, soon), Err(Silence::Late));
        send(writer.as_fd(), &[8; 8]);
        drop(writer);
        let later = Instant::now() + Duration::from_secs(5);
        assert_eq!(hear(reader.try_clone().unwrap(), &mut buffer[..8], later), Ok(()));
        assert_eq!(hear(reader, &mut buffer, later), Err(Silence::Killed));
    }

    #[test]
    fn all_but_what_is_kept_is_closed_without_close_range_too() {
        for forbidden in [false, true] {
            let (reader, writer) = pipe2(OFlag::O_CLOEXEC).unwrap();
            let answer = child::run(Instant::now() + Duration::from_secs(10), 64, |out| {
                if forbidden {
                    forbid(&Call { number: libc::SYS_close_range, only: None });
                }
                close_others([None, Some(out.as_fd()), Some(reader.as_fd()), None]);
                let open = [reader.as_fd(), writer.as_fd()].map(|fd| fcntl(fd, FcntlArg::F_GETFD).is_ok());
                let _ = write!(out, "{open:?}");
            });
            assert_eq!(answer.unwrap().bytes, b"[true, false]", "close_range forbidden: {forbidden}");
        }
    }

    #[test]
    fn a_child_that_hangs_is_left_after_a_bounded_wait_and_reaped_once_killed() {
        match sys::fork(None).unwrap() {
            Fork::Child => loop {
                let _ = poll(&mut [], PollTimeout::NONE);
            },
            Fork::Parent(child) => {
                let start = Instant::now();
                assert!(!reap(child));
                assert!(start.elapsed() >= PATIENCE);
                kill(child, Signal::SIGKILL).unwrap();
                assert!(reap(child));
                assert_eq!(waitpid(child, Some(WaitPidFlag::WNOHANG)), Err(Errno::ECHILD));
            }
        }
    }
}
