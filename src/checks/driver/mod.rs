//! The family `driver`.

use crate::model::Check;

/// Its checks, in the catalogue's order.
pub const CHECKS: &[&[Check]] = &[];
