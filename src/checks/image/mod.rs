//! The family `image`: does it suit driver and GPU? Here: what the machine's files alone can show.

use crate::model::Check;

mod require;
mod target;

/// Its checks, in the catalogue's order.
pub const CHECKS: &[&[Check]] = &[require::CHECKS, target::CHECKS];
