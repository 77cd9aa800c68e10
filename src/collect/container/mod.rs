//! Facts of one container: its spec, its intent, its nodes, its libraries.

mod environment;
mod given;
mod intent;
mod names;
mod origin;
mod paths;
mod signs;
mod spec;
mod state;
#[cfg(test)]
mod testing;

pub use spec::Spec;
pub use state::State;
