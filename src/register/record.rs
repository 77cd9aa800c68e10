//! What was changed, so that it can be taken back byte for byte.

use serde::{Deserialize, Serialize};

/// Where the records lie, one for each engine, and below it the files as they were.
pub use crate::model::own::RECORDS as DIRECTORY;

/// What was changed for one engine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Record {
    /// Of this form.
    pub schema_version: u32,
    /// The files.
    pub files: Vec<Changed>,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Where it lies.
    pub path: String,
    /// Something stood there before, which is kept.
    pub existed: bool,
    /// Digest of what was written.
    pub after: String,
    /// Directories that were made for it, the uppermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<String>,
}

impl Record {
    /// What was changed in a file.
    pub fn file(&self, path: &str) -> Option<&Changed> {
        self.files.iter().find(|changed| changed.path == path)
    }
}
