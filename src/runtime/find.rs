//! The real runtime: where it is, and that it is not ourselves.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{SFlag, stat};
use nix::unistd::{AccessFlags, faccessat};

use super::chain::Passed;
use crate::model::wording;

/// Where names are looked up when the engine gave no `PATH`.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Device and inode number: which file it is, whatever it is called.
pub(super) type Identity = (u64, u64);

/// What a program file is, links followed. `None`: nothing is there, or no regular file.
pub(super) fn identity(path: &Path) -> Option<Identity> {
    program(path).ok()
}

/// Whether a path leads to a file that can be executed.
pub(super) fn is_executable(path: &Path) -> bool {
    program(path).is_ok() && may_execute(path)
}

/// The file this process was started from, under whatever name.
pub(super) fn ourselves() -> Option<Identity> {
    identity(Path::new("/proc/self/exe"))
}

/// Which programs are not to be found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Excluded<'a> {
    /// This program.
    pub(super) ourselves: Option<Identity>,
    /// Those that have called us.
    pub(super) passed: &'a Passed,
}

/// The first of `candidates` that is there and is not excluded. Paths as they are; names are looked
/// up in `search_path`. The error says of each candidate what is wrong with it.
pub(super) fn find<'a>(
    candidates: impl IntoIterator<Item = &'a OsStr>,
    search_path: Option<&OsStr>,
    excluded: Excluded<'_>,
) -> Result<PathBuf, String> {
    let mut reasons = Vec::new();
    for candidate in candidates {
        match look(candidate, search_path, excluded) {
            Ok(path) => return Ok(path),
            Err(Unusable(reason)) => reasons.push(format!("{} {reason}", wording::quote(&candidate.to_string_lossy()))),
        }
    }
    Err(if reasons.is_empty() { "no name of one is configured".to_owned() } else { reasons.join(", ") })
}

fn look(candidate: &OsStr, search_path: Option<&OsStr>, excluded: Excluded<'_>) -> Result<PathBuf, Unusable> {
    if candidate.as_bytes().contains(&b'/') {
        return usable(Path::new(candidate), excluded).map(|()| candidate.into());
    }
    let search_path = search_path.filter(|path| !path.is_empty()).unwrap_or(OsStr::new(USUAL_PATH));
    let mut worst = Unusable("is in no directory of PATH".to_owned());
    if candidate.is_empty() {
        return Err(worst);
    }
    // an empty or relative entry means the working directory, where anybody's file may lie
    for directory in std::env::split_paths(search_path).filter(|directory| directory.is_absolute()) {
        let path = directory.join(candidate);
        match usable(&path, excluded) {
            Ok(()) => return Ok(path),
            Err(Unusable(reason)) if reason == ABSENT => {}
            Err(unusable) => worst = unusable,
        }
    }
    Err(worst)
}

/// What is wrong with a candidate.
struct Unusable(String);

const ABSENT: &str = "is absent";

fn usable(path: &Path, excluded: Excluded<'_>) -> Result<(), Unusable> {
    let found = program(path)?;
    if Some(found) == excluded.ourselves {
        Err(Unusable("is gpu-preflight itself".to_owned()))
    } else if excluded.passed.holds(found) {
        Err(Unusable("has called gpu-preflight for this very start, and would again".to_owned()))
    } else if may_execute(path) {
        Ok(())
    } else {
        Err(Unusable("is no program: it may not be executed".to_owned()))
    }
}

fn program(path: &Path) -> Result<Identity, Unusable> {
    let status = stat(path).map_err(|errno| match errno {
        Errno::ENOENT | Errno::ENOTDIR => Unusable(ABSENT.to_owned()),
        other => Unusable(format!("cannot be looked at ({})", other.desc())),
    })?;
    if status.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits() {
        Ok((status.st_dev, status.st_ino))
    } else {
        Err(Unusable("is no regular file".to_owned()))
    }
}

fn may_execute(path: &Path) -> bool {
    faccessat(AT_FDCWD, path, AccessFlags::X_OK, nix::fcntl::AtFlags::AT_EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn directory_with(programs: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in programs {
            let path = directory.path().join(name);
            std::fs::write(&path, name).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        directory
    }

    fn find_in(names: &[&str], path: &str, ourselves: Option<Identity>) -> Result<PathBuf, String> {
        let excluded = Excluded { ourselves, passed: &Passed::default() };
        find(names.iter().map(OsStr::new), Some(OsStr::new(path)), excluded)
    }

    #[test]
    fn the_first_that_is_there_is_taken() {
        let directory = directory_with(&["crun", "other"]);
        let path = directory.path().to_str().unwrap();
        let other = directory.path().join("other");
        assert_eq!(find_in(&["runc", "crun"], path, None), Ok(directory.path().join("crun")));
        assert_eq!(find_in(&[other.to_str().unwrap(), "crun"], path, None), Ok(other.clone()));
        assert_eq!(find_in(&["/absent", "crun"], &format!("/absent:{path}"), None), Ok(directory.path().join("crun")));
    }

    #[test]
    fn never_ourselves_under_any_name() {
        let first = directory_with(&["gpu-preflight-hook"]);
        let second = directory_with(&["runc"]);
        let own_file = first.path().join("gpu-preflight-hook");
        let ourselves = identity(&own_file);
        symlink(&own_file, first.path().join("runc")).unwrap();
        std::fs::hard_link(&own_file, first.path().join("crun")).unwrap();
        let path = format!("{}:{}", first.path().display(), second.path().display());
        assert_eq!(find_in(&["crun", "runc"], &path, ourselves), Ok(second.path().join("runc")));
        let only_us = find_in(&["crun", "runc"], first.path().to_str().unwrap(), ourselves).unwrap_err();
        assert_eq!(only_us, "\"crun\" is gpu-preflight itself, \"runc\" is gpu-preflight itself");
    }

    #[test]
    fn what_is_no_program_is_passed_over_with_its_reason() {
        let directory = directory_with(&["runc"]);
        let file = directory.path().join("runc");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let path = directory.path().to_str().unwrap();
        assert_eq!(find_in(&["runc"], path, None).unwrap_err(), "\"runc\" is no program: it may not be executed");
        assert_eq!(find_in(&["/dev/null"], path, None).unwrap_err(), "\"/dev/null\" is no regular file");
        assert_eq!(find_in(&["/absent/x"], path, None).unwrap_err(), "\"/absent/x\" is absent");
        assert_eq!(
            find_in(&["x", ""], path, None).unwrap_err(),
            "\"x\" is in no directory of PATH, \"\" is in no directory of PATH"
        );
        assert_eq!(find_in(&[], path, None).unwrap_err(), "no name of one is configured");
    }

    #[test]
    fn names_are_not_looked_up_in_the_working_directory() {
        assert!(find_in(&["Cargo.toml"], ":.:src", None).is_err());
        let excluded = Excluded { ourselves: None, passed: &Passed::default() };
        assert!(find([OsStr::new("sh")], None, excluded).is_ok_and(|path| path.is_absolute()));
        assert!(find([OsStr::new("sh")], Some(OsStr::new("")), excluded).is_ok());
    }
}
