//! Facts of one container: its spec, its intent, its nodes, its libraries.

mod assemble;
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
