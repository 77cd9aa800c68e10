//! Whom a question about nodes is about, and what such a container must have.

use crate::model::container::{CapabilitySets, Given, Strength};
use crate::model::host::Platform;
use crate::model::{Container, Facts, Place, Unknown};

/// Whom a question about nodes and driver is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A container that was given a GPU behind the driver of this machine.
    Container,
    /// This machine, which has such a GPU.
    Machine,
}

/// Whom the question is about; `None`: it does not arise here.
pub(crate) fn subject(facts: &Facts<'_>) -> Result<Option<Subject>, Unknown> {
    Ok(match facts.place {
        Place::Hook => given_nodes(facts)?.then_some(Subject::Container),
        Place::Host => (facts.host.platform == Platform::Native && facts.host.has_gpu()?).then_some(Subject::Machine),
        Place::Image | Place::Healthcheck => None,
    })
}

/// The container was given a GPU that it reaches through `/dev/nvidia*` of this machine.
///
/// Not so: Jetson and WSL (other nodes), a virtual machine (its own driver), an image build step, a
/// privileged container that wants no GPU (it has the nodes, as it has all others), and a legacy hook
/// that finds nothing to do.
fn given_nodes(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let container = facts.container;
    if facts.host.platform != Platform::Native || container.builder.is_some() {
        return Ok(false);
    }
    let given = match container.gpu_given.known()? {
        Given::None | Given::Wsl | Given::Tegra | Given::Vm => false,
        Given::Cdi | Given::RawDevices => true,
        Given::Privileged => container.wants_gpu.strength >= Strength::Environment,
        Given::LegacyHook => legacy_injects(facts)?,
    };
    if given {
        judgeable(container)?;
    }
    Ok(given)
}

/// A sandbox's devices are opened by a process outside it, so nothing here speaks of them.
pub(crate) fn judgeable(container: &Container) -> Result<(), Unknown> {
    match container.sandbox {
        None => Ok(()),
        Some(sandbox) => {
            Err(Unknown::new("container.devices", sandbox.name(), "a process outside the sandbox opens the devices"))
        }
    }
}

/// The legacy hook has something to do: GPUs are asked for, and the toolkit's policy takes the request.
fn legacy_injects(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let container = facts.container;
    let config = facts.host.toolkit.config.seen().and_then(Option::as_ref);
    let mounts = config.is_some_and(|c| c.accept_volume_mounts == Some(true));
    if mounts && !container.volume_mount_devices.known()?.is_empty() {
        return Ok(true);
    }
    let asked = match container.visible_devices.known()?.as_deref().map(str::trim) {
        None | Some("") => legacy_image(container)?,
        Some(list) => !list.split(',').any(|word| matches!(word.trim(), "void" | "none")),
    };
    let refused = config.is_some_and(|c| c.accept_envvar_unprivileged == Some(false));
    Ok(asked && !(refused && !has_bounding(container, CAP_SYS_ADMIN)))
}

/// An image from before `NVIDIA_REQUIRE_CUDA`: for it the toolkit takes unset variables for `all`.
/// Source: nvidia-container-toolkit internal/config/image at d34b3046 (2026-08-21).
fn legacy_image(container: &Container) -> Result<bool, Unknown> {
    let set = |name| Ok::<_, Unknown>(container.variable(name)?.is_some_and(|value| !value.is_empty()));
    Ok(set("CUDA_VERSION")? && !set("NVIDIA_REQUIRE_CUDA")?)
}

const CAP_SYS_MODULE: u32 = 16;
const CAP_SYS_ADMIN: u32 = 21;

fn has_bounding(container: &Container, capability: u32) -> bool {
    let sets = container.user.seen().and_then(|user| user.capabilities);
    sets.is_some_and(|CapabilitySets { bounding, .. }| bounding >> capability & 1 == 1)
}

/// It may be about to load modules and to make nodes itself: it may load modules, or has the host's
/// `/dev` or `/lib/modules`. What could not be read counts as such.
pub(crate) fn may_set_up_the_machine(container: &Container) -> bool {
    let Ok(mounts) = container.mounts.known() else { return true };
    let tree = |source: &str| matches!(source.trim_end_matches('/'), "" | "/dev" | "/lib/modules" | "/usr/lib/modules");
    has_bounding(container, CAP_SYS_MODULE)
        || container.user.known().is_err()
        || !mounts.unread.is_empty()
        || mounts.items.iter().any(|m| m.source.starts_with('/') && tree(&m.source))
}

/// Whether CUDA work is what the container is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compute {
    /// It is, or its way of giving always brings compute.
    Wanted,
    /// Nothing speaks against it.
    Likely,
    /// It says that it wants something else.
    Unwanted,
}

/// Whether CUDA work is what the container is for.
pub(crate) fn compute(facts: &Facts<'_>) -> Result<Compute, Unknown> {
    if let Some(words) = driver_capabilities(facts.container)? {
        let compute = words.iter().any(|w| matches!(*w, "all" | "compute"));
        return Ok(if compute { Compute::Wanted } else { Compute::Unwanted });
    }
    Ok(match facts.container.gpu_given.known()? {
        // Whoever passes nodes by hand may be after nvidia-smi only.
        Given::Privileged | Given::RawDevices => Compute::Likely,
        Given::LegacyHook if unset_lacks_compute(facts)? => Compute::Unwanted,
        _ => Compute::Wanted,
    })
}

/// Whether a display is asked of the legacy hook: it then wants `/dev/nvidia-modeset`.
pub(crate) fn display_by_legacy(facts: &Facts<'_>) -> Result<bool, Unknown> {
    if *facts.container.gpu_given.known()? != Given::LegacyHook {
        return Ok(false);
    }
    Ok(match driver_capabilities(facts.container)? {
        Some(words) => words.iter().any(|w| matches!(*w, "all" | "display")),
        None => legacy_image(facts.container)?,
    })
}

/// Whether graphics or a display is asked for in so many words, in whatever way the GPU is given.
pub(crate) fn graphics(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let words = driver_capabilities(facts.container)?.unwrap_or_default();
    Ok(words.iter().any(|w| matches!(*w, "graphics" | "display")))
}

/// The words of `NVIDIA_DRIVER_CAPABILITIES`; `None`: unset or empty, which leaves it to the toolkit.
fn driver_capabilities(container: &Container) -> Result<Option<Vec<&str>>, Unknown> {
    let words: Vec<&str> = container
        .variable("NVIDIA_DRIVER_CAPABILITIES")?
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    Ok(if words.is_empty() { None } else { Some(words) })
}

/// Toolkits before 1.4.0 took the unset variable for `utility` alone (their change log, 2021-02), but
/// for images that they held for old ones. A toolkit of unknown release is taken for a newer one.
fn unset_lacks_compute(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let old = facts.host.toolkit_release().is_some_and(|r| (r.number(0), r.number(1)) < (1, 4));
    Ok(old && !legacy_image(facts.container)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::World;
    use crate::model::container::{Builder, LegacyState, Mount, Sandbox};
    use crate::model::{Observed, Parts};

    fn facts(world: &World) -> Facts<'_> {
        Facts { host: &world.host, image: &world.image, container: &world.container, place: world.place }
    }

    fn asked(world: &World) -> Option<Subject> {
        subject(&facts(world)).unwrap()
    }

    #[test]
    fn a_container_counts_if_it_was_given_nodes_of_this_machine() {
        assert_eq!(asked(&World::cdi(1)), Some(Subject::Container));
        assert_eq!(asked(&World::legacy(1, LegacyState::StillToRun)), Some(Subject::Container));
        assert_eq!(asked(&World::plain()), None);
        for given in [Given::Wsl, Given::Tegra, Given::Vm] {
            let mut world = World::cdi(1);
            world.container.gpu_given = Observed::Known(given);
            assert_eq!(asked(&world), None, "{given:?}");
        }
        let mut world = World::cdi(1);
        world.container.builder = Some(Builder::BuildKit);
        assert_eq!(asked(&world), None);
    }

    #[test]
    fn a_legacy_hook_without_anything_to_do_gives_nothing() {
        for (value, gives) in [
            (Some("all"), true),
            (Some("0,1"), true),
            (Some("none"), false),
            (Some("void"), false),
            (Some(""), false),
            (None, false),
        ] {
            let mut world = World::legacy(1, LegacyState::StillToRun);
            world.container.visible_devices = Observed::Known(value.map(str::to_owned));
            assert_eq!(asked(&world).is_some(), gives, "{value:?}");
        }
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.container.visible_devices = Observed::Known(None);
        world.set("CUDA_VERSION", "8.0.61");
        assert!(asked(&world).is_some(), "old images mean all");
        world.set("NVIDIA_REQUIRE_CUDA", "cuda>=8.0");
        assert!(asked(&world).is_none());
    }

    #[test]
    fn a_request_that_the_toolkit_refuses_gives_nothing() {
        let mut world = World::legacy(1, LegacyState::StillToRun);
        let config =
            crate::model::host::ToolkitConfig { accept_envvar_unprivileged: Some(false), ..Default::default() };
        world.host.toolkit.config = Observed::Known(Some(config));
        assert_eq!(asked(&world), None);
        let Observed::Known(user) = &mut world.container.user else { panic!() };
        user.capabilities.as_mut().unwrap().bounding |= 1 << CAP_SYS_ADMIN;
        assert_eq!(asked(&world), Some(Subject::Container));
    }

    #[test]
    fn a_sandbox_is_unknown_only_if_it_was_given_a_gpu() {
        let mut world = World::cdi(1);
        world.container.sandbox = Some(Sandbox::Gvisor);
        assert!(subject(&facts(&world)).is_err());
        let mut plain = World::plain();
        plain.container.sandbox = Some(Sandbox::Gvisor);
        assert_eq!(asked(&plain), None);
    }

    #[test]
    fn a_machine_counts_if_it_has_a_gpu_behind_the_driver() {
        assert_eq!(asked(&World::machine(1)), Some(Subject::Machine));
        assert_eq!(asked(&World::machine(0)), None);
        let mut wsl = World::machine(1);
        wsl.host.platform = Platform::Wsl;
        assert_eq!(asked(&wsl), None);
    }

    #[test]
    fn compute_follows_the_variable_and_the_way_of_giving() {
        let of = |world: &World| compute(&facts(world)).unwrap();
        let mut world = World::cdi(1);
        assert_eq!(of(&world), Compute::Wanted);
        world.set("NVIDIA_DRIVER_CAPABILITIES", "graphics, utility");
        assert_eq!(of(&world), Compute::Unwanted);
        assert_eq!(graphics(&facts(&world)), Ok(true));
        world.set("NVIDIA_DRIVER_CAPABILITIES", "all");
        assert_eq!(of(&world), Compute::Wanted);
        world.set("NVIDIA_DRIVER_CAPABILITIES", "");
        world.container.gpu_given = Observed::Known(Given::RawDevices);
        assert_eq!(of(&world), Compute::Likely);

        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.set("NVIDIA_DRIVER_CAPABILITIES", "");
        assert_eq!(of(&world), Compute::Wanted);
        world.host.toolkit.version = Observed::Known(Some("1.3.0".parse().unwrap()));
        assert_eq!(of(&world), Compute::Unwanted);
        world.set("CUDA_VERSION", "9.0");
        assert_eq!(of(&world), Compute::Wanted);
        assert_eq!(display_by_legacy(&facts(&world)), Ok(true));
    }

    #[test]
    fn containers_that_may_set_up_the_machine_are_told_by_capability_and_mount() {
        let mut world = World::cdi(1);
        assert!(!may_set_up_the_machine(&world.container));
        for source in ["/dev", "/", "/lib/modules/", "/usr/lib/modules"] {
            let mount = Mount { source: source.into(), destination: "/host".into(), ..Mount::default() };
            world.container.mounts = Observed::Known(Parts::whole(vec![mount]));
            assert!(may_set_up_the_machine(&world.container), "{source}");
        }
        let other = ["tmpfs", "/dev/shm", "/home"].map(|s| Mount { source: s.into(), ..Mount::default() });
        world.container.mounts = Observed::Known(Parts::whole(other.into()));
        assert!(!may_set_up_the_machine(&world.container));
        let Observed::Known(user) = &mut world.container.user else { panic!() };
        user.capabilities.as_mut().unwrap().bounding |= 1 << CAP_SYS_MODULE;
        assert!(may_set_up_the_machine(&world.container));
    }
}
