//! The system calls of the rehearsal, as the kernel has them.
//!
//! Not through the C library, for three reasons: its identity calls change *every* thread of a process
//! (and hang in a child that was not made by its own `fork`), its `faccessat` falls back to mode bits
//! where the kernel does not know `faccessat2`, and it has no `clone3`. Nothing here allocates, so all
//! of it may be called in a child of a process with several threads.
#![expect(unsafe_code, reason = "system calls that no safe wrapper has, or none that is fit for a forked child")]

use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use libc::{c_int, c_long};
use nix::Result;
use nix::errno::Errno;
use nix::unistd::Pid;

use crate::collect::child;

/// `setresuid` and `setresgid` take it as "leave as it is", so it is no identity that can be assumed.
pub(super) const LEAVE: u32 = u32::MAX;

/// `_LINUX_CAPABILITY_VERSION_3`: sets of 64 bits, in two halves.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Capability sets of the calling thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Capabilities {
    pub(super) effective: u64,
    pub(super) permitted: u64,
    pub(super) inheritable: u64,
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityHalf {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Who a process became: this one, or its child.
pub(super) enum Fork {
    Parent(Pid),
    Child,
}

/// A child, born in a v2 cgroup if one is given.
///
/// The child has this thread only, and locks that other threads held stay held in it: it must not
/// allocate, and leave by [`leave`].
pub(super) fn fork(into: Option<BorrowedFd<'_>>) -> Result<Fork> {
    // SAFETY: all fields are integers, for which zero is valid and means "not asked for".
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
    if let Some(cgroup) = into {
        args.flags = CLONE_INTO_CGROUP;
        args.cgroup = u64::from(cgroup.as_raw_fd().unsigned_abs());
    }
    // SAFETY: the kernel reads `args` and writes nothing. Without CLONE_VM the child runs on a copy of
    // this memory, so this is a fork that the C library does not notice.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<libc::clone_args>()) };
    match (Errno::result(pid), into) {
        // before Linux 5.3, or under a seccomp profile that does not know it
        (Err(Errno::ENOSYS | Errno::EPERM), None) => {
            // SAFETY: the child does only what this function's description allows.
            let pid = unsafe { libc::fork() };
            Errno::result(pid).map(side)
        }
        (result, _) => result.map(|pid| side(c_int::try_from(pid).unwrap_or(0))),
    }
}

/// `CLONE_INTO_CGROUP` of `linux/sched.h`, since Linux 5.7; too wide for the constant that libc has.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

fn side(pid: c_int) -> Fork {
    if pid == 0 { Fork::Child } else { Fork::Parent(Pid::from_raw(pid)) }
}

/// Ends a forked child, without the parent's exit handlers. With 0, since the runtime must not take it for a
/// verdict; whoever waits for an answer misses its end.
pub(super) fn leave() -> ! {
    // SAFETY: `_exit` takes any number and does not return.
    unsafe { libc::_exit(0) }
}

/// A descriptor that becomes readable when the child ends. Since Linux 5.3.
pub(super) fn pidfd(pid: Pid) -> Result<OwnedFd> {
    // SAFETY: takes two integers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    let fd = c_int::try_from(Errno::result(fd)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Closes the descriptors from `first` to `last`; before Linux 5.9 one by one, as far as there may be any.
pub(super) fn close_range(first: u32, last: u32) {
    // SAFETY: takes three integers. Only a forked child calls it, which from then on uses none of the
    // descriptors that it closes, and never runs their owners' destructors.
    if done(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).is_ok() {
        return;
    }
    for fd in first..child::most_descriptors().min(last.saturating_add(1)) {
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_close, fd) };
    }
}

/// Sets this thread's supplementary groups.
pub(super) fn set_groups(groups: &[u32]) -> Result<()> {
    // SAFETY: the kernel reads as many integers as the slice has.
    done(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) })
}

/// This thread's supplementary groups, sorted, put into `into`; how many there are.
pub(super) fn groups(into: &mut [u32]) -> Result<usize> {
    // SAFETY: the kernel writes at most as many integers as the slice has, or fails with EINVAL.
    let count = unsafe { libc::syscall(libc::SYS_getgroups, into.len(), into.as_mut_ptr()) };
    usize::try_from(Errno::result(count)?).map_err(|_| Errno::EINVAL)
}

/// How many supplementary groups this thread has.
pub(super) fn count_groups() -> Result<usize> {
    // SAFETY: with a size of 0 nothing is written.
    let count = unsafe { libc::syscall(libc::SYS_getgroups, 0, std::ptr::null_mut::<u32>()) };
    usize::try_from(Errno::result(count)?).map_err(|_| Errno::EINVAL)
}

/// Sets this thread's effective user; real and saved stay.
pub(super) fn set_effective_user(uid: u32) -> Result<()> {
    // SAFETY: takes three integers.
    done(unsafe { libc::syscall(libc::SYS_setresuid, LEAVE, uid, LEAVE) })
}

/// Sets this thread's effective group; real and saved stay.
pub(super) fn set_effective_group(gid: u32) -> Result<()> {
    // SAFETY: takes three integers.
    done(unsafe { libc::syscall(libc::SYS_setresgid, LEAVE, gid, LEAVE) })
}

/// This thread's capability sets.
pub(super) fn capabilities() -> Result<Capabilities> {
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let mut halves = [CapabilityHalf::default(); 2];
    // SAFETY: version 3 of the call reads the header and writes two halves, laid out as the kernel's.
    done(unsafe { libc::syscall(libc::SYS_capget, &raw const header, halves.as_mut_ptr()) })?;
    let [low, high] = halves;
    let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    Ok(Capabilities {
        effective: join(low.effective, high.effective),
        permitted: join(low.permitted, high.permitted),
        inheritable: join(low.inheritable, high.inheritable),
    })
}

/// Sets this thread's capability sets.
pub(super) fn set_capabilities(sets: Capabilities) -> Result<()> {
    #[expect(clippy::cast_possible_truncation, reason = "the halves of 64 bits")]
    let half = |shift: u32| CapabilityHalf {
        effective: (sets.effective >> shift) as u32,
        permitted: (sets.permitted >> shift) as u32,
        inheritable: (sets.inheritable >> shift) as u32,
    };
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let halves = [half(0), half(32)];
    // SAFETY: version 3 of the call reads the header and two halves, laid out as the kernel's.
    done(unsafe { libc::syscall(libc::SYS_capset, &raw const header, halves.as_ptr()) })
}

/// May the effective identity of this thread use the file in this way (`F_OK`, `R_OK`, `W_OK`)? The file
/// is not opened. Since Linux 5.8.
pub(super) fn access(file: BorrowedFd<'_>, way: c_int) -> Result<()> {
    let flags = libc::AT_EACCESS | libc::AT_EMPTY_PATH;
    // SAFETY: the kernel reads the empty string, which ends with a zero.
    done(unsafe { libc::syscall(libc::SYS_faccessat2, file.as_raw_fd(), c"".as_ptr(), way, flags) })
}

/// The file at a path has an access control list besides its mode.
pub(super) fn has_acl(path: &CStr) -> bool {
    // SAFETY: both strings end with a zero; with a size of 0 nothing is written.
    let size = unsafe { libc::getxattr(path.as_ptr(), c"system.posix_acl_access".as_ptr(), std::ptr::null_mut(), 0) };
    size > 0
}

fn done(result: c_long) -> Result<()> {
    Errno::result(result).map(drop)
}
