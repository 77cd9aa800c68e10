//! Facts of one container: its spec, its intent, its nodes, its libraries.

mod spec;
#[cfg(test)]
mod testing;

pub use spec::Spec;
