//! How a GPU was given.

use super::environment::{self, Environment, VISIBLE_DEVICES};
use super::names::{self, CONTAINER_CLI};
use super::signs::{Signs, legacy_program};
use crate::model::container::{Given, LegacyHook, LegacyState, Moment, SpecHook, Stage};
use crate::model::{Host, Observed, Unknown};

/// Variable that recent CDI specifications of NVIDIA's set (toolkit 1.18).
const CDI_VARIABLE: &str = "NVIDIA_CTK_LIBCUDA_DIR";

/// How a GPU was given, as far as the spec shows. `acts`: what [`acts`] says of the legacy hook.
pub(super) fn given(
    signs: &Signs<'_>,
    acts: &Result<bool, Unknown>,
    environment: Option<&Environment>,
) -> Observed<Given> {
    Observed::from(judge(signs, acts, environment))
}

fn judge(signs: &Signs<'_>, acts: &Result<bool, Unknown>, environment: Option<&Environment>) -> Result<Given, Unknown> {
    let injects = signs.legacy.is_some() && acts.clone()?;
    let bare = signs.privileged() && !signs.driver_files();
    if (signs.wsl || signs.tegra) && (injects || !bare) {
        return Ok(if signs.wsl { Given::Wsl } else { Given::Tegra });
    }
    if injects {
        return Ok(Given::LegacyHook);
    }
    let marked = environment.is_some_and(|e| e.cdi_marked || e.variables.contains_key(CDI_VARIABLE));
    if signs.gpu_nodes() {
        return match &signs.hooks_unread {
            _ if signs.driver_files() || (marked && !bare) => Ok(Given::Cdi),
            Some(unknown) => Err(unknown.clone()),
            None if bare => Ok(Given::Privileged),
            None => Ok(Given::RawDevices),
        };
    }
    if signs.cdi_hooks {
        return Ok(Given::Cdi);
    }
    if signs.vfio && !(signs.privileged() && signs.many_others()) {
        return Ok(Given::Vm);
    }
    match signs.unread.as_ref().or(signs.hooks_unread.as_ref()) {
        Some(unknown) => Err(unknown.clone()),
        None => Ok(Given::None),
    }
}

/// Whether the legacy hook, which podman and CRI-O may give to every container, has anything to do: it
/// leaves a container alone that asks for nothing (toolkit, `internal/config/image`). `environment`: the
/// reason why it is not known.
pub(super) fn acts(
    hook: &SpecHook,
    environment: Result<&Environment, Unknown>,
    volume_mounts: bool,
    host: Option<&Host>,
) -> Result<bool, Unknown> {
    if legacy_program(hook).is_some_and(|program| names::is_legacy_hook(program) && program.ends_with(CONTAINER_CLI)) {
        return Ok(true);
    }
    let config = host.and_then(|host| host.toolkit.config.seen()).and_then(Option::as_ref);
    if volume_mounts && config.is_some_and(|config| config.accept_volume_mounts == Some(true)) {
        return Ok(true);
    }
    let variables = &environment?.variables;
    let set = |name: &str| variables.get(name.trim()).is_some_and(|value| environment::names_devices(value));
    let swarm = config.and_then(|config| config.swarm_resource.as_deref()).unwrap_or_default();
    if swarm.split(',').any(set) {
        return Ok(true);
    }
    Ok(match variables.get(VISIBLE_DEVICES) {
        Some(value) => environment::names_devices(value),
        None => is_legacy_image(environment?),
    })
}

/// An image from before `NVIDIA_REQUIRE_CUDA`: it gets all devices without asking.
pub(super) fn is_legacy_image(environment: &Environment) -> bool {
    let set = |name| environment.variables.get(name).is_some_and(|value| !value.is_empty());
    set("CUDA_VERSION") && !set("NVIDIA_REQUIRE_CUDA")
}

/// The legacy hook, and whether it has run when we look. `own`: the path that we were registered with.
pub(super) fn legacy_hook(hook: &SpecHook, hooks: &[SpecHook], moment: Moment, own: Option<&str>) -> LegacyHook {
    LegacyHook {
        path: legacy_program(hook).unwrap_or(&hook.path).to_owned(),
        stage: hook.stage.clone(),
        state: state(hook, hooks, moment, own),
    }
}

/// Stages run in the order prestart, createRuntime, createContainer, each in the order of its list.
/// Where our own place in the list is not found, the hook counts as still to run: what it makes is then
/// not missed.
fn state(hook: &SpecHook, hooks: &[SpecHook], moment: Moment, own: Option<&str>) -> LegacyState {
    let stage = match moment {
        Moment::NotStarted => return LegacyState::StillToRun,
        Moment::Running | Moment::Hook(Stage::CreateContainer) => return LegacyState::HasRun,
        Moment::Hook(stage) => stage,
    };
    if hook.stage != stage.name() {
        let earlier = stage == Stage::CreateRuntime && hook.stage == Stage::Prestart.name();
        return if earlier { LegacyState::HasRun } else { LegacyState::StillToRun };
    }
    let is_ours = |h: &&SpecHook| {
        h.stage == stage.name()
            && (own == Some(h.path.as_str()) || super::paths::file_name(&h.path).starts_with("gpu-preflight"))
    };
    match hooks.iter().find(is_ours) {
        Some(ours) if hook.place < ours.place => LegacyState::HasRun,
        _ => LegacyState::StillToRun,
    }
}
