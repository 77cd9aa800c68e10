//! What dpkg has installed: `var/lib/dpkg/status`, and the files of `status.d` in images without a dpkg.

use super::View;
use crate::collect::files::Files as _;
use crate::collect::image::condense::{Condenser, Database, is_kept};
use crate::model::image::{Manager, Package};

const STATUS: &str = "/var/lib/dpkg/status";
const PARTS: &str = "/var/lib/dpkg/status.d";
/// What is left of a database, or the whole of one that lies in place.
const MOST_BYTES: usize = 16 << 20;

/// All of interest.
pub(super) fn of(view: &View) -> Vec<Package> {
    let parts = super::names(view, PARTS).into_iter().filter(|name| !name.contains('.'));
    let paths = parts.map(|name| format!("{PARTS}/{name}"));
    [STATUS.to_owned()].into_iter().chain(paths).flat_map(|path| of_file(view, &path)).collect()
}

fn of_file(view: &View, path: &str) -> Vec<Package> {
    let Ok(Some(bytes)) = view.beginning(path, MOST_BYTES) else { return Vec::new() };
    let mut condenser = Condenser::new(Database::Dpkg);
    condenser.push(&bytes);
    let text = condenser.finish();
    let packages = text.split("\n\n").filter_map(|stanza| {
        let field = |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let installed = field("Status").is_none_or(|status| status.ends_with(" installed"));
        let name = field("Package").filter(|_| installed)?;
        Some(Package {
            name: name.to_owned(),
            version: field("Version")?.to_owned(),
            manager: Manager::Dpkg,
            source: path.to_owned(),
            build: None,
        })
    });
    packages.filter(|package| is_kept(&package.name)).collect()
}
