//! The driver's user-space libraries, and the root that they lie below.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use super::look::{fact, names, seems_there};
use crate::collect::tree::{Kind, Tree};
use crate::model::host::{DriverLibrary, DriverRoot, NodeKind, ToolkitConfig};
use crate::model::{Observed, Unseen};

/// Where a loader finds them, on one distribution or platform or another.
const ON_PATH: [&str; 11] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/local/lib",
    "/usr/lib/wsl/lib",
    "/usr/lib/aarch64-linux-gnu/tegra",
    "/run/opengl-driver/lib",
];
/// Where they lie besides, and a loader finds them only if links or `/etc/ld.so.conf` lead there: Debian
/// keeps each flavour in a directory of its own behind links of its alternatives.
const BESIDES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib64/nvidia",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
];
/// Windows' store of drivers, a directory each package of any vendor. NVIDIA's are named `nv…` after their
/// INF files; over 9p looking into all of them would take a while.
const WSL_DRIVERS: &str = "/usr/lib/wsl/drivers";
const OF_NVIDIA: &str = "nv";
const LIBRARIES: [&str; 2] = ["libcuda", "libnvidia-ml"];
/// What libcuda of Windows drivers from 555 on loads besides; it lies in the store only.
const OF_WSL: [&str; 3] = ["libcuda", "libnvidia-ml", "libnvdxgdmal"];
const NAMES: usize = 1 << 16;
const CONFIGURED: usize = 64;
/// More links than any distribution chains.
const HOPS: u32 = 8;
/// Where a driver container unpacks its files (GPU operator).
const DRIVER_CONTAINER: &str = "/run/nvidia/driver";

/// The driver root: what the caller says, else what the toolkit is configured with, else a driver
/// container's if the machine itself has no libraries, else `/`.
pub fn driver_root(tree: &Tree, given: Option<&str>, config: Option<&Option<ToolkitConfig>>) -> DriverRoot {
    let root = |path: &str, source: &str| DriverRoot { path: path.to_owned(), source: source.to_owned() };
    if let Some(path) = given {
        return root(path, "--driver-root");
    }
    let configured = config.and_then(Option::as_ref).and_then(|c| Some((c.cli_root.as_deref()?, &c.path)));
    if let Some((path, file)) = configured.filter(|(path, _)| !path.is_empty() && *path != "/") {
        return root(path, file);
    }
    if seems_there(tree, DRIVER_CONTAINER) && has_driver(tree, DRIVER_CONTAINER) && !has_driver(tree, "/") {
        return root(DRIVER_CONTAINER, "a driver container");
    }
    root("/", "default")
}

fn has_driver(tree: &Tree, root: &str) -> bool {
    let library = |below: &Tree| {
        ON_PATH.iter().chain(&BESIDES).any(|directory| seems_there(below, &format!("{directory}/libnvidia-ml.so.1")))
    };
    tree.below(root, Kind::Host).ok().flatten().is_some_and(|below| library(&below))
}

/// Every libcuda and libnvidia-ml below the driver root for the machine's own processor. `first`: directories that the
/// loader is told of by its environment.
pub fn libraries(
    tree: &Tree,
    root: &DriverRoot,
    architecture: Option<&str>,
    first: &[String],
) -> Observed<Vec<DriverLibrary>> {
    let path = if root.path.is_empty() { "/" } else { &root.path };
    let read = || {
        let below = tree.below(path, Kind::Host)?.ok_or_else(|| Unseen::new(path, "absent, or no directory"))?;
        let mut found = Found {
            tree: &below,
            architecture,
            by_identity: BTreeMap::new(),
            foreign: BTreeSet::new(),
            on_path: BTreeSet::new(),
        };
        for directory in first.iter().cloned().chain(search_path(&below)) {
            found.look_into(&directory, &LIBRARIES, true)?;
        }
        for directory in BESIDES {
            found.look_into(directory, &LIBRARIES, false)?;
        }
        for name in names(&below, WSL_DRIVERS, NAMES)?.iter().filter(|name| name.starts_with(OF_NVIDIA)) {
            found.look_into(&format!("{WSL_DRIVERS}/{name}"), &OF_WSL, false)?;
        }
        let prefix = path.trim_end_matches('/');
        let mut libraries: Vec<_> = found.by_identity.into_values().collect();
        for library in &mut libraries {
            library.path.insert_str(0, prefix);
        }
        libraries.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        Ok(libraries)
    };
    fact("host.driver.libraries", read())
}

/// Where every program's loader looks, whatever its environment says.
pub(super) fn search_path(tree: &Tree) -> impl Iterator<Item = String> {
    ON_PATH.into_iter().map(str::to_owned).chain(configured(tree, "/etc/ld.so.conf"))
}

/// The libraries of a tree, each file once however many links and directories lead to it.
struct Found<'a> {
    tree: &'a Tree,
    architecture: Option<&'a str>,
    by_identity: BTreeMap<(u64, u64), DriverLibrary>,
    /// Files that are another processor's.
    foreign: BTreeSet<(u64, u64)>,
    /// Directories on the loader's path that were looked into: `/lib` is `/usr/lib` on most machines.
    on_path: BTreeSet<(u64, u64)>,
}

impl Found<'_> {
    fn look_into(&mut self, directory: &str, libraries: &[&str], on_path: bool) -> Result<(), Unseen> {
        if on_path {
            let Some(stat) = self.tree.stat(directory)? else { return Ok(()) };
            if !self.on_path.insert(stat.identity) {
                return Ok(());
            }
        }
        for name in names(self.tree, directory, NAMES)? {
            let Some(library) = libraries
                .iter()
                .copied()
                .find(|library| name.strip_prefix(library).is_some_and(|rest| rest.starts_with(".so.")))
            else {
                continue;
            };
            let path = format!("{directory}/{name}");
            let Some(stat) = self.tree.stat(&path)?.filter(|stat| stat.kind == NodeKind::File) else { continue };
            let current = on_path && name.strip_prefix(library) == Some(".so.1");
            if let Some(seen) = self.by_identity.get_mut(&stat.identity) {
                seen.current |= current;
                continue;
            }
            if self.foreign.contains(&stat.identity) {
                continue;
            }
            if !is_for_processor(self.tree, &path, self.architecture)? {
                self.foreign.insert(stat.identity);
                continue;
            }
            let path = end_of_links(self.tree, path)?;
            let version =
                path.rsplit_once(".so.").and_then(|(_, v)| v.parse().ok()).filter(|_| !path.ends_with(".so.1"));
            let found = DriverLibrary { name: library.to_owned(), path, version, current, size: stat.size };
            self.by_identity.insert(stat.identity, found);
        }
        Ok(())
    }
}

/// Multilib directories hold libraries for another processor, often left behind by an update. An
/// empty or foreign file is kept: it is what a loader would stumble over.
pub(super) fn is_for_processor(tree: &Tree, path: &str, architecture: Option<&str>) -> Result<bool, Unseen> {
    let mut head = [0; 20];
    let Some(mut file) = tree.file(path)? else { return Ok(false) };
    if file.read_exact(&mut head).is_err() {
        return Ok(true);
    }
    let [0x7f, b'E', b'L', b'F', class, .., low, high] = head else { return Ok(true) };
    let wanted = match architecture {
        Some("x86_64") => 62,
        Some("aarch64") => 183,
        Some("ppc64le") => 21,
        _ => return Ok(class == 2),
    };
    Ok(class == 2 && u16::from_le_bytes([low, high]) == wanted)
}

/// The path of the file that a link leads to, as far as the links are written: for people to read. The
/// file itself is told by its identity.
pub(super) fn end_of_links(tree: &Tree, mut path: String) -> Result<String, Unseen> {
    for _ in 0..HOPS {
        let Some(target) = tree.link(&path)? else { break };
        let target = target.to_string_lossy().into_owned();
        path = match path.rsplit_once('/') {
            Some((directory, _)) if !target.starts_with('/') => format!("{directory}/{target}"),
            _ => target,
        };
    }
    Ok(path)
}

/// The directories that `/etc/ld.so.conf` and what it includes name.
fn configured(tree: &Tree, path: &str) -> Vec<String> {
    let text = |path: &str| tree.read_text(path, 1 << 16).ok().flatten().unwrap_or_default();
    let mut directories = Vec::new();
    for line in text(path).lines().map(str::trim) {
        match line.strip_prefix("include ").map(str::trim) {
            Some(pattern) => {
                for file in matching(tree, pattern) {
                    directories.extend(text(&file).lines().map(|line| line.trim().to_owned()));
                }
            }
            None => directories.push(line.to_owned()),
        }
    }
    directories.retain(|directory| directory.starts_with('/'));
    directories.truncate(CONFIGURED);
    directories
}

/// The files of a pattern `DIRECTORY/*.conf`, the only kind that distributions write; a relative one
/// counts from `/etc`.
fn matching(tree: &Tree, pattern: &str) -> Vec<String> {
    let pattern = if pattern.starts_with('/') { pattern.to_owned() } else { format!("/etc/{pattern}") };
    let Some((directory, name)) = pattern.rsplit_once('/') else { return Vec::new() };
    let Some((before, after)) = name.split_once('*') else { return vec![pattern] };
    let all = names(tree, directory, NAMES).unwrap_or_default();
    let fits = all.into_iter().filter(|n| n.len() >= name.len() - 1 && n.starts_with(before) && n.ends_with(after));
    fits.map(|name| format!("{directory}/{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    fn seen(laid: &Laid, root: &str) -> Vec<(String, Option<String>, bool)> {
        let root = DriverRoot { path: root.into(), source: "test".into() };
        let libraries = libraries(&laid.tree(), &root, Some("x86_64"), &[]);
        let told = |l: &DriverLibrary| (l.path.clone(), l.version.as_ref().map(ToString::to_string), l.current);
        libraries.seen().unwrap().iter().map(told).collect()
    }

    fn elf(class: u8, machine: u16) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..5].copy_from_slice(&[0x7f, b'E', b'L', b'F', class]);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes
    }

    #[test]
    fn debians_links_of_links_lead_to_one_current_file() {
        let laid = Laid::out(&[]);
        let real = "/usr/lib/x86_64-linux-gnu/nvidia/current";
        laid.write(&format!("{real}/libcuda.so.550.163.01"), elf(2, 62));
        laid.link("libcuda.so.550.163.01", &format!("{real}/libcuda.so.1"));
        laid.link(&format!("{real}/libcuda.so.1"), "/etc/alternatives/glx--libcuda.so.1-x86_64-linux-gnu");
        laid.link("/etc/alternatives/glx--libcuda.so.1-x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/libcuda.so.1");
        laid.link("usr/lib", "/lib");
        let expected = (format!("{real}/libcuda.so.550.163.01"), Some("550.163.01".to_owned()), true);
        assert_eq!(seen(&laid, "/"), std::slice::from_ref(&expected));

        // the other flavour is chosen: this one stays where it is, and no loader takes it
        let other = "/usr/lib/x86_64-linux-gnu/nvidia/tesla-535/libcuda.so.535.1.1";
        laid.write(other, elf(2, 62));
        laid.unlink("/etc/alternatives/glx--libcuda.so.1-x86_64-linux-gnu");
        laid.link(other, "/etc/alternatives/glx--libcuda.so.1-x86_64-linux-gnu");
        let chosen = (other.to_owned(), Some("535.1.1".to_owned()), true);
        assert_eq!(seen(&laid, "/"), [(expected.0, expected.1, false), chosen]);
    }

    #[test]
    fn leftovers_are_not_current_and_foreign_processors_do_not_count() {
        let laid = Laid::out(&[]);
        for (path, bytes) in [
            ("/usr/lib64/libnvidia-ml.so.580.95.05", elf(2, 62)),
            ("/usr/lib64/libnvidia-ml.so.570.86.15", elf(2, 62)),
            ("/usr/lib/libnvidia-ml.so.470.1.1", elf(1, 3)),
            ("/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.470.1.1", elf(2, 183)),
        ] {
            laid.write(path, bytes);
        }
        laid.link("libnvidia-ml.so.580.95.05", "/usr/lib64/libnvidia-ml.so.1");
        laid.link("libnvidia-ml.so.1", "/usr/lib64/libnvidia-ml.so");
        laid.link("libnvidia-ml.so.470.1.1", "/usr/lib/libnvidia-ml.so.1");
        let told: Vec<_> = seen(&laid, "").into_iter().map(|(path, _, current)| (path, current)).collect();
        let path = |version: &str| format!("/usr/lib64/libnvidia-ml.so.{version}");
        assert_eq!(told, [(path("570.86.15"), false), (path("580.95.05"), true)]);
    }

    #[test]
    fn configured_directories_and_wsl_are_searched() {
        let laid = Laid::out(&[
            ("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n"),
            ("/etc/ld.so.conf.d/nvidia.conf", "# own\n/opt/nvidia/lib64\n"),
            ("/opt/nvidia/lib64/libcuda.so.535.1.1", ""),
            ("/usr/lib/wsl/lib/libcuda.so.1", ""),
            ("/usr/lib/wsl/drivers/nv_dispi.inf_amd64_0/libnvdxgdmal.so.1", ""),
            ("/usr/lib/wsl/drivers/iigd_dch.inf_amd64_0/libcuda.so.1", ""),
            ("/usr/lib64/libnvdxgdmal.so.1", ""),
        ]);
        let told = seen(&laid, "/");
        assert_eq!(told[0], ("/opt/nvidia/lib64/libcuda.so.535.1.1".into(), Some("535.1.1".into()), false));
        assert_eq!(told[1], ("/usr/lib/wsl/lib/libcuda.so.1".into(), None, true));
        assert_eq!(told[2].0, "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_0/libnvdxgdmal.so.1");
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn the_root_is_the_callers_then_the_toolkits_then_found() {
        let laid = Laid::out(&[("/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "")]);
        let config =
            |root: &str| Some(ToolkitConfig { cli_root: Some(root.into()), path: "/c".into(), ..Default::default() });
        let root = |given, config: &Option<ToolkitConfig>| driver_root(&laid.tree(), given, Some(config)).path;
        assert_eq!(root(Some("/a"), &config("/b")), "/a");
        assert_eq!(root(None, &config("/b")), "/b");
        assert_eq!(root(None, &config("/")), "/run/nvidia/driver");
        assert_eq!(
            seen(&laid, "/run/nvidia/driver")[0].0,
            "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
        );
        laid.write("/usr/lib64/libnvidia-ml.so.1", "");
        assert_eq!(root(None, &None), "/");
    }
}
