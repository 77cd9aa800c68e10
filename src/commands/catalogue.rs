//! All names with their pages, whether a check judges them or only `explain` knows them.

use crate::checks;
use crate::commands::output::Failed;
use crate::knowledge::errors::signs;
use crate::knowledge::pages;
use crate::report::sheet::Sheet;

/// All, in the families' order, within one those that are judged first.
pub(crate) fn all() -> Vec<Sheet> {
    let mut all: Vec<Sheet> = checks::all()
        .map(|(family, check)| Sheet::of_check(family, check, signs::of(check.id)))
        .chain(pages::all().map(|(family, page)| Sheet::of_page(family, page)))
        .collect();
    let place = |sheet: &Sheet| {
        checks::FAMILIES.iter().position(|(family, _)| Some(*family) == sheet.family).unwrap_or(checks::FAMILIES.len())
    };
    all.sort_by_key(place);
    all
}

/// The page of a name.
pub(crate) fn find(id: &str) -> Option<Sheet> {
    let judged = checks::find(id).map(|(family, check)| Sheet::of_check(family, check, signs::of(id)));
    judged.or_else(|| pages::find(id).map(|(family, page)| Sheet::of_page(family, page)))
}

/// The page of a name, or what to say of one that nobody has.
pub(crate) fn page(id: &str) -> Result<Sheet, Failed> {
    find(id).ok_or_else(|| Failed::new(format!("check {id:?}"), "no check has this name", nearest(id)))
}

/// Names that share most words with a name that nobody has.
fn nearest(id: &str) -> String {
    let shared =
        |known: &str| id.split('-').filter(|word| word.len() > 2 && known.split('-').any(|k| k == *word)).count();
    let mut near: Vec<_> =
        all().iter().map(|sheet| (shared(sheet.id), sheet.id)).filter(|(words, _)| *words > 0).collect();
    near.sort_by_key(|(words, _)| std::cmp::Reverse(*words));
    let near: Vec<_> = near.into_iter().map(|(_, known)| known).take(5).collect();
    if near.is_empty() { "gpu-preflight checks".to_owned() } else { format!("one of {}", near.join(", ")) }
}

/// The reference in Markdown, as it lies in `packaging/reference/checks.md`.
#[cfg(test)]
fn reference() -> String {
    use std::fmt::Write as _;

    let mut out = String::from(
        "# Checks and causes\n\n\
         Made from the literals in `src/checks` and the pages in `src/knowledge/pages`; do not edit it. To make it \
         anew:\n\n```sh\nGPU_PREFLIGHT_UPDATE_REFERENCE=1 cargo test --lib reference\n```\n\n\
         E error, W warning, N note. `gpu-preflight checks ID` and `gpu-preflight explain ID` show one page.\n",
    );
    let mut family = None;
    for sheet in all() {
        if family != Some(sheet.family) {
            family = Some(sheet.family);
            let name = sheet.family.map_or("known to explain only", crate::model::Family::name);
            let _ = write!(out, "\n## {name}\n");
        }
        let _ = write!(out, "\n{}", sheet.markdown());
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::knowledge::catalogue::IDS;
    use crate::knowledge::errors::{texts, xid};

    #[test]
    fn each_name_of_the_catalogue_has_one_literal_or_page() {
        let judged: BTreeSet<_> = checks::all().map(|(_, check)| check.id).collect();
        let explained: Vec<_> = pages::all().map(|(_, page)| page.id).collect();
        let both: Vec<_> = explained.iter().filter(|id| judged.contains(*id)).collect();
        assert!(
            both.is_empty(),
            "a check judges {both:?} now: take its page out of src/knowledge/pages, and put what tells it apart into src/knowledge/errors/signs.rs"
        );
        let have: BTreeSet<_> = judged.iter().copied().chain(explained.iter().copied()).collect();
        assert_eq!(have.len(), judged.len() + explained.len(), "a page twice");
        let wanted: BTreeSet<_> = IDS.iter().copied().collect();
        assert_eq!(wanted.len(), IDS.len(), "a name twice in the catalogue");
        assert_eq!(have, wanted);
    }

    #[test]
    fn every_cause_of_a_text_has_a_page_that_tells_it_apart() {
        let of_texts = texts::all().flat_map(|text| text.causes.iter());
        let of_numbers = xid::ROWS.iter().flat_map(|(number, _, _)| xid::causes(*number).iter());
        for cause in of_texts.chain(of_numbers) {
            let sheet = find(cause.id).unwrap_or_else(|| panic!("{} is in no catalogue", cause.id));
            assert!(sheet.tells_apart.is_some(), "{}: no sign in src/knowledge/errors/signs.rs", cause.id);
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it looks at a file of the repository")]
    fn the_reference_is_current() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/reference/checks.md");
        if std::env::var_os("GPU_PREFLIGHT_UPDATE_REFERENCE").is_some() {
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("packaging/reference");
            std::fs::write(&file, reference()).expect("packaging/reference/checks.md");
        }
        let lies = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(lies == reference(), "run GPU_PREFLIGHT_UPDATE_REFERENCE=1 cargo test --lib reference");
    }
}
