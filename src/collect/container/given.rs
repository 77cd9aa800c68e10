//! How a GPU was given.

use super::environment::{self, Environment, VISIBLE_DEVICES};
use super::names::{self, CONTAINER_CLI};
use super::signs::{Signs, legacy_program};
use crate::knowledge::driver_capabilities::is_old_image;
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
            // Libraries that a user mounts beside the nodes are no CDI: nobody promised all of its parts.
            _ if signs.cdi_hooks || (marked && !bare) => Ok(Given::Cdi),
            Some(unknown) => Err(unknown.clone()),
            None if signs.privileged() => Ok(Given::Privileged),
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
    let environment = environment?;
    let variables = &environment.variables;
    let set = |name: &str| variables.get(name.trim()).is_some_and(|value| environment::names_devices(value));
    let swarm = config.and_then(|config| config.swarm_resource.as_deref()).unwrap_or_default();
    if swarm.split(',').any(set) {
        return Ok(true);
    }
    Ok(match variables.get(VISIBLE_DEVICES) {
        // the hook reads what CDI left there, not what was there before
        _ if environment.cdi_marked => false,
        Some(value) => environment::names_devices(value),
        // an image of the old kind gets all devices without asking
        None => is_old_image(variables),
    })
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
        Moment::NotStarted | Moment::HandedOver => return LegacyState::StillToRun,
        Moment::Running | Moment::Hook(Stage::CreateContainer) => return LegacyState::HasRun,
        Moment::Hook(stage) => stage,
    };
    if hook.stage != stage.name() {
        let earlier = stage == Stage::CreateRuntime && hook.stage == Stage::Prestart.name();
        return if earlier { LegacyState::HasRun } else { LegacyState::StillToRun };
    }
    match ours(hooks, stage, own) {
        Some(ours) if hook.place < ours.place => LegacyState::HasRun,
        _ => LegacyState::StillToRun,
    }
}

/// The hook stands in the list from which we were called, and we do not find ourselves there.
pub(super) fn order_is_open(hook: &SpecHook, hooks: &[SpecHook], moment: Moment, own: Option<&str>) -> bool {
    matches!(moment, Moment::Hook(stage) if stage != Stage::CreateContainer && hook.stage == stage.name() && ours(hooks, stage, own).is_none())
}

fn ours<'a>(hooks: &'a [SpecHook], stage: Stage, own: Option<&str>) -> Option<&'a SpecHook> {
    let is_ours = |path: &str| own == Some(path) || super::paths::file_name(path).starts_with("gpu-preflight");
    hooks.iter().find(|hook| hook.stage == stage.name() && is_ours(&hook.path))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{parse, plain, with_cdi, with_hook, with_mount, with_nodes, with_privileges};
    use super::*;

    const ALL: &[&str] = &["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_REQUIRE_CUDA=cuda>=12.8", "CUDA_VERSION=12.8.1"];
    const HOOK: &str = "/usr/bin/nvidia-container-runtime-hook";
    const TWO: &[(&str, i64, i64)] = &[("/dev/nvidia0", 195, 0), ("/dev/nvidiactl", 195, 255)];

    fn of(spec: &Value) -> Observed<Given> {
        with_host(spec, None)
    }

    fn with_host(spec: &Value, host: Option<&Host>) -> Observed<Given> {
        let spec = parse(spec);
        let signs = Signs::of(&spec, host);
        let entries = spec.process.environment.known();
        let environment = entries.map(|entries| Environment::new(entries, signs.injected()));
        let acts =
            signs.legacy.map_or(Ok(false), |hook| acts(hook, environment.as_ref().map_err(Clone::clone), false, host));
        given(&signs, &acts, environment.as_ref().ok())
    }

    fn legacy(spec: Value) -> Value {
        with_hook(spec, "prestart", HOOK, &["nvidia-container-runtime-hook", "prestart"])
    }

    /// The driver's library mounted by the user.
    fn by_hand(spec: Value) -> Value {
        let library = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1";
        with_mount(spec, library, library)
    }

    #[test]
    fn every_way_of_giving() {
        let rows = [
            (plain(ALL), Given::None),
            (with_cdi(plain(ALL)), Given::Cdi),
            (with_cdi(plain(&[])), Given::Cdi),
            (with_privileges(with_cdi(plain(ALL)), false), Given::Cdi),
            (legacy(plain(ALL)), Given::LegacyHook),
            (with_privileges(legacy(plain(ALL)), true), Given::LegacyHook),
            (with_nodes(legacy(plain(ALL)), TWO), Given::LegacyHook),
            (with_privileges(plain(ALL), true), Given::Privileged),
            (with_privileges(plain(ALL), false), Given::None),
            (with_nodes(plain(ALL), TWO), Given::RawDevices),
            (with_mount(plain(ALL), "/dev/nvidia0", "/dev/nvidia0"), Given::RawDevices),
            (by_hand(with_nodes(plain(&[]), TWO)), Given::RawDevices),
            (by_hand(with_privileges(plain(&[]), true)), Given::Privileged),
            (by_hand(with_nodes(plain(&["NVIDIA_VISIBLE_DEVICES=void"]), TWO)), Given::Cdi),
            (with_nodes(plain(ALL), &[("/dev/dxg", 10, 60)]), Given::Wsl),
            (with_nodes(legacy(plain(ALL)), &[("/dev/dxg", 10, 60)]), Given::Wsl),
            (with_nodes(plain(ALL), &[("/dev/nvmap", 10, 1), ("/dev/nvhost-gpu", 505, 0)]), Given::Tegra),
            (with_nodes(with_cdi(plain(ALL)), &[("/dev/nvmap", 10, 1)]), Given::Tegra),
            (with_nodes(plain(&[]), &[("/dev/vfio/45", 237, 0), ("/dev/vfio/vfio", 10, 196)]), Given::Vm),
            (with_privileges(with_nodes(plain(&[]), &[("/dev/vfio/45", 237, 0)]), false), Given::None),
        ];
        for (place, (spec, expected)) in rows.iter().enumerate() {
            assert_eq!(of(spec), Observed::Known(*expected), "row {place}");
        }
    }

    #[test]
    fn a_hook_that_every_container_gets_gives_only_to_those_that_ask() {
        assert_eq!(of(&legacy(plain(&[]))), Observed::Known(Given::None));
        assert_eq!(of(&legacy(plain(&["NVIDIA_VISIBLE_DEVICES=void"]))), Observed::Known(Given::None));
        assert_eq!(of(&legacy(plain(&["NVIDIA_VISIBLE_DEVICES=none"]))), Observed::Known(Given::LegacyHook));
        assert_eq!(of(&legacy(plain(&["CUDA_VERSION=8.0"]))), Observed::Known(Given::LegacyHook));
        // podman 5: the hook of hooks.d beside an injection by CDI
        assert_eq!(of(&with_hook(with_cdi(plain(ALL)), "createRuntime", HOOK, &[])), Observed::Known(Given::Cdi));
        assert_eq!(of(&with_hook(with_cdi(plain(&[])), "createRuntime", HOOK, &[])), Observed::Known(Given::Cdi));
    }

    #[test]
    fn containerds_own_hook_gives_whatever_the_environment_says() {
        let args = ["containerd", "oci-hook", "--", "/usr/bin/nvidia-container-cli", "configure", "--device=0"];
        let spec = with_hook(plain(&[]), "createRuntime", "/usr/bin/containerd", &args);
        assert_eq!(of(&spec), Observed::Known(Given::LegacyHook));
        let other =
            with_hook(plain(ALL), "createRuntime", "/usr/bin/containerd", &["containerd", "oci-hook", "--", "/bin/x"]);
        assert_eq!(of(&other), Observed::Known(Given::None));
    }

    #[test]
    fn without_root_nodes_are_mounts_and_rules_are_absent() {
        let mut spec = plain(ALL);
        spec["linux"]["resources"] = Value::Null;
        let raw = with_mount(spec.clone(), "/dev/nvidia0", "/dev/nvidia0");
        assert_eq!(of(&raw), Observed::Known(Given::RawDevices));
        for node in ["/dev/nvidia0", "/dev/nvidiactl", "/dev/fuse", "/dev/full", "/dev/tty"] {
            spec = with_mount(spec, node, node);
        }
        assert_eq!(of(&spec), Observed::Known(Given::Privileged));
    }

    #[test]
    fn the_hosts_whole_dev_gives_what_the_rules_allow() {
        let spec = with_mount(plain(ALL), "/dev", "/dev");
        assert!(of(&spec).known().is_err(), "nobody looked at the host");
        let mut host = Host::default();
        assert_eq!(with_host(&spec, Some(&host)), Observed::Known(Given::None));
        let node = crate::model::host::Node { major: 195, minor: 0, ..Default::default() };
        host.device_nodes = Observed::Known([("/dev/nvidia0".to_owned(), node)].into());
        assert_eq!(with_host(&spec, Some(&host)), Observed::Known(Given::None), "no rule lets it be used");
        let privileged = with_privileges(spec.clone(), false);
        assert_eq!(with_host(&privileged, Some(&host)), Observed::Known(Given::Privileged));
        // docker's --device-cgroup-rule 'c *:* rmw', for whatever is plugged in
        let mut wildcard = spec;
        let rules = wildcard["linux"]["resources"]["devices"].as_array_mut().unwrap();
        rules.push(json!({"allow": true, "type": "c", "access": "rwm"}));
        assert_eq!(with_host(&wildcard, Some(&host)), Observed::Known(Given::Privileged));
    }

    #[test]
    fn what_could_not_be_read_is_unknown_unless_the_rest_tells() {
        let mut spec = plain(ALL);
        spec["linux"]["devices"] = json!("none of this");
        assert!(of(&spec).known().is_err());
        assert_eq!(of(&legacy(spec)), Observed::Known(Given::LegacyHook));
        let mut spec = plain(ALL);
        spec["hooks"] = json!([1]);
        assert!(of(&spec).known().is_err());
        let mut spec = with_cdi(plain(ALL));
        spec["process"] = Value::Null;
        assert_eq!(of(&spec), Observed::Known(Given::Cdi));
        // no engine wrote it
        let mut spec = plain(ALL);
        spec.as_object_mut().unwrap().remove("mounts");
        assert_eq!(of(&spec), Observed::Known(Given::None));
    }

    #[test]
    fn stages_and_places_say_whether_the_hook_has_run() {
        use LegacyState::{HasRun, StillToRun};
        let hook =
            |stage: &str, place, path: &str| SpecHook { stage: stage.into(), place, path: path.into(), args: vec![] };
        let state_of = |hooks: &[SpecHook], moment| legacy_hook(&hooks[0], hooks, moment, Some("/opt/checker")).state;
        let at = Moment::Hook;
        let prestart = [hook("prestart", 0, HOOK), hook("createRuntime", 0, "/usr/libexec/gpu-preflight-hook")];
        assert_eq!(state_of(&prestart, Moment::NotStarted), StillToRun);
        assert_eq!(state_of(&prestart, at(Stage::Prestart)), StillToRun);
        assert_eq!(state_of(&prestart, at(Stage::CreateRuntime)), HasRun);
        assert_eq!(state_of(&prestart, Moment::Running), HasRun);
        let runtime = |ours: usize, theirs: usize, path: &str| {
            [hook("createRuntime", theirs, HOOK), hook("createRuntime", ours, path)]
        };
        assert_eq!(state_of(&runtime(1, 0, "/x/gpu-preflight-hook"), at(Stage::CreateRuntime)), HasRun);
        assert_eq!(state_of(&runtime(0, 1, "/x/gpu-preflight-hook"), at(Stage::CreateRuntime)), StillToRun);
        assert_eq!(state_of(&runtime(1, 0, "/opt/checker"), at(Stage::CreateRuntime)), HasRun);
        assert_eq!(state_of(&runtime(1, 0, "/somebody/else"), at(Stage::CreateRuntime)), StillToRun);
        assert_eq!(state_of(&runtime(0, 1, "/x/gpu-preflight-hook"), at(Stage::Prestart)), StillToRun);
        assert_eq!(state_of(&runtime(0, 1, "/x/gpu-preflight-hook"), at(Stage::CreateContainer)), HasRun);
    }
}
