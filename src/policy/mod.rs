//! What to do about the outcomes: severities, what is ignored or exempt, who may override it, and
//! whether a container starts. Pure: the files' text comes in, a report and a decision go out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::Severity;

mod apply;
mod exempt;
mod file;
mod overrides;

pub use apply::{Decision, FailOn, essential_unknown, exit_code, report};
pub use exempt::Exempt;
pub use file::{Trouble, known_checks};
pub use overrides::Asked;

/// What the hook does about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Mode {
    /// Judges nothing.
    Off,
    /// Says what it would refuse, and starts.
    Warn,
    /// Refuses.
    #[default]
    Enforce,
}

impl Mode {
    /// Its name in files, annotations and the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Enforce => "enforce",
        }
    }

    /// The mode of a name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Off, Self::Warn, Self::Enforce].into_iter().find(|mode| mode.name() == name)
    }
}

/// The administrator's policy. The default is what holds without any file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// `mode`
    pub mode: Mode,
    /// `on_unknown = "refuse"`
    pub refuse_unknown: bool,
    /// `ignore`
    pub ignore: BTreeSet<String>,
    /// `[severity]`
    pub severity: BTreeMap<String, Severity>,
    /// `[exempt]`
    pub exempt: Exempt,
    /// `[runtime] path`
    pub runtime: Vec<String>,
    /// `wait_for_driver`
    pub wait_for_driver: Duration,
    /// `allow_override`
    pub allow_override: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::Enforce,
            refuse_unknown: false,
            ignore: BTreeSet::new(),
            severity: BTreeMap::new(),
            exempt: Exempt::default(),
            runtime: vec!["runc".to_owned(), "crun".to_owned()],
            wait_for_driver: Duration::ZERO,
            allow_override: true,
        }
    }
}
