//! Whom a question about nodes is about, and what such a container must have.

use crate::checks::cuda;
use crate::knowledge::driver_capabilities::Capabilities;
use crate::knowledge::toolkit::{CLI, COMPUTE_BY_DEFAULT, base_name, hook_is_older};
use crate::knowledge::variables::may_draw;
use crate::knowledge::visible_devices::{self, Request};
use crate::model::container::{CapabilitySets, ContainerNode, DeviceRule, Given};
use crate::model::host::{Majors, Platform};
use crate::model::{Container, Facts, Place, Unknown};

use super::role::{Role, role};

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
        Place::Image => is_for_this_machine(facts)?.then_some(Subject::Container),
        Place::Healthcheck => (given_nodes(facts)? || had_nodes(facts)).then_some(Subject::Container),
        Place::Status => None,
    })
}

/// An image is judged against a machine that has GPUs, or a driver that is stated, and not if it wants no GPU.
fn is_for_this_machine(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let (host, container) = (facts.host, facts.container);
    if host.platform != Platform::Native || *container.gpu_given.known()? == Given::None {
        return Ok(false);
    }
    host.is_target()
}

/// The container was given a GPU that it reaches through `/dev/nvidia*` of this machine.
///
/// Not so: Jetson and WSL (other nodes), a virtual machine (its own driver), an image build step, a
/// privileged container that wants no GPU (it has the nodes, as it has all others), and a legacy hook
/// that brings no GPU.
fn given_nodes(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let container = facts.container;
    if facts.host.platform != Platform::Native || container.builder.is_some() {
        return Ok(false);
    }
    let given = match container.gpu_given.known()? {
        Given::None | Given::Wsl | Given::Tegra | Given::Vm => false,
        Given::Cdi => true,
        Given::RawDevices => has_node_of_work(container)?,
        Given::Privileged => container.asks_for_gpu(),
        Given::LegacyHook => legacy_injects(facts)?,
    };
    if given {
        judgeable(container)?;
    }
    Ok(given)
}

/// The container could use a GPU since its start, whatever is left of it.
fn had_nodes(facts: &Facts<'_>) -> bool {
    let is_of_work = |path: &str| matches!(role(path), Role::Control | Role::Gpu | Role::Uvm);
    facts.host.platform == Platform::Native && facts.container.had(is_of_work)
}

/// Single nodes are a GPU's only with one of those that GPU work goes through: an IMEX channel or a switch of
/// the fabric alone is not.
fn has_node_of_work(container: &Container) -> Result<bool, Unknown> {
    let nodes = container.devices.known()?;
    Ok(nodes.iter().any(|node| matches!(role(&node.path), Role::Control | Role::Gpu | Role::Uvm)))
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

/// The legacy hook brings GPUs: `none` asks it for the driver's files alone, and the toolkit's policy may
/// refuse the request of an unprivileged container, in which case nothing is brought and nothing said.
fn legacy_injects(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let container = facts.container;
    if arguments_of_tool(facts).is_some() {
        return Ok(true);
    }
    let config = facts.host.toolkit.config.seen().and_then(Option::as_ref);
    if config.is_some_and(|c| c.accept_volume_mounts == Some(true))
        && !container.volume_mount_devices.known()?.is_empty()
    {
        return Ok(true);
    }
    let none = match container.visible_devices.known()? {
        Some(list) => matches!(visible_devices::parse(list), Request::None | Request::Void | Request::Unset),
        None => false,
    };
    if none || has_bounding(container, CAP_SYS_ADMIN) {
        return Ok(!none);
    }
    let brought =
        |nodes: &Vec<ContainerNode>| nodes.iter().any(|node| node.looked_at && role(&node.path) == Role::Control);
    match facts.host.toolkit.config.known() {
        Ok(config) => Ok(config.as_ref().is_none_or(|c| c.accept_envvar_unprivileged != Some(false))),
        // whatever the policy is, it let this one through
        Err(_) if container.devices.seen().is_some_and(brought) => Ok(true),
        Err(unknown) => Err(unknown),
    }
}

/// Arguments of `nvidia-container-cli`, where the hook is that tool itself (`ctr run --gpus`): then they
/// say what is asked for, whatever the environment says. Source: containerd contrib/nvidia at 301026e5.
pub(crate) fn arguments_of_tool<'a>(facts: &Facts<'a>) -> Option<&'a [String]> {
    let hook = facts.container.legacy_hook.as_ref().filter(|hook| base_name(&hook.path) == CLI)?;
    let hooks = &facts.container.hooks.seen()?.items;
    let names_tool = |arg: &String| base_name(arg) == CLI;
    let found =
        hooks.iter().find(|h| h.stage == hook.stage && (base_name(&h.path) == CLI || h.args.iter().any(names_tool)))?;
    Some(&found.args)
}

/// The device rules that the spec sets; with none the runtime decides what is allowed.
pub(super) fn set_rules(container: &Container) -> Result<&[DeviceRule], Unknown> {
    let rules = container.rules.known()?.all()?;
    if rules.is_empty() {
        let reason = "the spec has none, and the runtime decides";
        return Err(Unknown::new("container.rules", "linux.resources.devices", reason));
    }
    Ok(rules)
}

const CAP_SYS_MODULE: u32 = 16;
pub(crate) const CAP_SYS_ADMIN: u32 = 21;

pub(crate) fn has_bounding(container: &Container, capability: u32) -> bool {
    let sets = container.user.seen().and_then(|user| user.capabilities);
    sets.is_some_and(|CapabilitySets { bounding, .. }| bounding >> capability & 1 == 1)
}

/// It may be about to load modules and to make nodes itself: it may load modules, or has the host's
/// `/dev` or `/lib/modules`. A mount that could not be read may be one of these.
pub(crate) fn may_set_up_the_machine(container: &Container) -> bool {
    let tree = |source: &str| matches!(source.trim_end_matches('/'), "" | "/dev" | "/lib/modules" | "/usr/lib/modules");
    has_bounding(container, CAP_SYS_MODULE)
        || container.mounts.seen().is_some_and(|mounts| {
            !mounts.unread.is_empty() || mounts.items.iter().any(|m| m.source.starts_with('/') && tree(&m.source))
        })
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
    let by = |wanted| if wanted { Compute::Wanted } else { Compute::Unwanted };
    if let Some(arguments) = arguments_of_tool(facts) {
        return Ok(by(arguments.iter().any(|arg| arg == "--compute")));
    }
    let found = match (capabilities(facts)?, facts.container.gpu_given.known()?) {
        (words @ Capabilities::Words(_), _) => by(words.names("compute")),
        // By CDI everything comes, whatever is meant: a display without a word of CUDA is for graphics.
        (_, Given::Cdi) if may_draw(facts.container.environment.known()?) && cuda::sign(facts)?.is_none() => {
            Compute::Likely
        }
        // Whoever passes nodes by hand may be after nvidia-smi only.
        (Capabilities::Default, Given::Privileged | Given::RawDevices) => Compute::Likely,
        // A toolkit of unknown release is taken for one of the last years.
        (Capabilities::Default, Given::LegacyHook) => {
            let toolkit = &facts.host.toolkit;
            toolkit.version.looked_at()?;
            by(hook_is_older(toolkit, COMPUTE_BY_DEFAULT) != Ok(Some(true)))
        }
        (Capabilities::All | Capabilities::Default, _) => Compute::Wanted,
    };
    let monitors = found == Compute::Wanted && cuda::only_monitors(facts.container);
    Ok(if monitors { Compute::Likely } else { found })
}

/// The container has the node of a GPU, or NVIDIA's hook may still make it. What else CDI and devices give,
/// an IMEX channel or a fabric's switches, is not used by way of a GPU's nodes.
pub(crate) fn has_gpu_node(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let container = facts.container;
    let given = container.devices.known()?.iter().any(|node| Majors::gpu_minor(&node.path).is_some());
    let had = container.had(|path| role(path) == Role::Gpu);
    Ok(given || had || *container.gpu_given.known()? == Given::LegacyHook)
}

/// Whether a display is asked of the legacy hook: it then wants `/dev/nvidia-modeset`.
pub(crate) fn display_by_legacy(facts: &Facts<'_>) -> Result<bool, Unknown> {
    if *facts.container.gpu_given.known()? != Given::LegacyHook {
        return Ok(false);
    }
    match arguments_of_tool(facts) {
        Some(arguments) => Ok(arguments.iter().any(|arg| arg == "--display")),
        None => Ok(capabilities(facts)?.names("display") && is_supported(facts, "display")?),
    }
}

/// The toolkit's configuration lets the hook bring this part of the driver.
fn is_supported(facts: &Facts<'_>, word: &str) -> Result<bool, Unknown> {
    let config = facts.host.toolkit.config.known()?.as_ref();
    let supported = config.and_then(|c| c.supported_capabilities.as_deref());
    Ok(supported.is_none_or(|list| list.split(',').any(|w| w.trim() == word || w.trim() == "all")))
}

/// Whether graphics or a display is asked for in so many words, in whatever way the GPU is given.
pub(crate) fn graphics(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let words = capabilities(facts)?;
    Ok(words != Capabilities::All && (words.names("graphics") || words.names("display")))
}

fn capabilities(facts: &Facts<'_>) -> Result<Capabilities, Unknown> {
    Ok(Capabilities::of(facts.container.environment.known()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::World;
    use crate::model::container::{Builder, LegacyHook, LegacyState, Mount, Sandbox, SpecHook};
    use crate::model::{Observed, Parts};

    fn asked(world: &World) -> Option<Subject> {
        subject(&world.facts()).unwrap()
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
    fn a_legacy_hook_that_is_asked_for_no_gpu_gives_none() {
        for (value, gives) in
            [(Some("all"), true), (Some("0,1"), true), (Some("none"), false), (Some(""), false), (None, true)]
        {
            let mut world = World::legacy(1, LegacyState::StillToRun);
            world.container.visible_devices = Observed::Known(value.map(str::to_owned));
            assert_eq!(asked(&world).is_some(), gives, "{value:?}");
        }
    }

    #[test]
    fn containerds_hook_says_by_its_arguments_what_it_brings() {
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.container.visible_devices = Observed::Known(Some("none".into()));
        let args =
            ["containerd", "oci-hook", "--", "/usr/bin/nvidia-container-cli", "configure", "--device=0", "--utility"];
        let mut hook = SpecHook {
            stage: "createRuntime".into(),
            path: "/usr/bin/containerd".into(),
            args: args.map(str::to_owned).into(),
            ..SpecHook::default()
        };
        world.container.legacy_hook = Some(LegacyHook {
            path: "/usr/bin/nvidia-container-cli".into(),
            stage: "createRuntime".into(),
            state: LegacyState::StillToRun,
        });
        world.container.hooks = Observed::Known(Parts::whole(vec![hook.clone()]));
        assert_eq!(asked(&world), Some(Subject::Container));
        assert_eq!(compute(&world.facts()), Ok(Compute::Unwanted));
        hook.args.push("--compute".into());
        world.container.hooks = Observed::Known(Parts::whole(vec![hook]));
        assert_eq!(compute(&world.facts()), Ok(Compute::Wanted));
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
        assert!(subject(&world.facts()).is_err());
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
        let of = |world: &World| compute(&world.facts()).unwrap();
        let mut world = World::cdi(1);
        assert_eq!(of(&world), Compute::Wanted);
        world.set("NVIDIA_DRIVER_CAPABILITIES", "graphics, utility");
        assert_eq!(of(&world), Compute::Unwanted);
        assert_eq!(graphics(&world.facts()), Ok(true));
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
        world.unset("NVIDIA_DRIVER_CAPABILITIES");
        assert_eq!(of(&world), Compute::Wanted);
        assert_eq!(display_by_legacy(&world.facts()), Ok(true));
        let config = crate::model::host::ToolkitConfig {
            supported_capabilities: Some("compute,utility,video".into()),
            ..Default::default()
        };
        world.host.toolkit.config = Observed::Known(Some(config));
        assert_eq!(display_by_legacy(&world.facts()), Ok(false));
    }

    #[test]
    fn a_policy_that_nobody_saw_may_refuse_the_request() {
        let mut world = World::legacy(1, LegacyState::HasRun);
        world.host.toolkit.config = crate::checks::testing::unseen();
        assert_eq!(asked(&world), Some(Subject::Container), "its nodes are there");
        world.container.devices = Observed::default();
        assert!(subject(&world.facts()).is_err());
        let Observed::Known(user) = &mut world.container.user else { panic!() };
        user.capabilities.as_mut().unwrap().bounding |= 1 << CAP_SYS_ADMIN;
        assert_eq!(asked(&world), Some(Subject::Container));
    }

    #[test]
    fn monitors_and_graphics_may_do_without_cuda() {
        let of = |world: &World| compute(&world.facts()).unwrap();
        for mut world in [World::cdi(1), World::legacy(1, LegacyState::HasRun)] {
            world.set("CUDA_VERSION", "12.4.1");
            assert_eq!(of(&world), Compute::Wanted);
            world.container.args = Observed::Known(vec!["/usr/bin/nvidia-smi".into()]);
            assert_eq!(of(&world), Compute::Likely);
            world.set("NVIDIA_DRIVER_CAPABILITIES", "utility");
            assert_eq!(of(&world), Compute::Unwanted);
        }
        let mut desktop = World::cdi(1);
        desktop.set("WAYLAND_DISPLAY", "wayland-0");
        assert_eq!(of(&desktop), Compute::Likely);
        desktop.image.cuda = Observed::Known(Some("/usr/local/cuda/lib64".into()));
        assert_eq!(of(&desktop), Compute::Wanted);
        let mut raw = World::cdi(1);
        raw.container.gpu_given = Observed::Known(Given::RawDevices);
        raw.set("NVIDIA_DRIVER_CAPABILITIES", "compute");
        assert_eq!(of(&raw), Compute::Wanted);
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
