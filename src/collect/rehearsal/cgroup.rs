//! Which cgroup decides about a process's devices, and where its directory is.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, fstatat};

use crate::collect::tree::{Kind, Tree};
use crate::model::Unseen;

/// The mounts of a machine with a thousand containers fit.
const MOUNTS_LIMIT: usize = 4 << 20;

/// Who controls devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hierarchy {
    /// The `devices` controller of v1.
    Devices,
    /// Programs attached to groups of v2.
    Unified,
}

/// A cgroup by the name that `/proc/…/cgroup` shows us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) hierarchy: Hierarchy,
    pub(super) path: Vec<u8>,
}

/// A cgroup that can be entered.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) group: Group,
    directory: OwnedFd,
}

impl Group {
    /// The group that this process would have to enter to be under the same device control as the
    /// other; `None`: it is already. Both texts are `/proc/…/cgroup`, read by the same reader.
    ///
    /// If the v1 groups differ, the runtime works with v1, and v2 says nothing about devices. If they
    /// are the same, the runtime may be working with v2 on a machine that has v1 as well.
    pub(super) fn to_enter(other: &[u8], own: &[u8]) -> Option<Self> {
        [Hierarchy::Devices, Hierarchy::Unified].into_iter().find_map(|hierarchy| {
            let path = path_in(other, hierarchy)?;
            (path_in(own, hierarchy) != Some(path)).then(|| Self { hierarchy, path: path.to_owned() })
        })
    }

    /// The process with this `/proc/…/cgroup` is in the group. Allocates nothing.
    pub(super) fn holds(&self, text: &[u8]) -> bool {
        path_in(text, self.hierarchy) == Some(&self.path)
    }

    /// Its directory. First where all machines have it, since the table of mounts is long on a machine
    /// with many containers; that it is the right one is read back after entering.
    pub(super) fn find(self) -> Result<Door, Unseen> {
        let usual: &[&str] = match self.hierarchy {
            Hierarchy::Devices => &["/sys/fs/cgroup/devices"],
            Hierarchy::Unified => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
        };
        let found = usual.iter().find_map(|mount| self.below(Path::new(mount), b"/"));
        if let Some(directory) = found {
            return Ok(Door { group: self, directory });
        }
        let table = Tree::open(Path::new("/proc/thread-self"), Kind::Host)
            .map_err(|e| Unseen::new("/proc/thread-self", e.kind().to_string()))?
            .read("mountinfo", MOUNTS_LIMIT)?
            .unwrap_or_default();
        // a mount may be hidden under a later one
        let directory = table.split(|b| *b == b'\n').rev().find_map(|line| {
            let (mount, root) = cgroup_mount(line, self.hierarchy)?;
            self.below(&mount, &root)
        });
        match directory {
            Some(directory) => Ok(Door { group: self, directory }),
            None => Err(Unseen::new("/proc/self/mountinfo", "no mount shows the container's device cgroup")),
        }
    }

    /// The directory, if the hierarchy is mounted there with this of its groups as the root.
    fn below(&self, mount: &Path, root: &[u8]) -> Option<OwnedFd> {
        let below = match root {
            b"/" => &self.path,
            _ => self.path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with(b"/"))?,
        };
        let mut path = mount.as_os_str().to_owned();
        path.push(OsStr::from_bytes(below));
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory = open(Path::new(&path), flags, Mode::empty()).ok()?;
        fstatat(&directory, c"cgroup.procs", nix::fcntl::AtFlags::empty()).ok()?;
        Some(directory)
    }
}

impl Door {
    /// The directory in which a child can be born (`clone3`, `CLONE_INTO_CGROUP`): v2 only.
    pub(super) fn birthplace(&self) -> Option<&OwnedFd> {
        (self.group.hierarchy == Hierarchy::Unified).then_some(&self.directory)
    }

    /// The file to which a process writes "0" to enter.
    ///
    /// v1 by `tasks`: `cgroup.procs` takes a lock of all the machine's processes, and now and then 5 to
    /// 16 ms (measured on Linux 6.18), so v2 prefers to be born inside.
    pub(super) fn handle(&self) -> nix::Result<OwnedFd> {
        let name = match self.group.hierarchy {
            Hierarchy::Devices => c"tasks",
            Hierarchy::Unified => c"cgroup.procs",
        };
        openat(&self.directory, name, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())
    }
}

/// This thread is in the group: the kernel's word, read back. Allocates nothing.
pub(super) fn confirm(group: &Group) -> nix::Result<()> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let file = open(c"/proc/thread-self/cgroup", flags, Mode::empty())?;
    // thirteen hierarchies with the longest names that Kubernetes gives are a fifth of it
    let mut text = [0_u8; 16 << 10];
    let mut length = 0;
    while let Some(free) = text.get_mut(length..).filter(|free| !free.is_empty()) {
        match nix::unistd::read(&file, free)? {
            0 => break,
            read => length += read,
        }
    }
    if text.get(..length).is_some_and(|text| group.holds(text)) { Ok(()) } else { Err(Errno::ESTALE) }
}

/// The path in the line of a hierarchy: `5:devices:/docker/1f…`, `0::/system.slice/…`.
fn path_in(text: &[u8], hierarchy: Hierarchy) -> Option<&[u8]> {
    text.split(|b| *b == b'\n').find_map(|line| {
        let mut fields = line.splitn(3, |b| *b == b':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let this = match hierarchy {
            Hierarchy::Devices => controllers.split(|b| *b == b',').any(|c| c == b"devices"),
            Hierarchy::Unified => number == b"0" && controllers.is_empty(),
        };
        this.then_some(path)
    })
}

/// Mount point and root of a line of mountinfo, if it is a mount of the hierarchy.
fn cgroup_mount(line: &[u8], hierarchy: Hierarchy) -> Option<(PathBuf, Vec<u8>)> {
    let mut fields = line.split(|b| *b == b' ');
    let (root, mount) = (fields.nth(3)?, fields.next()?);
    let mut tail = fields.skip_while(|field| *field != b"-").skip(1);
    let (kind, options) = (tail.next()?, tail.nth(1)?);
    let this = match hierarchy {
        Hierarchy::Devices => kind == b"cgroup" && options.split(|b| *b == b',').any(|o| o == b"devices"),
        Hierarchy::Unified => kind == b"cgroup2",
    };
    this.then(|| (std::ffi::OsString::from_vec(unescape(mount)).into(), unescape(root)))
}

/// Blanks, tabs, newlines and backslashes are octal in mountinfo.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = (*first == b'\\').then(|| after.get(..3)).flatten();
        let byte = octal
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::skip;

    const HYBRID: &[u8] = b"9:name=systemd:/\n5:cpu,devices:/docker/1f\n4:memory:/docker/1f\n0::/\n";

    fn enter(other: &[u8], own: &[u8]) -> Option<(Hierarchy, String)> {
        let group = Group::to_enter(other, own)?;
        assert!(group.holds(other) && !group.holds(own));
        Some((group.hierarchy, String::from_utf8(group.path).unwrap()))
    }

    #[test]
    fn on_hybrid_machines_the_hierarchy_that_the_runtime_used_counts() {
        let own = b"5:cpu,devices:/\n4:memory:/user\n0::/user.slice\n";
        assert_eq!(enter(HYBRID, own), Some((Hierarchy::Devices, "/docker/1f".into())));
        assert_eq!(enter(b"5:devices:/\n0::/c\n", b"5:devices:/\n0::/\n"), Some((Hierarchy::Unified, "/c".into())));
    }

    #[test]
    fn nothing_needs_joining_where_the_groups_are_the_same() {
        assert_eq!(enter(HYBRID, HYBRID), None);
        assert_eq!(enter(b"4:memory:/a\n0::/\n", b"4:memory:/b\n0::/\n"), None);
        assert_eq!(enter(b"", b"0::/\n"), None);
        assert_eq!(enter(b"0::/a:b\n", b"0::/\n"), Some((Hierarchy::Unified, "/a:b".into())));
    }

    #[test]
    fn mounts_are_told_by_type_and_controller() {
        let v1 = br"30 25 0:26 / /sys/fs/cgroup/de\040vices rw,nosuid shared:9 - cgroup cgroup rw,devices";
        let v2 = b"31 25 0:27 /../a /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
        let mount = |line: &[u8], h| cgroup_mount(line, h);
        assert_eq!(mount(v1, Hierarchy::Devices), Some(("/sys/fs/cgroup/de vices".into(), b"/".to_vec())));
        assert_eq!(mount(v2, Hierarchy::Unified), Some(("/sys/fs/cgroup".into(), b"/../a".to_vec())));
        assert_eq!(mount(v1, Hierarchy::Unified), None);
        assert_eq!(mount(v2, Hierarchy::Devices), None);
        assert_eq!(mount(b"30 25 0:26 / /sys", Hierarchy::Devices), None);
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(unescape(br"a\040b\134c\zzz\77"), br"a b\c\zzz\77");
    }

    #[test]
    fn this_process_is_in_its_own_group_and_in_no_other() {
        let own = Tree::open(Path::new("/proc/thread-self"), Kind::Host).unwrap().read("cgroup", 1 << 16);
        let Some(own) = own.unwrap() else { return skip("no /proc/thread-self/cgroup here") };
        let Some(hierarchy) =
            [Hierarchy::Devices, Hierarchy::Unified].into_iter().find(|h| path_in(&own, *h).is_some())
        else {
            return skip("no cgroup controls devices here");
        };
        let mut group = Group { hierarchy, path: path_in(&own, hierarchy).unwrap().to_owned() };
        assert_eq!(confirm(&group), Ok(()));
        group.path.extend(b"/other");
        assert_eq!(confirm(&group), Err(Errno::ESTALE));
        assert!(group.find().is_err());
    }
}
