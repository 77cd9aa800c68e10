//! What a command came to, before it is printed in some format: one answer, or one for each host.

use super::json::Subjects;
use crate::model::{Report, Verdict};

/// What came out for one host.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Which: `this machine`, a profile's file, what was stated.
    pub host: &'a str,
    /// What came out.
    pub report: &'a Report,
    /// What it rests on.
    pub subjects: Subjects<'a>,
}

/// The worst of several.
pub fn worst(answers: &[Answer<'_>]) -> Verdict {
    answers.iter().map(|answer| answer.report.verdict).max().unwrap_or(Verdict::Skip)
}
