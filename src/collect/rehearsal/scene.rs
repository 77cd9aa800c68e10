//! Everything of the container that must be opened before the child gives up its rights.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::stat::{Mode, fstatat, stat};

use super::Place;
use super::cgroup::{Door, Group};
use crate::collect::tree::{Kind, Tree};
use crate::model::Unseen;

/// Longer than any `/proc/…/cgroup` of a process that a runtime placed.
const CGROUP_LIMIT: u64 = 64 << 10;

const DIRECTORY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// The container as it can be reached from here.
#[derive(Debug)]
pub(super) struct Scene {
    /// The same directory as `root`, for looking.
    pub(super) tree: Tree,
    /// The container's root, or why only looking is possible.
    pub(super) root: Result<OwnedFd, Unseen>,
    /// Its user namespace, if it is not ours.
    pub(super) user_namespace: Result<Option<OwnedFd>, Unseen>,
    /// Its user namespace forbids setgroups, so the container keeps the groups of its starter, as we do.
    pub(super) groups_fixed: bool,
    /// Its device cgroup, if it is not ours.
    pub(super) cgroup: Result<Option<Door>, Unseen>,
}

impl Scene {
    /// Opens the container's root and, where we stand outside, namespace and cgroup.
    pub(super) fn open(place: Place<'_>) -> Result<Self, Unseen> {
        match place {
            Place::Container { rootfs } => Self::inside(rootfs),
            Place::Runtime { pid, rootfs } => Self::outside(pid, rootfs),
            Place::Running { pid } => Self::outside(pid, Path::new("/")),
        }
    }

    /// A hook at createContainer is in the container's namespaces and cgroups.
    fn inside(rootfs: &Path) -> Result<Self, Unseen> {
        let root = open(rootfs, DIRECTORY, Mode::empty()).map_err(|e| unseen(rootfs, e))?;
        let tree = tree_of(&root, rootfs)?;
        let groups_fixed = groups_fixed(&Process::open("thread-self")?);
        Ok(Self { tree, root: Ok(root), user_namespace: Ok(None), groups_fixed, cgroup: Ok(None) })
    }

    /// Before `pivot_root` the process's root is the machine's, seen from the container's mount namespace,
    /// in which alone the nodes are mounted. So the way to the rootfs, its links included, is resolved
    /// below that root and not below ours.
    fn outside(pid: i32, rootfs: &Path) -> Result<Self, Unseen> {
        if pid <= 0 || !rootfs.is_absolute() {
            return Err(Unseen::new(rootfs.to_string_lossy(), format!("no way to it through process {pid}")));
        }
        let process = Process::open(&pid.to_string())?;
        let above = process.label.join("root");
        let label = above.join(rootfs.strip_prefix("/").unwrap_or(rootfs));
        let outer = open(&above, DIRECTORY, Mode::empty()).map_err(|e| unseen(&above, e))?;
        let how =
            OpenHow::new().flags(DIRECTORY).resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        let root = openat2(&outer, rootfs, how).map_err(|e| unseen(&label, e));
        let tree = match &root {
            Ok(root) => tree_of(root, &label)?,
            // where openat2 is missing the tree has a way of its own, so that the nodes are seen at least
            Err(_) => Tree::of(outer, Kind::Host, &above)
                .below(&rootfs.to_string_lossy(), Kind::Container)?
                .ok_or_else(|| Unseen::new(label.to_string_lossy(), "the rootfs is absent there"))?,
        };
        Ok(Self {
            tree,
            root,
            user_namespace: user_namespace(&process),
            groups_fixed: groups_fixed(&process),
            cgroup: cgroup(&process),
        })
    }
}

fn tree_of(root: &OwnedFd, label: &Path) -> Result<Tree, Unseen> {
    let copy =
        root.as_fd().try_clone_to_owned().map_err(|e| Unseen::new(label.to_string_lossy(), e.kind().to_string()))?;
    Ok(Tree::of(copy, Kind::Container, label))
}

/// A process's directory in `/proc`: what stands there is the kernel's, and always a plain file.
struct Process {
    directory: OwnedFd,
    label: PathBuf,
}

impl Process {
    fn open(name: &str) -> Result<Self, Unseen> {
        let label = PathBuf::from("/proc").join(name);
        let directory = open(&label, DIRECTORY, Mode::empty()).map_err(|e| unseen(&label, e))?;
        Ok(Self { directory, label })
    }

    /// A whole file. More than `limit` bytes are EFBIG: what is cut off might be the line that is asked for.
    fn read(&self, name: &str, limit: u64) -> nix::Result<Vec<u8>> {
        let file = openat(&self.directory, name, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
        let mut bytes = Vec::with_capacity(1024);
        let read = File::from(file).take(limit + 1).read_to_end(&mut bytes);
        let length = read.map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(0)))?;
        if u64::try_from(length).is_ok_and(|length| length <= limit) { Ok(bytes) } else { Err(Errno::EFBIG) }
    }
}

/// `setns` into the own namespace fails, so it is compared first.
fn user_namespace(process: &Process) -> Result<Option<OwnedFd>, Unseen> {
    const NAME: &str = "ns/user";
    let path = process.label.join(NAME);
    let theirs = fstatat(&process.directory, NAME, AtFlags::empty()).map_err(|e| unseen(&path, e))?;
    let ours = stat("/proc/thread-self/ns/user").map_err(|e| unseen(Path::new("/proc/thread-self/ns/user"), e))?;
    if (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino) {
        return Ok(None);
    }
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    openat(&process.directory, NAME, flags, Mode::empty()).map(Some).map_err(|e| unseen(&path, e))
}

/// Not readable means: try, and see whether the kernel allows it.
fn groups_fixed(process: &Process) -> bool {
    matches!(process.read("setgroups", 64), Ok(text) if text.trim_ascii() == b"deny")
}

fn cgroup(process: &Process) -> Result<Option<Door>, Unseen> {
    let read = |process: &Process| match process.read("cgroup", CGROUP_LIMIT) {
        // without cgroups there is no such file
        Err(Errno::ENOENT) => Ok(Vec::new()),
        read => read.map_err(|e| unseen(&process.label.join("cgroup"), e)),
    };
    let group = Group::to_enter(&read(process)?, &read(&Process::open("thread-self")?)?);
    group.map(Group::find).transpose()
}

fn unseen(path: &Path, errno: Errno) -> Unseen {
    Unseen::new(path.to_string_lossy(), format!("failed with {errno:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_long_is_unseen_and_not_cut() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("cgroup"), "5:devices:/a\n").unwrap();
        let process =
            Process { directory: open(dir.path(), DIRECTORY, Mode::empty()).unwrap(), label: dir.path().to_owned() };
        assert_eq!(process.read("cgroup", 13).unwrap(), b"5:devices:/a\n");
        assert_eq!(process.read("cgroup", 12), Err(Errno::EFBIG));
        assert_eq!(process.read("setgroups", 12), Err(Errno::ENOENT));
    }
}
