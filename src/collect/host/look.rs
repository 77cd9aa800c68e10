//! Small readings that many facts are made of.

use std::io::{BufRead as _, BufReader, Read as _};

use crate::collect::tree::Tree;
use crate::model::{Observed, Unseen};

/// A line of a kernel's attribute is a page at most.
const PAGE: usize = 4096;
/// Longer lines are handed over cut.
const LINE: u64 = 8192;

/// The fact that a reading yields.
pub(super) fn fact<T>(name: &str, reading: Result<T, Unseen>) -> Observed<T> {
    reading.map_err(|unseen| unseen.leaves_open(name)).into()
}

/// Something stands at a path.
pub(super) fn exists(tree: &Tree, path: &str) -> Result<bool, Unseen> {
    Ok(tree.stat(path)?.is_some())
}

/// Something stands at a path, or nobody may know: for what only explains.
pub(super) fn seems_there(tree: &Tree, path: &str) -> bool {
    exists(tree, path).unwrap_or(false)
}

/// A short text without the blanks around it; `None`: it is absent.
pub(super) fn short(tree: &Tree, path: &str) -> Result<Option<String>, Unseen> {
    Ok(tree.read_text(path, PAGE)?.map(|text| text.trim().to_owned()))
}

/// The names in a directory that are UTF-8, sorted; none if it is absent.
pub(super) fn names(tree: &Tree, path: &str, limit: usize) -> Result<Vec<String>, Unseen> {
    Ok(names_if_there(tree, path, limit)?.unwrap_or_default())
}

/// As `names`, but `None` for a directory that is absent.
pub(super) fn names_if_there(tree: &Tree, path: &str, limit: usize) -> Result<Option<Vec<String>>, Unseen> {
    let names = tree.list(path, limit)?;
    Ok(names.map(|names| names.into_iter().filter_map(|name| name.into_string().ok()).collect()))
}

/// The processes of a program's name, by pid; `None`: none shows, and not all processes do (`hidepid`).
pub(super) fn processes(tree: &Tree, name: &str) -> Option<Vec<String>> {
    let mut pids = names(tree, "/proc", 1 << 20).ok()?;
    pids.retain(|pid| pid.bytes().all(|b| b.is_ascii_digit()));
    let all_show = pids.iter().any(|pid| pid == "1");
    pids.retain(|pid| short(tree, &format!("/proc/{pid}/comm")).ok().flatten().is_some_and(|comm| comm == name));
    (all_show || !pids.is_empty()).then_some(pids)
}

/// What stands behind the last dot of a name.
pub(super) fn ending(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// Hands over a file line by line, without ever holding it as a whole, up to a number of bytes.
/// `false`: it is absent.
pub(super) fn each_line(tree: &Tree, path: &str, limit: u64, mut line: impl FnMut(&str)) -> Result<bool, Unseen> {
    let Some(file) = tree.file(path)? else { return Ok(false) };
    let mut reader = BufReader::with_capacity(1 << 16, file.take(limit));
    let mut bytes = Vec::new();
    let mut continued = false;
    loop {
        bytes.clear();
        let read = reader.by_ref().take(LINE).read_until(b'\n', &mut bytes);
        if read.map_err(|e| Unseen::new(path, format!("reading failed ({:?})", e.kind())))? == 0 {
            return Ok(true);
        }
        let ended = bytes.last() == Some(&b'\n');
        if !continued {
            line(String::from_utf8_lossy(&bytes).trim_end());
        }
        continued = !ended;
    }
}

#[cfg(test)]
pub(super) mod testing {
    use std::path::Path;

    use tempfile::TempDir;

    use crate::collect::tree::{Kind, Tree};

    /// A machine laid out as files.
    pub(in crate::collect::host) struct Laid {
        dir: TempDir,
    }

    impl Laid {
        /// With these files, each with its text.
        pub(in crate::collect::host) fn out(files: &[(&str, &str)]) -> Self {
            let laid = Self { dir: tempfile::tempdir().unwrap() };
            for (path, text) in files {
                laid.write(path, text);
            }
            laid
        }

        pub(in crate::collect::host) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
            let path = self.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        /// A file that everybody may execute.
        pub(in crate::collect::host) fn program(&self, path: &str, text: &str) {
            use std::os::unix::fs::PermissionsExt as _;
            self.write(path, text);
            std::fs::set_permissions(self.path(path), std::fs::Permissions::from_mode(0o755)).unwrap();
        }

        pub(in crate::collect::host) fn directory(&self, path: &str) {
            std::fs::create_dir_all(self.path(path)).unwrap();
        }

        pub(in crate::collect::host) fn link(&self, target: &str, path: &str) {
            let path = self.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, path).unwrap();
        }

        pub(in crate::collect::host) fn unlink(&self, path: &str) {
            std::fs::remove_file(self.path(path)).unwrap();
        }

        pub(in crate::collect::host) fn tree(&self) -> Tree {
            Tree::open(self.dir.path(), Kind::Host).unwrap()
        }

        fn path(&self, path: &str) -> std::path::PathBuf {
            self.dir.path().join(Path::new(path).strip_prefix("/").unwrap_or(path.as_ref()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Laid;
    use super::*;

    #[test]
    fn lines_come_whole_and_the_overlong_ones_cut() {
        let laid = Laid::out(&[]);
        laid.write("/f", format!("one\n{}\nthree\nfour", "x".repeat(20_000)));
        let mut seen = Vec::new();
        assert!(each_line(&laid.tree(), "/f", 1 << 20, |l| seen.push(l.to_owned())).unwrap());
        assert_eq!(seen.iter().map(String::len).collect::<Vec<_>>(), [3, 8192, 5, 4]);
        seen.clear();
        assert!(each_line(&laid.tree(), "/f", 6, |l| seen.push(l.to_owned())).unwrap());
        assert_eq!(seen, ["one", "xx"]);
        assert!(!each_line(&laid.tree(), "/gone", 6, |_| ()).unwrap());
    }
}
