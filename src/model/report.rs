//! What comes out: findings with their words, what stayed unknown, and the verdict.

use serde::Serialize;

use super::check::{Action, Evidence, Family, Severity};

/// The answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No GPU wanted or given: nothing to judge.
    Skip,
    /// No error, and nothing that could be one was left open.
    Pass,
    /// No error, but a check that could be one could not be judged.
    Unknown,
    /// At least one error.
    Fail,
}

/// A remedy in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// The kind of act.
    pub action: Action,
    /// What to do.
    pub text: String,
    /// A command that does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A defect, after policy, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check's name.
    pub id: &'static str,
    /// After the policy.
    pub severity: Severity,
    /// The check's family.
    pub subject: Family,
    /// The defect in one line.
    pub title: &'static str,
    /// What was wanted, what was found.
    pub message: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// The ways out.
    pub remedy: Vec<Remedy>,
    /// The policy, an option or the container says that it does not count.
    pub ignored: bool,
}

/// A check that lacked a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unjudged {
    /// The check's name.
    pub check: &'static str,
    /// The check's family.
    #[serde(skip)]
    pub family: Family,
    /// It could have been an error, so the verdict cannot be `pass`.
    #[serde(skip)]
    pub could_be_error: bool,
    /// The fact that was lacking.
    pub fact: String,
    /// Where it was looked for.
    pub source: String,
    /// Why it was not seen.
    pub reason: String,
}

/// A check that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// The check's name.
    pub check: &'static str,
    /// The check's family.
    pub family: Family,
    /// All is well; else the question does not arise here.
    pub passed: bool,
}

/// The result of one question, before it is printed in some format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The answer.
    pub verdict: Verdict,
    /// In the order cause before consequence.
    pub findings: Vec<Finding>,
    /// What could not be judged.
    pub unknown: Vec<Unjudged>,
    /// The checks that were asked and found nothing.
    pub settled: Vec<Settled>,
}

impl Report {
    /// The findings that count.
    pub fn counted(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| !f.ignored)
    }

    /// The first error: what the hook's line and exit code speak of.
    pub fn first_error(&self) -> Option<&Finding> {
        self.counted().find(|f| f.severity == Severity::Error)
    }
}
