//! The only code that reads the world. It returns facts, never opinions.

pub mod child;
pub mod container;
#[cfg(feature = "cli")]
mod engine_api;
pub mod files;
pub mod host;
#[cfg(feature = "cli")]
mod http;
pub mod image;
pub mod knowledge;
mod loader;
mod paths;
pub mod policy;
mod process_stat;
pub mod rehearsal;
pub mod remembered;
#[cfg(test)]
mod testing;
pub mod tree;
pub mod users;
