//! Facts of one container: its spec, its intent, its nodes, its libraries.
//!
//! Three ways lead here: [`read_bundle`] foretells a container that nobody has started, [`read_hook`]
//! looks at one that is starting, [`read_pid`] at one that runs. [`from_spec`] is what they share, and
//! reads no file: the runtime asks it whether a container has to do with GPUs at all.

mod assemble;
#[cfg(test)]
mod assemble_tests;
mod bundle;
mod entrypoint;
mod environment;
mod foretell;
mod given;
mod hook;
mod intent;
mod libcuda;
mod names;
pub mod nodes;
mod origin;
mod paths;
mod procfs;
mod request;
mod running;
mod signs;
mod spec;
mod state;
#[cfg(test)]
mod testing;

pub use assemble::{Call, from_spec};
pub use bundle::{Reading, read_bundle};
pub use hook::read_hook;
pub use running::read_pid;
pub use spec::Spec;
pub use state::State;
