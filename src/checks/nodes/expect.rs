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
mod tests;
