//! The family `nodes`: are they there, right and usable?

use crate::model::Check;

pub(crate) mod expect;
pub(crate) mod given;
pub(crate) mod role;
pub(crate) mod ways;

/// Its checks, in the catalogue's order.
pub const CHECKS: &[&[Check]] = &[];
