//! How many GPUs CUDA will see: indices count inside the container.

use crate::checks::request::asked;
use crate::knowledge::visible_devices::select;
use crate::model::container::{ContainerNode, Given};
use crate::model::host::{Gpu, Majors, NodeKind, Platform};
use crate::model::{Facts, Place, Unknown};

/// The GPUs that CUDA can number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gpus {
    /// How many, at least one.
    pub(super) count: usize,
    /// Their UUIDs, if every one is known.
    pub(super) uuids: Option<Vec<String>>,
    /// Parts of GPUs are among them, so that CUDA counts otherwise.
    pub(super) in_parts: bool,
}

/// The GPUs of the container, or of the machine; `None`: not such as are counted by nodes.
pub(super) fn of(facts: &Facts<'_>) -> Result<Option<Gpus>, Unknown> {
    if facts.host.platform != Platform::Native {
        return Ok(None);
    }
    let gpus = if facts.place == Place::Host {
        let gpus = facts.host.gpus.known()?;
        from(&gpus.iter().filter(|g| !g.excluded).collect::<Vec<_>>(), false)
    } else if matches!(facts.container.gpu_given.known()?, Given::None | Given::Wsl | Given::Tegra | Given::Vm) {
        return Ok(None);
    } else if facts.container.legacy_still_to_run() {
        let Some(gpus) = to_be_injected(facts)? else { return Ok(None) };
        gpus
    } else {
        by_nodes(facts.container.devices.known()?, facts.host.gpus.seen().map_or(&[], Vec::as_slice))
    };
    Ok((gpus.count > 0).then_some(gpus))
}

fn to_be_injected(facts: &Facts<'_>) -> Result<Option<Gpus>, Unknown> {
    let Some(asked) = asked::of_hook(facts)? else { return Ok(None) };
    let gpus = facts.host.gpus.known()?;
    asked.certain?;
    let selection = select(&asked.request, gpus);
    let selected: Vec<&Gpu> = gpus.iter().filter(|g| selection.gpus.contains(&g.index)).collect();
    // what is not here stops the start, and other checks say so
    Ok(selection.unmatched.is_empty().then(|| from(&selected, !selection.open.is_empty())))
}

fn from(gpus: &[&Gpu], in_parts: bool) -> Gpus {
    Gpus { count: gpus.len(), uuids: gpus.iter().map(|g| g.uuid.clone()).collect(), in_parts }
}

fn by_nodes(nodes: &[ContainerNode], gpus: &[Gpu]) -> Gpus {
    // by its number, not its name: `--device /dev/nvidia1:/dev/nvidia0`
    let is_gpu = |n: &&ContainerNode| n.kind == NodeKind::CharDevice && Majors::gpu_minor(&n.path).is_some();
    let minors: Vec<u32> = nodes.iter().filter(is_gpu).map(|n| n.minor).collect();
    let of = |minor: &u32| gpus.iter().find(|g| g.minor == Some(*minor));
    Gpus {
        count: minors.len(),
        uuids: minors.iter().map(|minor| of(minor)?.uuid.clone()).collect(),
        in_parts: nodes.iter().any(|n| n.path.starts_with("/dev/nvidia-caps/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::LegacyState;

    fn count(world: &World) -> Option<usize> {
        of(&world.facts()).unwrap().map(|g| g.count)
    }

    #[test]
    fn nodes_count_and_before_injection_the_request_does() {
        assert_eq!(count(&World::cdi(3)), Some(3));
        assert_eq!(count(&World::legacy(2, LegacyState::HasRun)), Some(2));
        let mut world = World::legacy(4, LegacyState::StillToRun);
        assert_eq!(count(&world), Some(4));
        world.container.visible_devices = Observed::Known(Some("1,3".into()));
        assert_eq!(count(&world), Some(2));
        world.container.visible_devices = Observed::Known(Some("9".into()));
        assert_eq!(count(&world), None);
        assert_eq!((count(&World::machine(2)), count(&World::plain())), (Some(2), None));
    }

    #[test]
    fn parts_of_gpus_are_told_apart_and_uuids_only_known_together() {
        let mut world = World::cdi(2);
        assert_eq!(of(&world.facts()).unwrap().unwrap().uuids.unwrap().len(), 2);
        world.node("/dev/nvidia-uvm").path = "/dev/nvidia-caps/nvidia-cap1".into();
        world.host.gpus = unseen();
        let gpus = of(&world.facts()).unwrap().unwrap();
        assert!(gpus.in_parts && gpus.uuids.is_none());
    }
}
