//! A bundle's `config.json`: read with bounds, and replaced so that nobody ever sees half of one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::fcntl::{AT_FDCWD, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, unlinkat};

/// Larger specifications are handed on unread: no more is judged, and to hold more would only take memory.
const LIMIT: u64 = 8 << 20;

/// A specification that was read.
#[derive(Debug)]
pub(super) struct SpecFile {
    directory: OwnedFd,
    name: OsString,
    status: FileStat,
    text: Vec<u8>,
}

impl SpecFile {
    /// Reads a specification: a regular file, not a link to one, of at most 8 MiB.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let directory =
            openat(AT_FDCWD, directory, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        // a FIFO in its place would hold us here but for O_NONBLOCK
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = openat(&directory, name.as_os_str(), flags, Mode::empty())?;
        let status = fstat(&file)?;
        let length = u64::try_from(status.st_size).unwrap_or(u64::MAX);
        if SFlag::from_bits_truncate(status.st_mode & SFlag::S_IFMT.bits()) != SFlag::S_IFREG || length > LIMIT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut text = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
        File::from(file).take(LIMIT + 1).read_to_end(&mut text)?;
        if text.len() as u64 > LIMIT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { directory, name, status, text })
    }

    /// What is in it.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Puts another text in its place, with the same owner and mode. On an error all is as before.
    pub(super) fn replace(&self, text: &[u8]) -> io::Result<()> {
        // nobody can guess the name and so keep it occupied
        let random = RandomState::new().hash_one(std::process::id());
        let mut temporary = OsString::from(".");
        temporary.push(&self.name);
        temporary.push(format!(".gpu-preflight-{random:016x}"));
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(&self.directory, temporary.as_os_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let done = self.fill(file, text).and_then(|()| {
            Ok(renameat(&self.directory, temporary.as_os_str(), &self.directory, self.name.as_os_str())?)
        });
        if done.is_err() {
            self.remove(&temporary);
        }
        done
    }

    fn fill(&self, file: OwnedFd, text: &[u8]) -> io::Result<()> {
        let mut file = File::from(file);
        file.write_all(text)?;
        let new = fstat(&file)?;
        let (uid, gid) = (self.status.st_uid, self.status.st_gid);
        if (new.st_uid, new.st_gid) != (uid, gid) {
            fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        Ok(fchmod(&file, Mode::from_bits_truncate(self.status.st_mode))?)
    }

    fn remove(&self, name: &OsStr) {
        if let Err(error) = unlinkat(&self.directory, name, UnlinkatFlags::NoRemoveDir) {
            log::warn!("{} stays behind in the bundle: {error}", name.display());
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests look at what was written")]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn bundle(text: &[u8]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("config.json"), text).unwrap();
        directory
    }

    fn names(directory: &Path) -> Vec<OsString> {
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn the_new_text_has_the_old_owner_and_mode_and_nothing_else_stays() {
        let directory = bundle(b"old");
        let path = directory.path().join("config.json");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4640)).unwrap();
        if Uid::effective().is_root() {
            std::os::unix::fs::chown(&path, Some(1234), Some(5678)).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4640)).unwrap();
        }
        let before = std::fs::metadata(&path).unwrap();
        let spec = SpecFile::read(&path).unwrap();
        assert_eq!(spec.text(), b"old");
        spec.replace(b"new").unwrap();

        let after = std::fs::metadata(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!((after.uid(), after.gid(), after.mode()), (before.uid(), before.gid(), before.mode()));
        assert_ne!(after.ino(), before.ino());
        assert_eq!(names(directory.path()), ["config.json"]);
    }

    #[test]
    fn links_pipes_directories_and_giants_are_not_read() {
        let directory = bundle(b"{}");
        let path = |name: &str| directory.path().join(name);
        symlink("config.json", path("link")).unwrap();
        nix::unistd::mkfifo(&path("pipe"), Mode::S_IRWXU).unwrap();
        std::fs::create_dir(path("directory")).unwrap();
        File::create(path("giant")).unwrap().set_len((8 << 20) + 1).unwrap();
        File::create(path("largest")).unwrap().set_len(8 << 20).unwrap();
        for name in ["link", "pipe", "directory", "giant", "absent", "absent/config.json"] {
            assert!(SpecFile::read(&path(name)).is_err(), "{name}");
        }
        assert!(SpecFile::read(Path::new("/")).is_err());
        assert!(SpecFile::read(Path::new("/dev/null")).is_err());
        assert_eq!(SpecFile::read(&path("largest")).unwrap().text().len(), 8 << 20);
    }

    #[test]
    fn a_replacement_that_fails_leaves_no_trace() {
        let directory = bundle(b"{}");
        let path = directory.path().join("config.json");
        let spec = SpecFile::read(&path).unwrap();
        // a directory in its place cannot be replaced by a file
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(spec.replace(b"new").is_err());
        assert_eq!(names(directory.path()), ["config.json"]);
    }
}
