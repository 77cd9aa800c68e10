//! The family `image`: does it suit driver and GPU?

use crate::model::Check;

mod builds;
mod code;
mod compat;
mod gpus;
mod libcuda;
mod meant;
mod needs;
mod require;
mod start;
mod target;

/// Its checks, in the catalogue's order.
pub const CHECKS: &[&[Check]] =
    &[require::CHECKS, start::CHECKS, compat::CHECKS, code::CHECKS, builds::CHECKS, target::CHECKS];
