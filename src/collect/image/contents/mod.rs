//! What an image tells whose files are all known: the survey, and what takes a look at every program and library.

use std::collections::{BTreeMap, BTreeSet};

use super::binary::Binary;
use super::places::{Everywhere, Hints};
use super::telling::{Interest, interest};
use super::view::{Content, Entry, View};
use crate::collect::files::Files as _;
use crate::knowledge::cuda::is_of_cuda;
use crate::knowledge::frameworks::{is_of_interest, of_library};
use crate::knowledge::toolkit::{base_name, parent};
use crate::model::host::NodeKind;
use crate::model::image::{CudaLibrary, DeviceCode};
use crate::model::{Image, Observed, Parts, Unknown, Unseen};

mod databases;
mod missing;
mod packages;
mod runtimes;
#[cfg(test)]
mod tests;

pub use databases::packages_of_machine;
pub(super) use packages::of_pip;

/// Packages that were fetched, and are installed elsewhere.
const CACHES: [&str; 3] = ["/.cache/pip/", "/.cache/uv/", "/.cache/conda/"];
/// More libraries with code for GPUs than an image has, and more parts of them that cannot be read than are told.
const MOST_CODE: usize = 8192;
const MOST_UNREAD: usize = 16;
/// Files that are runtimes or have one in them.
const MOST_RUNTIMES: usize = 4096;
/// Frameworks' own libraries, and libraries of CUDA that each of them needs.
const MOST_ASKING: usize = 1024;
const MOST_ASKED: usize = 64;

/// Looks at all files.
pub(super) fn look(view: &View, hints: &Hints<'_>) -> Image {
    let places = everywhere(view);
    let hints = Hints { everywhere: Some(&places), ..*hints };
    let mut image = super::look(view, &hints);
    let found = Found::of(view);
    runtimes::add(view, &found, &mut image);
    let (mut installed, unread) = packages::of(view, &places.packages);
    packages::complete_libc(&installed, &mut image);
    installed.retain(|package| is_of_interest(&package.name));
    image.packages = view_of("image.packages", view, installed, unread);
    let missing = missing::find(view, &found, &image);
    let Found { code, unread, .. } = found;
    image.missing = view_of("image.missing", view, missing, Vec::new());
    image.device_code = view_of("image.gpu_archs", view, code, unread);
    image
}

/// A list, which is whole if all of the image could be read.
fn view_of<T>(fact: &str, view: &View, items: Vec<T>, unread: Vec<Unseen>) -> Observed<Parts<T>> {
    let unread = unread.into_iter().chain(view.all_unread().iter().cloned());
    let unread: Vec<Unknown> = unread.take(MOST_UNREAD).map(|unseen| unseen.leaves_open(fact)).collect();
    Observed::Known(Parts { items, unread })
}

/// Where frameworks lie.
fn everywhere(view: &View) -> Everywhere {
    let mut packages = BTreeSet::new();
    let mut programs = BTreeSet::new();
    let mut libcuda = BTreeSet::new();
    for (path, entry) in installed(view) {
        let directory = parent(path);
        for metadata in [path, directory] {
            if [".dist-info", ".egg-info"].iter().any(|end| metadata.ends_with(end)) {
                packages.insert(parent(metadata));
            }
        }
        if entry.kind == Some(NodeKind::File) && of_library(path).is_some() {
            programs.insert(directory);
        }
        if entry.size > 0 && base_name(path).starts_with("libcuda.so.") {
            libcuda.insert(directory);
        }
    }
    let owned = |all: BTreeSet<&str>| all.into_iter().map(str::to_owned).collect();
    Everywhere { packages: owned(packages), programs: owned(programs), libcuda: owned(libcuda) }
}

/// All entries but those of caches, from which packages are installed again: uv's, pip's, conda's.
fn installed(view: &View) -> impl Iterator<Item = (&str, &Entry)> {
    view.entries().filter(|(path, _)| {
        let of_conda = path.split_once("/pkgs/").is_some_and(|(before, _)| {
            let name = base_name(before);
            ["conda", "mamba", "miniforge"].iter().any(|part| name.contains(part))
        });
        // environments lie below it as well: poetry's, pipenv's, those of `uv run`
        let cached = CACHES.iter().any(|cache| path.contains(cache)) && !path.contains("/environments-v");
        !of_conda && !cached
    })
}

/// What programs and libraries told.
#[derive(Default)]
struct Found<'a> {
    code: Vec<DeviceCode>,
    unread: Vec<Unseen>,
    /// Runtimes that are libraries of their own, and those that are linked in.
    shared: Vec<(&'a str, CudaLibrary)>,
    linked: Vec<CudaLibrary>,
    /// What frameworks' libraries need of CUDA, by the library's path.
    asking: BTreeMap<&'a str, Vec<String>>,
    /// Names under which libraries of CUDA can be loaded, wherever they lie.
    loadable: BTreeSet<String>,
}

impl<'a> Found<'a> {
    fn of(view: &'a View) -> Self {
        let mut found = Self::default();
        for (path, entry) in view.entries() {
            let name = base_name(path);
            if is_of_cuda(name) && name.contains(".so") && (entry.kind.is_none() || entry.size > 0) {
                found.loadable.insert(name.to_owned());
            }
        }
        for (path, entry) in installed(view).filter(|(_, entry)| entry.kind == Some(NodeKind::File) && entry.size > 0) {
            let wanted = match entry.content {
                Content::Binary(_) => true,
                Content::InPlace => {
                    interest(path.trim_start_matches('/'), entry.size, entry.mode & 0o111 != 0) == Interest::Binary
                }
                _ => false,
            };
            if wanted && let Some(binary) = view.binary_of(path, entry) {
                found.add(path, &binary);
            }
        }
        found
    }

    fn add(&mut self, path: &'a str, binary: &Binary) {
        let name = base_name(path);
        if let Some(own) = binary.name.as_deref().filter(|own| is_of_cuda(own)) {
            self.loadable.insert(own.to_owned());
        }
        // NVIDIA's own libraries say nothing of what a framework runs on, under whatever name they have for themselves
        if let Some(code) = binary.code.as_ref().filter(|_| !is_of_cuda(name)) {
            if self.code.len() < MOST_CODE {
                self.code.push(DeviceCode { source: path.to_owned(), ..code.clone() });
            } else if self.code.len() == MOST_CODE && self.unread.len() < MOST_UNREAD {
                self.unread.push(Unseen::new(path, "there are more libraries with code for GPUs than are kept"));
            }
        }
        if let Some(reason) = binary.unread.as_ref().filter(|_| self.unread.len() < MOST_UNREAD) {
            self.unread.push(Unseen::new(path, reason));
        }
        if super::runtime::is_one(name) {
            if self.shared.len() < MOST_RUNTIMES
                && let Some(library) = runtimes::shared(path, binary)
            {
                self.shared.push((path, library));
            }
        } else if self.linked.len() < MOST_RUNTIMES
            && let Some(version) = binary.runtime.clone().filter(|_| !is_of_cuda(name))
        {
            self.linked.push(CudaLibrary { version, source: path.to_owned(), linked_in: true });
        }
        if missing::may_ask(path) && self.asking.len() < MOST_ASKING {
            let needed = binary.needed.iter().filter(|name| is_of_cuda(name)).take(MOST_ASKED).cloned().collect();
            self.asking.insert(path, needed);
        }
    }
}

/// What stands at a directory, by name.
fn names(view: &View, directory: &str) -> Vec<String> {
    let names = view.list(directory, usize::MAX).ok().flatten().unwrap_or_default();
    names.into_iter().filter_map(|name| name.into_string().ok()).collect()
}
