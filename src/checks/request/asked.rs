//! Which devices NVIDIA's legacy hook will be asked for: from mounts, from the environment, or neither.
//!
//! Order and conditions by the NVIDIA Container Toolkit (`internal/config/image`, d34b3046, 2026-08-21):
//! volume mounts if the configuration accepts them, else the environment, unless the configuration
//! refuses it to unprivileged containers. A variable named by `swarm-resource` replaces the usual one.
//! The hook of `ctr --gpus` and nerdctl (containerd `contrib/nvidia`) has the list in its arguments and
//! reads no variable.

use crate::knowledge::driver_capabilities::is_old_image;
use crate::knowledge::toolkit::{CLI, base_name};
use crate::knowledge::visible_devices::{Item, Request, item, parse};
use crate::model::container::{Given, LegacyHook};
use crate::model::{Container, Facts, Unknown};

/// `CAP_SYS_ADMIN` in the kernel's mask.
const SYS_ADMIN: u64 = 1 << 21;

/// A list of devices that the hook has still to act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::checks) struct Asked {
    /// What is asked for.
    pub(in crate::checks) request: Request,
    /// The variable and its value, or what stands for it.
    pub(in crate::checks) text: String,
    /// The toolkit's configuration was not seen, so another list may count; needed for errors.
    pub(in crate::checks) certain: Result<(), Unknown>,
}

/// The request that NVIDIA's hook has still to fulfil; `None`: there is no such hook, it has done its
/// work, or it will not look at the request.
pub(in crate::checks) fn of_hook(facts: &Facts<'_>) -> Result<Option<Asked>, Unknown> {
    let container = facts.container;
    if !has_legacy_hook(container)? || !container.legacy_still_to_run() {
        return Ok(None);
    }
    if !reads_variables(container) {
        return of_arguments(container);
    }
    let config = &facts.host.toolkit.config;
    let seen = config.seen().and_then(Option::as_ref);
    let certain = config.known().map(|_| ());
    let mounts = match seen {
        Some(config) if config.accept_volume_mounts == Some(true) => container.volume_mount_devices.known()?.as_slice(),
        _ => &[],
    };
    if !mounts.is_empty() {
        let list: Vec<Item> = mounts.iter().map(|name| item(name)).collect();
        return Ok(Some(Asked { request: Request::List(list), text: mounts.join(","), certain }));
    }
    if seen.is_some_and(|c| c.accept_envvar_unprivileged == Some(false)) && !is_privileged(container)? {
        return Ok(None);
    }
    let environment = container.environment.known()?;
    let swarm = seen
        .and_then(|c| c.swarm_resource.as_deref())
        .into_iter()
        .flat_map(|names| names.split(','))
        .find_map(|name| environment.get_key_value(name.trim()));
    let (name, value) = match (swarm, visible(container)?) {
        (Some((name, value)), _) => (name.as_str(), value.as_str()),
        (None, Some(value)) => ("NVIDIA_VISIBLE_DEVICES", value),
        (None, None) if is_old_image(environment) => ("CUDA_VERSION", "all"),
        (None, None) => return Ok(None),
    };
    Ok(Some(Asked { request: parse(value), text: format!("{name}={value}"), certain }))
}

/// The value of `NVIDIA_VISIBLE_DEVICES` that counts, the placeholder of the volume-mount strategy included.
pub(in crate::checks) fn visible(container: &Container) -> Result<Option<&str>, Unknown> {
    match container.visible_devices.known()? {
        Some(value) => Ok(Some(value)),
        None => container.variable("NVIDIA_VISIBLE_DEVICES"),
    }
}

/// NVIDIA's legacy hook gives the GPU, on WSL together with the engine's `/dev/dxg`.
pub(in crate::checks) fn has_legacy_hook(container: &Container) -> Result<bool, Unknown> {
    Ok(match container.gpu_given.known()? {
        Given::LegacyHook => true,
        Given::Wsl => container.legacy_hook.is_some(),
        _ => false,
    })
}

/// The hook goes by the container's environment, not by arguments of its own.
pub(in crate::checks) fn reads_variables(container: &Container) -> bool {
    let by_arguments = |hook: &LegacyHook| base_name(&hook.path) == CLI;
    !container.legacy_hook.as_ref().is_some_and(by_arguments)
}

fn of_arguments(container: &Container) -> Result<Option<Asked>, Unknown> {
    let hooks = container.hooks.known()?;
    let ours = hooks.items.iter().find(|h| h.args.iter().chain([&h.path]).any(|word| base_name(word) == CLI));
    let devices: Vec<&str> = ours.iter().flat_map(|h| &h.args).filter_map(|a| a.strip_prefix("--device=")).collect();
    let list = devices.join(",");
    Ok(Some(Asked { request: parse(&list), text: format!("--device={list}"), certain: Ok(()) }))
}

/// As NVIDIA's tools mean it: `CAP_SYS_ADMIN` in the bounding set. No `capabilities` object is none.
pub(in crate::checks) fn is_privileged(container: &Container) -> Result<bool, Unknown> {
    Ok(container.user.known()?.capabilities.is_some_and(|sets| sets.bounding & SYS_ADMIN != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::container::{CapabilitySets, Identity, LegacyState, SpecHook};
    use crate::model::host::ToolkitConfig;
    use crate::model::{Observed, Parts};

    fn of(world: &World) -> Option<Asked> {
        of_hook(&world.facts()).unwrap()
    }

    fn asking(value: &str) -> World {
        let mut world = World::legacy(2, LegacyState::StillToRun);
        world.container.visible_devices = Observed::Known(Some(value.into()));
        world
    }

    #[test]
    fn the_environment_counts_while_the_hook_has_still_to_run() {
        assert_eq!(of(&asking("0")).unwrap().request, Request::List(vec![Item::Index(0)]));
        assert_eq!(of(&World::legacy(2, LegacyState::HasRun)), None);
        assert_eq!(of(&World::cdi(2)), None);
    }

    #[test]
    fn mounts_come_first_where_they_are_accepted() {
        let mut world = asking("/var/run/nvidia-container-devices");
        world.container.volume_mount_devices = Observed::Known(vec!["1".into()]);
        assert_eq!(of(&world).unwrap().request, Request::VolumeMounts);
        world.host.toolkit.config =
            Observed::Known(Some(ToolkitConfig { accept_volume_mounts: Some(true), ..ToolkitConfig::default() }));
        assert_eq!(of(&world).unwrap().request, Request::List(vec![Item::Index(1)]));
    }

    #[test]
    fn a_refused_variable_asks_for_nothing_unless_privileged() {
        let mut world = asking("0");
        world.host.toolkit.config = Observed::Known(Some(ToolkitConfig {
            accept_envvar_unprivileged: Some(false),
            ..ToolkitConfig::default()
        }));
        assert_eq!(of(&world), None);
        let capabilities = Some(CapabilitySets { bounding: u64::MAX, ..CapabilitySets::default() });
        world.container.user = Observed::Known(Identity { capabilities, ..Identity::default() });
        assert!(of(&world).is_some());
    }

    #[test]
    fn a_swarm_variable_replaces_the_usual_one() {
        let mut world = asking("0");
        world.set("DOCKER_RESOURCE_GPU", "1");
        world.host.toolkit.config = Observed::Known(Some(ToolkitConfig {
            swarm_resource: Some("OTHER, DOCKER_RESOURCE_GPU".into()),
            ..ToolkitConfig::default()
        }));
        assert_eq!(of(&world).unwrap().text, "DOCKER_RESOURCE_GPU=1");
    }

    #[test]
    fn ctrs_hook_goes_by_its_arguments() {
        let mut world = asking("false");
        if let Some(hook) = &mut world.container.legacy_hook {
            hook.path = "/usr/bin/nvidia-container-cli".into();
        }
        let args = ["containerd", "oci-hook", "--", "/usr/bin/nvidia-container-cli", "configure", "--device=0,7"];
        world.container.hooks = Observed::Known(Parts::whole(vec![SpecHook {
            stage: "createRuntime".into(),
            path: "/usr/bin/containerd".into(),
            args: args.map(str::to_owned).into(),
            ..SpecHook::default()
        }]));
        let asked = of(&world).unwrap();
        assert_eq!((asked.request, asked.text.as_str()), (parse("0,7"), "--device=0,7"));
    }

    #[test]
    fn the_placeholder_is_read_from_the_variable() {
        let mut world = asking("0");
        world.container.visible_devices = Observed::Known(None);
        world.set("NVIDIA_VISIBLE_DEVICES", "/var/run/nvidia-container-devices");
        assert_eq!(of(&world).unwrap().request, Request::VolumeMounts);
    }

    #[test]
    fn an_unseen_configuration_leaves_the_request_uncertain() {
        let mut world = asking("0");
        assert!(of(&world).unwrap().certain.is_ok());
        world.host.toolkit.config = unseen();
        assert!(of(&world).unwrap().certain.is_err());
    }
}
