//! A path without a word before it: what lies there says what it is.

use std::path::{Path, PathBuf};

use super::archive::InFile;
use super::layout::{Directory, Layout};
use super::rootfs::Rootfs;
use super::{Failed, Found, Source as _, Wish, given};
use crate::model::Unseen;
use crate::model::host::NodeKind;

/// Of these every root file system has one.
const OF_A_ROOT: [&str; 3] = ["usr", "bin", "etc"];

/// Finds the image at a path; behind a colon may stand its name in a layout or archive.
pub(super) fn find(path: &Path, wish: &Wish) -> Result<Found, Failed> {
    let (path, tag) = split(path);
    let there = |name: &str| given::kind(&path.join(name)).is_some();
    let absent = |reason: &str| Failed::Absent(Unseen::new(path.to_string_lossy(), reason));
    let kind = given::kind(&path).ok_or_else(|| absent("there is nothing"))?;
    if kind != NodeKind::Directory {
        return InFile { file: &path, tag: tag.as_deref() }.find(wish);
    }
    if there("index.json") {
        return Layout { directory: &path, tag: tag.as_deref() }.find(wish);
    }
    if there("manifest.json") {
        return Directory { directory: &path }.find(wish);
    }
    if OF_A_ROOT.into_iter().any(there) {
        return Rootfs(&path).find(wish);
    }
    Err(absent("is a directory, but no OCI layout, no image of skopeo's and no root file system"))
}

/// The path, and the name behind its last colon if the whole is no path that there is.
fn split(path: &Path) -> (PathBuf, Option<String>) {
    let whole = || (path.to_owned(), None);
    if given::kind(path).is_some() {
        return whole();
    }
    let Some(text) = path.to_str() else { return whole() };
    let colons = text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
    // a name may have a colon of its own, and a path too
    colons
        .rev()
        .find(|(path, _)| given::kind(Path::new(path)).is_some())
        .map_or_else(whole, |(path, name)| (PathBuf::from(path), Some(name.to_owned()).filter(|name| !name.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_behind_a_path_that_there_is() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a:b.tar");
        std::fs::write(&file, "").unwrap();
        let of = |rest: &str| split(Path::new(&format!("{}{rest}", file.display())));
        assert_eq!(of(""), (file.clone(), None));
        assert_eq!(of(":x/y:2.9"), (file.clone(), Some("x/y:2.9".into())));
        assert_eq!(of(":"), (file.clone(), None));
        assert_eq!(split(Path::new("./none:x")), ("./none:x".into(), None));
    }
}
