//! Where an image's dynamic loader looks, in its order: `LD_LIBRARY_PATH`, then the directories of
//! `ldconfig`'s configuration. Of two libraries of one name the first in this order is taken.

use std::collections::BTreeMap;

use super::files::Files;
use super::paths::clean;
use crate::model::Unseen;

/// Files of a configuration, and directories in all; a loader's configuration may name any number.
const MOST_FILES: usize = 64;
const MOST_DIRECTORIES: usize = 128;
const MOST_BYTES: usize = 16 << 10;

const MAIN: &str = "/etc/ld.so.conf";
const DROP_INS: &str = "/etc/ld.so.conf.d";
/// musl reads one of these, and nothing else.
const OF_MUSL: [&str; 2] = ["/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path"];

/// A directory that a loader is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Directory {
    /// Absolute, without a slash at its end.
    pub(super) path: String,
    /// `LD_LIBRARY_PATH`, or the file that names it.
    pub(super) source: String,
}

/// The directories of `LD_LIBRARY_PATH`. Relative ones depend on where a program stands, and are left out.
pub(super) fn of_environment(environment: &BTreeMap<String, String>) -> Vec<Directory> {
    let path = environment.get("LD_LIBRARY_PATH").map(String::as_str).unwrap_or_default();
    let directories = path.split([':', ';']).filter(|directory| directory.starts_with('/'));
    let of = |directory: &str| Directory { path: clean(directory), source: "LD_LIBRARY_PATH".to_owned() };
    directories.map(of).take(MOST_DIRECTORIES).collect()
}

/// The directories of the loader's configuration files, and the first of these that could not be read.
pub(super) fn configured(rootfs: &dyn Files) -> (Vec<Directory>, Option<Unseen>) {
    let mut read = Read { rootfs, directories: Vec::new(), unseen: None };
    match read.text(MAIN) {
        Some(text) => read.file(MAIN, &text, true),
        // The toolkit's hook writes one that includes them before it calls ldconfig (nvidia-container-toolkit
        // d34b3046, 2026-08-21).
        None => read.drop_ins(),
    }
    for path in OF_MUSL {
        if let Some(text) = read.text(path) {
            read.file(path, &text, false);
        }
    }
    (read.directories, read.unseen)
}

struct Read<'a> {
    rootfs: &'a dyn Files,
    directories: Vec<Directory>,
    unseen: Option<Unseen>,
}

impl Read<'_> {
    fn text(&mut self, path: &str) -> Option<String> {
        let text = self.rootfs.read_text(path, MOST_BYTES);
        self.note(text).flatten()
    }

    fn drop_ins(&mut self) {
        let names = self.rootfs.list(DROP_INS, MOST_FILES);
        let names = self.note(names).flatten().unwrap_or_default();
        for name in names.iter().filter_map(|name| name.to_str()).filter(|name| is_conf(name)) {
            let path = format!("{DROP_INS}/{name}");
            if let Some(text) = self.text(&path) {
                self.file(&path, &text, false);
            }
        }
    }

    /// `include` counts in the main file only, and there as every distribution has it.
    fn file(&mut self, path: &str, text: &str, is_main: bool) {
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(pattern) = line.strip_prefix("include") {
                if is_main && matches!(pattern.trim(), "/etc/ld.so.conf.d/*.conf" | "ld.so.conf.d/*.conf") {
                    self.drop_ins();
                }
                continue;
            }
            let words = line.split([':', ',', ' ', '\t']).filter(|word| word.starts_with('/'));
            for word in words {
                if self.directories.len() < MOST_DIRECTORIES {
                    self.directories.push(Directory { path: clean(word), source: path.to_owned() });
                }
            }
        }
    }

    fn note<T>(&mut self, looked: Result<T, Unseen>) -> Option<T> {
        looked.map_err(|unseen| self.unseen.get_or_insert(unseen)).ok()
    }
}

/// As the pattern of `include` has it.
fn is_conf(name: &str) -> bool {
    name.strip_suffix(".conf").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::tree::{Kind, Tree};

    fn laid(files: &[(&str, &str)]) -> (Vec<(String, String)>, bool) {
        let dir = crate::collect::testing::laid(files);
        let (directories, unseen) = configured(&Tree::open(dir.path(), Kind::Image).unwrap());
        (directories.into_iter().map(|d| (d.path, d.source)).collect(), unseen.is_some())
    }

    fn paths(files: &[(&str, &str)]) -> Vec<String> {
        laid(files).0.into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn files_come_in_the_order_of_ldconfig() {
        let drop_ins = [
            (
                "/etc/ld.so.conf.d/x86_64-linux-gnu.conf",
                "# Multiarch support\n/usr/local/lib/x86_64-linux-gnu\n/usr/lib/x86_64-linux-gnu",
            ),
            ("/etc/ld.so.conf.d/cuda-compat.conf", "/usr/local/cuda/compat/ # first"),
            ("/etc/ld.so.conf.d/notes.txt", "/nothing"),
        ];
        let expected = ["/usr/local/cuda/compat", "/usr/local/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"];
        assert_eq!(paths(&drop_ins), expected, "without a main file");
        let mut with_main = drop_ins.to_vec();
        with_main.push((MAIN, "/opt/first\ninclude /etc/ld.so.conf.d/*.conf\n/opt/last:/opt/more"));
        assert_eq!(paths(&with_main).first().map(String::as_str), Some("/opt/first"));
        assert_eq!(paths(&with_main).len(), 6);
        with_main.pop();
        with_main.push((MAIN, "/opt/only\n"));
        assert_eq!(paths(&with_main), ["/opt/only"], "what is not included does not count");
    }

    #[test]
    fn the_source_is_named_and_what_cannot_be_read_is_noted() {
        let (found, unseen) = laid(&[("/etc/ld.so.conf.d/a.conf", "/opt//lib/")]);
        assert_eq!((found, unseen), (vec![("/opt/lib".into(), "/etc/ld.so.conf.d/a.conf".into())], false));
        let long = "#".repeat(MOST_BYTES + 1);
        assert!(laid(&[("/etc/ld.so.conf.d/a.conf", &long)]).1);
    }

    #[test]
    fn relative_directories_of_the_variable_are_left_out() {
        let environment = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), "lib::/a/:/b;/c".to_owned())]);
        let found: Vec<String> = of_environment(&environment).into_iter().map(|d| d.path).collect();
        assert_eq!(found, ["/a", "/b", "/c"]);
        assert!(of_environment(&BTreeMap::new()).is_empty());
    }
}
