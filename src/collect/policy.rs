//! The administrator's configuration files, as text.

use std::path::Path;

use super::tree::Tree;
use crate::model::container::IdMapping;
use crate::model::host::NodeKind;

/// A file is at most this long.
const LIMIT: usize = 64 * 1024;

/// At most so many drop-ins are read.
const DROP_INS: usize = 256;

const DIRECTORY: &str = "/etc/gpu-preflight";
/// Where the configuration lies.
pub const MAIN: &str = "/etc/gpu-preflight/config.toml";
const DROP_IN_DIRECTORY: &str = "/etc/gpu-preflight/conf.d";

/// A configuration file: its text, or why it does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path.
    pub path: String,
    /// Its text, or why it does not count.
    pub text: Result<String, String>,
}

/// The machine's configuration: `config.toml`, then `conf.d/*.toml` in the order of their names.
/// `user`: whose files count besides root's.
pub fn files(host: &Tree, user: u32) -> Vec<File> {
    if matches!(host.stat(DIRECTORY), Ok(None)) {
        return Vec::new();
    }
    let mut found: Vec<File> = file(host, MAIN, user).into_iter().collect();
    found.extend(drop_ins(host, DROP_IN_DIRECTORY, user));
    found
}

/// The files `*.toml` of a directory in the order of their names; none if it is absent.
pub(super) fn drop_ins(host: &Tree, directory: &str, user: u32) -> Vec<File> {
    match host.list(directory, DROP_INS) {
        Ok(Some(names)) => names
            .iter()
            .filter_map(|name| name.to_str())
            .filter(|name| !name.starts_with('.') && Path::new(name).extension().is_some_and(|e| e == "toml"))
            .filter_map(|name| file(host, &format!("{directory}/{name}"), user))
            .collect(),
        Ok(None) => Vec::new(),
        Err(unseen) => vec![File { path: directory.to_owned(), text: Err(unseen.reason) }],
    }
}

/// One file; `None`: it is absent.
pub fn file(tree: &Tree, path: &str, user: u32) -> Option<File> {
    let stat = match tree.stat(path) {
        Ok(None) => return None,
        Ok(Some(stat)) => stat,
        Err(unseen) => return Some(File { path: path.to_owned(), text: Err(unseen.reason) }),
    };
    let text = if stat.kind != NodeKind::File {
        Err("it is no regular file".to_owned())
    } else if stat.uid != 0 && stat.uid != user && !(stat.uid == IdMapping::OVERFLOW && in_user_namespace(tree)) {
        Err(format!("it belongs to user {}, not to root", stat.uid))
    } else if stat.mode & 0o022 != 0 {
        Err(format!("others may write it (mode {:04o})", stat.mode & 0o7777))
    } else {
        match tree.read_text(path, LIMIT) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => return None,
            Err(unseen) => Err(unseen.reason),
        }
    };
    Some(File { path: path.to_owned(), text })
}

/// A rootless engine runs hooks in its user namespace, where the files of the machine's root belong to
/// nobody.
fn in_user_namespace(host: &Tree) -> bool {
    let map = host.read_text("/proc/self/uid_map", 4096).ok().flatten().unwrap_or_default();
    map.split_ascii_whitespace().ne(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::collect::tree::Kind;

    fn laid(files: &[(&str, &str, u32)]) -> (tempfile::TempDir, Tree) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text, mode) in files {
            let path = dir.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(*mode)).unwrap();
        }
        let tree = Tree::open(dir.path(), Kind::Host).unwrap();
        (dir, tree)
    }

    fn me() -> u32 {
        nix::unistd::geteuid().as_raw()
    }

    #[test]
    fn the_main_file_comes_first_and_drop_ins_by_name() {
        let (_dir, tree) = laid(&[
            ("/etc/gpu-preflight/conf.d/20-b.toml", "b", 0o644),
            ("/etc/gpu-preflight/conf.d/10-a.toml", "a", 0o644),
            ("/etc/gpu-preflight/conf.d/10-a.toml.bak", "x", 0o644),
            ("/etc/gpu-preflight/config.toml", "main", 0o600),
        ]);
        let texts: Vec<_> = files(&tree, me()).into_iter().map(|f| f.text.unwrap()).collect();
        assert_eq!(texts, ["main", "a", "b"]);
    }

    #[test]
    fn a_file_that_others_may_write_or_that_is_too_long_does_not_count() {
        let long = "#".repeat(LIMIT + 1);
        let (_dir, tree) = laid(&[(MAIN, "mode = \"off\"", 0o666), ("/etc/gpu-preflight/conf.d/a.toml", &long, 0o644)]);
        let found = files(&tree, me());
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|f| f.text.is_err()), "{found:?}");
    }

    #[test]
    fn no_configuration_is_no_trouble() {
        let (_dir, tree) = laid(&[]);
        assert!(files(&tree, me()).is_empty());
    }
}
