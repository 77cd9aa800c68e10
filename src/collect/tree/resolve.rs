//! From a path to what stands there, without leaving the root.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};

use super::walk;

/// `openat2` gives EAGAIN when something was renamed or mounted during the look.
const ATTEMPTS: u32 = 32;

/// What is known of `openat2`. No lock: a forked child asks as well, and to ask twice harms nobody.
static OPENAT2: AtomicU8 = AtomicU8::new(UNTRIED);
const UNTRIED: u8 = 0;
const USABLE: u8 = 1;
const MISSING: u8 = 2;

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
        if path.contains('\0') {
            return Err(Errno::ENOENT);
        }
        if self == Self::Walk || !kernel_resolves(root) {
            return walk::locate(root, path, last, rules);
        }
        let stay = if last == Last::Stay { OFlag::O_NOFOLLOW } else { OFlag::empty() };
        match by_the_kernel(root, path, OFlag::O_PATH | OFlag::O_CLOEXEC | stay, rules) {
            // Renames and mounts anywhere on the machine disturb it; the walk asks step by step, and they do not.
            Err(Errno::EAGAIN) => walk::locate(root, path, last, rules),
            located => located,
        }
    }
}

/// This kernel has `openat2` (since 5.6), and no seccomp profile forbids it: asked once, of a tree's root, which
/// is open already, so that a refusal can only be meant for the call. A later one is the path's own.
fn kernel_resolves(root: BorrowedFd<'_>) -> bool {
    match OPENAT2.load(Ordering::Relaxed) {
        USABLE => true,
        MISSING => false,
        _ => {
            let probe = by_the_kernel(root, ".", OFlag::O_PATH | OFlag::O_CLOEXEC, Rules { cross_mounts: true });
            let usable = !matches!(probe, Err(Errno::ENOSYS | Errno::EPERM));
            OPENAT2.store(if usable { USABLE } else { MISSING }, Ordering::Relaxed);
            usable
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::collect::child;
    use crate::collect::testing::{Call, forbid};
    use crate::collect::tree::{Kind, Tree};

    /// What a read gives in a process that a profile takes `openat2` from, before or after the first look.
    fn read(looked_before: bool) -> String {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "within").unwrap();
        let tree = Tree::open(dir.path(), Kind::Image).unwrap();
        let answer = child::run(Instant::now() + Duration::from_secs(10), 4096, |out| {
            OPENAT2.store(UNTRIED, Ordering::Relaxed);
            if looked_before {
                tree.stat("file").unwrap();
            }
            forbid(&Call { number: nix::libc::SYS_openat2, only: None });
            let _ = match tree.read_text("file", 100) {
                Ok(text) => out.write_all(text.unwrap_or_default().as_bytes()),
                Err(unseen) => out.write_all(unseen.reason.as_bytes()),
            };
        });
        String::from_utf8(answer.unwrap().bytes).unwrap()
    }

    #[test]
    fn a_forbidden_openat2_is_found_out_at_the_first_look_and_a_later_refusal_is_the_paths_own() {
        assert_eq!(read(false), "within");
        assert_eq!(read(true), "access refused (EPERM)");
    }
}
