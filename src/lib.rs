//! Finds out before a container starts whether its GPU will work.
//!
//! **Collect facts, judge them, decide by policy, report.** Data runs one way:
//!
//! ```text
//!      stdin / argv / REF                                                    exit code, message, log line
//!            |                                                                          ^
//!      +-----v-----+  Facts   +--------+  Outcomes   +--------+  Report+Decision  +-----+----+
//!      |  collect  +--------->| checks +------------>| policy +------------------>|  report  |
//!      +-----+-----+          +---+----+             +--------+                   +----------+
//!            +----> knowledge <---+            commands wires them, and knows all
//! ```
//!
//! `model` imports nothing of ours; `knowledge` only `model`; `collect`, `checks`, `policy`, `report`,
//! `register` and `runtime` only `model` and (`collect`, `checks`) `knowledge`, never each other. A test holds this.

pub mod checks;
#[cfg(feature = "cli")]
pub mod cli;
pub mod collect;
pub mod commands;
pub mod knowledge;
pub mod model;
pub mod policy;
#[cfg(feature = "cli")]
pub mod register;
pub mod report;
pub mod runtime;
