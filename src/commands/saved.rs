//! Writes a file that others read, whole at once.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use crate::collect::tree::{Kind, Tree};
use crate::model::host::NodeKind;

/// Puts a text in the place of a file, or makes the file: whoever reads sees the old text or the new one, and on an
/// error all is as before. A file that has this text already is left alone.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    takes_a_file(path)?;
    put(path, text, None, false)
}

/// A file of ours may stand there: a link or a device (`/dev/stdout`) would be lost to a rename.
fn takes_a_file(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let (Some(name), Some(directory)) = (path.file_name().and_then(|name| name.to_str()), path.parent()) else {
        return Ok(());
    };
    let here = Tree::open(directory, Kind::Host)?;
    let is_link = here.link(name).is_ok_and(|target| target.is_some());
    let is_other = here.stat(name).is_ok_and(|stat| stat.is_some_and(|stat| stat.kind != NodeKind::File));
    if is_link || is_other { Err(io::Error::other("a link, a device or a directory stands there")) } else { Ok(()) }
}

/// The same with this mode for a file that is new. One that is there keeps its owner and mode.
pub(super) fn write(path: &Path, text: &[u8], mode: Option<u32>) -> io::Result<()> {
    put(path, text, mode, false)
}

/// The same even where the file has this text already: who watches it sees by its time when it was last written.
pub(super) fn renew(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    takes_a_file(path)?;
    put(path, text, Some(mode), true)
}

fn put(path: &Path, text: &[u8], mode: Option<u32>, always: bool) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let (Some(name), Some(directory)) = (path.file_name(), path.parent()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let here = Tree::open(directory, Kind::Host)?;
    let there = name.to_str().and_then(|name| here.file(name).ok().flatten());
    let is_same = |name: &str| matches!(here.read(name, text.len()), Ok(Some(old)) if old == text);
    if !always && name.to_str().is_some_and(is_same) {
        return Ok(());
    }
    let mut temporary = OsString::from(".");
    temporary.push(name);
    // no leftover of an earlier run is in the way, whatever its process id was
    let random = RandomState::new().hash_one(std::process::id());
    temporary.push(format!(".{random:016x}"));
    let temporary = directory.join(temporary);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if there.is_some() {
        options.mode(0o600);
    }
    let file = options.open(&temporary)?;
    let done = fill(&file, text, there.as_ref(), mode).and_then(|()| std::fs::rename(&temporary, &path));
    if done.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    done
}

fn fill(mut file: &File, text: &[u8], there: Option<&File>, mode: Option<u32>) -> io::Result<()> {
    file.write_all(text)?;
    if let Some(old) = there {
        use std::os::unix::fs::MetadataExt as _;

        let (new, old) = (file.metadata()?, old.metadata()?);
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            fchown(file, Some(old.uid()), Some(old.gid()))?;
        }
        file.set_permissions(old.permissions())?;
    } else if let Some(mode) = mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.sync_all()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests look at what was written")]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_file_is_made_replaced_or_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        replace(&path, b"one").unwrap();
        let number = || std::fs::metadata(&path).unwrap().ino();
        let first = number();
        replace(&path, b"one").unwrap();
        assert_eq!(number(), first, "the same text is not written again");
        replace(&path, b"two").unwrap();
        assert_eq!(
            (std::fs::read(&path).unwrap(), std::fs::read_dir(directory.path()).unwrap().count()),
            (b"two".to_vec(), 1)
        );
        replace(&path, b"").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn owner_and_mode_stay_and_those_of_a_new_file_are_given() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        let mode = || std::fs::metadata(&path).unwrap().mode() & 0o7777;
        write(&path, b"one", Some(0o755)).unwrap();
        assert_eq!(mode(), 0o755);
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write(&path, b"two", Some(0o755)).unwrap();
        assert_eq!((mode(), std::fs::read(&path).unwrap()), (0o640, b"two".to_vec()));
    }

    #[test]
    fn a_file_that_is_renewed_is_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.prom");
        let seen = || std::fs::metadata(&path).map(|file| (file.ino(), file.mode() & 0o777)).unwrap();
        renew(&path, b"one", 0o644).unwrap();
        let first = seen();
        renew(&path, b"one", 0o644).unwrap();
        assert!(first.1 == 0o644 && seen().0 != first.0);
    }

    #[test]
    fn links_and_devices_stay_what_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("a.json"), directory.path().join("b.json"));
        std::fs::write(&other, b"one").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let fifo = directory.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [&path, &fifo, Path::new("/dev/stdout"), Path::new("/dev/null")] {
            assert!(replace(path, b"two").is_err() && renew(path, b"two", 0o644).is_err(), "{}", path.display());
        }
        assert_eq!(std::fs::read(&other).unwrap(), b"one");
        assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink());
    }

    #[test]
    fn a_failure_leaves_no_trace() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        std::fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"one").is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(replace(&directory.path().join("absent/a.json"), b"one").is_err());
        assert!(replace(Path::new("/"), b"one").is_err());
    }
}
