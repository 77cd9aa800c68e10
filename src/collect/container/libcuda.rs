//! Where the dynamic loader would find libcuda in the container.

use std::collections::BTreeMap;

use super::Spec;
use super::names::is_libcuda;
use super::paths::{below, clean};
use crate::collect::loader;
use crate::collect::tree::{Kind, Tree};
use crate::model::container::Mount;
use crate::model::host::NodeKind;
use crate::model::{Observed, Unknown, Unseen};

const FACT: &str = "container.libcuda";
/// Directories that are looked into; a loader's configuration of an image may name any number.
const MOST_DIRECTORIES: usize = 128;
/// A library directory of a distribution has two or three thousand names.
const MOST_NAMES: usize = 16_384;

/// Where loaders look by themselves (glibc and musl, the distributions' ways), and where ways of giving
/// put the driver: the toolkit's `/usr/local/nvidia`, Debian's `nvidia/current`, Jetson's `tegra` and
/// `nvidia`, WSL's `/usr/lib/wsl`, NixOS' `/run/opengl-driver`, the operator's `/run/nvidia/driver`. An
/// image's `/usr/local/cuda/compat` counts only where its loader is told of it.
const DIRECTORIES: [&str; 27] = [
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/powerpc64le-linux-gnu",
    "/lib/powerpc64le-linux-gnu",
    "/usr/lib",
    "/lib",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/tegra",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib/wsl/lib",
    "/usr/lib64/nvidia",
    "/usr/lib/nvidia",
    "/run/opengl-driver/lib",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
    "/run/nvidia/driver/usr/lib",
    "/run/nvidia/driver/lib64",
];

/// Where to look.
pub(super) struct Where<'a> {
    pub(super) spec: &'a Spec,
    pub(super) environment: Result<&'a BTreeMap<String, String>, Unknown>,
    /// The container's root file system.
    pub(super) rootfs: Option<&'a Tree>,
    /// The spec's mounts are done in it; else what they will bring is looked for on the host.
    pub(super) mounted: bool,
    /// Where the spec mounts one, others are looked for only where they would come before it.
    pub(super) brief: bool,
    /// The machine's files.
    pub(super) host: &'a Tree,
}

/// Paths of libcuda in the container. A library of no bytes (a committed container's mount point) and a
/// stub do not count. Nothing found, and something that could not be looked at: unknown.
pub(super) fn find(place: &Where<'_>) -> Observed<Vec<String>> {
    let mounts = place.spec.mounts.seen().map_or(&[][..], |mounts| &mounts.items);
    let mounts: Vec<(String, &Mount)> = mounts.iter().map(|mount| (clean(&mount.destination), mount)).collect();
    let mut found: Vec<String> = mounts.iter().map(|(path, _)| path).filter(|path| is_libcuda(path)).cloned().collect();
    let mut look = Look { place, mounts, host: place.host.below("/", Kind::Container).ok().flatten(), unseen: None };
    // What was mounted lies where its giver knows the loader to look; only what the environment names may
    // come before it.
    let directories = if place.brief && !found.is_empty() { look.of_environment() } else { look.directories() };
    for directory in &directories {
        let names = ["libcuda.so.1", "libcuda.so"].map(|name| format!("{directory}/{name}"));
        found.extend(names.into_iter().find(|path| look.has(path)));
    }
    if found.is_empty() {
        let directories = look.with_mounts(directories);
        found.extend(directories.iter().filter_map(|directory| look.versioned(directory)));
    }
    found.sort_unstable();
    found.dedup();
    match look.doubt() {
        Some(unknown) if found.is_empty() => Observed::Unknown(unknown),
        _ => Observed::Known(found),
    }
}

struct Look<'a> {
    place: &'a Where<'a>,
    /// By their clean destinations.
    mounts: Vec<(String, &'a Mount)>,
    host: Option<Tree>,
    unseen: Option<Unseen>,
}

impl<'a> Look<'a> {
    /// Directories of `LD_LIBRARY_PATH`.
    fn of_environment(&self) -> Vec<String> {
        let directories = self.place.environment.as_ref().map(|all| loader::of_environment(all));
        directories.unwrap_or_default().into_iter().map(|directory| directory.path).collect()
    }

    fn directories(&mut self) -> Vec<String> {
        let mut directories = self.of_environment();
        directories.extend(self.configured());
        directories.extend(DIRECTORIES.map(str::to_owned));
        let mut kept: Vec<String> = Vec::new();
        for directory in directories {
            if !directory.ends_with("/stubs") && !kept.contains(&directory) && kept.len() < MOST_DIRECTORIES {
                kept.push(directory);
            }
        }
        kept
    }

    /// Directories of the loader's configuration.
    fn configured(&mut self) -> Vec<String> {
        let Some(rootfs) = self.place.rootfs else { return Vec::new() };
        let (directories, unseen) = loader::configured(rootfs);
        if let Some(unseen) = unseen {
            self.unseen.get_or_insert(unseen);
        }
        directories.into_iter().map(|directory| directory.path).collect()
    }

    /// Directories that users mount anywhere, with a program that knows where.
    fn with_mounts(&self, mut directories: Vec<String>) -> Vec<String> {
        let bound = self.mounts.iter().filter(|(_, mount)| mount.source.starts_with('/'));
        let kernel = |path: &str| ["/dev", "/proc", "/sys"].iter().any(|top| below(path, top).is_some());
        for (destination, mount) in bound.filter(|(path, _)| !kernel(path)) {
            // The machine's whole tree, for a program that enters it (`chroot /host nvidia-smi`).
            let whole = matches!(clean(&mount.source).as_str(), "/" | "/run/nvidia/driver");
            let inner = ["", "/lib64", "/lib"].into_iter().chain(DIRECTORIES.into_iter().filter(|_| whole));
            for below in inner.map(|rest| format!("{}{rest}", destination.trim_end_matches('/'))) {
                if directories.len() < MOST_DIRECTORIES && !directories.contains(&below) {
                    directories.push(below);
                }
            }
        }
        directories
    }

    fn has(&mut self, path: &str) -> bool {
        let Some((tree, on_disk)) = self.resolve(path) else { return false };
        let found = tree.stat(&on_disk);
        self.note(found).flatten().is_some_and(|found| found.kind == NodeKind::File && found.size > 0)
    }

    /// `libcuda.so.550.163.01` without its links: hooks that are still to run make these.
    fn versioned(&mut self, directory: &str) -> Option<String> {
        let (tree, on_disk) = self.resolve(directory)?;
        let names = tree.list(&on_disk, MOST_NAMES);
        let names = self.note(names).flatten()?;
        let libraries = names.iter().filter_map(|name| name.to_str()).filter(|name| is_libcuda(name));
        let paths: Vec<String> = libraries.map(|name| format!("{directory}/{name}")).collect();
        paths.into_iter().find(|path| self.has(path))
    }

    /// The file behind a path of the container: below the last mount that covers it, or in the root file
    /// system; `None`: there is none.
    fn resolve(&self, path: &str) -> Option<(&Tree, String)> {
        let covers = |(destination, mount): &(String, &'a Mount)| Some((below(path, destination)?, *mount));
        let covering = if self.place.mounted { None } else { self.mounts.iter().rev().find_map(covers) };
        let Some((rest, mount)) = covering else { return Some((self.place.rootfs?, path.to_owned())) };
        let source = mount.source.starts_with('/').then(|| clean(&mount.source))?;
        Some((self.host.as_ref()?, format!("{source}{rest}")))
    }

    fn note<T>(&mut self, looked: Result<T, Unseen>) -> Option<T> {
        match looked {
            Ok(found) => Some(found),
            Err(unseen) => {
                self.unseen.get_or_insert(unseen);
                None
            }
        }
    }

    /// Why nothing found is not the same as nothing there.
    fn doubt(self) -> Option<Unknown> {
        if let Err(unknown) = &self.place.environment {
            return Some(unknown.clone());
        }
        if !self.place.mounted
            && let Err(unknown) = self.place.spec.mounts.known().and_then(|mounts| mounts.all().map(|_| ()))
        {
            return Some(unknown);
        }
        if self.place.rootfs.is_none() {
            return Some(Unknown::new(FACT, "the root file system", "it was not looked at"));
        }
        self.unseen.map(|unseen| unseen.leaves_open(FACT))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::super::testing::{parse, plain, with_cdi, with_mount};
    use super::*;

    struct World {
        dir: tempfile::TempDir,
        variables: BTreeMap<String, String>,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("host")).unwrap();
            fs::create_dir_all(dir.path().join("rootfs")).unwrap();
            Self { dir, variables: BTreeMap::new() }
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn tree(&self, path: &str, kind: Kind) -> Tree {
            Tree::open(&self.dir.path().join(path), kind).unwrap()
        }

        fn find(&self, spec: &Value) -> Observed<Vec<String>> {
            let (rootfs, host) = (self.tree("rootfs", Kind::Image), self.tree("host", Kind::Host));
            find(&Where {
                brief: false,
                spec: &parse(spec),
                environment: Ok(&self.variables),
                rootfs: Some(&rootfs),
                mounted: false,
                host: &host,
            })
        }
    }

    fn known(paths: &[&str]) -> Observed<Vec<String>> {
        Observed::Known(paths.iter().map(|path| (*path).to_owned()).collect())
    }

    #[test]
    fn mounts_of_the_file_and_of_its_directory() {
        let world = World::new();
        assert_eq!(world.find(&plain(&[])), known(&[]));
        let lib = "/usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01";
        assert_eq!(world.find(&with_cdi(plain(&[]))), known(&[lib]));
        world.write("host/opt/driver/lib64/libcuda.so.1", "elf");
        let mounted = with_mount(plain(&[]), "/usr/local/nvidia", "/opt/driver");
        assert_eq!(world.find(&mounted), known(&["/usr/local/nvidia/lib64/libcuda.so.1"]));
        let hidden = with_mount(mounted, "/usr/local/nvidia/lib64", "/opt/empty");
        assert_eq!(world.find(&hidden), known(&[]));
        let anywhere = with_mount(plain(&[]), "/driver", "/opt/driver");
        assert_eq!(world.find(&anywhere), known(&["/driver/lib64/libcuda.so.1"]));
        // the machine's own tree, which a program may enter
        world.write("host/usr/lib/x86_64-linux-gnu/libcuda.so.1", "elf");
        let whole = with_mount(plain(&[]), "/host", "/");
        assert_eq!(world.find(&whole), known(&["/host/usr/lib/x86_64-linux-gnu/libcuda.so.1"]));
    }

    #[test]
    fn files_of_the_image_where_its_loader_looks() {
        let mut world = World::new();
        world.write("rootfs/usr/local/cuda/compat/libcuda.so.1", "elf");
        world.write("rootfs/usr/local/cuda/lib64/stubs/libcuda.so", "elf");
        world.write("rootfs/usr/lib64/libcuda.so.1", "");
        assert_eq!(world.find(&plain(&[])), known(&[]), "not searched, a stub, of no bytes");
        world
            .variables
            .insert("LD_LIBRARY_PATH".into(), "relative:/usr/local/cuda/compat/:/usr/local/cuda/lib64/stubs".into());
        assert_eq!(world.find(&plain(&[])), known(&["/usr/local/cuda/compat/libcuda.so.1"]));
        world.variables.clear();
        world.write("rootfs/etc/ld.so.conf.d/00-compat.conf", "# words\n/usr/local/cuda/compat\n");
        assert_eq!(world.find(&plain(&[])), known(&["/usr/local/cuda/compat/libcuda.so.1"]));
        world.write("rootfs/usr/lib/x86_64-linux-gnu/libcuda.so.550.1", "elf");
        world.write("rootfs/etc/ld.so.conf.d/00-compat.conf", "");
        assert_eq!(world.find(&plain(&[])), known(&["/usr/lib/x86_64-linux-gnu/libcuda.so.550.1"]));
    }

    #[test]
    fn nothing_found_where_not_all_was_looked_at_is_unknown() {
        let world = World::new();
        let mut spec = plain(&[]);
        spec.as_object_mut().unwrap().remove("mounts");
        assert!(world.find(&spec).known().is_err());
        let mut spec = plain(&[]);
        spec["mounts"].as_array_mut().unwrap().push(json!({"source": "no destination"}));
        assert!(world.find(&spec).known().is_err());
        symlink("libcuda.so.1", world.dir.path().join("rootfs/libcuda.so.1")).unwrap();
        symlink(Path::new("/libcuda.so.1"), world.dir.path().join("rootfs/lib64")).unwrap();
        assert!(world.find(&plain(&[])).known().is_err(), "links in a circle");
        let host = world.tree("host", Kind::Host);
        let spec = parse(&plain(&[]));
        let variables = BTreeMap::new();
        let no_root =
            Where { spec: &spec, environment: Ok(&variables), rootfs: None, mounted: false, brief: false, host: &host };
        assert!(find(&no_root).known().is_err());
    }
}
