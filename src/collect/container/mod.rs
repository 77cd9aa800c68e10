//! Facts of one container: its spec, its intent, its nodes, its libraries.
//!
//! Four ways lead here: [`read_bundle`] foretells a container that nobody has started, [`Called`] looks
//! at one that is starting or about to, [`read_pid`] at one that runs, [`read_inside`] at the one around this process.
//! [`from_spec`] is what they share, and reads no
//! file.

mod assemble;
#[cfg(test)]
mod assemble_tests;
mod bundle;
mod classic_build;
mod entrypoint;
mod environment;
mod foreseeable;
mod foretell;
mod given;
mod hook;
mod inside;
mod intent;
mod libcuda;
#[cfg(feature = "cli")]
mod locate;
#[cfg(feature = "cli")]
mod named;
mod names;
mod neighbours;
pub mod nodes;
#[cfg(feature = "cli")]
mod of_image;
mod opening;
mod origin;
mod procfs;
mod request;
mod running;
mod signs;
mod spec;
mod state;
#[cfg(test)]
mod testing;

use super::paths;

pub use assemble::{Call, from_spec};
pub use bundle::{Reading, read_bundle};
pub use hook::{Called, Inside};
pub use inside::{own_environment, read_inside};
#[cfg(feature = "cli")]
pub use locate::{Located, by_word};
pub use neighbours::{has_all_gpus_open, other_users};
#[cfg(feature = "cli")]
pub use of_image::of_image;
pub use opening::try_nodes;
pub use running::read_pid;
pub use spec::Spec;
pub use state::State;

/// The cheap look at a `config.json`: does its container want a GPU, or was it given one? A file that
/// cannot be read as a spec is no reason to say yes.
pub fn wants_or_has_gpu(spec: &[u8]) -> bool {
    let spec = Spec::parse(spec.to_vec(), "config.json");
    let container = from_spec(&spec, Call::default(), None);
    container.wants_gpu.wanted
        || container.gpu_given.seen().is_some_and(|given| *given != crate::model::container::Given::None)
}
