//! What an image's configuration says of how it is run.

use std::collections::BTreeMap;

/// The configuration of an image, as its registry or engine keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Configuration {
    /// Its processor in the words of the image specification (Go's `GOARCH`); empty: it says none.
    pub architecture: String,
    /// Its operating system; empty: it says none.
    pub os: String,
    /// The environment that it sets, the last value of each variable.
    pub environment: BTreeMap<String, String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The user that its program runs as, as it is written; empty: root.
    pub user: String,
    /// The program.
    pub entrypoint: Vec<String>,
    /// The program's arguments, or the program where there is no entrypoint.
    pub command: Vec<String>,
    /// Where the program starts; empty: `/`.
    pub working_directory: String,
    /// How its health is checked, if it says it.
    pub health_check: Option<HealthCheck>,
    /// Digests of its layers' uncompressed archives, bottom to top.
    pub diff_ids: Vec<String>,
}

/// An image's own check of its health.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HealthCheck {
    /// `CMD`, `CMD-SHELL` or `NONE`, then the words of the command.
    pub test: Vec<String>,
}

impl Configuration {
    /// The words that will be run where nobody says otherwise.
    pub fn args(&self) -> Vec<String> {
        self.entrypoint.iter().chain(&self.command).cloned().collect()
    }
}
