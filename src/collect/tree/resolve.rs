//! From a path to what stands there, without leaving the root.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};

use super::walk;

/// `openat2` gives EAGAIN when something was renamed or mounted during the look.
const ATTEMPTS: u32 = 32;

/// This kernel has no `openat2` (before 5.6), or a seccomp profile forbids it. Found out once.
static NO_OPENAT2: AtomicBool = AtomicBool::new(false);

/// How opening is done: by the kernel if it can, or component by component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolver {
    Kernel,
    Walk,
}

/// What a resolution may do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) cross_mounts: bool,
}

/// What happens if the last component is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Follow,
    /// The link itself is meant.
    Stay,
}

impl Resolver {
    /// What stands at a path, as an `O_PATH` descriptor.
    pub(super) fn locate(self, root: BorrowedFd<'_>, path: &str, last: Last, rules: Rules) -> nix::Result<OwnedFd> {
        let stay = if last == Last::Stay { OFlag::O_NOFOLLOW } else { OFlag::empty() };
        self.resolve(root, path, OFlag::O_PATH | OFlag::O_CLOEXEC | stay, rules, || {
            walk::locate(root, path, last, rules).map(|found| found.place)
        })
    }

    /// Opens for reading what the caller has looked at and knows to be a regular file. Should it have
    /// become something else by now, this neither waits nor takes a terminal.
    pub(super) fn open_for_reading(self, root: BorrowedFd<'_>, path: &str, rules: Rules) -> nix::Result<OwnedFd> {
        self.resolve(root, path, walk::READ, rules, || walk::open_for_reading(root, path, rules))
    }

    fn resolve(
        self,
        root: BorrowedFd<'_>,
        path: &str,
        flags: OFlag,
        rules: Rules,
        walk: impl FnOnce() -> nix::Result<OwnedFd>,
    ) -> nix::Result<OwnedFd> {
        if path.contains('\0') {
            return Err(Errno::ENOENT);
        }
        if self == Self::Walk || NO_OPENAT2.load(Ordering::Relaxed) {
            return walk();
        }
        match by_the_kernel(root, path, flags, rules) {
            Err(Errno::ENOSYS | Errno::EPERM) => {
                NO_OPENAT2.store(true, Ordering::Relaxed);
                walk()
            }
            result => result,
        }
    }
}

/// What stood in the way, in words that no engine reclassifies.
pub(super) fn reason(errno: Errno) -> String {
    match errno {
        Errno::ELOOP => "links lead in a circle, or through one of the kernel's own (ELOOP)".to_owned(),
        Errno::EXDEV => "behind a mount point (EXDEV)".to_owned(),
        Errno::EACCES | Errno::EPERM => format!("access refused ({errno:?})"),
        Errno::EAGAIN => "changing or locked all the time (EAGAIN)".to_owned(),
        Errno::ENAMETOOLONG => "the path is too long (ENAMETOOLONG)".to_owned(),
        other => format!("failed with {other:?}"),
    }
}

fn by_the_kernel(root: BorrowedFd<'_>, path: &str, flags: OFlag, rules: Rules) -> nix::Result<OwnedFd> {
    let mut resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    if !rules.cross_mounts {
        resolve |= ResolveFlag::RESOLVE_NO_XDEV;
    }
    let how = OpenHow::new().flags(flags).resolve(resolve);
    let path = if path.is_empty() { "." } else { path };
    let mut attempts = 0;
    loop {
        match openat2(root, path, how) {
            Err(Errno::EAGAIN | Errno::EINTR) if attempts < ATTEMPTS => attempts += 1,
            result => return result,
        }
    }
}
