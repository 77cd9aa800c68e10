//! Pages of the causes that no check judges: `explain` alone knows them, or their check comes with a later part of
//! this program. When a check gets its literal its page goes, and what tells it apart moves to
//! `knowledge/errors/signs.rs`: a test in `commands/catalogue.rs` says so.

use crate::model::{Action, Family, Page, Step};

mod explain;
mod stack;

/// The pages by family; those without one are known to `explain` only.
pub const FAMILIES: &[(Option<Family>, &[Page])] = &[(Some(Family::Stack), stack::PAGES), (None, explain::PAGES)];

const fn step(action: Action, text: &'static str, command: Option<&'static str>) -> Step {
    Step { action, text, command }
}

/// Every page with its family.
pub fn all() -> impl Iterator<Item = (Option<Family>, &'static Page)> {
    FAMILIES.iter().flat_map(|(family, pages)| pages.iter().map(|page| (*family, page)))
}

/// The page of a name.
pub fn find(id: &str) -> Option<(Option<Family>, &'static Page)> {
    all().find(|(_, page)| page.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::wording::FORBIDDEN;

    #[test]
    fn every_page_is_complete_and_well_worded() {
        for (family, page) in all() {
            let id = page.id;
            assert!(!page.title.is_empty() && !page.title.ends_with('.'), "{id}: a title is no sentence");
            assert_eq!(family.is_none(), page.severities.is_empty(), "{id}: a check to come has severities");
            for text in [page.why, page.tells_apart].into_iter().chain(page.remedy.iter().map(|step| step.text)) {
                assert!(text.ends_with('.'), "{id}: {text}");
            }
            let texts = [page.title, page.why, page.tells_apart].into_iter();
            for text in texts.chain(page.remedy.iter().map(|step| step.text)).chain(page.verify.iter().copied()) {
                assert!(text.is_ascii(), "{id}: {text}");
            }
            // A check to come prints its title through engines, and they look for these.
            let lower = page.title.to_ascii_lowercase();
            assert!(FORBIDDEN.iter().all(|phrase| !lower.contains(phrase)), "{id}: {}", page.title);
            assert!(!page.remedy.is_empty(), "{id}: no way out");
        }
    }
}
