//! Requests that the toolkit's configuration does not take.

use super::asked::{has_legacy_hook, is_privileged, reads_variables, visible};
use crate::checks::not_applicable;
use crate::knowledge::visible_devices::{Request, parse};
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::Given;
use crate::model::host::ToolkitConfig;

const MOUNTS_NOT_ACCEPTED: &str =
    "the device plugin hands over {device} as a volume mount, and {config} does not accept such lists";
const NO_LIST_ACCEPTED: &str =
    "{config} accepts lists of devices of unprivileged containers neither by variable nor by volume mount";
const PLUGIN_NOT_ACCEPTED: &str =
    "the device plugin of this node hands GPUs over by {strategy} only, and {config} does not accept such lists";
const VARIABLE_REFUSED: &str =
    "{asked} asks for a GPU, and {config} refuses requests by variable of unprivileged containers";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "volume-mount-device-list-not-accepted",
        title: "the device plugin hands over volume mounts and the toolkit does not take them",
        why: "The toolkit takes the variable's placeholder for the name of a GPU, or gives none.",
        messages: &[MOUNTS_NOT_ACCEPTED, NO_LIST_ACCEPTED, PLUGIN_NOT_ACCEPTED],
        remedy: &[
            Step {
                action: Action::ConfigureEngine,
                text: "Let the toolkit accept volume mounts.",
                command: Some("nvidia-ctk config --in-place --set accept-nvidia-visible-devices-as-volume-mounts=true"),
            },
            Step {
                action: Action::ConfigureEngine,
                text: "Choose another device list strategy of the device plugin, such as cdi-cri.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host],
        judge: volume_mounts_not_accepted,
    },
    Check {
        id: "envvar-request-refused-by-policy",
        title: "the toolkit refuses the container's request by variable",
        why: "The container starts without a GPU, and only the toolkit's log says so.",
        messages: &[VARIABLE_REFUSED],
        remedy: &[
            Step {
                action: Action::PassGpu,
                text: "Ask for the GPU as the administrator allows it: by resource, by CDI device, or privileged.",
                command: None,
            },
            Step {
                action: Action::ChangeEnvironment,
                text: "For work on the CPU set NVIDIA_VISIBLE_DEVICES=void.",
                command: None,
            },
        ],
        severities: &[Severity::Warning],
        places: &[Place::Hook],
        judge: variable_refused,
    },
];

const DEFAULT_CONFIG: &str = "/etc/nvidia-container-runtime/config.toml";

fn volume_mounts_not_accepted(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Host {
        return no_list_accepted(facts);
    }
    let container = facts.container;
    // given in another way besides, or not at all, which `gpu-not-requested` says
    if !has_legacy_hook(container)? || !container.legacy_still_to_run() || !reads_variables(container) {
        return not_applicable();
    }
    // mounts beside a real list: the plugin was told to use both strategies
    if visible(container)?.map(parse) != Some(Request::VolumeMounts) {
        return not_applicable();
    }
    let device = container.volume_mount_devices.known()?.first().map_or("its list", String::as_str);
    let config = facts.host.toolkit.config.known()?.as_ref();
    if config.is_some_and(|c| c.accept_volume_mounts == Some(true)) {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Error, MOUNTS_NOT_ACCEPTED)
        .foreign("device", device)
        .arg("config", path_of(config))
        .saw("host.toolkit.config.accept-nvidia-visible-devices-as-volume-mounts", "false", path_of(config))
        .found()
}

/// The machine: whatever the device plugin does short of CDI, an unprivileged container gets nothing.
fn no_list_accepted(facts: &Facts<'_>) -> Judgement {
    let Some(config) = facts.host.toolkit.config.known()? else { return not_applicable() };
    let strategy = facts.host.device_list_strategy.as_deref();
    if strategy == Some("volume-mounts") && config.accept_volume_mounts != Some(true) {
        return Failure::new(Severity::Warning, PLUGIN_NOT_ACCEPTED)
            .arg("strategy", "volume-mounts")
            .arg("config", path_of(Some(config)))
            .saw("host.device_plugin", "volume-mounts", "the device plugin's arguments")
            .found();
    }
    if config.accept_envvar_unprivileged != Some(false) || config.accept_volume_mounts == Some(true) {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Warning, NO_LIST_ACCEPTED).arg("config", path_of(Some(config))).found()
}

fn variable_refused(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    if !container.wants_gpu.is_asked() {
        return not_applicable();
    }
    match *container.gpu_given.known()? {
        Given::None => {}
        Given::LegacyHook if container.legacy_still_to_run() && reads_variables(container) => {}
        _ => return not_applicable(),
    }
    let config = facts.host.toolkit.config.known()?.as_ref();
    let Some(config) = config.filter(|c| c.accept_envvar_unprivileged == Some(false)) else {
        return Ok(Outcome::Pass);
    };
    if by_accepted_mount(facts, config) || is_privileged(container)? {
        return Ok(Outcome::Pass);
    }
    let Some(value) = visible(container)? else { return not_applicable() };
    if matches!(parse(value), Request::Void | Request::Unset | Request::VolumeMounts) {
        return not_applicable();
    }
    Failure::new(Severity::Warning, VARIABLE_REFUSED)
        .foreign("asked", format!("NVIDIA_VISIBLE_DEVICES={value}"))
        .arg("config", path_of(Some(config)))
        .saw("host.toolkit.config.accept-nvidia-visible-devices-envvar-when-unprivileged", "false", &config.path)
        .found()
}

/// Mounts that nobody saw count as none: the device plugin puts its placeholder into the variable.
fn by_accepted_mount(facts: &Facts<'_>, config: &ToolkitConfig) -> bool {
    let mounts = facts.container.volume_mount_devices.seen();
    config.accept_volume_mounts == Some(true) && mounts.is_some_and(|m| !m.is_empty())
}

fn path_of(config: Option<&ToolkitConfig>) -> &str {
    config.map_or("", |c| c.path.as_str()).split_whitespace().next().unwrap_or(DEFAULT_CONFIG)
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::container::{CapabilitySets, Identity, LegacyState};
    use crate::model::host::ToolkitConfig;
    use crate::model::{Observed, Severity};

    const MOUNTS: &str = "volume-mount-device-list-not-accepted";
    const REFUSED: &str = "envvar-request-refused-by-policy";

    fn config(volume_mounts: Option<bool>, envvar: Option<bool>) -> Observed<Option<ToolkitConfig>> {
        Observed::Known(Some(ToolkitConfig {
            path: "/etc/nvidia-container-runtime/config.toml".into(),
            accept_volume_mounts: volume_mounts,
            accept_envvar_unprivileged: envvar,
            ..ToolkitConfig::default()
        }))
    }

    fn by_mounts() -> World {
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.container.visible_devices = Observed::Known(Some("/var/run/nvidia-container-devices".into()));
        world.container.volume_mount_devices = Observed::Known(vec!["GPU-0a".into()]);
        world
    }

    #[test]
    fn mounts_need_a_configuration_that_accepts_them() {
        let mut world = by_mounts();
        assert_eq!(world.failure(MOUNTS).severity, Severity::Error);
        world.host.toolkit.config = config(None, None);
        assert_eq!(world.failure(MOUNTS).severity, Severity::Error);
        world.host.toolkit.config = config(Some(true), None);
        world.silent(MOUNTS);
        world.host.toolkit.config = unseen();
        world.unknown(MOUNTS);
    }

    #[test]
    fn a_list_besides_the_mounts_or_another_way_is_fine() {
        let mut world = by_mounts();
        world.container.visible_devices = Observed::Known(Some("all".into()));
        world.silent(MOUNTS);
        World::cdi(1).silent(MOUNTS);
        World::plain().silent(MOUNTS);
    }

    #[test]
    fn a_device_plugin_whose_mounts_are_not_taken_is_a_warning() {
        let mut world = World::machine(1);
        world.host.toolkit.config = config(None, None);
        world.silent(MOUNTS);
        world.host.device_list_strategy = Some("volume-mounts".into());
        assert_eq!(world.failure(MOUNTS).severity, Severity::Warning);
        world.host.toolkit.config = config(Some(true), None);
        world.silent(MOUNTS);
        world.host.toolkit.config = config(None, None);
        world.host.device_list_strategy = Some("envvar,volume-mounts".into());
        world.silent(MOUNTS);
    }

    #[test]
    fn a_machine_that_takes_no_list_at_all_is_a_warning() {
        let mut world = World::machine(1);
        world.silent(MOUNTS);
        world.host.toolkit.config = config(Some(true), Some(false));
        world.silent(MOUNTS);
        world.host.toolkit.config = config(None, Some(false));
        assert_eq!(world.failure(MOUNTS).severity, Severity::Warning);
        world.host.toolkit.config = unseen();
        world.unknown(MOUNTS);
    }

    #[test]
    fn a_refused_variable_is_a_warning_whether_the_hook_stands_in_the_spec_or_not() {
        for mut world in [World::legacy(1, LegacyState::StillToRun), World::asking("all")] {
            world.silent(REFUSED);
            world.host.toolkit.config = config(None, Some(false));
            assert_eq!(world.failure(REFUSED).severity, Severity::Warning);
            world.host.toolkit.config = unseen();
            world.unknown(REFUSED);
        }
    }

    #[test]
    fn privileged_containers_and_accepted_mounts_are_not_refused() {
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.host.toolkit.config = config(None, Some(false));
        let capabilities = Some(CapabilitySets { bounding: 1 << 21, ..CapabilitySets::default() });
        world.container.user = Observed::Known(Identity { capabilities, ..Identity::default() });
        world.silent(REFUSED);
        let mut world = by_mounts();
        world.host.toolkit.config = config(Some(true), Some(false));
        world.silent(REFUSED);
        let mut world = World::plain();
        world.host.toolkit.config = config(None, Some(false));
        world.silent(REFUSED);
    }
}
