//! From a report to what is printed or logged. No decisions, no printing.

#[cfg(feature = "cli")]
pub mod explained;
#[cfg(feature = "cli")]
pub mod json;
pub mod line;
pub mod log;
#[cfg(feature = "cli")]
pub mod sheet;
#[cfg(feature = "cli")]
pub mod text;
