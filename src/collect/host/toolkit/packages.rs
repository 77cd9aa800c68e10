//! The toolkit's version, by the package databases that can be read as text.

use std::collections::BTreeMap;

use super::super::look::{each_line, exists, names, seems_there};
use crate::collect::tree::Tree;
use crate::model::{Release, Unseen};

const DPKG: &str = "/var/lib/dpkg/status";
const DPKG_LIMIT: u64 = 64 << 20;
const PACMAN: &str = "/var/lib/pacman/local";
/// Binary databases (sqlite, ndb, Berkeley) that take a library to read.
const RPM: [&str; 2] = ["/var/lib/rpm", "/usr/lib/sysimage/rpm"];

/// Packages whose version is the toolkit's, the best witness first.
const VERSIONED: [&str; 4] = ["nvidia-container-toolkit", "nvidia-container-toolkit-base", LIBRARY[0], LIBRARY[1]];
/// The library's package: Debian's and NVIDIA's name, Arch's name.
const LIBRARY: [&str; 2] = ["libnvidia-container1", "libnvidia-container"];
/// The hook's package of 2018, with numbers of its own up to 1.4.0 (toolkit `packaging/debian/changelog.old`,
/// d34b3046); the toolkit's packages replace it.
const PREDECESSOR: &str = "nvidia-container-runtime-hook";
/// Packages that bring the toolkit, and count their versions otherwise (3.x, 2.x).
const UNVERSIONED: [&str; 2] = ["nvidia-container-runtime", "nvidia-docker2"];

/// What packages tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Versions {
    /// Of the toolkit.
    pub(super) toolkit: Option<Release>,
    /// Of the library below it.
    pub(super) libnvidia_container: Option<Release>,
    /// Of the package that the toolkit replaced, if this is installed instead.
    pub(super) predecessor: Option<Release>,
}

/// The versions; none at all: no package of the toolkit is installed, and no program of it is there either.
pub(super) fn versions(tree: &Tree, has_programs: bool) -> Result<Versions, Unseen> {
    let mut installed = dpkg(tree)?;
    installed.extend(pacman(tree)?);
    let is_replaced = VERSIONED.iter().take(2).any(|name| installed.contains_key(*name));
    let predecessor = installed.get(PREDECESSOR).filter(|_| !is_replaced).and_then(|version| release(version));
    let first = |names: &[&str]| names.iter().find_map(|name| release(installed.get(*name)?));
    let versions = Versions { toolkit: first(&VERSIONED), libnvidia_container: first(&LIBRARY), predecessor };
    if versions != Versions::default() {
        return Ok(versions);
    }
    if !installed.is_empty() {
        return Err(Unseen::new(DPKG, "only packages are installed that do not tell the toolkit's version"));
    }
    if !has_programs {
        return Ok(Versions::default());
    }
    let rpm = RPM.into_iter().find(|path| seems_there(tree, path));
    Err(match rpm {
        Some(path) => Unseen::new(path, "a binary database, which is not read"),
        None => Unseen::new(DPKG, "the toolkit's programs are there, but no package of it"),
    })
}

/// Installed packages of interest with their versions: stanzas with a blank line between them.
fn dpkg(tree: &Tree) -> Result<BTreeMap<String, String>, Unseen> {
    let mut found = BTreeMap::new();
    let (mut package, mut installed) = (None, false);
    each_line(tree, DPKG, DPKG_LIMIT, |line| {
        if let Some(name) = line.strip_prefix("Package: ") {
            package = VERSIONED.iter().chain(&UNVERSIONED).chain([&PREDECESSOR]).find(|known| **known == name);
            installed = false;
        } else if package.is_none() {
        } else if line.starts_with("Status: ") {
            installed = line.ends_with(" installed");
        } else if let (Some(name), true, Some(version)) = (package, installed, line.strip_prefix("Version: ")) {
            found.insert((*name).to_owned(), version.to_owned());
        }
    })?;
    Ok(found)
}

/// Directories named `PACKAGE-VERSION-RELEASE`.
fn pacman(tree: &Tree) -> Result<BTreeMap<String, String>, Unseen> {
    if !exists(tree, PACMAN)? {
        return Ok(BTreeMap::new());
    }
    let package = |entry: String| {
        let (rest, _release) = entry.rsplit_once('-')?;
        let (name, version) = rest.rsplit_once('-')?;
        (VERSIONED.contains(&name) || name == PREDECESSOR).then(|| (name.to_owned(), version.to_owned()))
    };
    Ok(names(tree, PACMAN, 1 << 16)?.into_iter().filter_map(package).collect())
}

/// `1.17.8` of `1.17.8-1`, `1:1.17.8~rc.1-1`.
fn release(version: &str) -> Option<Release> {
    let upstream = version.split_once(':').map_or(version, |(_epoch, rest)| rest);
    let end = upstream.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(upstream.len());
    upstream.get(..end)?.trim_end_matches('.').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::super::look::testing::Laid;
    use super::*;

    fn stanza(package: &str, status: &str, version: &str) -> String {
        format!(
            "Package: {package}\nStatus: {status}\nPriority: optional\nArchitecture: amd64\nVersion: {version}\nDescription: x\n y\n\n"
        )
    }

    fn told(laid: &Laid, has_programs: bool) -> Result<Option<String>, String> {
        let versions = versions(&laid.tree(), has_programs).map_err(|unseen| unseen.source);
        versions.map(|v| v.toolkit.map(|v| v.to_string()))
    }

    #[test]
    fn the_package_that_the_toolkit_replaced_is_no_toolkit() {
        let of = |packages: &[(&str, &str)]| {
            let text: String = packages.iter().map(|(name, v)| stanza(name, "install ok installed", v)).collect();
            let found = versions(&Laid::out(&[(DPKG, &text)]).tree(), true).unwrap();
            (found.toolkit.map(|v| v.to_string()), found.predecessor.map(|v| v.to_string()))
        };
        let old = (PREDECESSOR, "1.4.0-1");
        assert_eq!(of(&[old]), (None, Some("1.4.0".into())));
        assert_eq!(of(&[old, ("libnvidia-container1", "1.0.7-1")]), (Some("1.0.7".into()), Some("1.4.0".into())));
        assert_eq!(of(&[old, ("nvidia-container-toolkit", "1.0.5-1")]), (Some("1.0.5".into()), None));
    }

    #[test]
    fn the_best_witness_of_the_package_database_counts() {
        let installed = "install ok installed";
        let text = stanza("libnvidia-container1", installed, "1.16.0-1")
            + &stanza("bash", installed, "5.2-1")
            + &stanza("nvidia-container-toolkit", installed, "1:1.17.8~rc.2-1");
        assert_eq!(told(&Laid::out(&[(DPKG, &text)]), true), Ok(Some("1.17.8".into())));
        let text = stanza("nvidia-container-toolkit", "deinstall ok config-files", "1.17.8-1");
        assert_eq!(told(&Laid::out(&[(DPKG, &text)]), false), Ok(None));
        let text = stanza("nvidia-docker2", installed, "2.13.0-1");
        assert!(told(&Laid::out(&[(DPKG, &text)]), false).is_err());
    }

    #[test]
    fn the_librarys_package_may_be_newer_than_the_toolkits() {
        let text = stanza("nvidia-container-toolkit", "install ok installed", "1.7.0-1")
            + &stanza("libnvidia-container1", "install ok installed", "1.14.3-1");
        let found = versions(&Laid::out(&[(DPKG, &text)]).tree(), true).unwrap();
        assert_eq!((found.toolkit.unwrap().as_str(), found.libnvidia_container.unwrap().as_str()), ("1.7.0", "1.14.3"));
        let laid = Laid::out(&[]);
        laid.directory("/var/lib/pacman/local/libnvidia-container-1.17.8-1");
        assert_eq!(versions(&laid.tree(), true).unwrap().libnvidia_container.unwrap().as_str(), "1.17.8");
    }

    #[test]
    fn other_databases_are_read_or_named() {
        let laid = Laid::out(&[]);
        assert_eq!(told(&laid, false), Ok(None));
        laid.directory("/var/lib/rpm");
        assert_eq!(told(&laid, false), Ok(None));
        assert_eq!(told(&laid, true), Err("/var/lib/rpm".into()));
        laid.directory("/var/lib/pacman/local/nvidia-container-toolkit-1.17.8-1");
        assert_eq!(told(&laid, true), Ok(Some("1.17.8".into())));
    }
}
