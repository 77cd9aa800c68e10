//! The machine's files as `install` reads and writes them: below its root, links followed inside it, each file whole.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};

use crate::collect::tree::Tree;
use crate::commands::output::Failed;
use crate::commands::saved;
use crate::model::own::{LARGEST_PROGRAM, RECORDS};

/// How long another run may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A configuration has some kilobytes.
const LIMIT: usize = 1 << 20;

/// The machine's files.
pub(super) struct Disk<'t> {
    root: PathBuf,
    files: &'t Tree,
}

impl<'t> Disk<'t> {
    /// Below `root`, which `files` reads.
    pub(super) fn new(root: &Path, files: &'t Tree) -> Self {
        Self { root: root.to_owned(), files }
    }

    /// Nobody else changes registrations meanwhile: a lock on `/etc` itself, which leaves no file behind.
    pub(super) fn alone(&self, dry_run: bool) -> Result<Option<Flock<File>>, Failed> {
        if dry_run {
            return Ok(None);
        }
        let failed = |reason: &str| Failed::new("/etc", reason, "the same again in a moment");
        let until = Instant::now() + PATIENCE;
        let Ok(Some(place)) = self.files.place("/etc") else { return Ok(None) };
        let opened = OpenOptions::new().read(true).custom_flags(nix::libc::O_DIRECTORY).open(place);
        let mut directory = opened.map_err(|error| failed(&words(&error)))?;
        loop {
            match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Some(lock)),
                Err((file, _)) if Instant::now() < until => directory = file,
                Err(_) => return Err(failed("another run of install or uninstall is at work")),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A configuration's text; `None`: it is absent.
    pub(super) fn text(&self, path: &str) -> Result<Option<String>, String> {
        match self.files.read(path, LIMIT) {
            Ok(None) => Ok(None),
            Ok(Some(bytes)) => String::from_utf8(bytes).map(Some).map_err(|_| "it is no text (UTF-8)".to_owned()),
            Err(unseen) => Err(unseen.reason),
        }
    }

    /// A program's bytes.
    pub(super) fn program(&self, path: &str) -> Option<Vec<u8>> {
        self.files.read(path, LARGEST_PROGRAM).ok()?
    }

    /// Something is there.
    pub(super) fn is_there(&self, path: &str) -> bool {
        matches!(self.files.stat(path), Ok(Some(_)))
    }

    /// A program is there that can be executed.
    pub(super) fn is_program(&self, path: &str) -> bool {
        self.files.is_program(path)
    }

    /// Nobody else may write this file; or nothing is there.
    pub(super) fn is_ours_alone(&self, path: &str) -> bool {
        let user = nix::unistd::geteuid().as_raw();
        match self.files.stat(path) {
            Ok(Some(stat)) => (stat.uid == 0 || stat.uid == user) && stat.mode & 0o022 == 0 && stat.mode & 0o111 != 0,
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// The names in a directory; none if it is absent.
    pub(super) fn list(&self, path: &str) -> Result<Vec<String>, String> {
        let names = self.files.list(path, 1 << 16).map_err(|unseen| unseen.reason)?.unwrap_or_default();
        Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }

    /// The names in a directory, as far as they can be read.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        self.list(path).unwrap_or_default()
    }

    /// Writes a file; returns the directories that were made for it, the uppermost first.
    pub(super) fn write(&self, path: &str, text: &[u8], mode: u32) -> Result<Vec<String>, String> {
        let directories = self.make_directories(parent(path))?;
        let place = self.place(path)?;
        saved::write(&place, text, Some(mode)).map_err(|error| words(&error))?;
        Ok(directories)
    }

    /// Removes a file, and directories that were made for it, as far as nothing else is in them.
    pub(super) fn remove(&self, path: &str, made: &[String]) -> Result<(), String> {
        match std::fs::remove_file(self.place(path)?) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(words(&error)),
            _ => {}
        }
        for directory in made.iter().rev() {
            if std::fs::remove_dir(self.place(directory)?).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Makes one file another name of a second, or a copy of it where the file system has no such names.
    pub(super) fn link(&self, from: &str, to: &str) -> Result<(), String> {
        let (from, to) = (self.place(from)?, self.place(to)?);
        let temporary = to.with_extension(std::process::id().to_string());
        std::fs::hard_link(&from, &temporary)
            .or_else(|_| std::fs::copy(&from, &temporary).map(|_| ()))
            .and_then(|()| std::fs::rename(&temporary, &to))
            .map_err(|error| {
                let _ = std::fs::remove_file(&temporary);
                words(&error)
            })
    }

    fn make_directories(&self, path: &str) -> Result<Vec<String>, String> {
        let mut missing = Vec::new();
        let mut at = path;
        while !at.is_empty() && self.files.stat(at).map_err(|unseen| unseen.reason)?.is_none() {
            missing.push(at.to_owned());
            at = parent(at);
        }
        missing.reverse();
        for directory in &missing {
            let place = self.place(directory)?;
            // whatever the caller's umask: hooks are called by users without root, records are read by root alone
            let mode = if directory.starts_with(RECORDS) { 0o700 } else { 0o755 };
            match std::fs::create_dir(&place) {
                Ok(()) => {
                    std::fs::set_permissions(&place, Permissions::from_mode(mode)).map_err(|error| words(&error))?;
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(words(&error)),
            }
        }
        Ok(missing)
    }

    /// Where a path is for this process: what a link stands for is written, not the link.
    fn place(&self, path: &str) -> Result<PathBuf, String> {
        let place = |path: &str| self.files.place(path).map_err(|unseen| unseen.reason);
        if let Some(there) = place(path)? {
            return Ok(there);
        }
        if let Some(target) = self.files.link(path).map_err(|unseen| unseen.reason)? {
            return Err(format!("it is a link to {}, which is absent", target.display()));
        }
        let directory = if parent(path).is_empty() { Some(self.root.clone()) } else { place(parent(path))? };
        let name = Path::new(path).file_name().unwrap_or(OsStr::new(""));
        directory.map(|directory| directory.join(name)).ok_or_else(|| format!("{} is absent", parent(path)))
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn words(error: &std::io::Error) -> String {
    format!("it cannot be written ({:?})", error.kind())
}
