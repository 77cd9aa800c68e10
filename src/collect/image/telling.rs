//! Which files of an image are kept, by their names: of millions of files some hundred tell what CUDA it has.
//!
//! A stream goes by once and before anybody knows what lies beside a file, so the rule goes by path and size alone,
//! and it is the same for every source: what one source tells another tells too.

use super::condense::Database;

/// What of a file is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// Nothing: nobody will ask for it.
    Nothing,
    /// That it is there, with its size.
    Name,
    /// Its first bytes, so many at most.
    Text(usize),
    /// Its first bytes, so many at most, if it is a script that sets up an environment.
    Script(usize),
    /// What it tells as a program or library: see `binary`.
    Binary,
    /// A database of packages, of which a few lines are kept: see `condense`.
    Packages(Database),
}

/// Files that tell a version are a few kilobytes.
const TEXT: usize = 64 << 10;
/// The loader's cache; a large image's has some hundred kilobytes.
const CACHE: usize = 1 << 20;
/// A script says early what it starts.
const SCRIPT: usize = 16 << 10;
/// A program in which CUDA is linked is larger, and so are libraries with code for GPUs.
const PROGRAM: u64 = 1 << 20;

/// Whole paths that are read.
const TEXTS: [&str; 4] = ["etc/ld.so.conf", "etc/os-release", "usr/lib/os-release", "etc/nv_tegra_release"];

/// rpm's database, and where it was before (Fedora 36, RHEL 10).
pub(super) const OF_RPM: [&str; 2] = ["usr/lib/sysimage/rpm/rpmdb.sqlite", "var/lib/rpm/rpmdb.sqlite"];

/// What tells that there is more than that: rows that were not yet written to it, databases of other kinds (Berkeley DB
/// of RHEL 8 and before, SUSE's own).
pub(super) const OF_RPM_BESIDE: [&str; 5] = [
    "usr/lib/sysimage/rpm/rpmdb.sqlite-wal",
    "var/lib/rpm/rpmdb.sqlite-wal",
    "var/lib/rpm/Packages",
    "var/lib/rpm/Packages.db",
    "usr/lib/sysimage/rpm/Packages.db",
];

/// By a path below the root, without a slash before it.
pub(super) fn interest(path: &str, size: u64, executable: bool) -> Interest {
    let name = path.rsplit('/').next().unwrap_or(path);
    if path == "etc/ld.so.cache" {
        return Interest::Text(CACHE);
    }
    if TEXTS.contains(&path) || path.starts_with("etc/ld.so.conf.d/") || path.starts_with("etc/ld-musl-") {
        return Interest::Text(TEXT);
    }
    if path == "var/lib/dpkg/status" || path.starts_with("var/lib/dpkg/status.d/") && !name.contains(".md5sums") {
        return Interest::Packages(Database::Dpkg);
    }
    if OF_RPM.contains(&path) {
        return Interest::Packages(Database::Rpm);
    }
    if OF_RPM_BESIDE.contains(&path) {
        return Interest::Name;
    }
    if is_of_conda(path, name) {
        return Interest::Name;
    }
    if of_python(path, name) {
        return Interest::Text(TEXT);
    }
    if is_library(name) {
        return if size == 0 { Interest::Name } else { Interest::Binary };
    }
    if name == "version.json" || name == "version.txt" && path.contains("cuda") {
        return Interest::Text(TEXT);
    }
    if executable && size >= PROGRAM && !name.contains('.') {
        return Interest::Binary;
    }
    // a shell is given some of them by name, and needs no such bit
    if (executable || name.strip_suffix(".sh").is_some()) && (1..PROGRAM).contains(&size) && may_be_started(path, name)
    {
        return Interest::Script(SCRIPT);
    }
    if name.starts_with("nvidia-") { Interest::Name } else { Interest::Nothing }
}

/// `libcudart.so.12`, `_C.cpython-311-x86_64-linux-gnu.so`, a dynamic loader.
fn is_library(name: &str) -> bool {
    name.strip_suffix(".so").is_some() || name.contains(".so.")
}

/// Metadata and version files of packages.
fn of_python(path: &str, name: &str) -> bool {
    let parent = path.rsplit('/').nth(1).unwrap_or_default();
    match name {
        "METADATA" | "PKG-INFO" => parent.ends_with(".dist-info") || parent.ends_with(".egg-info"),
        "version.py" | "build_info.py" | "build_and_package_info.py" | "_wheel.json" | "pyvenv.cfg" => true,
        "__init__.py" => parent == "version",
        _ => false,
    }
}

/// What conda keeps of each installed package; its name tells what there is to know.
fn is_of_conda(path: &str, name: &str) -> bool {
    name.strip_suffix(".json").is_some() && path.rsplit('/').nth(1) == Some("conda-meta")
}

/// Where what a container starts may lie: not among packages and data, of which there are many.
fn may_be_started(path: &str, name: &str) -> bool {
    let of_packages = ["site-packages/", "dist-packages/", "node_modules/"].iter().any(|place| path.contains(place));
    let of_data = ["usr/share/", "usr/include/", "usr/src/", "var/lib/"].iter().any(|place| path.starts_with(place));
    let parent = path.rsplit('/').nth(1).unwrap_or_default();
    let near = path.matches('/').count() <= 4 || parent.ends_with("bin");
    let named = || ["entrypoint", "start", "run", "launch", "init", "serve"].iter().any(|word| name.contains(word));
    !of_packages && !of_data && (near || named())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_container_may_start_is_looked_at_whatever_its_name() {
        for path in ["app/serve", "entrypoint.sh", "usr/local/bin/docker-entrypoint", "opt/a/b/c/d/e/start-service"] {
            assert_eq!(interest(path, 400, true), Interest::Script(SCRIPT), "{path}");
            assert_eq!(interest(path, 300_000, true), Interest::Script(SCRIPT), "{path}");
        }
        assert_eq!(interest("app/run.sh", 400, false), Interest::Script(SCRIPT), "a shell is given it");
        assert_eq!(interest("app/serve", 400, false), Interest::Nothing);
        assert_eq!(interest("usr/lib/python3/site-packages/x/run.sh", 400, true), Interest::Nothing);
        assert_eq!(interest("usr/share/doc/x/start", 400, true), Interest::Nothing);
        assert_eq!(interest("app/server", 8 << 20, true), Interest::Binary);
    }
}
