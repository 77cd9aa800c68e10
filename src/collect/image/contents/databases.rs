//! What dpkg and rpm have installed: `var/lib/dpkg/status`, the files of `status.d` in images without a dpkg, and
//! `rpmdb.sqlite`.

use super::View;
use crate::collect::image::condense::{Database, UNREAD, condensed, is_kept};
use crate::collect::image::telling::{OF_RPM, OF_RPM_BESIDE};
use crate::collect::tree::Tree;
use crate::model::Unseen;
use crate::model::image::{Manager, Package};

const STATUS: &str = "/var/lib/dpkg/status";
const PARTS: &str = "/var/lib/dpkg/status.d";
/// All of interest, and what could not be read.
pub(super) fn of(view: &View, most: usize) -> (Vec<Package>, Vec<Unseen>) {
    let mut found = Vec::new();
    let mut unread = Vec::new();
    let parts = super::names(view, PARTS).into_iter().filter(|name| !name.contains('.'));
    for path in [STATUS.to_owned()].into_iter().chain(parts.map(|name| format!("{PARTS}/{name}"))) {
        if found.len() >= most {
            break;
        }
        add(view, &path, Database::Dpkg, &mut found, &mut unread);
    }
    // one of them is a link to the other, as a rule
    if let Some(path) = OF_RPM.map(|path| format!("/{path}")).iter().find(|path| view.at(path).is_some()) {
        add(view, path, Database::Rpm, &mut found, &mut unread);
    }
    let beside = OF_RPM_BESIDE.map(|path| format!("/{path}"));
    for path in beside.iter().filter(|path| view.at(path).is_some_and(|(_, entry)| entry.size > 0)) {
        unread.push(Unseen::new(path, "packages in a form that is not read"));
    }
    found.truncate(most);
    (found, unread)
}

/// The same of a machine's own files: its driver's packages are among those of interest.
pub fn packages_of_machine(tree: &Tree) -> (Vec<Package>, Vec<Unseen>) {
    let mut found = Vec::new();
    let mut unread = Vec::new();
    let rpm = OF_RPM.map(|path| format!("/{path}")).into_iter().find(|path| tree.stat(path).is_ok_and(|s| s.is_some()));
    let dpkg = Some((STATUS.to_owned(), Database::Dpkg));
    for (path, database) in dpkg.into_iter().chain(rpm.map(|path| (path, Database::Rpm))) {
        let text = match tree.file(&path) {
            Ok(None) => continue,
            Ok(Some(file)) => condensed(file, database).ok_or_else(|| Unseen::new(&path, "reading failed")),
            Err(unseen) => Err(unseen),
        };
        match text {
            Ok(text) => tell(&text, &path, database, &mut found, &mut unread),
            Err(unseen) => unread.push(unseen),
        }
    }
    let beside = OF_RPM_BESIDE.map(|path| format!("/{path}"));
    let is_there = |path: &&String| tree.stat(path).is_ok_and(|stat| stat.is_some_and(|stat| stat.size > 0));
    unread.extend(beside.iter().find(is_there).map(|path| Unseen::new(path, "packages in a form that is not read")));
    (found, unread)
}

fn add(view: &View, path: &str, database: Database, found: &mut Vec<Package>, unread: &mut Vec<Unseen>) {
    let Some(text) = view.condensed(path, database) else { return };
    tell(&text, path, database, found, unread);
}

/// What is left of a database, package by package.
fn tell(text: &str, path: &str, database: Database, found: &mut Vec<Package>, unread: &mut Vec<Unseen>) {
    let manager = match database {
        Database::Dpkg => Manager::Dpkg,
        Database::Rpm => Manager::Rpm,
    };
    for stanza in text.split("\n\n") {
        let field = |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        if field(UNREAD).is_some() {
            unread.push(Unseen::new(path, "a part of it cannot be read"));
        }
        let installed = field("Status").is_none_or(|status| status.ends_with(" installed"));
        if let (Some(name), Some(version), true) = (field("Package"), field("Version"), installed)
            && is_kept(name)
        {
            let source = path.to_owned();
            found.push(Package { name: name.to_owned(), version: version.to_owned(), manager, source, build: None });
        }
    }
}
