//! Judgement: pure functions from facts to outcomes. No I/O, no clock, no environment, no printing.
//!
//! A check is one literal in a slice of its family and one function, with its tests below it. To add
//! one, write both into the family's file; lists, pages, schema and guard tests find it there.
//!
//! What every judgement keeps to:
//! * certain failures are errors, guesses are warnings, and a fact that nobody saw ends the check as
//!   unknown (`?`), so look first at what alone can prove the failure;
//! * of several GPUs, an error only if it holds for every one that was given;
//! * what an NVIDIA hook of this container has still to make counts as made.

use crate::model::observed::NOT_STATED;
use crate::model::{Check, Facts, Family, Judged, Judgement, Outcome, Place, Severity};

mod cuda;
pub mod driver;
pub mod environment;
pub mod image;
#[cfg(test)]
mod inside;
pub mod nodes;
pub mod request;
pub mod stack;
#[cfg(test)]
pub(crate) mod testing;

/// All families, cause before consequence: the order of findings, and of the hook's exit code.
pub const FAMILIES: &[(Family, &[&[Check]])] = &[
    (Family::Driver, driver::CHECKS),
    (Family::Nodes, nodes::CHECKS),
    (Family::Request, request::CHECKS),
    (Family::Stack, stack::CHECKS),
    (Family::Image, image::CHECKS),
    (Family::Environment, environment::CHECKS),
];

/// Every check with its family, cause before consequence.
pub fn all() -> impl Iterator<Item = (Family, &'static Check)> {
    FAMILIES.iter().flat_map(|(family, files)| files.iter().flat_map(|file| file.iter()).map(|check| (*family, check)))
}

/// The check of a name.
pub fn find(id: &str) -> Option<(Family, &'static Check)> {
    all().find(|(_, check)| check.id == id)
}

/// Asks every check that has a word at this place.
pub fn judge(facts: &Facts<'_>) -> Vec<Judged> {
    all()
        .filter(|(_, check)| check.places.contains(&facts.place))
        .map(|(family, check)| {
            let worst = worst(check, facts.place);
            Judged { family, check, worst, judgement: asked((check.judge)(facts)) }
        })
        .collect()
}

/// Checks that can be an error, and never are at these places: what they leave open there is no error left open.
const NO_ERROR_AT: [(&str, &[Place]); 6] = [
    ("cgroup-lost-after-daemon-reload", &[Place::Hook, Place::Host]),
    ("gpu-memory-occupied", &[Place::Host]),
    ("row-remap-failed", &[Place::Healthcheck]),
    ("capability-compute-missing", &[Place::Host]),
    ("cuda-visible-devices-out-of-range", &[Place::Host]),
    ("cuda-visible-devices-bad-form", &[Place::Host]),
];

/// The worst that a check can come to at a place.
pub(crate) fn worst(check: &Check, place: Place) -> Severity {
    let is_mild = NO_ERROR_AT.iter().any(|(id, places)| *id == check.id && places.contains(&place));
    let severities = check.severities.iter().copied().filter(|severity| !is_mild || *severity != Severity::Error);
    severities.max().unwrap_or(Severity::Note)
}

/// A check that lacks a fact which nobody stated was not asked.
fn asked(judgement: Judgement) -> Judgement {
    match judgement {
        Err(unknown) if unknown.reason == NOT_STATED => not_applicable(),
        judgement => judgement,
    }
}

/// Ends a check that has nothing to say here.
#[expect(clippy::unnecessary_wraps, reason = "it stands where a judgement is returned")]
pub(crate) fn not_applicable() -> Judgement {
    Ok(Outcome::NotApplicable)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::wording::FORBIDDEN;

    #[test]
    fn names_are_unique_and_kebab_case() {
        let mut seen = BTreeSet::new();
        for (_, check) in all() {
            assert!(seen.insert(check.id), "{} twice", check.id);
            assert!(
                check.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{}",
                check.id
            );
        }
    }

    #[test]
    fn every_literal_is_complete_and_well_worded() {
        for (_, check) in all() {
            let id = check.id;
            assert!(!check.title.is_empty() && !check.title.ends_with('.'), "{id}: a title is no sentence");
            assert!(check.why.ends_with('.'), "{id}: why is a sentence");
            assert!(!check.messages.is_empty() && !check.severities.is_empty() && !check.places.is_empty(), "{id}");
            assert!(!check.remedy.is_empty() || check.severities == [crate::model::Severity::Note], "{id}: no way out");
            assert!(check.remedy.iter().all(|step| step.text.ends_with('.')), "{id}: a remedy is a sentence");
            let texts =
                check.messages.iter().chain(check.remedy.iter().map(|s| &s.text)).chain([&check.title, &check.why]);
            for text in texts {
                let lower = text.to_ascii_lowercase();
                assert!(FORBIDDEN.iter().all(|phrase| !lower.contains(phrase)), "{id}: {text}");
                assert!(text.is_ascii(), "{id}: {text}");
                assert_eq!(text.matches('{').count(), text.matches('}').count(), "{id}: {text}");
            }
        }
    }
}
