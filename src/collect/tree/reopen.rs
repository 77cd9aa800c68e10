//! From an `O_PATH` descriptor to what it stands for, and to nothing else: by the magic link that the kernel
//! keeps for it in `/proc`. By its path it could meanwhile be another file, a device among them, whose mere
//! opening has an effect.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::stat::Mode;
use nix::sys::statfs::statfs;

use super::filesystem::PROC;

/// A regular file is opened so that it neither waits nor takes a terminal, whatever its file system makes of it.
const READ: OFlag = OFlag::O_RDONLY.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY).union(OFlag::O_CLOEXEC);

/// `/proc` is the kernel's. Found out once; no lock, since forked children ask as well.
static PROC_IS_REAL: AtomicBool = AtomicBool::new(false);

/// Opens for reading what the caller knows to be a regular file. ENOENT: there is no `/proc`.
pub(super) fn for_reading(place: &OwnedFd) -> nix::Result<OwnedFd> {
    open(link(place)?.as_c_str(), READ, Mode::empty())
}

/// It has an extended attribute of this name. ENOENT: there is no `/proc`.
#[expect(unsafe_code, reason = "the standard library and nix have no extended attributes")]
pub(super) fn has_xattr(place: &OwnedFd, name: &CStr) -> nix::Result<bool> {
    let link = link(place)?;
    // SAFETY: both strings end with a zero, and with a size of 0 the kernel writes nothing and only says how
    // long the value is.
    let length = unsafe { libc::getxattr(link.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) };
    match Errno::result(length) {
        Ok(_) => Ok(true),
        Err(Errno::ENODATA | Errno::ENOTSUP) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// As in a process that has not asked yet.
#[cfg(test)]
pub(super) fn forget() {
    PROC_IS_REAL.store(false, Ordering::Relaxed);
}

/// The thread's own link, since a thread may have a table of descriptors of its own.
fn link(place: &OwnedFd) -> nix::Result<CString> {
    if !PROC_IS_REAL.load(Ordering::Relaxed) {
        // on another file system the name of a descriptor leads wherever its author likes
        if super::filesystem::number(statfs("/proc")?.filesystem_type()) != PROC {
            return Err(Errno::ENOENT);
        }
        PROC_IS_REAL.store(true, Ordering::Relaxed);
    }
    CString::new(format!("/proc/thread-self/fd/{}", place.as_raw_fd())).map_err(|_| Errno::EINVAL)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    use nix::sys::stat::fstat;
    use nix::unistd::{Uid, mkfifo};

    use super::*;
    use crate::collect::child;
    use crate::collect::testing::skip;
    use crate::collect::tree::resolve::Last;
    use crate::collect::tree::tests::{both, laid_out};
    use crate::collect::tree::{Kind, Tree};

    /// Renamed back and forth until dropped.
    struct Exchanged(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

    impl Exchanged {
        fn start(one: PathBuf, two: PathBuf) -> Self {
            let stop = Arc::new(AtomicBool::new(false));
            let stopped = stop.clone();
            let thread = std::thread::spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    renameat2(AT_FDCWD, &one, AT_FDCWD, &two, RenameFlags::RENAME_EXCHANGE).unwrap();
                }
            });
            Self(stop, Some(thread))
        }
    }

    impl Drop for Exchanged {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
            let _ = self.1.take().map(std::thread::JoinHandle::join);
        }
    }

    #[test]
    fn what_takes_the_place_of_a_file_while_it_is_looked_at_is_never_opened() {
        let dir = laid_out();
        let root = dir.path().join("root");
        let place = Tree::open(&root, Kind::Image).unwrap().locate("a/b/file", Last::Follow).unwrap().unwrap();
        mkfifo(&root.join("a/b/fifo"), Mode::S_IRWXU).unwrap();
        let _exchanged = Exchanged::start(root.join("a/b/file"), root.join("a/b/fifo"));
        for _ in 0..1000 {
            assert_eq!(fstat(for_reading(&place).unwrap()).unwrap().st_ino, fstat(&place).unwrap().st_ino);
        }
        both(&dir, Kind::Container, |tree| {
            for _ in 0..5000 {
                // "changed" would say that the other file was opened
                match tree.read_text("a/b/file", 100) {
                    Ok(text) => assert_eq!(text.as_deref(), Some("within")),
                    Err(unseen) => assert_eq!(unseen.reason, "no regular file"),
                }
            }
        });
    }

    #[test]
    fn without_proc_files_are_unseen_and_not_opened_by_their_path() {
        let dir = laid_out();
        let root = dir.path().join("root");
        if !Uid::effective().is_root() {
            return skip("chroot is root's");
        }
        for fake in [false, true] {
            if fake {
                // whoever lays out such a /proc must not choose what is opened
                fs::create_dir_all(root.join("proc/thread-self/fd")).unwrap();
                for number in 0..100 {
                    symlink("/a/b/file", root.join(format!("proc/thread-self/fd/{number}"))).unwrap();
                }
            }
            both(&dir, Kind::Image, |tree| {
                let answer = child::run(Instant::now() + Duration::from_secs(10), 4096, |out| {
                    forget();
                    nix::unistd::chroot(&root).unwrap();
                    let read = tree.read("a/b/file", 100).map_err(|unseen| unseen.reason);
                    let attribute = tree.has_xattr("a/b/file", c"user.none").map_err(|unseen| unseen.reason);
                    let _ = write!(out, "{read:?} {attribute:?}");
                });
                let reason = r#"Err("no /proc to open it by")"#;
                assert_eq!(String::from_utf8(answer.unwrap().bytes).unwrap(), format!("{reason} {reason}"));
            });
        }
    }
}
