//! Paths that the user gives: anywhere on this machine.

use std::fs::File;
use std::path::Path;

use super::Failed;
use crate::collect::tree::{Kind, Tree};
use crate::model::Unseen;
use crate::model::host::NodeKind;

/// The machine's files, and a path below its root.
fn place(path: &Path) -> Result<(Tree, String), Unseen> {
    let unseen = |reason: String| Unseen::new(path.to_string_lossy(), reason);
    let tree = Tree::open(Path::new("/"), Kind::Host).map_err(|e| unseen(e.to_string()))?;
    let whole = std::path::absolute(path).map_err(|e| unseen(e.to_string()))?;
    let text = whole.to_str().ok_or_else(|| unseen("its name is no UTF-8".to_owned()))?;
    Ok((tree, text.to_owned()))
}

/// What stands there; `None`: nothing, or nothing that may be looked at.
pub(super) fn kind(path: &Path) -> Option<NodeKind> {
    let (tree, path) = place(path).ok()?;
    tree.stat(&path).ok()?.map(|found| found.kind)
}

/// A regular file, open for reading.
pub(super) fn file(path: &Path) -> Result<File, Failed> {
    let (tree, text) = place(path)?;
    let absent = || Failed::Absent(Unseen::new(path.to_string_lossy(), "there is nothing"));
    tree.file(&text)?.ok_or_else(absent)
}
