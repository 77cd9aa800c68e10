//! The decision log's file. A log that cannot be written changes no decision.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag};
use nix::sys::stat::Mode;

use crate::collect::tree::Tree;
use crate::collect::users;

/// Below `/`, for engines that run as root.
const SYSTEM: &str = "/var/log/gpu-preflight/hook.jsonl";

/// Below the user's home, for engines that do not.
const USER: &str = ".local/state/gpu-preflight/hook.jsonl";

/// At this size the file is renamed to `hook.jsonl.1`, whose former self is lost.
const ROTATE_AT: u64 = 8 << 20;

/// Writes one line, in one write. `told`: the file of `--log`, and no other then.
///
/// # Errors
/// The reason why it was not written, for a debug log at most.
pub(super) fn write(line: &[u8], told: Option<&Path>, host_root: Option<&Path>, host: &Tree) -> Result<(), Errno> {
    if let Some(path) = told {
        return append(path, line);
    }
    let root = host_root.unwrap_or(Path::new("/"));
    let system = root.join(SYSTEM.trim_start_matches('/'));
    match append(&system, line) {
        Err(refused @ (Errno::EACCES | Errno::EPERM | Errno::EROFS)) => match home(host) {
            Some(home) => append(&root.join(home.trim_start_matches('/')).join(USER), line),
            None => Err(refused),
        },
        other => other,
    }
}

/// Where it is, as `status` looks for it: the machine's, and that of the user who asks.
#[cfg(feature = "cli")]
pub fn files(host: &Tree) -> Vec<String> {
    let home = home(host).filter(|_| !nix::unistd::geteuid().is_root());
    [SYSTEM.to_owned()].into_iter().chain(home.map(|home| format!("{home}/{USER}"))).collect()
}

fn append(path: &Path, line: &[u8]) -> Result<(), Errno> {
    let mut file = open(path)?;
    if file.metadata().is_ok_and(|m| m.len() >= ROTATE_AT) {
        file = rotate(path, file)?;
    }
    file.write_all(line).map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
}

/// Opens the log's file, making it and its directory where they are absent.
fn open(path: &Path) -> Result<File, Errno> {
    let flags =
        OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let mode = Mode::from_bits_truncate(0o640);
    let opened = match nix::fcntl::open(path, flags, mode) {
        Err(Errno::ENOENT) => {
            make_directories(path.parent().ok_or(Errno::ENOENT)?)?;
            nix::fcntl::open(path, flags, mode)?
        }
        other => other?,
    };
    let stat = nix::sys::stat::fstat(&opened)?;
    if stat.st_mode & nix::libc::S_IFMT == nix::libc::S_IFREG { Ok(File::from(opened)) } else { Err(Errno::EINVAL) }
}

/// Only the log's own directory and, below a home, those of its state: what the system has is there.
fn make_directories(directory: &Path) -> Result<(), Errno> {
    let mut missing: Vec<PathBuf> = Vec::new();
    let mut at = directory.to_owned();
    loop {
        match nix::unistd::mkdir(&at, Mode::from_bits_truncate(0o750)) {
            Ok(()) | Err(Errno::EEXIST) => break,
            Err(Errno::ENOENT) if missing.len() < 8 => {
                missing.push(at.clone());
                if !at.pop() {
                    return Err(Errno::ENOENT);
                }
            }
            Err(other) => return Err(other),
        }
    }
    for directory in missing.iter().rev() {
        match nix::unistd::mkdir(directory, Mode::from_bits_truncate(0o750)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

/// Renames the full file and opens a new one. Whoever does not get the lock at once writes into the
/// full file: another hook is renaming it right now.
fn rotate(path: &Path, full: File) -> Result<File, Errno> {
    let full = match Flock::lock(full, FlockArg::LockExclusiveNonblock) {
        Ok(locked) => locked,
        Err((file, _)) => return Ok(file),
    };
    // Another hook may have renamed it between our opening and our lock.
    let same = |a: nix::sys::stat::FileStat, b: nix::sys::stat::FileStat| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
    let mine = nix::sys::stat::fstat(&*full)?;
    let there = nix::sys::stat::fstatat(nix::fcntl::AT_FDCWD, path, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    if same(mine, there) {
        let mut old = path.as_os_str().to_owned();
        old.push(".1");
        std::fs::rename(path, old).map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))?;
    }
    log::debug!("rotated the decision log, descriptor {}", full.as_raw_fd());
    open(path)
}

/// The home of the user who runs the engine, by `/etc/passwd` alone: NSS would load libraries.
fn home(host: &Tree) -> Option<String> {
    users::home(host, outer_uid(host)?)
}

/// Our user outside of the engine's user namespace.
fn outer_uid(host: &Tree) -> Option<u32> {
    let me = nix::unistd::geteuid().as_raw();
    let map = host.read_text("/proc/self/uid_map", 4096).ok()??;
    map.lines().find_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u32>);
        let (inside, outside, size) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
        let offset = me.checked_sub(inside)?;
        (offset < size).then(|| outside.checked_add(offset))?
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests look at what was written")]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;
    use crate::collect::tree::Kind;

    fn host(dir: &Path) -> Tree {
        Tree::open(dir, Kind::Host).unwrap()
    }

    #[test]
    fn it_makes_its_directory_and_appends() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("var/log")).unwrap();
        for line in [b"one\n", b"two\n"] {
            write(line, None, Some(dir.path()), &host(dir.path())).unwrap();
        }
        let log = dir.path().join("var/log/gpu-preflight/hook.jsonl");
        assert_eq!(std::fs::read(&log).unwrap(), b"one\ntwo\n");
        assert_eq!(std::fs::metadata(log.parent().unwrap()).unwrap().permissions().mode() & 0o027, 0);
    }

    #[test]
    fn it_follows_no_link_and_opens_no_fifo() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "v").unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join("link")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("fifo"), Mode::from_bits_truncate(0o600)).unwrap();
        for name in ["link", "fifo"] {
            assert!(write(b"x\n", Some(&dir.path().join(name)), None, &host(dir.path())).is_err(), "{name}");
        }
        assert_eq!(std::fs::read(&victim).unwrap(), b"v");
    }

    #[test]
    fn a_full_file_is_renamed_once() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("l");
        std::fs::File::create(&log).unwrap().set_len(ROTATE_AT).unwrap();
        let full = std::fs::metadata(&log).unwrap().ino();
        write(b"new\n", Some(&log), None, &host(dir.path())).unwrap();
        assert_eq!(std::fs::read(&log).unwrap(), b"new\n");
        assert_eq!(std::fs::metadata(dir.path().join("l.1")).unwrap().ino(), full);
    }

    #[test]
    fn the_home_is_that_of_the_user_outside() {
        let dir = tempfile::tempdir().unwrap();
        let me = nix::unistd::geteuid().as_raw();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::create_dir_all(dir.path().join("etc")).unwrap();
        std::fs::write(dir.path().join("proc/self/uid_map"), format!("{me} 1000 1\n")).unwrap();
        std::fs::write(
            dir.path().join("etc/passwd"),
            "root:x:0:0::/root:/bin/sh\nada:x:1000:1000:Ada:/home/ada:/bin/sh\n",
        )
        .unwrap();
        assert_eq!(home(&host(dir.path())).as_deref(), Some("/home/ada"));
    }
}
