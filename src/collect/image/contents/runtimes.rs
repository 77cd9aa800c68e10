//! CUDA runtimes wherever they lie, and as exactly as anything tells.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{Binary, Found, View};
use crate::collect::files::Files as _;
use crate::collect::image::runtime::version_of;
use crate::collect::paths::below;
use crate::knowledge::cuda::is_release;
use crate::knowledge::toolkit::{base_name, parent};
use crate::model::image::CudaLibrary;
use crate::model::{CudaVersion, Image, Observed, Unseen};

/// Runtimes in all, and bytes of a toolkit's own file.
const MOST: usize = 1024;
const MOST_BYTES: usize = 64 << 10;
/// NVIDIA's packages and images install toolkits here.
const TOOLKITS: &str = "/usr/local";

/// A runtime library: the name that tells all three numbers counts, then the code, then what is left of the name.
pub(super) fn shared(path: &str, binary: &Binary) -> Option<CudaLibrary> {
    let by_name = version_of(base_name(path));
    let exact = by_name.clone().filter(|version| parts(version) >= 3);
    let version = exact.or_else(|| binary.runtime.clone()).or(by_name)?;
    Some(CudaLibrary { version, source: path.to_owned(), linked_in: false })
}

/// Puts them beside what the survey found: the same file counts once, and so do a package and the file in it.
pub(super) fn add(view: &View, found: &Found<'_>, image: &mut Image) {
    let Observed::Known(known) = &mut image.runtimes else { return };
    let items = &mut known.items;
    let files: Vec<Option<String>> = items.iter().map(|known| view.real(&known.source, true)).collect();
    for (path, library) in &found.shared {
        let same = files.iter().position(|real| real.as_deref() == Some(*path));
        if let Some(same) = same.and_then(|index| items.get_mut(index)) {
            if parts(&same.version) < parts(&library.version) {
                same.version = library.version.clone();
            }
        } else if !items.iter().any(|known| is_package_of(known, library)) && items.len() < MOST {
            items.push(library.clone());
        }
    }
    items.extend(found.linked.iter().take(MOST.saturating_sub(items.len())).cloned());
    let mut have = BTreeSet::new();
    for known in items.iter() {
        let real = view.real(&known.source, true);
        have.extend([Some(&known.source), real.as_ref()].into_iter().flatten().filter_map(|path| toolkit_of(path)));
    }
    let toolkits = super::names(view, TOOLKITS);
    let others = toolkits.iter().filter(|name| name.starts_with("cuda-") && !have.contains(name.as_str()));
    let others = others.filter_map(|toolkit| of_toolkit(view, &format!("{TOOLKITS}/{toolkit}")));
    items.extend(others.take(MOST.saturating_sub(items.len())));
    if items.len() >= MOST || found.shared.len() >= super::MOST_RUNTIMES {
        let unseen = Unseen::new("the image's runtimes", "there are more than are kept");
        known.unread.push(unseen.leaves_open("image.cuda_versions"));
    }
    if let Observed::Known(sign @ None) = &mut image.cuda {
        *sign = known.items.first().map(|library| library.source.clone());
    }
}

/// The directory of the toolkit that a file is of.
fn toolkit_of(path: &str) -> Option<String> {
    let rest = below(path, TOOLKITS)?.strip_prefix('/')?;
    rest.split_once('/').map(|(toolkit, _)| toolkit.to_owned())
}

/// A package of Python that has brought the library.
fn is_package_of(known: &CudaLibrary, library: &CudaLibrary) -> bool {
    let is_package = known.source.ends_with("-info") && below(&library.source, parent(&known.source)).is_some();
    let same = |place| parts(&library.version) <= place || known.version.number(place) == library.version.number(place);
    is_package && (0..3).all(same)
}

/// How many numbers a version has.
fn parts(version: &CudaVersion) -> usize {
    version.as_str().split('.').count()
}

#[derive(Deserialize)]
struct Toolkit {
    cuda: Part,
}

#[derive(Deserialize)]
struct Part {
    version: String,
}

/// A toolkit without its runtime library, by the file in which it says its version.
fn of_toolkit(view: &View, directory: &str) -> Option<CudaLibrary> {
    let read = |path: &str| view.read_text(path, MOST_BYTES).ok().flatten();
    let json = format!("{directory}/version.json");
    let text = format!("{directory}/version.txt");
    let by_json = read(&json).and_then(|text| serde_json::from_str::<Toolkit>(&text).ok());
    let (version, source) = match by_json {
        Some(toolkit) => (toolkit.cuda.version, json),
        None => (read(&text)?.trim().strip_prefix("CUDA Version ")?.to_owned(), text),
    };
    let version = version.parse().ok().filter(is_release)?;
    Some(CudaLibrary { version, source, linked_in: false })
}
