//! Writes a file that others read, whole at once.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use crate::collect::tree::{Kind, Tree};

/// Puts a text in the place of a file, or makes the file: whoever reads sees the old text or the new one, and on an
/// error all is as before. A file that has this text already is left alone.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let (Some(name), Some(directory)) = (path.file_name(), path.parent()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let here = Tree::open(directory, Kind::Host)?;
    if name.to_str().is_some_and(|name| matches!(here.read(name, text.len()), Ok(Some(old)) if old == text)) {
        return Ok(());
    }
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}", std::process::id()));
    let temporary = directory.join(temporary);
    let file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    let done = fill(file, text).and_then(|()| std::fs::rename(&temporary, &path));
    if done.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    done
}

fn fill(mut file: File, text: &[u8]) -> io::Result<()> {
    file.write_all(text)?;
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
