//! What the tests are made of: bundles, simulated hosts, the programs and what became of them.

pub(crate) mod bundle;
pub(crate) mod engines;
pub(crate) mod host;
pub(crate) mod layout;
pub(crate) mod mounts;
pub(crate) mod needs;
pub(crate) mod process;
pub(crate) mod programs;
pub(crate) mod scene;
pub(crate) mod trace;
pub(crate) mod words;

use std::path::{Path, PathBuf};

/// The repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A directory for one test, gone with the value. On the disk of `target`: `/tmp` may have `nodev`, which takes
/// the device nodes away.
pub(crate) fn scratch() -> Scratch {
    Scratch(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a scratch directory"))
}

/// See [`scratch`].
#[derive(Debug)]
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A path in it.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }
}

/// Writes a file, with the directories above it.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().expect("a path with a parent")).expect("directories");
    std::fs::write(path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Makes a symbolic link, with the directories above it.
pub(crate) fn link(target: impl AsRef<Path>, path: &Path) {
    std::fs::create_dir_all(path.parent().expect("a path with a parent")).expect("directories");
    std::os::unix::fs::symlink(target, path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
