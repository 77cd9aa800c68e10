//! What a check is: one literal and one pure function.

use std::fmt::Display;

use serde::Serialize;

use super::{Facts, Unknown};

/// How sure and how bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing to do.
    Note,
    /// Likely trouble, now or later.
    Warning,
    /// Certain: GPU work will fail, or does.
    Error,
}

/// The family of a check, and the `subject` of its findings.
///
/// The order is that of the hook's exit code: the cause stands before its consequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Does the driver run?
    Driver,
    /// Are the device nodes there, right and usable?
    Nodes,
    /// Was a GPU asked for, and given?
    Request,
    /// Is the container stack set up?
    Stack,
    /// Does the image suit driver and GPU?
    Image,
    /// Is the environment sane?
    Environment,
}

impl Family {
    /// What the hook exits with when the first error is of this family. Under crun it is all a user sees.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Request => 10,
            Self::Nodes => 11,
            Self::Driver => 12,
            Self::Stack => 13,
            Self::Image => 14,
            Self::Environment => 15,
        }
    }

    /// Its name in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Nodes => "nodes",
            Self::Request => "request",
            Self::Stack => "stack",
            Self::Image => "image",
            Self::Environment => "environment",
        }
    }
}

/// Where a check is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The hook, the runtime and `container`: one container on this machine.
    Hook,
    /// `image`: an image before deploy.
    Image,
    /// `host`: this machine.
    Host,
    /// `healthcheck`: inside a container.
    Healthcheck,
    /// `status`: how this machine calls the hook.
    Status,
}

/// What kind of act a remedy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are the words of the report")]
pub enum Action {
    PassGpu,
    ConfigureEngine,
    RegenerateCdi,
    LoadModule,
    UpdateDriver,
    Reboot,
    ChangeImage,
    ChangePackages,
    ChangeEnvironment,
    FixPermissions,
    FreeGpu,
    ResetGpu,
    StartService,
    ReplaceHardware,
    None,
}

/// One step out of the trouble. `text` and `command` are templates like a check's message.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The kind of act.
    pub action: Action,
    /// What to do, an imperative sentence with a full stop.
    pub text: &'static str,
    /// A command line that does it, if there is one.
    pub command: Option<&'static str>,
}

/// A check: what defect it names, how it says so, and the function that judges.
///
/// The literal is the only source of a check's documentation: pages, schema and lists are made from it.
pub struct Check {
    /// The check's only name, kebab-case. It names the defect, never changes its meaning, is never reused.
    pub id: &'static str,
    /// The defect in one line, without the way out.
    pub title: &'static str,
    /// What breaks, as the user will see it.
    pub why: &'static str,
    /// The templates of its messages; `{name}` is an argument. The first is the usual one.
    pub messages: &'static [&'static str],
    /// The ways out, first the one that usually fits.
    pub remedy: &'static [Step],
    /// The severities it can have; the first is the default.
    pub severities: &'static [Severity],
    /// Where it is asked.
    pub places: &'static [Place],
    /// The judgement: pure, over the facts and the tables of `knowledge`.
    pub judge: fn(&Facts<'_>) -> Judgement,
}

/// A check with what it came to.
pub struct Judged {
    /// Its family.
    pub family: Family,
    /// The check.
    pub check: &'static Check,
    /// The worst that it can come to where it was asked, which may be less than elsewhere.
    pub worst: Severity,
    /// What it came to.
    pub judgement: Judgement,
}

/// What a judgement comes to, or the fact it lacked.
pub type Judgement = Result<Outcome, Unknown>;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It looked, and all is well.
    Pass,
    /// The question does not arise here.
    NotApplicable,
    /// The defect is there.
    Fail(Box<Failure>),
}

impl Outcome {
    /// The failure, if it is one.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Fail(failure) => Some(failure),
            _ => None,
        }
    }
}

/// A fact that a finding rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Its name as in the report's facts.
    pub fact: String,
    /// What was seen.
    pub value: String,
    /// Where.
    pub source: String,
}

/// The defect as it shows here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// How bad it is here.
    pub severity: Severity,
    /// One of the check's `messages`.
    pub message: &'static str,
    /// The arguments of message and remedy. Values are quoted, escaped and cut when they are put in.
    pub args: Vec<(&'static str, Arg)>,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// Only remedies of these kinds fit here; empty: all.
    pub only: &'static [Action],
}

/// A value in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arg {
    /// Our own words, or a number.
    Ours(String),
    /// Text from an image, a spec or another foreign place: quoted, escaped, cut.
    Foreign(String),
}

impl Failure {
    /// The defect, said with `message`.
    pub fn new(severity: Severity, message: &'static str) -> Self {
        Self { severity, message, args: Vec::new(), evidence: Vec::new(), only: &[] }
    }

    /// An argument in our own words.
    #[must_use]
    pub fn arg(mut self, name: &'static str, value: impl Display) -> Self {
        self.args.push((name, Arg::Ours(value.to_string())));
        self
    }

    /// An argument with foreign text.
    #[must_use]
    pub fn foreign(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.args.push((name, Arg::Foreign(value.into())));
        self
    }

    /// A fact it rests on.
    #[must_use]
    pub fn saw(mut self, fact: impl Into<String>, value: impl Display, source: impl Into<String>) -> Self {
        self.evidence.push(Evidence { fact: fact.into(), value: value.to_string(), source: source.into() });
        self
    }

    /// Only remedies of these kinds.
    #[must_use]
    pub fn only(mut self, actions: &'static [Action]) -> Self {
        self.only = actions;
        self
    }

    /// As what a judgement returns.
    pub fn found(self) -> Judgement {
        Ok(Outcome::Fail(Box::new(self)))
    }
}
