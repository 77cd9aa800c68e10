//! Registration with the engines, as changes to their configuration files: pure functions from a text to a text.
//!
//! A file is edited in its own format: comments, order and layout stay. What cannot be understood is not touched.

use std::fmt;

use crate::model::own::is_our_runtime as is_ours;
pub use crate::model::own::{DIRECTORY, HOOK, RUNTIME, RUNTIME_NAME};

pub mod cdi;
pub mod containerd;
pub mod docker;
pub mod hooks_d;
mod json;
mod layout;
pub mod nvidia;
pub mod policy;
pub mod record;
mod table;
pub mod wrapper;

/// Why a file is not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// It is not what its format asks for.
    Broken(String),
    /// It is sound, and a change to it would do harm.
    Refused {
        /// Why.
        reason: String,
        /// What to do instead.
        way_out: String,
    },
}

impl Trouble {
    fn refused(reason: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into(), way_out: way_out.into() }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(reason) => write!(f, "{reason}; it is left as it is"),
            Self::Refused { reason, .. } => f.write_str(reason),
        }
    }
}

/// What is the default already is not made a runtime beside the others in passing: what was the default before is known
/// to `uninstall`.
fn already_default(engine: &str) -> Trouble {
    Trouble::refused(
        "it is the default runtime already",
        format!("gpu-preflight uninstall {engine}, then the same again"),
    )
}

/// A real runtime that our program takes by itself, without being told.
fn is_runc(program: &str) -> bool {
    // one that lies elsewhere may be another than that which PATH leads to
    program == "runc" || matches!(program.rsplit_once('/'), Some(("/usr/bin" | "/usr/sbin" | "/bin" | "/sbin", "runc")))
}
