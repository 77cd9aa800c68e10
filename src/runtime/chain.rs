//! Runtimes that call runtimes.
//!
//! NVIDIA's runtime edits the specification and then becomes the first of its own list that is there. Where we stand
//! on that list and it on ours, each would become the other for ever. So whoever is handed over to, and may call
//! another, is noted in a variable of the environment, together with our process id: that stays the same as long as
//! programs become each other. A pass that finds its own id there passes these over, and takes the variable out
//! before it becomes the last one, which sees the environment that the engine gave.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open, readlink};
use nix::sys::stat::Mode;

use super::find::{Identity, identity};

/// `PID:DEV:INO[,DEV:INO...]`
pub const VARIABLE: &str = "GPU_PREFLIGHT_RUNTIME_OVER";

/// Runtimes that start containers themselves, by the name of their file. Whatever else is configured may be one that
/// calls another: NVIDIA's, a vendor's like it, a script.
const LAST: [&str; 6] = ["runc", "crun", "krun", "youki", "runsc", "kata-runtime"];

/// Of these, runtimes whose callers do not learn what a hook has said: crun sends it to `/dev/null` (measured, 1.8.1
/// and 1.21), krun is crun, and youki leaves it on its own stderr (measured, 0.7.0), while engines read its log.
const SILENT: [&str; 3] = ["crun", "krun", "youki"];

/// A file that the kernel starts by itself: a script's interpreter could start anything.
const ELF: [u8; 4] = *b"\x7fELF";

/// The runtimes that this start was handed over to so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Passed(Vec<Identity>);

impl Passed {
    /// Reads the variable. It means something only to the process that wrote it, and to a child of it: there are
    /// scripts that call the next runtime instead of becoming it.
    pub(super) fn read(variable: Option<&OsStr>, processes: [i32; 2]) -> Self {
        let parsed = || {
            let (process, runtimes) = variable?.to_str()?.split_once(':')?;
            let process: i32 = process.parse().ok()?;
            let runtimes = runtimes.split(',').map(|runtime| {
                let (device, inode) = runtime.split_once(':')?;
                Some((device.parse().ok()?, inode.parse().ok()?))
            });
            let runtimes: Vec<Identity> = runtimes.collect::<Option<_>>()?;
            processes.contains(&process).then_some(Self(runtimes))
        };
        parsed().unwrap_or_default()
    }

    /// Nobody has called us but an engine.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn holds(&self, runtime: Identity) -> bool {
        self.0.contains(&runtime)
    }

    /// The variable's value for a process that hands over to one more.
    pub(super) fn with(&self, process: u32, runtime: Identity) -> String {
        let mut value = process.to_string();
        for (place, (device, inode)) in self.0.iter().chain([&runtime]).enumerate() {
            let _ = write!(value, "{}{device}:{inode}", if place == 0 { ':' } else { ',' });
        }
        value
    }
}

/// What a pass does to the variable before it hands over.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// It is not ours, or absent: nothing.
    Leave,
    /// It has served.
    Remove,
    /// The next one may call us again.
    Set(String),
}

impl Note {
    /// For the runtime that is handed over to.
    pub(super) fn before(runtime: &Path, passed: &Passed) -> Self {
        match identity(runtime) {
            _ if starts_containers(runtime) => {
                if passed.is_empty() {
                    Self::Leave
                } else {
                    Self::Remove
                }
            }
            Some(next) => Self::Set(passed.with(std::process::id(), next)),
            None => Self::Leave,
        }
    }

    #[expect(unsafe_code, reason = "the standard library changes the environment by unsafe functions only")]
    pub(super) fn write(&self) {
        match self {
            Self::Leave => {}
            // SAFETY: this process has one thread, so nobody reads the environment meanwhile.
            Self::Remove => unsafe { std::env::remove_var(VARIABLE) },
            // SAFETY: as above.
            Self::Set(value) => unsafe { std::env::set_var(VARIABLE, value) },
        }
    }
}

/// It calls no other runtime.
fn starts_containers(runtime: &Path) -> bool {
    is_one_of(&LAST, runtime)
}

/// It starts containers itself, and hides from everybody what their hooks say.
pub(super) fn is_silent(runtime: &Path) -> bool {
    is_one_of(&SILENT, runtime)
}

/// A program, no script, whose file has one of these names: as it is, or as releases are called (`runc.amd64`,
/// `crun-1.21-linux-amd64`).
fn is_one_of(names: &[&str], runtime: &Path) -> bool {
    let Some(file) = file(runtime) else { return false };
    let Some(name) = file.file_name().and_then(OsStr::to_str) else { return false };
    let is_named = |known: &&str| {
        name.strip_prefix(*known).is_some_and(|rest| {
            let mut rest = rest.chars();
            match rest.next() {
                None | Some('.') => true,
                Some('-') => rest.next().is_some_and(|c| c.is_ascii_digit()),
                Some(_) => false,
            }
        })
    };
    names.iter().any(is_named) && is_elf(&file)
}

/// The file that a path leads to, all links followed.
fn file(path: &Path) -> Option<PathBuf> {
    let place = open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok()?;
    readlink(format!("/proc/self/fd/{}", place.as_raw_fd()).as_str()).ok().map(PathBuf::from)
}

fn is_elf(path: &Path) -> bool {
    let mut beginning = [0; ELF.len()];
    let opened = open(path, OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY, Mode::empty());
    opened.is_ok_and(|file| File::from(file).read_exact(&mut beginning).is_ok()) && beginning == ELF
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn read(value: &str) -> Passed {
        Passed::read(Some(OsStr::new(value)), [7, 6])
    }

    #[test]
    fn only_the_process_itself_and_its_child_believe_the_variable() {
        let one = Passed(vec![(1, 2)]);
        assert_eq!((read("7:1:2"), read("6:1:2")), (Passed(vec![(1, 2)]), Passed(vec![(1, 2)])));
        assert!(one.holds((1, 2)) && !one.holds((1, 3)));
        for odd in ["8:1:2", "", "7", "7:", "7:1", "7:1:", "7:1:2,", "7:x:2", "77:1:2", "7:1:2,3", " 7:1:2"] {
            assert_eq!(read(odd), Passed::default(), "{odd:?}");
        }
        assert_eq!(Passed::read(None, [7, 6]), Passed::default());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let first = Passed::default().with(7, (1, 2));
        assert_eq!(first, "7:1:2");
        let second = read(&first).with(7, (3, 4));
        assert_eq!(read(&second), Passed(vec![(1, 2), (3, 4)]));
    }

    #[test]
    fn who_starts_containers_is_told_by_the_files_name() {
        let directory = tempfile::tempdir().unwrap();
        let lay = |name: &str, text: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        for name in ["runc", "crun", "youki", "runc.amd64", "crun-1.21-linux-amd64"] {
            assert!(starts_containers(&lay(name, b"\x7fELF...")), "{name}");
        }
        for name in ["nvidia-container-runtime", "nvidia-container-runtime.cdi", "runc2", "crun-vm", "a-runc"] {
            assert!(!starts_containers(&lay(name, b"\x7fELF...")), "{name}");
        }
        assert!(!starts_containers(&lay("krun", b"#!/bin/sh\nexec runc \"$@\"\n")), "a script");
        assert!(!starts_containers(&lay("runsc", b"")) && !starts_containers(&directory.path().join("absent")));
        for (link, target, starts) in [("alias", "crun", true), ("kata-runtime", "nvidia-container-runtime", false)] {
            symlink(target, directory.path().join(link)).unwrap();
            assert_eq!(starts_containers(&directory.path().join(link)), starts, "{link}");
        }
        assert!(is_silent(&directory.path().join("alias")) && !is_silent(&directory.path().join("runc")));
    }
}
