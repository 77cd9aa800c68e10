//! Which GPUs a container was given.

use crate::knowledge::visible_devices::{self, Item, Request};
use crate::model::container::Given;
use crate::model::host::Gpu;
use crate::model::{Facts, Unknown};

use super::expect::arguments_of_tool;
use super::role::{Role, role};

/// How many GPUs the container was given.
pub(crate) fn given_count(facts: &Facts<'_>) -> Result<usize, Unknown> {
    Ok(facts.container.devices.known()?.iter().filter(|node| role(&node.path) == Role::Gpu).count())
}

/// The nodes of the GPUs that the legacy hook was asked for; `None`: the GPU does not come by it, or the
/// request names what files cannot resolve, such as MIG devices.
pub(crate) fn nodes_asked_of_legacy(facts: &Facts<'_>) -> Result<Option<Vec<String>>, Unknown> {
    let Some(request) = request_to_legacy(facts)? else { return Ok(None) };
    let gpus = facts.host.gpus.known()?;
    let selection = visible_devices::select(&request, gpus);
    let unread = |what: &str| Unknown::new("host.gpus", "/proc/driver/nvidia/gpus", format!("{what} was not read"));
    if selection.open.iter().any(|item| matches!(item, Item::Uuid(_))) {
        return Err(unread("the UUID of a GPU"));
    }
    if !selection.open.is_empty() || !selection.unmatched.is_empty() {
        return Ok(None);
    }
    let asked = gpus.iter().filter(|gpu| selection.gpus.contains(&gpu.index));
    asked
        .map(|gpu| node_of(gpu).ok_or_else(|| unread("the number of a GPU's node")))
        .collect::<Result<_, _>>()
        .map(Some)
}

/// How many GPUs the legacy hook was asked for at most, which needs none of their identities.
pub(crate) fn count_asked_of_legacy(facts: &Facts<'_>) -> Result<Option<usize>, Unknown> {
    Ok(match request_to_legacy(facts)? {
        Some(Request::All) => Some(facts.host.gpus.known()?.iter().filter(|gpu| !gpu.excluded).count()),
        Some(Request::List(items)) => Some(items.len()),
        _ => None,
    })
}

fn request_to_legacy(facts: &Facts<'_>) -> Result<Option<Request>, Unknown> {
    if *facts.container.gpu_given.known()? != Given::LegacyHook || arguments_of_tool(facts).is_some() {
        return Ok(None);
    }
    Ok(Some(match facts.container.visible_devices.known()? {
        Some(list) => visible_devices::parse(list),
        // An image of the old kind means all by leaving it out.
        None => Request::All,
    }))
}

/// MIG devices, and nothing else, were asked for by name: by variable, CDI annotation or device plugin.
pub(crate) fn asks_for_mig(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let container = facts.container;
    let is_mig = |item: &Item| matches!(item, Item::Mig { .. } | Item::MigUuid(_) | Item::MigOldName(_));
    let listed = match container.visible_devices.known()?.as_deref().map(visible_devices::parse) {
        Some(Request::List(items)) => items,
        _ => Vec::new(),
    };
    // A CDI device is named as the tools name it: `nvidia.com/gpu=MIG-…`, `nvidia.com/gpu=0:1`.
    let mounted = container.volume_mount_devices.seen().map(Vec::as_slice).unwrap_or_default();
    let named = container.cdi_annotations.known()?.iter().chain(mounted);
    let named =
        named.map(|name| visible_devices::item(name.rsplit_once('=').map_or(name.as_str(), |(_, device)| device)));
    let all: Vec<Item> = listed.into_iter().chain(named).collect();
    Ok(!all.is_empty() && all.iter().all(is_mig))
}

/// Path of a GPU's node.
pub(crate) fn node_of(gpu: &Gpu) -> Option<String> {
    Some(format!("/dev/nvidia{}", gpu.minor?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::LegacyState;

    #[test]
    fn nodes_tell_what_was_given() {
        let mut world = World::cdi(3);
        assert_eq!(given_count(&world.facts()), Ok(3));
        world.without_node("/dev/nvidia1", false);
        assert_eq!(given_count(&world.facts()), Ok(2));
        assert_eq!(nodes_asked_of_legacy(&world.facts()), Ok(None));
        world.container.devices = unseen();
        assert!(given_count(&world.facts()).is_err());
    }

    #[test]
    fn the_request_tells_what_the_legacy_hook_was_asked_for() {
        let mut world = World::legacy(3, LegacyState::StillToRun);
        for (asked, count, expected) in [
            (Some("all"), 3, Some(vec![0, 1, 2])),
            (None, 3, Some(vec![0, 1, 2])),
            (Some("1"), 1, Some(vec![1])),
            (Some("2, 0,2"), 3, Some(vec![0, 2])),
            (Some("gpu-00000001-0000-4000-8000-000000000001"), 1, Some(vec![1])),
            (Some("7"), 1, None),
            (Some("MIG-0000000b-0000-4000-8000-000000000001"), 1, None),
        ] {
            world.container.visible_devices = Observed::Known(asked.map(str::to_owned));
            let nodes = expected.map(|minors: Vec<u32>| minors.iter().map(|n| format!("/dev/nvidia{n}")).collect());
            assert_eq!(nodes_asked_of_legacy(&world.facts()), Ok(nodes), "{asked:?}");
            assert_eq!(count_asked_of_legacy(&world.facts()), Ok(Some(count)), "{asked:?}");
        }
        world.host.gpus = unseen();
        assert!(nodes_asked_of_legacy(&world.facts()).is_err());
    }

    #[test]
    fn identities_that_were_not_read_are_asked_for() {
        for asked in ["0", "GPU-00000000-0000-4000-8000-000000000001"] {
            let mut world = World::legacy(1, LegacyState::HasRun);
            world.container.visible_devices = Observed::Known(Some(asked.to_owned()));
            let Observed::Known(gpus) = &mut world.host.gpus else { panic!() };
            (gpus[0].uuid, gpus[0].minor) = (None, None);
            assert_eq!(nodes_asked_of_legacy(&world.facts()).unwrap_err().fact, "host.gpus", "{asked}");
            assert_eq!(count_asked_of_legacy(&world.facts()), Ok(Some(1)));
        }
    }

    #[test]
    fn mig_devices_are_known_by_their_names() {
        for (visible, annotation, mig) in [
            ("MIG-0000000b-0000-4000-8000-000000000001", None, true),
            ("0:1", None, true),
            ("0", None, false),
            ("all", None, false),
            ("all", Some("nvidia.com/gpu=MIG-0000000b-0000-4000-8000-000000000001"), true),
            ("0", Some("nvidia.com/gpu=0:1"), false),
        ] {
            let mut world = World::cdi(1);
            world.container.visible_devices = Observed::Known(Some(visible.to_owned()));
            world.container.cdi_annotations = Observed::Known(annotation.map(str::to_owned).into_iter().collect());
            assert_eq!(asks_for_mig(&world.facts()), Ok(mig), "{visible} {annotation:?}");
        }
    }
}
