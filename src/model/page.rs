//! What is known of a cause beyond its check: how it is told from others, and a page where there is no check yet.

use super::check::{Severity, Step};

/// How a cause is told from others with the same error text.
#[derive(Debug, Clone, Copy)]
pub struct Sign {
    /// The check's name.
    pub id: &'static str,
    /// What is so with this cause and not with the others, in whole sentences.
    pub tells_apart: &'static str,
    /// Commands that show whether it is the one, ours first.
    pub verify: &'static [&'static str],
}

/// The page of a cause that no check judges: only `explain` knows it, or the check comes later.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Its only name, one of the catalogue.
    pub id: &'static str,
    /// The defect in one line, without the way out.
    pub title: &'static str,
    /// What breaks, as the user will see it.
    pub why: &'static str,
    /// The severities that its check will have; none where there will never be one.
    pub severities: &'static [Severity],
    /// What is so with this cause and not with the others, in whole sentences.
    pub tells_apart: &'static str,
    /// Commands that show whether it is the one, ours first.
    pub verify: &'static [&'static str],
    /// The ways out, quick and harmless first.
    pub remedy: &'static [Step],
}
