//! From a report to what is printed or logged. No decisions, no printing.

#[cfg(feature = "cli")]
pub mod answer;
#[cfg(feature = "cli")]
pub mod explained;
#[cfg(feature = "cli")]
pub mod image;
#[cfg(feature = "cli")]
pub mod json;
#[cfg(feature = "cli")]
pub mod junit;
pub mod line;
pub mod log;
#[cfg(feature = "cli")]
pub mod machine;
#[cfg(feature = "cli")]
pub mod matrix;
#[cfg(feature = "cli")]
pub mod profile;
#[cfg(feature = "cli")]
pub mod sarif;
#[cfg(feature = "cli")]
pub mod sheet;
#[cfg(feature = "cli")]
pub mod status;
#[cfg(feature = "cli")]
pub mod text;
