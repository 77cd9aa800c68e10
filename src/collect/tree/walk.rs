//! Resolution for kernels without `openat2` (before Linux 5.6, RHEL 8), or under a seccomp profile that
//! does not know it: component by component, every link read and followed by ourselves.

use std::ffi::{OsStr, OsString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use nix::sys::statfs::fstatfs;

use super::file_type;
use super::filesystem::{self, OVERLAY, PROC};
use super::resolve::{Last, Rules};

/// As the kernel's own limit (`MAXSYMLINKS`).
const MOST_LINKS: u32 = 40;
/// Every level holds a descriptor.
const MOST_LEVELS: usize = 200;
/// Inode of the root of a procfs (`PROC_ROOT_INO`).
const PROC_ROOT: u64 = 1;

const LOOK: OFlag = OFlag::O_PATH.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// What stands at a path, as an `O_PATH` descriptor.
pub(super) fn locate(root: BorrowedFd<'_>, path: &str, last: Last, rules: Rules) -> nix::Result<OwnedFd> {
    let mut levels = vec![Level::of(openat(root, c".", LOOK | OFlag::O_DIRECTORY, Mode::empty())?)?];
    let mut pending = Vec::new();
    prepend(&mut pending, path.as_ref());
    let mut links = 0;
    while let Some(name) = pending.pop() {
        let Some(current) = levels.last() else { return Err(Errno::ENOENT) };
        if name == "." || name == ".." {
            if name == ".." && levels.len() > 1 {
                levels.pop();
            }
            continue;
        }
        let place = openat(&current.fd, name.as_os_str(), LOOK, Mode::empty())?;
        let found = fstat(&place)?;
        if !rules.cross_mounts {
            same_mount(&levels, &place, &found)?;
        }
        match file_type(&found) {
            SFlag::S_IFDIR => {
                if levels.len() == MOST_LEVELS {
                    return Err(Errno::ENAMETOOLONG);
                }
                levels.push(Level { fd: place, stat: found });
            }
            SFlag::S_IFLNK if !(pending.is_empty() && last == Last::Stay) => {
                links += 1;
                if links > MOST_LINKS || is_magic(&place, current)? {
                    return Err(Errno::ELOOP);
                }
                let target = readlinkat(&place, c"")?;
                if target.is_empty() {
                    return Err(Errno::ENOENT);
                }
                if target.as_bytes().starts_with(b"/") {
                    levels.truncate(1);
                }
                prepend(&mut pending, &target);
            }
            _ if pending.is_empty() => return Ok(place),
            _ => return Err(Errno::ENOTDIR),
        }
    }
    levels.pop().map(|level| level.fd).ok_or(Errno::ENOENT)
}

/// A directory on the way.
struct Level {
    fd: OwnedFd,
    stat: FileStat,
}

impl Level {
    fn of(fd: OwnedFd) -> nix::Result<Self> {
        let stat = fstat(&fd)?;
        Ok(Self { fd, stat })
    }
}

/// Puts the components of a path before those that are still to come (the list is reversed). A slash
/// at the end asks for a directory, as `.` does.
fn prepend(pending: &mut Vec<OsString>, path: &OsStr) {
    let component = |bytes: &[u8]| OsString::from_vec(if bytes.is_empty() { b".".to_vec() } else { bytes.to_vec() });
    pending.extend(path.as_bytes().split(|b| *b == b'/').rev().map(component));
}

/// A link of procfs that does not lead where its text says. Those in its uppermost directory (`self`,
/// `mounts`, `net`) are ordinary ones.
fn is_magic(place: &OwnedFd, directory: &Level) -> nix::Result<bool> {
    Ok(filesystem::magic(place)? == PROC && directory.stat.st_ino != PROC_ROOT)
}

/// Refuses what lies on another mount than the root, as far as device numbers tell.
fn same_mount(levels: &[Level], place: &OwnedFd, found: &FileStat) -> nix::Result<()> {
    let Some(root) = levels.first() else { return Err(Errno::EXDEV) };
    if found.st_dev == root.stat.st_dev {
        return Ok(());
    }
    // a file of an overlay may show the number of the layer that it comes from
    if file_type(found) != SFlag::S_IFDIR {
        let (here, there) = (fstatfs(place)?, fstatfs(&root.fd)?);
        if filesystem::magic(place)? == OVERLAY && here.filesystem_id() == there.filesystem_id() {
            return Ok(());
        }
    }
    Err(Errno::EXDEV)
}
