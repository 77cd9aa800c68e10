//! The family `environment`: is it sane?

use std::collections::BTreeMap;

use crate::model::container::Given;
use crate::model::{Check, Facts, Place, Unknown};

mod gpus;
mod loader;
mod platform;
mod visible;

/// Its checks, in the catalogue's order.
pub const CHECKS: &[&[Check]] = &[visible::CHECKS, loader::CHECKS, platform::CHECKS];

/// The environment that is judged: the caller's on a machine with a GPU, or that of a container to which one was given.
fn judged<'a>(facts: &Facts<'a>) -> Result<Option<&'a BTreeMap<String, String>>, Unknown> {
    if facts.place == Place::Host {
        let environment = facts.host.environment.known()?;
        return Ok((facts.host.has_gpu() != Ok(false)).then_some(environment));
    }
    let container = facts.container;
    match container.gpu_given.known()? {
        // a virtual machine's programs have an environment of their own
        Given::None | Given::Vm => Ok(None),
        _ => container.environment.known().map(Some),
    }
}

/// Whose environment that is, as facts have it.
fn subject(facts: &Facts<'_>) -> &'static str {
    if facts.place == Place::Host { "host" } else { "container" }
}
