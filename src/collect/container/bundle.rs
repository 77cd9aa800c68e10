//! A bundle that nobody has started.

use std::path::{Path, PathBuf};

use super::assemble::{Call, Draft};
use super::spec::{MOST_BYTES, Spec};
use crate::collect::tree::{Kind, Tree};
use crate::model::container::{Container, Moment};
use crate::model::{Host, Unseen};

const CONFIG: &str = "config.json";

/// A container as it was read, with what its files lie in.
#[derive(Debug)]
pub struct Reading {
    /// The facts.
    pub container: Container,
    /// Its root file system, if it could be entered: of a bundle as the image left it, of a starting or
    /// running container as the container sees it.
    pub rootfs: Option<Tree>,
    /// Where the root file system lies, by the spec or the runtime's state.
    pub root_path: Option<PathBuf>,
    /// Its bundle, if it is known.
    pub bundle: Option<PathBuf>,
}

/// Reads a bundle directory or a `config.json`; what will be in the container is foretold. `files` are
/// the machine's, for what the spec mounts from there. An error: there is no such bundle.
pub fn read_bundle(path: &Path, host: &Host, files: &Tree) -> Result<Reading, Unseen> {
    let (bundle, file) = locate(path);
    let tree = Tree::open(&bundle, Kind::Host)
        .map_err(|e| Unseen::new(bundle.display().to_string(), format!("it cannot be opened ({:?})", e.kind())))?;
    let source = bundle.join(&file).display().to_string();
    let bytes = tree.read(&file, MOST_BYTES)?.ok_or_else(|| Unseen::new(source.clone(), "there is no such file"))?;
    let spec = Spec::parse(bytes, &source);
    let root_path = spec.root_path().map(|root| bundle.join(root));
    let rootfs = root_path.as_ref().and_then(|path| Tree::open(path, Kind::Image).ok());
    let label = bundle.to_string_lossy();
    let call = Call { bundle: &label, moment: Moment::NotStarted, ..Call::default() };
    let mut draft = Draft::new(&spec, call, Some(host));
    draft.foretell_nodes(host, rootfs.as_ref());
    draft.look_for_libcuda(host, files, rootfs.as_ref(), false);
    if let Some(rootfs) = &rootfs {
        draft.look_at_entrypoint(rootfs);
    }
    Ok(Reading { container: draft.container, rootfs, root_path, bundle: Some(bundle) })
}

/// The bundle of a path, and its file's name.
fn locate(path: &Path) -> (PathBuf, String) {
    let is_directory = Tree::open(path, Kind::Host).is_ok();
    match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
        (Some(parent), Some(name)) if !is_directory => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            (parent.to_owned(), name.to_owned())
        }
        _ => (path.to_owned(), CONFIG.to_owned()),
    }
}
