//! Which GPUs a container was given.

use crate::model::container::{Given, LegacyState};
use crate::model::host::{Gpu, Majors};
use crate::model::{Facts, Unknown};

use super::role::{Role, role};

/// The GPUs that the container was given, or that its legacy hook will give it.
/// `None`: which ones cannot be told, for instance because they were asked for by MIG ids.
pub(crate) fn given_gpus<'a>(facts: &Facts<'a>) -> Result<Option<Vec<&'a Gpu>>, Unknown> {
    match requested(facts)? {
        Some(Request::These(gpus)) if facts.container.legacy_still_to_run() => return Ok(Some(gpus)),
        Some(Request::Other) if facts.container.legacy_still_to_run() => return Ok(None),
        _ => {}
    }
    let gpus = facts.host.gpus.known()?;
    let minors: Vec<u32> = facts
        .container
        .devices
        .known()?
        .iter()
        .filter(|node| role(&node.path) == Role::Gpu)
        .map(|node| node.minor)
        .collect();
    Ok(Some(gpus.iter().filter(|gpu| gpu.minor.is_some_and(|minor| minors.contains(&minor))).collect()))
}

/// How many GPUs the container was given; `None`: cannot be told.
pub(crate) fn given_count(facts: &Facts<'_>) -> Result<Option<usize>, Unknown> {
    if facts.container.legacy_still_to_run() {
        return Ok(given_gpus(facts)?.map(|gpus| gpus.len()));
    }
    let devices = facts.container.devices.known()?;
    Ok(Some(devices.iter().filter(|node| role(&node.path) == Role::Gpu).count()))
}

/// What was asked of the legacy hook.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    /// These GPUs.
    These(Vec<&'a Gpu>),
    /// Something else: MIG devices, or names that files cannot resolve.
    Other,
}

/// What was asked of the legacy hook; `None`: the GPU does not come by it.
pub(crate) fn requested<'a>(facts: &Facts<'a>) -> Result<Option<Request<'a>>, Unknown> {
    if *facts.container.gpu_given.known()? != Given::LegacyHook {
        return Ok(None);
    }
    let asked = facts.container.visible_devices.known()?.as_deref().unwrap_or_default();
    let words: Vec<&str> = asked.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    let usable = || facts.host.gpus.known().map(|all| all.iter().filter(|gpu| !gpu.excluded));
    // An old image without the variable means all.
    if words.is_empty() || words.contains(&"all") {
        return Ok(Some(Request::These(usable()?.collect())));
    }
    let mut gpus: Vec<&Gpu> = Vec::new();
    for word in words {
        let named = |gpu: &&Gpu| {
            word.parse() == Ok(gpu.index) || gpu.uuid.as_deref().is_some_and(|uuid| uuid.eq_ignore_ascii_case(word))
        };
        match usable()?.find(named) {
            Some(gpu) if !gpus.contains(&gpu) => gpus.push(gpu),
            Some(_) => {}
            None => return Ok(Some(Request::Other)),
        }
    }
    Ok(Some(Request::These(gpus)))
}

/// MIG devices were asked for by name: of the legacy hook, by CDI annotation, or by the device plugin.
pub(crate) fn asks_for_mig(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let container = facts.container;
    let visible = container.visible_devices.known()?.as_deref().unwrap_or_default();
    let by_variable = visible.split(',').any(|word| word.trim().starts_with("MIG-"));
    let by_name = |names: &Vec<String>| names.iter().any(|name| name.contains("MIG-"));
    Ok(by_variable || by_name(container.cdi_annotations.known()?) || by_name(container.volume_mount_devices.known()?))
}

/// The legacy hook has run: what it did not make, nobody will.
pub(crate) fn legacy_has_run(facts: &Facts<'_>) -> bool {
    facts.container.legacy_hook.as_ref().is_some_and(|hook| hook.state == LegacyState::HasRun)
}

/// Path of a GPU's node.
pub(crate) fn node_of(gpu: &Gpu) -> Option<String> {
    let path = format!("/dev/nvidia{}", gpu.minor?);
    Majors::gpu_minor(&path).map(|_| path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;

    fn given(world: &World) -> Result<Option<Vec<u32>>, Unknown> {
        let facts = Facts { host: &world.host, image: &world.image, container: &world.container, place: world.place };
        Ok(given_gpus(&facts)?.map(|gpus| gpus.iter().map(|g| g.index).collect()))
    }

    #[test]
    fn nodes_tell_what_was_given() {
        let mut world = World::cdi(3);
        assert_eq!(given(&world), Ok(Some(vec![0, 1, 2])));
        world.without_node("/dev/nvidia1", false);
        assert_eq!(given(&world), Ok(Some(vec![0, 2])));
        world.container.devices = unseen();
        assert!(given(&world).is_err());
    }

    #[test]
    fn the_request_tells_what_the_legacy_hook_will_give() {
        let mut world = World::legacy(3, LegacyState::StillToRun);
        assert_eq!(given(&world), Ok(Some(vec![0, 1, 2])));
        for (asked, expected) in [
            ("1", Some(vec![1])),
            ("2, 0,2", Some(vec![2, 0])),
            ("gpu-00000001-0000-4000-8000-000000000001", Some(vec![1])),
            ("7", None),
            ("MIG-0000000b-0000-4000-8000-000000000001", None),
            ("0:1", None),
        ] {
            world.container.visible_devices = Observed::Known(Some(asked.into()));
            assert_eq!(given(&world), Ok(expected), "{asked}");
        }
        world.host.gpus = unseen();
        assert!(given(&world).is_err());
    }
}
