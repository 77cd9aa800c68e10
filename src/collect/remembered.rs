//! What the health check remembers from one call to the next: what the container could use since its start.
//!
//! A small file, wherever this user can write one. A container that cannot write anywhere remembers nothing. What is in
//! such a place may be anybody's: only a plain file of this user's counts, which others may not write, and only if it
//! speaks of this very start of the container.

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::stat::{Mode, SFlag, fstat};
use serde::{Deserialize, Serialize};

use super::process_stat::Stat;
use super::tree::Tree;

const LIMIT: usize = 16 << 10;
/// Nodes that are remembered, and how long their paths may be.
const MOST: usize = 256;
const LONGEST: usize = 64;
const MOST_MOUNTS: usize = 4 << 20;
const PLACES: [&str; 4] = ["/run", "/tmp", "/dev/shm", "/var/tmp"];

/// A memory, open for one call.
#[derive(Debug)]
pub struct Memory {
    places: Vec<PathBuf>,
    /// Which start of which container it is of; `None`: that does not show, and nothing is remembered.
    start: Option<String>,
}

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Remembered {
    /// Nodes of NVIDIA's that the container could use at some time since its start.
    pub nodes: Vec<String>,
    /// NVML answered since, or its library was of the kernel module's version.
    pub nvml_worked: bool,
    /// A process that asked the driver and could not be ended then: its number, and when it started.
    pub stuck: Option<(i32, u64)>,
}

#[derive(Serialize, Deserialize)]
struct Content {
    start: String,
    #[serde(flatten)]
    remembered: Remembered,
}

impl Memory {
    /// That of this container. `preferred`: `XDG_RUNTIME_DIR`; `own`: this machine's files.
    pub fn of(preferred: Option<&str>, own: &Tree) -> Self {
        let preferred = preferred.filter(|path| path.starts_with('/'));
        let places = preferred.into_iter().chain(PLACES).map(PathBuf::from).collect();
        Self { places, start: start(own, root_mount()) }
    }

    /// What is remembered of this start of the container.
    pub fn recall(&self) -> Remembered {
        let Some(start) = &self.start else { return Remembered::default() };
        let found = self.places.iter().find_map(|place| read(&file(place)).filter(|content| content.start == *start));
        found.map(|content| content.remembered).unwrap_or_default()
    }

    /// Remembers it, in the first place that can be written.
    pub fn keep(&self, remembered: &Remembered) {
        let Some(start) = &self.start else { return };
        let mut remembered = remembered.clone();
        limit(&mut remembered.nodes);
        let Ok(bytes) = serde_json::to_vec(&Content { start: start.clone(), remembered }) else { return };
        for place in &self.places {
            if write(&file(place), &bytes).is_ok() {
                return;
            }
        }
    }
}

/// The machine's own pid namespace (`PROC_PID_INIT_INO` of the kernel's `include/linux/proc_ns.h`).
const MACHINES_PROCESSES: &str = "pid:[4026531836]";

/// The kernel's start, the container's mounts, its root file system and its first process's start: together no other
/// start of a container has them. Where the first process is not its own, as with `--pid=host` or the one process
/// namespace of a pod, the number of the mount on `/`, if the kernel has such as it never gives again; numbers of
/// namespaces it does. `None`: nothing tells one start from the next.
fn start(own: &Tree, root_mount: Option<u64>) -> Option<String> {
    let link = |path: &str| Some(own.link(path).ok().flatten()?.to_string_lossy().into_owned());
    if link("/proc/self")?.parse() != Ok(nix::unistd::getpid().as_raw()) {
        return None;
    }
    let mounts = link("/proc/self/ns/mnt")?;
    let first_is_own = match link("/proc/1/ns/mnt") {
        Some(first) => first == mounts,
        // another user's
        None => link("/proc/self/ns/pid")? != MACHINES_PROCESSES,
    };
    let boot = own.read_text("/proc/sys/kernel/random/boot_id", 64).ok().flatten()?;
    let root = root(&own.read_text("/proc/self/mountinfo", MOST_MOUNTS).ok().flatten()?)?;
    let began = if first_is_own { began(own, 1)? } else { root_mount? };
    Some(format!("{} {mounts} {root} {began}", boot.trim()))
}

/// The mount on `/` by a number that is never used again (`STATX_MNT_ID_UNIQUE`, Linux 6.8).
#[expect(unsafe_code, reason = "nix has no statx, and glibc only from 2.28 on")]
fn root_mount() -> Option<u64> {
    let mut found = std::mem::MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path ends with a zero, and the structure is the one that this call fills.
    let code = unsafe {
        libc::syscall(libc::SYS_statx, libc::AT_FDCWD, c"/".as_ptr(), 0, libc::STATX_MNT_ID_UNIQUE, found.as_mut_ptr())
    };
    // SAFETY: numbers alone, which zeros are.
    let found = unsafe { found.assume_init() };
    (code == 0 && found.stx_mask & libc::STATX_MNT_ID_UNIQUE != 0).then_some(found.stx_mnt_id)
}

/// When a process started, in the kernel's ticks; `None`: there is none, or it has ended.
pub fn began(own: &Tree, pid: i32) -> Option<u64> {
    let stat = own.read_text(&format!("/proc/{pid}/stat"), 4096).ok().flatten()?;
    let stat = Stat::parse(&stat)?;
    (!matches!(stat.state, "Z" | "X")).then_some(stat.started)
}

/// What the last mount on `/` is made of: the part of a file system, and with overlayfs the layer that is the container's
/// own.
fn root(mountinfo: &str) -> Option<String> {
    let line = mountinfo.lines().rev().find(|line| line.split(' ').nth(4) == Some("/"))?;
    let upper = line.split([' ', ',']).find(|option| option.starts_with("upperdir=")).unwrap_or_default();
    let mut fields = line.split(' ').skip(2);
    Some(format!("{} {} {upper}", fields.next()?, fields.next()?))
}

fn limit(nodes: &mut Vec<String>) {
    nodes.retain(|node| is_node(node));
    nodes.truncate(MOST);
}

fn file(place: &Path) -> PathBuf {
    place.join(format!("gpu-preflight-health-{}", nix::unistd::geteuid()))
}

fn is_node(path: &str) -> bool {
    path.starts_with("/dev/") && path.len() <= LONGEST && path.bytes().all(|byte| byte.is_ascii_graphic())
}

fn read(path: &Path) -> Option<Content> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let opened = nix::fcntl::open(path, flags, Mode::empty()).ok()?;
    let found = fstat(opened.as_fd()).ok()?;
    let is_file = found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits();
    if !is_file || found.st_uid != nix::unistd::geteuid().as_raw() || found.st_mode & 0o022 != 0 || found.st_nlink != 1
    {
        return None;
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(LIMIT).unwrap_or(u64::MAX);
    std::fs::File::from(opened).take(most).read_to_end(&mut bytes).ok()?;
    let mut content: Content = serde_json::from_slice(&bytes).ok()?;
    limit(&mut content.remembered.nodes);
    Some(content)
}

/// Beside it and renamed, so that another call reads it whole.
fn write(path: &Path, bytes: &[u8]) -> nix::Result<()> {
    let new = path.with_extension(nix::unistd::getpid().to_string());
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let opened = nix::fcntl::open(&new, flags, Mode::from_bits_truncate(0o600))?;
    let written = std::fs::File::from(opened).write_all(bytes).map_err(|_| nix::errno::Errno::EIO);
    let done = written.and_then(|()| std::fs::rename(&new, path).map_err(|_| nix::errno::Errno::EIO));
    if done.is_err() {
        let _ = nix::unistd::unlink(&new);
    }
    done
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn memory(places: &[&Path], start: &str) -> Memory {
        Memory { places: places.iter().map(|place| (*place).to_owned()).collect(), start: Some(start.to_owned()) }
    }

    fn nodes(all: &[&str]) -> Remembered {
        Remembered { nodes: all.iter().map(|node| (*node).to_owned()).collect(), ..Remembered::default() }
    }

    fn is_empty(memory: &Memory) -> bool {
        memory.recall() == Remembered::default()
    }

    #[test]
    fn it_is_kept_in_the_first_place_that_can_be_written_and_is_of_one_start() {
        let directory = tempfile::tempdir().unwrap();
        let gone = directory.path().join("gone");
        let had = Remembered { nvml_worked: true, stuck: Some((7, 9)), ..nodes(&["/dev/nvidia0", "/dev/nvidiactl"]) };
        let first = memory(&[&gone, directory.path()], "a");
        assert!(is_empty(&first));
        first.keep(&had);
        assert_eq!(first.recall(), had);
        let tree = Tree::open(directory.path(), super::super::tree::Kind::Host).unwrap();
        assert_eq!(tree.list("/", 10).unwrap().unwrap().len(), 1, "nothing else is left");
        assert!(is_empty(&memory(&[directory.path()], "b")), "another start had none");
        Memory { start: None, ..first }.keep(&nodes(&["/dev/nvidia1"]));
        assert_eq!(memory(&[directory.path()], "a").recall(), had);
    }

    #[test]
    fn what_somebody_else_could_have_laid_there_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let here = memory(&[directory.path()], "a");
        let path = file(directory.path());
        let text = r#"{"start": "a", "nodes": ["/dev/nvidia0", "/etc/shadow", "/dev/\u001b[2J"]}"#;
        let elsewhere = directory.path().join("elsewhere");
        std::fs::write(&elsewhere, text).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert!(is_empty(&here), "a link");
        std::fs::remove_file(&path).unwrap();
        std::fs::hard_link(&elsewhere, &path).unwrap();
        assert!(is_empty(&here), "a file with another name");
        std::fs::remove_file(&elsewhere).unwrap();
        assert_eq!(here.recall().nodes, ["/dev/nvidia0"], "only nodes are named");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(is_empty(&here), "others may write it");
        std::fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, Mode::from_bits_truncate(0o600)).unwrap();
        assert!(is_empty(&here), "a pipe, which is not waited for");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let other = tempfile::tempdir().unwrap();
        let both = memory(&[directory.path(), other.path()], "a");
        both.keep(&nodes(&["/dev/nvidia0"]));
        assert_eq!(both.recall(), nodes(&["/dev/nvidia0"]), "where a directory stands another place is taken");
        let tree = Tree::open(directory.path(), super::super::tree::Kind::Host).unwrap();
        assert_eq!(tree.list("/", 10).unwrap().unwrap().len(), 1, "nothing half written");
    }

    #[test]
    fn this_process_knows_its_start() {
        let own = Tree::open(Path::new("/"), super::super::tree::Kind::Host).unwrap();
        let first = start(&own, Some(7));
        assert!(first.as_ref().is_some_and(|start| start.contains("mnt:[")), "{first:?}");
        assert_eq!(first, start(&own, Some(7)));
        assert_eq!(root_mount(), root_mount());
    }

    /// The files of a process namespace, laid out.
    fn laid(own: &Path, first_mounts: Option<&str>, processes: &str, root_mount: Option<u64>) -> Option<String> {
        let proc = own.join("proc");
        let _ = std::fs::remove_dir_all(&proc);
        for directory in ["1/ns", "77/ns", "sys/kernel/random"] {
            std::fs::create_dir_all(proc.join(directory)).unwrap();
        }
        // as a process that is this one would see it
        symlink(nix::unistd::getpid().to_string(), proc.join("self")).unwrap();
        std::fs::rename(proc.join("77"), proc.join(nix::unistd::getpid().to_string())).unwrap();
        symlink("mnt:[4026532001]", proc.join("self/ns/mnt")).unwrap();
        symlink(processes, proc.join("self/ns/pid")).unwrap();
        if let Some(mounts) = first_mounts {
            symlink(mounts, proc.join("1/ns/mnt")).unwrap();
        }
        std::fs::write(proc.join("sys/kernel/random/boot_id"), "b00t\n").unwrap();
        let line =
            "36 35 0:50 / / rw - overlay overlay rw,lowerdir=/l/A:/l/B,upperdir=/var/lib/docker/7f/diff,workdir=/w\n";
        std::fs::write(proc.join("self/mountinfo"), line).unwrap();
        let fields = (0..20).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        std::fs::write(proc.join("1/stat"), format!("1 (a) b) S {fields}\n")).unwrap();
        start(&Tree::open(own, super::super::tree::Kind::Host).unwrap(), root_mount)
    }

    #[test]
    fn where_the_first_process_is_not_the_containers_nothing_tells_its_starts_apart() {
        let directory = tempfile::tempdir().unwrap();
        let of = |first, processes| laid(directory.path(), first, processes, None);
        let own = "b00t mnt:[4026532001] 0:50 / upperdir=/var/lib/docker/7f/diff 18";
        assert_eq!(of(Some("mnt:[4026532001]"), "pid:[4026532003]").as_deref(), Some(own));
        assert_eq!(of(None, "pid:[4026532003]").as_deref(), Some(own), "root's, and this is another user");
        assert_eq!(of(Some("mnt:[4026532999]"), "pid:[4026532003]"), None, "a pod's");
        assert_eq!(of(Some("mnt:[4026531841]"), MACHINES_PROCESSES), None, "--pid=host");
        assert_eq!(of(None, MACHINES_PROCESSES), None, "--pid=host as another user");
        let by_mount = laid(directory.path(), None, MACHINES_PROCESSES, Some(99));
        assert_eq!(by_mount.as_deref(), Some(own.replace(" 18", " 99").as_str()));
    }
}
