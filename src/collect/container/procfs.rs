//! A running process, as `/proc/PID` shows it.

use super::names;
use super::nodes::inside;
use super::spec::variable;
use crate::collect::tree::Tree;
use crate::model::container::{CapabilitySets, IdMapping, Identity, Mount};
use crate::model::{Unknown, Unseen};

const MOST_STATUS: usize = 64 << 10;
/// The kernel's own limit for arguments and environment is 2 MiB with the usual stack.
const MOST_ENVIRON: usize = 2 << 20;
const MOST_MOUNTINFO: usize = 4 << 20;

/// Files of one process.
pub(super) struct Process<'a> {
    pub(super) files: &'a Tree,
    /// `None`: this one.
    pub(super) pid: Option<i32>,
}

impl Process<'_> {
    /// Variables in their order.
    pub(super) fn environment(&self) -> Result<Vec<(String, String)>, Unseen> {
        let bytes = self.files.read(&self.path("environ"), MOST_ENVIRON)?.ok_or_else(|| self.gone("environ"))?;
        let entries = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        Ok(entries.filter_map(|entry| variable(&entry)).collect())
    }

    /// User, groups and capabilities; ids as the container sees them.
    pub(super) fn identity(&self, uids: &[IdMapping], gids: &[IdMapping]) -> Result<Identity, Unseen> {
        let status = self.text("status", MOST_STATUS)?;
        identity(&status, uids, gids).ok_or_else(|| Unseen::new(self.path("status"), "not as the kernel writes it"))
    }

    /// Mappings of its user namespace; empty: it is ours, or maps every id to itself.
    pub(super) fn mappings(&self, file: &str) -> Result<Vec<IdMapping>, Unseen> {
        let text = self.text(file, MOST_STATUS)?;
        let ours = self.files.read_text(&format!("/proc/self/{file}"), MOST_STATUS).ok().flatten();
        if ours.as_deref() == Some(&text) {
            return Ok(Vec::new());
        }
        let mappings = mappings(&text).ok_or_else(|| Unseen::new(self.path(file), "not as the kernel writes it"))?;
        let all = [IdMapping { inside: 0, outside: 0, size: u32::MAX }];
        Ok(if mappings == all { Vec::new() } else { mappings })
    }

    /// Its cgroup: of the devices controller, or the only one.
    pub(super) fn cgroup(&self) -> Result<Option<String>, Unseen> {
        Ok(cgroup(&self.text("cgroup", MOST_STATUS)?))
    }

    /// Its mounts: destination, and the file system's options.
    pub(super) fn mounts(&self) -> Result<Vec<Mount>, Unseen> {
        Ok(self.text("mountinfo", MOST_MOUNTINFO)?.lines().filter_map(mount).collect())
    }

    /// Its security label, of `SELinux` where that is in use.
    pub(super) fn label(&self) -> Option<String> {
        let label = self.text("attr/current", MOST_STATUS).ok()?;
        // AppArmor's profiles stand in the same file: `docker-default (enforce)`
        let label = label.trim_end_matches(['\0', '\n']);
        (label.split(':').count() >= 4).then(|| label.to_owned())
    }

    fn text(&self, file: &str, limit: usize) -> Result<String, Unseen> {
        self.files.read_text(&self.path(file), limit)?.ok_or_else(|| self.gone(file))
    }

    fn path(&self, file: &str) -> String {
        match self.pid {
            Some(pid) => format!("/proc/{pid}/{file}"),
            None => format!("/proc/self/{file}"),
        }
    }

    fn gone(&self, file: &str) -> Unseen {
        Unseen::new(self.path(file), "there is no such process")
    }
}

/// The driver was injected by `nvidia-container-cli`: it alone mounts over `/proc/driver/nvidia`
/// (libnvidia-container `src/nvc_mount.c`).
pub(super) fn has_legacy_mounts(mounts: &[Mount]) -> bool {
    mounts.iter().any(|mount| mount.destination == "/proc/driver/nvidia" && mount.kind == "tmpfs")
}

/// The mounts that show a part of a file system: somebody bound them, and may have brought the driver in a directory.
pub(super) fn bound(mounts: Vec<Mount>) -> Vec<Mount> {
    mounts.into_iter().filter(|mount| mount.source.starts_with('/') && mount.destination != "/").collect()
}

/// The mounts that speak of a driver.
pub(super) fn driver_mounts(mounts: Vec<Mount>) -> Vec<Mount> {
    mounts.into_iter().filter(|mount| names::is_driver_library(&mount.destination)).collect()
}

/// A reason for a fact.
pub(super) fn open<T>(fact: &str, read: Result<T, Unseen>) -> Result<T, Unknown> {
    read.map_err(|unseen| unseen.leaves_open(fact))
}

fn identity(status: &str, uids: &[IdMapping], gids: &[IdMapping]) -> Option<Identity> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    // real, effective, saved, of the file system
    let effective = |name: &str| field(name)?.split_whitespace().nth(1)?.parse::<u32>().ok();
    let mask = |name: &str| u64::from_str_radix(field(name)?, 16).ok();
    let groups =
        field("Groups").unwrap_or_default().split_whitespace().map(str::parse).collect::<Result<Vec<u32>, _>>();
    Some(Identity {
        uid: inside(Some(uids), effective("Uid")?),
        gid: inside(Some(gids), effective("Gid")?),
        additional_gids: groups.ok()?.into_iter().map(|gid| inside(Some(gids), gid)).collect(),
        capabilities: Some(CapabilitySets {
            bounding: mask("CapBnd")?,
            effective: mask("CapEff")?,
            inheritable: mask("CapInh")?,
            permitted: mask("CapPrm")?,
            // since Linux 4.3
            ambient: mask("CapAmb").unwrap_or(0),
        }),
        no_new_privileges: field("NoNewPrivs") == Some("1"),
    })
}

fn mappings(text: &str) -> Option<Vec<IdMapping>> {
    let line = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        let mut next = || numbers.next()?.ok();
        Some(IdMapping { inside: next()?, outside: next()?, size: next()? })
    };
    text.lines().map(line).collect()
}

fn cgroup(text: &str) -> Option<String> {
    let lines = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let of = |wanted: &str| lines().find(|(names, _)| names.split(',').any(|name| name == wanted));
    of("devices").or_else(|| of("")).map(|(_, path)| path.to_owned())
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue` (proc(5)).
fn mount(line: &str) -> Option<Mount> {
    let (of_mount, of_system) = line.split_once(" - ")?;
    let mut of_mount = of_mount.split(' ').skip(3);
    let (root, destination) = (of_mount.next()?, of_mount.next()?);
    let mut system = of_system.split(' ');
    Some(Mount {
        destination: unescape(destination),
        kind: system.next()?.to_owned(),
        // Of a bind mount that which part of its file system it shows; where that lies on the machine does not show.
        source: if root == "/" { String::new() } else { unescape(root) },
        options: system.nth(1).unwrap_or_default().split(',').map(str::to_owned).collect(),
    })
}

/// Blanks and the like stand as three octal digits.
fn unescape(word: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(word.to_owned(), |word, (code, character)| word.replace(code, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tpython\nUid:\t1000\t101000\t1000\t1000\nGid:\t0\t44\t0\t0\nGroups:\t44 100044 \n\
        NoNewPrivs:\t1\nCapInh:\t0\nCapPrm:\t00000000a80425fb\nCapEff:\t0\nCapBnd:\t000001ffffffffff\nCapAmb:\t2\n";

    #[test]
    fn status_in_the_containers_own_ids() {
        let plain = identity(STATUS, &[], &[]).unwrap();
        assert_eq!((plain.uid, plain.gid, plain.additional_gids), (101_000, 44, vec![44, 100_044]));
        let sets = plain.capabilities.unwrap();
        assert_eq!((sets.permitted, sets.ambient, plain.no_new_privileges), (0xa804_25fb, 2, true));
        let mapped = [IdMapping { inside: 0, outside: 100_000, size: 65_536 }];
        let inside = identity(STATUS, &mapped, &mapped).unwrap();
        assert_eq!((inside.uid, inside.gid, inside.additional_gids), (1000, 65_534, vec![65_534, 44]));
        assert_eq!(identity("Uid:\tx", &[], &[]), None);
    }

    #[test]
    fn maps_and_cgroups() {
        let map = mappings("         0       1000          1\n         1     100000      65536\n").unwrap();
        assert_eq!(map[1], IdMapping { inside: 1, outside: 100_000, size: 65_536 });
        assert_eq!(mappings("0 1"), None);
        assert_eq!(cgroup("12:pids:/a\n5:devices:/docker/b\n0::/c\n").as_deref(), Some("/docker/b"));
        assert_eq!(cgroup("0::/system.slice/docker-c.scope\n").as_deref(), Some("/system.slice/docker-c.scope"));
        assert_eq!(cgroup(""), None);
    }

    #[test]
    fn mounts_by_their_destination() {
        let line = "36 35 0:50 / /dev/shm rw,nosuid - tmpfs shm rw,size=65536k,inode64";
        let shm = mount(line).unwrap();
        assert_eq!((shm.destination.as_str(), shm.kind.as_str()), ("/dev/shm", "tmpfs"));
        assert!(shm.options.contains(&"size=65536k".to_owned()));
        assert_eq!(
            mount("1 2 8:1 /a /with\\040blank rw shared:1 - ext4 /dev/sda1 rw").unwrap().destination,
            "/with blank"
        );
        assert!(mount("nonsense").is_none());
        let bound = mount("1 2 8:1 /opt/driver /opt/nvidia ro - ext4 /dev/sda1 rw").unwrap();
        assert_eq!(bound.source, "/opt/driver");
        let legacy = Mount { destination: "/proc/driver/nvidia".into(), kind: "tmpfs".into(), ..Mount::default() };
        assert!(has_legacy_mounts(&[shm, legacy]));
    }
}
