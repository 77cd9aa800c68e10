//! Facts of one container: its spec, its intent, its nodes, its libraries.

mod entrypoint;
mod environment;
mod foretell;
mod given;
mod intent;
mod libcuda;
mod names;
pub mod nodes;
mod origin;
mod paths;
mod request;
mod signs;
mod spec;
mod state;
#[cfg(test)]
mod testing;

pub use spec::Spec;
pub use state::State;
