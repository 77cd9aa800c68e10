//! What the health check remembers from one call to the next: which nodes the container could use since its start.
//!
//! A small file, wherever this user can write one. A container that cannot write anywhere remembers nothing. What is in
//! such a place may be anybody's: only a plain file of this user's counts, which others may not write, and only if it
//! speaks of this very start of the container.

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, SFlag, fstat};
use serde::{Deserialize, Serialize};

use super::tree::Tree;

const LIMIT: usize = 16 << 10;
/// Nodes that are remembered, and how long their paths may be.
const MOST: usize = 256;
const LONGEST: usize = 64;
const PLACES: [&str; 4] = ["/run", "/tmp", "/dev/shm", "/var/tmp"];

/// A memory, open for one call.
#[derive(Debug)]
pub struct Memory {
    places: Vec<PathBuf>,
    /// Which start of which container it is of; `None`: that does not show, and nothing is remembered.
    start: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Content {
    start: String,
    nodes: Vec<String>,
}

impl Memory {
    /// That of this container. `preferred`: `XDG_RUNTIME_DIR`; `own`: this machine's files.
    pub fn of(preferred: Option<&str>, own: &Tree) -> Self {
        let preferred = preferred.filter(|path| path.starts_with('/'));
        let places = preferred.into_iter().chain(PLACES).map(PathBuf::from).collect();
        Self { places, start: start(own) }
    }

    /// The nodes that it names; empty: nothing is remembered.
    pub fn recall(&self) -> Vec<String> {
        let Some(start) = &self.start else { return Vec::new() };
        let found = self.places.iter().find_map(|place| read(&file(place)).filter(|content| content.start == *start));
        found.map(|content| content.nodes).unwrap_or_default()
    }

    /// Remembers these nodes, in the first place that can be written.
    pub fn keep(&self, nodes: &[String]) {
        let Some(start) = &self.start else { return };
        let nodes = nodes.iter().filter(|node| is_node(node)).take(MOST).cloned().collect();
        let Ok(bytes) = serde_json::to_vec(&Content { start: start.clone(), nodes }) else { return };
        for place in &self.places {
            if write(&file(place), &bytes).is_ok() {
                return;
            }
        }
    }
}

/// The kernel's start, the container's mounts and its first process's start: together no other container has them.
fn start(own: &Tree) -> Option<String> {
    let boot = own.read_text("/proc/sys/kernel/random/boot_id", 64).ok().flatten()?;
    let mounts = own.link("/proc/self/ns/mnt").ok().flatten()?;
    let stat = own.read_text("/proc/1/stat", 4096).ok().flatten()?;
    // The name, in brackets, may contain anything; the 22nd field is the start (proc(5)).
    let started = stat.rsplit_once(") ")?.1.split(' ').nth(19)?;
    Some(format!("{} {} {started}", boot.trim(), mounts.display()))
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
    content.nodes.retain(|node| is_node(node));
    content.nodes.truncate(MOST);
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

    fn nodes(all: &[&str]) -> Vec<String> {
        all.iter().map(|node| (*node).to_owned()).collect()
    }

    #[test]
    fn it_is_kept_in_the_first_place_that_can_be_written_and_is_of_one_start() {
        let directory = tempfile::tempdir().unwrap();
        let gone = directory.path().join("gone");
        let had = nodes(&["/dev/nvidia0", "/dev/nvidiactl"]);
        let first = memory(&[&gone, directory.path()], "a");
        assert!(first.recall().is_empty());
        first.keep(&had);
        assert_eq!(first.recall(), had);
        let tree = Tree::open(directory.path(), super::super::tree::Kind::Host).unwrap();
        assert_eq!(tree.list("/", 10).unwrap().unwrap().len(), 1, "nothing else is left");
        assert!(memory(&[directory.path()], "b").recall().is_empty(), "another start had none");
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
        assert!(here.recall().is_empty(), "a link");
        std::fs::remove_file(&path).unwrap();
        std::fs::hard_link(&elsewhere, &path).unwrap();
        assert!(here.recall().is_empty(), "a file with another name");
        std::fs::remove_file(&elsewhere).unwrap();
        assert_eq!(here.recall(), ["/dev/nvidia0"], "only nodes are named");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(here.recall().is_empty(), "others may write it");
        std::fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, Mode::from_bits_truncate(0o600)).unwrap();
        assert!(here.recall().is_empty(), "a pipe, which is not waited for");
    }

    #[test]
    fn this_process_knows_its_start() {
        let own = Tree::open(Path::new("/"), super::super::tree::Kind::Host).unwrap();
        let first = start(&own);
        assert!(first.as_ref().is_some_and(|start| start.contains("mnt:[")), "{first:?}");
        assert_eq!(first, start(&own));
    }
}
