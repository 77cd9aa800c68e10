//! CUDA runtime libraries by the names of their files.

use super::walk::Walk;
use crate::knowledge::cuda::is_release;
use crate::knowledge::toolkit::base_name;
use crate::model::CudaVersion;
use crate::model::image::CudaLibrary;

const NAME: &str = "libcudart";
/// More than an image has side by side.
const MOST: usize = 32;

/// A runtime library, by its name: `libcudart.so.12`, `libcudart.so.12.8.90`, and the name with a hash in
/// it that wheels give their own copy.
pub(super) fn is_one(name: &str) -> bool {
    name.strip_prefix(NAME).is_some_and(|rest| rest.starts_with(".so") || rest.starts_with('-'))
}

/// Its version as far as its name tells. All of CUDA 11 has the name `libcudart.so.11.0`.
pub(super) fn version_of(name: &str) -> Option<CudaVersion> {
    let (_, version) = name.split_once(".so.")?;
    let version = if version == "11.0" { "11" } else { version };
    version.parse().ok().filter(is_release)
}

/// Puts the runtimes among the names of a directory into `found`: of each major the one whose name, or
/// whose link's target, tells the most.
pub(super) fn add(walk: &mut Walk<'_>, directory: &str, names: &[String], found: &mut Vec<CudaLibrary>) {
    let before = found.len();
    for name in names.iter().filter(|name| is_one(name)) {
        let path = format!("{directory}/{name}");
        let Some(mut version) = version_of(name) else { continue };
        if version.as_str().split('.').count() < 3
            && let Some(target) = walk.link(&path)
            && let Some(exact) = version_of(base_name(&target))
        {
            version = exact;
        }
        let major = version.number(0);
        let library = CudaLibrary { version, source: path, linked_in: false };
        let has_room = found.len() < MOST;
        match found.iter_mut().skip(before).find(|other| other.version.number(0) == major) {
            Some(other) if other.version.as_str().len() < library.version.as_str().len() => *other = library,
            None if has_room => found.push(library),
            Some(_) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::Hints;
    use super::*;
    use crate::collect::tree::{Kind, Tree};

    #[test]
    fn the_name_that_tells_most_counts() {
        let dir = tempfile::tempdir().unwrap();
        let libraries = dir.path().join("lib");
        std::fs::create_dir_all(&libraries).unwrap();
        for name in ["libcudart.so.12.8.90", "libcudart.so.11.0", "libcudart-d0da41ae.so.10.2", "libcudart_static.a"] {
            std::fs::write(libraries.join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("libcudart.so.13", libraries.join("libcudart.so")).unwrap();
        std::os::unix::fs::symlink("libcudart.so.13.1.80", libraries.join("libcudart.so.13")).unwrap();
        std::os::unix::fs::symlink("libcudart.so.12.8.90", libraries.join("libcudart.so.12")).unwrap();
        let tree = Tree::open(dir.path(), Kind::Image).unwrap();
        let mut walk = Walk::new(&tree, &Hints::default());
        let names = walk.list("/lib");
        let mut found = Vec::new();
        add(&mut walk, "/lib", &names, &mut found);
        let mut versions: Vec<String> = found.iter().map(|library| library.version.to_string()).collect();
        versions.sort();
        assert_eq!(versions, ["10.2", "11", "12.8.90", "13.1.80"]);
        assert!(!is_one("libcudart_static.a") && !is_one("libcudart"));
    }
}
