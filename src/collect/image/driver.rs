//! Files of NVIDIA's driver in an image. They belong to the host, whose own are brought into each container.
//!
//! What lies in a directory is told by the names that were listed anyway; of each version one file is looked at, for
//! files of one version were put there together.

use super::places::Hints;
use super::reach::Loader;
use super::walk::Walk;
use crate::knowledge::driver_files::{self, SMI, is_libcuda};
use crate::knowledge::toolkit::{base_name, parent};
use crate::model::DriverVersion;
use crate::model::host::NodeKind;
use crate::model::image::{DriverFile, DriverFileKind};

/// More than an image has; of a driver's libraries there are some dozen.
const MOST: usize = 64;
/// A driver's libcuda has some ten megabytes, a stub some ten kilobytes.
const STUB: u64 = 1 << 20;
/// Links that are followed from nvidia-smi; images have one or two.
const LINKS: usize = 8;
/// Names that programs ask for.
const ASKED: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];

/// What of a directory's names is the driver's.
#[derive(Debug, Default)]
pub(super) struct Names {
    directories: Vec<(String, Vec<String>)>,
}

impl Names {
    /// Keeps those of one directory.
    pub(super) fn keep(&mut self, directory: &str, names: &[String]) {
        let known = self.directories.iter().any(|(other, _)| other == directory);
        let found: Vec<String> = names.iter().filter(|name| is_of_driver(name)).take(MOST).cloned().collect();
        if !known && !found.is_empty() {
            self.directories.push((directory.to_owned(), found));
        }
    }

    /// Versions of which there are files.
    fn versions(&self) -> Vec<DriverVersion> {
        let mut all: Vec<DriverVersion> =
            self.directories.iter().flat_map(|(_, names)| names).filter_map(|name| version(name)).collect();
        all.sort();
        all.dedup();
        all
    }
}

/// Those that are there. `has_multiarch`: the image has Debian's directory of libraries.
pub(super) fn find(
    walk: &mut Walk<'_>,
    seen: &Names,
    hints: &Hints<'_>,
    loader: &mut Loader,
    has_multiarch: bool,
) -> Vec<DriverFile> {
    let mut found = stubs(walk, hints, loader);
    let versions = seen.versions();
    // what NVIDIA's tools have just brought is no part of the image
    let injected = hints.injected && versions.len() < 2;
    if !injected {
        for (directory, names) in &seen.directories {
            let place = is_drivers_place(directory, has_multiarch);
            for path in chosen(directory, names, walk.knows_all()) {
                if found.len() >= MOST {
                    break;
                }
                let Some((kind, version)) = look(walk, &path) else { continue };
                let reach = loader.reach(walk, hints, directory).filter(|_| kind != DriverFileKind::Program);
                let link = names.iter().any(|name| name == ASKED[1]).then(|| format!("{directory}/{}", ASKED[1]));
                let link = link.and_then(|link| walk.link(&link).map(|_| link));
                let link_passes = false;
                found.push(DriverFile { path, kind, version, reach, link, link_passes, in_drivers_place: place });
            }
        }
    }
    let is_asked = walk.knows_all() || !found.is_empty() || !seen.directories.is_empty();
    if is_asked && !hints.injected {
        found.extend(smi(walk));
    }
    found
}

/// Of each version one; of those without a version the names that programs ask for.
fn chosen(directory: &str, names: &[String], all: bool) -> Vec<String> {
    let mut versions: Vec<DriverVersion> = Vec::new();
    let mut paths = Vec::new();
    let path = |name: &String| format!("{directory}/{name}");
    // libcuda speaks for the others where it is among them
    let (first, rest): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| is_libcuda(name));
    for name in first.into_iter().chain(rest) {
        match version(name) {
            Some(version) if all || !versions.contains(&version) => {
                versions.push(version);
                paths.push(path(name));
            }
            _ => {}
        }
    }
    let stem = |name: &str| name.trim_end_matches('1').to_owned();
    let alone = |asked: &&&str| {
        let others = |name: &String| name.starts_with(&stem(asked)) && version(name).is_some();
        names.iter().any(|name| name == **asked) && !names.iter().any(others)
    };
    paths.extend(ASKED.iter().filter(alone).map(|name| format!("{directory}/{name}")));
    paths
}

/// What a file is; `None`: it is none, or nobody could look.
fn look(walk: &mut Walk<'_>, path: &str) -> Option<(DriverFileKind, Option<DriverVersion>)> {
    let name = base_name(path);
    // what a mount covers, say, is nobody's to judge
    let stat = walk.rootfs.stat(path).ok()??;
    if stat.kind != NodeKind::File {
        return None;
    }
    let version = version(name);
    if stat.size == 0 {
        return Some((DriverFileKind::Empty, version));
    }
    if version.is_none() {
        let target = walk.rootfs.link(path).ok().flatten();
        let to_stub = target.is_some_and(|target| target.to_string_lossy().contains("/stubs/"));
        if to_stub || (is_libcuda(name) && stat.size < STUB) {
            return Some((DriverFileKind::Stub, None));
        }
    }
    Some((DriverFileKind::Library, version))
}

/// Stubs that the loader is led to: as the name that programs ask for, or by its configuration, of which ldconfig makes
/// that name.
fn stubs(walk: &mut Walk<'_>, hints: &Hints<'_>, loader: &mut Loader) -> Vec<DriverFile> {
    let mut found = Vec::new();
    for directory in loader.directories(walk, hints) {
        let (path, by_name) = (directory.path, !directory.source.starts_with('/'));
        if !is_of_stubs(&path) || found.iter().any(|other: &DriverFile| other.path.starts_with(&path)) {
            continue;
        }
        let wanted = if by_name { "libcuda.so.1" } else { "libcuda.so" };
        let file = format!("{path}/{wanted}");
        if !walk.rootfs.stat(&file).is_ok_and(|stat| stat.is_some_and(|stat| stat.kind == NodeKind::File)) {
            continue;
        }
        let reach = loader.reach(walk, hints, &path);
        found.push(DriverFile {
            path: file,
            kind: DriverFileKind::Stub,
            version: None,
            reach,
            link: None,
            link_passes: false,
            in_drivers_place: false,
        });
    }
    found
}

/// NVIDIA's program, with where it leads if it is a link.
fn smi(walk: &mut Walk<'_>) -> Option<DriverFile> {
    let link = walk.rootfs.link(SMI).ok().flatten().map(|_| SMI.to_owned());
    let stat = walk.rootfs.stat(SMI).ok().flatten();
    if link.is_none() && stat.is_none() {
        return None;
    }
    let is_empty = stat.is_some_and(|stat| stat.size == 0 && stat.kind == NodeKind::File);
    Some(DriverFile {
        path: SMI.to_owned(),
        kind: if is_empty { DriverFileKind::Empty } else { DriverFileKind::Program },
        version: None,
        reach: None,
        link_passes: link.is_some() && passes(walk),
        link,
        in_drivers_place: true,
    })
}

/// A hook that looks from the host's root comes from there to a program of the image: no link on the way is absolute,
/// and the file has the mode of the host's.
fn passes(walk: &mut Walk<'_>) -> bool {
    let mut path = SMI.to_owned();
    for _ in 0..LINKS {
        let Ok(link) = walk.rootfs.link(&path) else { return false };
        let Some(target) = link else {
            let stat = walk.rootfs.stat(&path).ok().flatten();
            return stat.is_some_and(|stat| stat.kind == NodeKind::File && stat.mode & 0o7777 == 0o755);
        };
        if target.is_absolute() {
            return false;
        }
        path = format!("{}/{}", parent(&path), target.display());
    }
    false
}

/// A directory of the toolkit's stubs.
pub(super) fn is_of_stubs(directory: &str) -> bool {
    directory.ends_with("/stubs")
}

/// The driver's version; its numbers begin at a hundred since 2005, other libraries' do not.
fn version(name: &str) -> Option<DriverVersion> {
    let (_, version) = name.split_once(".so.")?;
    version.parse().ok().filter(|version: &DriverVersion| version.number(0) >= 100 && version.as_str().contains('.'))
}

fn is_of_driver(name: &str) -> bool {
    driver_files::is_driver_library(name) && (version(name).is_some() || ASKED.contains(&name))
}

/// NVIDIA's tools put the host's libraries into this directory: Debian's where the image has it, else the other
/// distributions' (libnvidia-container, `src/nvc_container.c`, 0f8e13d6), which is `/usr/lib` where `/usr/lib64` leads
/// there.
fn is_drivers_place(directory: &str, has_multiarch: bool) -> bool {
    let is_multiarch = matches!(directory, "/usr/lib/x86_64-linux-gnu" | "/usr/lib/aarch64-linux-gnu");
    is_multiarch || (!has_multiarch && matches!(directory, "/usr/lib64" | "/usr/lib"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::survey::survey;
    use super::*;
    use crate::collect::tree::{Kind, Tree};

    const MULTIARCH: &str = "usr/lib/x86_64-linux-gnu";

    struct World {
        dir: tempfile::TempDir,
        variables: std::collections::BTreeMap<String, String>,
        injected: bool,
    }

    impl World {
        fn new() -> Self {
            Self { dir: tempfile::tempdir().unwrap(), variables: [].into(), injected: false }
        }

        fn file(&self, path: &str, size: u64) -> &Self {
            let path = self.dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::File::create(path).unwrap().set_len(size).unwrap();
            self
        }

        fn link(&self, path: &str, target: &str) -> &Self {
            let path = self.dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
            self
        }

        fn found(&self) -> Vec<DriverFile> {
            let hints = Hints { environment: Some(&self.variables), injected: self.injected, ..Hints::default() };
            survey(&Tree::open(self.dir.path(), Kind::Image).unwrap(), &hints).driver_files
        }

        fn kinds(&self) -> Vec<(String, DriverFileKind)> {
            self.found().into_iter().map(|file| (file.path, file.kind)).collect()
        }
    }

    fn one(path: &str, kind: DriverFileKind) -> Vec<(String, DriverFileKind)> {
        vec![(format!("/{path}"), kind)]
    }

    #[test]
    fn real_libraries_and_empty_ones_are_told_apart() {
        let world = World::new();
        let libcuda = format!("{MULTIARCH}/libcuda.so.535.54.03");
        world.file(&libcuda, 28 << 20).file(&format!("{MULTIARCH}/libnvidia-ml.so.535.54.03"), 2 << 20);
        world.link(&format!("{MULTIARCH}/libnvidia-ml.so.1"), "libnvidia-ml.so.535.54.03");
        assert_eq!(world.kinds(), one(&libcuda, DriverFileKind::Library), "one speaks for its version");
        let found = &world.found()[0];
        assert!(found.in_drivers_place && found.link.is_some());
        assert!(found.reach.as_ref().is_some_and(|reach| reach.before.is_empty()));
        let world = World::new();
        let empty = format!("{MULTIARCH}/libcuda.so.418.56");
        world.file(&empty, 0);
        assert_eq!(world.kinds(), one(&empty, DriverFileKind::Empty));
        let world = World::new();
        world.file("usr/lib/nvidia-384/libnvidia-ml.so.384.130", 2 << 20);
        world.link("usr/bin/nvidia-smi", "/etc/alternatives/x86_64-linux-gnu_nvidia-smi");
        let found = world.found();
        assert_eq!(found.len(), 2);
        assert!(found[0].reach.is_none() && !found[0].in_drivers_place);
        assert!(found[1].kind == DriverFileKind::Program && found[1].link.is_some());
    }

    #[test]
    fn a_link_passes_where_the_hook_comes_by_it_to_a_program_of_the_image() {
        use std::os::unix::fs::PermissionsExt as _;
        let passes = |target: &str, mode: u32| {
            let world = World::new();
            let smi = "usr/lib/nvidia/nvidia-smi";
            world.file(smi, 1 << 10).file(&format!("{MULTIARCH}/libcuda.so.535.54.03"), 28 << 20);
            fs::set_permissions(world.dir.path().join(smi), fs::Permissions::from_mode(mode)).unwrap();
            world.link("usr/bin/nvidia-smi", target).link("usr/bin/by-two", "../lib/nvidia/nvidia-smi");
            let found = world.found();
            let smi = found.iter().find(|file| file.path == SMI).unwrap();
            assert!(smi.link.is_some(), "{target}");
            smi.link_passes
        };
        assert!(passes("../lib/nvidia/nvidia-smi", 0o755));
        assert!(passes("by-two", 0o755));
        assert!(!passes("../lib/nvidia/nvidia-smi", 0o555), "the host's program has another mode");
        assert!(!passes("/usr/lib/nvidia/nvidia-smi", 0o755), "a file of the host's root");
        assert!(!passes("../lib/nvidia/absent", 0o755));
    }

    #[test]
    fn what_is_no_drivers_is_none() {
        let world = World::new();
        for name in [
            "libnvidia-container.so.1.17.8",
            "libnvidia-egl-wayland.so.1.1.13",
            "libnvidia-nvvm.so.4",
            "libcudart.so.12.8.90",
            "libcuda_stub.so",
        ] {
            world.file(&format!("{MULTIARCH}/{name}"), 1 << 20);
        }
        world.file("usr/local/cuda/lib64/stubs/libcuda.so", 58_000);
        world.file("usr/local/cuda-12.8/compat/libcuda.so.570.86.10", 90 << 20);
        assert_eq!(world.kinds(), []);
    }

    #[test]
    fn what_was_brought_in_is_not_the_images() {
        let mut world = World::new();
        world.injected = true;
        world.file(&format!("{MULTIARCH}/libcuda.so.550.163.01"), 0);
        world.file("usr/bin/nvidia-smi", 0);
        assert_eq!(world.kinds(), []);
        // of two versions one is
        world.file(&format!("{MULTIARCH}/libcuda.so.418.56"), 0);
        assert_eq!(world.kinds().len(), 2);
    }

    #[test]
    fn stubs_count_where_the_loader_is_led_to_them() {
        let mut world = World::new();
        let stubs = "usr/local/cuda/lib64/stubs";
        world.file(&format!("{stubs}/libcuda.so"), 58_000).file("etc/ld.so.conf.d/x.conf", 0);
        world.variables.insert("LIBRARY_PATH".into(), format!("/{stubs}"));
        assert_eq!(world.kinds(), [], "only for linking");
        world.variables.insert("LD_LIBRARY_PATH".into(), format!("/opt/x:/{stubs}/:/usr/local/nvidia/lib"));
        assert_eq!(world.kinds(), [], "programs ask for libcuda.so.1");
        world.link(&format!("{stubs}/libcuda.so.1"), "libcuda.so");
        let found = world.found();
        assert_eq!((found.len(), found[0].kind), (1, DriverFileKind::Stub));
        let reach = found[0].reach.as_ref().unwrap();
        assert_eq!((reach.source.as_str(), reach.before.as_slice()), ("LD_LIBRARY_PATH", &["/opt/x".to_owned()][..]));
        let world = World::new();
        world.file(&format!("{stubs}/libcuda.so"), 58_000);
        world.link(&format!("{MULTIARCH}/libcuda.so.1"), &format!("/{stubs}/libcuda.so"));
        assert_eq!(world.kinds(), one(&format!("{MULTIARCH}/libcuda.so.1"), DriverFileKind::Stub));
        let world = World::new();
        world.file(&format!("{MULTIARCH}/libcuda.so.1"), 60_000);
        assert_eq!(world.kinds(), one(&format!("{MULTIARCH}/libcuda.so.1"), DriverFileKind::Stub), "by its size");
    }
}
