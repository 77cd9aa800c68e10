//! Packages of interest, whatever installed them.

use super::{View, databases, installed, names};
use crate::collect::files::Files;
use crate::collect::image::condense::{is_kept, is_of_libc};
use crate::collect::image::python::of_metadata;
use crate::knowledge::frameworks::is_of_interest;
use crate::knowledge::toolkit::{base_name, parent};
use crate::model::image::{LibcKind, Manager, Package};
use crate::model::{Image, Observed, Unseen};

/// Packages of interest in all.
const MOST: usize = 4096;
const MOST_BYTES: usize = 64 << 10;

/// All of them, and what could not be read. `of_python`: directories with packages of Python.
pub(super) fn of(view: &View, of_python: &[String]) -> (Vec<Package>, Vec<Unseen>) {
    let mut found: Vec<Package> = Vec::new();
    // one more tells that there are more
    let room = |found: &Vec<Package>| (MOST + 1).saturating_sub(found.len());
    for directory in of_python {
        let names = names(view, directory);
        let packages = names.iter().filter_map(|name| of_pip(view, directory, name));
        found.extend(packages.take(room(&found)));
    }
    let of_conda = installed(view).filter_map(|(path, _)| of_conda(path)).filter(|package| is_kept(&package.name));
    found.extend(of_conda.take(room(&found)));
    let (of_system, mut unread) = databases::of(view, room(&found));
    found.extend(of_system);
    if found.len() > MOST {
        found.truncate(MOST);
        unread.push(Unseen::new("the image's packages", "there are more than are kept"));
    }
    (found, unread)
}

/// One of Python's, by the directory of its metadata.
pub(in crate::collect::image) fn of_pip(files: &dyn Files, directory: &str, entry: &str) -> Option<Package> {
    let (name, version) = of_metadata(entry)?;
    let name = name.to_ascii_lowercase().replace(['_', '.'], "-");
    if !is_of_interest(&name) {
        return None;
    }
    let source = format!("{directory}/{entry}");
    let version = if version.is_empty() { written(files, &source).unwrap_or_default() } else { version.to_owned() };
    Some(Package { name, version, manager: Manager::Pip, source, build: None })
}

fn written(files: &dyn Files, directory: &str) -> Option<String> {
    let bytes = files.beginning(&format!("{directory}/PKG-INFO"), MOST_BYTES).ok()??;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix("Version: ")).map(str::to_owned)
}

/// `conda-meta/NAME-VERSION-BUILD.json`
fn of_conda(path: &str) -> Option<Package> {
    let stem = base_name(path).strip_suffix(".json").filter(|_| base_name(parent(path)) == "conda-meta")?;
    let (rest, build) = stem.rsplit_once('-')?;
    let (name, version) = rest.rsplit_once('-')?;
    Some(Package {
        name: name.to_owned(),
        version: version.to_owned(),
        build: Some(build.to_owned()),
        manager: Manager::Conda,
        source: path.to_owned(),
    })
}

/// The release of the C library, where its file did not tell it: `2.36-9+deb12u10` is of 2.36.
pub(super) fn complete_libc(installed: &[Package], image: &mut Image) {
    let Observed::Known(Some(libc)) = &mut image.libc else { return };
    if libc.kind != LibcKind::Glibc || libc.version.is_some() {
        return;
    }
    let package = installed.iter().find(|package| is_of_libc(&package.name));
    libc.version = package.and_then(|package| {
        let version = package.version.split_once(':').map_or(package.version.as_str(), |(_, version)| version);
        let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
        Some(version[..end].to_owned()).filter(|version| version.starts_with("2."))
    });
}
