//! More GPUs than were asked for.

use super::asked::visible;
use crate::checks::not_applicable;
use crate::knowledge::visible_devices::{Request, item, parse, select};
use crate::model::check::{Check, Failure, Judgement, Outcome, Place, Severity};
use crate::model::container::Given;
use crate::model::host::{Majors, NodeKind};
use crate::model::{Container, Facts, Unknown};

const MORE: &str = "{asked} asks for {wanted}, and the container has {given} GPUs";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "more-gpus-than-requested",
    title: "the container has more GPUs than were asked for",
    why: "It can use GPUs that are meant for others, and indices in it differ from those asked for.",
    messages: &[MORE],
    remedy: &[],
    severities: &[Severity::Note],
    places: &[Place::Hook],
    judge: more_gpus_than_requested,
}];

fn more_gpus_than_requested(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    match *container.gpu_given.known()? {
        Given::Privileged | Given::RawDevices | Given::Cdi => {}
        Given::LegacyHook if !container.legacy_still_to_run() => {}
        _ => return not_applicable(),
    }
    let Some((request, text)) = asked(container)? else { return not_applicable() };
    let given = container
        .devices
        .known()?
        .iter()
        .filter(|n| n.kind == NodeKind::CharDevice && Majors::gpu_minor(&n.path).is_some())
        .count();
    let selection = select(&request, facts.host.gpus.known()?);
    // parts of GPUs and names that nobody can tell are no numbers
    if !selection.open.is_empty() || !selection.unmatched.is_empty() || selection.gpus.is_empty() {
        return not_applicable();
    }
    if given <= selection.gpus.len() {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Note, MORE)
        .foreign("asked", text)
        .arg("wanted", selection.gpus.len())
        .arg("given", given)
        .found()
}

fn asked(container: &Container) -> Result<Option<(Request, String)>, Unknown> {
    let Some(value) = visible(container)? else { return Ok(None) };
    Ok(match parse(value) {
        request @ Request::List(_) => Some((request, format!("NVIDIA_VISIBLE_DEVICES={value}"))),
        Request::VolumeMounts => {
            let mounts = container.volume_mount_devices.known()?;
            Some((Request::List(mounts.iter().map(|name| item(name)).collect()), mounts.join(",")))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::{Given, LegacyState};

    const ID: &str = "more-gpus-than-requested";

    fn privileged(asked: &str) -> World {
        let mut world = World::cdi(4);
        world.container.gpu_given = Observed::Known(Given::Privileged);
        world.container.visible_devices = Observed::Known(Some(asked.into()));
        world
    }

    #[test]
    fn four_where_one_was_asked_for_is_a_note() {
        privileged("0").failure(ID);
        let mut world = privileged("/var/run/nvidia-container-devices");
        world.container.volume_mount_devices = Observed::Known(vec!["2".into()]);
        world.failure(ID);
    }

    #[test]
    fn as_many_as_asked_for_or_a_request_without_a_number_is_fine() {
        for asked in ["0,1,2,3", "all", "void", "MIG-0b", "9"] {
            privileged(asked).silent(ID);
        }
        World::legacy(4, LegacyState::StillToRun).silent(ID);
        World::plain().silent(ID);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = privileged("0");
        world.container.devices = unseen();
        world.unknown(ID);
        let mut world = privileged("0");
        world.host.gpus = unseen();
        world.unknown(ID);
    }
}
