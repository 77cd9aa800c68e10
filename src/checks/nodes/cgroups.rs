//! Device cgroups: rules that are lost later, and settings of the toolkit about them.

use crate::checks::not_applicable;
use crate::model::container::{Access, DeviceRule, Given, Refusal, Scheduler};
use crate::model::host::{EngineKind, Inside};
use crate::model::{Action, Check, Facts, Failure, Host, Judgement, Outcome, Place, Severity, Step, Unknown};

use super::access::without_device_controller;
use super::expect::{Subject, set_rules, subject};
use super::role::{list, weight};
use super::ways::{cdi_way, legacy_way};

const NAME_NODES: Step = Step {
    action: Action::PassGpu,
    text: "Give the GPU by CDI (--device nvidia.com/gpu=all), or name the nodes with --device, so that the spec has the rules.",
    command: None,
};

/// From inside a container.
const LOST: &str = "the device cgroup refuses {node} (c {number}), which it allowed since the container's start: a systemctl daemon-reload or an update of the container took the rule away";
const REFUSED: &str = "the device cgroup refuses {node} (c {number}): a systemctl daemon-reload takes away the rules that NVIDIA's hook sets, and a node that was bound as a volume never had one";

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "cgroup-lost-after-daemon-reload",
        title: "the GPU will be lost at the next systemctl daemon-reload",
        why: "The legacy hook sets the device rules behind systemd's back; the next daemon-reload (any package update) takes them away, and NVML says \"Unknown Error\".",
        messages: &[
            "systemd manages this container's cgroup and its spec has no device rule for the GPU: the next systemctl daemon-reload takes the GPU away",
            "docker uses systemd's cgroup driver, and the legacy hook sets device rules behind it: containers lose their GPU at systemctl daemon-reload",
            LOST,
            REFUSED,
        ],
        remedy: &[
            NAME_NODES,
            Step {
                action: Action::ConfigureEngine,
                text: "Have docker manage cgroups itself: \"exec-opts\": [\"native.cgroupdriver=cgroupfs\"] in daemon.json.",
                command: None,
            },
        ],
        severities: &[Severity::Warning, Severity::Error],
        places: &[Place::Hook, Place::Host, Place::Healthcheck],
        judge: lost_at_reload,
    },
    Check {
        id: "cgroup-lost-cpu-manager",
        title: "the kubelet's static CPU manager will take the GPU away",
        why: "It updates containers through the runtime, which sets the device rules of the spec anew and so drops those that the legacy hook added.",
        messages: &[
            "the kubelet's CPU manager is static and the spec has no device rule for the GPU: its next update takes the GPU away",
            "the kubelet's CPU manager is static: containers that get their GPU by the legacy hook lose it at its next update",
        ],
        remedy: &[Step {
            action: Action::ConfigureEngine,
            text: "Let the device plugin pass the nodes: PASS_DEVICE_SPECS=true, or a CDI strategy.",
            command: None,
        }],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Host],
        judge: lost_by_cpu_manager,
    },
    Check {
        id: "no-cgroups-with-rootful",
        title: "the toolkit leaves the device cgroup alone (no-cgroups) though the engine runs as root",
        why: "The hook then brings the nodes without the rules to open them; NVML says \"Insufficient Permissions\" or \"Unknown Error\".",
        messages: &[
            "no-cgroups = true in {config}: the hook sets no device rules, so the container may not open the GPU's nodes",
            "no-cgroups = true in {config}: containers of docker run as root get the GPU's nodes, but not the rules to open them",
        ],
        remedy: &[Step {
            action: Action::ConfigureEngine,
            text: "Set no-cgroups = false; only engines without root need true.",
            command: Some("nvidia-ctk config --set nvidia-container-cli.no-cgroups=false --in-place"),
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Hook],
        judge: no_cgroups_with_rootful,
    },
    Check {
        id: "no-cgroups-needed-in-lxc",
        title: "the toolkit needs no-cgroups = true in this unprivileged LXC container",
        why: "An unprivileged LXC container may not change device cgroups; the hook fails with \"failed to add device rules\", and nothing starts.",
        messages: &[
            "this machine is an unprivileged LXC container, where the hook may not set device rules, and no-cgroups is not true",
        ],
        remedy: &[Step {
            action: Action::ConfigureEngine,
            text: "Set no-cgroups = true in here; the LXC configuration decides which devices are allowed.",
            command: Some("nvidia-ctk config --set nvidia-container-cli.no-cgroups=true --in-place"),
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Hook],
        judge: no_cgroups_needed,
    },
];

fn by_legacy_hook(facts: &Facts<'_>) -> Result<bool, Unknown> {
    Ok(*facts.container.gpu_given.known()? == Given::LegacyHook)
}

/// The container's GPU comes by the legacy hook, as root, and its spec has no rule for it.
fn rules_behind_the_spec(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let container = facts.container;
    if !by_legacy_hook(facts)? || container.rootless {
        return Ok(false);
    }
    let Some(major) = facts.host.majors.known()?.gpu() else { return Ok(false) };
    Ok(!DeviceRule::allow_read_write(container.rules.known()?.all()?, major, CONTROL_MINOR))
}

/// Minor of `/dev/nvidiactl`. Source: nvidia-modprobe nvidia-modprobe-utils.h (`NV_CTL_DEVICE_MINOR`).
const CONTROL_MINOR: u32 = 255;

/// The kernel itself says that it is lost.
fn has_been_lost(facts: &Facts<'_>) -> Judgement {
    if subject(facts)?.is_none() {
        return not_applicable();
    }
    let devices = facts.container.devices.known()?;
    let broken: Vec<_> = devices.iter().filter(|node| node.access == Access::Refused(Refusal::Cgroup)).collect();
    let Some(first) = broken.first() else { return Ok(Outcome::Pass) };
    let had = facts.container.had(|path| path == first.path);
    let names = list(broken.iter().map(|node| node.path.as_str()));
    Failure::new(weight(facts, &broken, devices)?, if had { LOST } else { REFUSED })
        .arg("node", &names)
        .arg("number", format!("{}:{}", first.major, first.minor))
        .saw("container.devices", format!("{names}: refused"), "the kernel's answer")
        .found()
}

fn lost_at_reload(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Healthcheck {
        return has_been_lost(facts);
    }
    match subject(facts)? {
        None => not_applicable(),
        Some(Subject::Machine) => {
            let host = facts.host;
            let systemd =
                |e: &crate::model::host::Engine| e.kind == EngineKind::Docker && e.systemd_cgroup == Some(true);
            if !legacy_way(host) || !host.engines.iter().any(systemd) {
                return not_applicable();
            }
            // The links are NVIDIA's published way round it: who made them knows.
            if host.dev_char.known()?.as_ref().is_some_and(|links| !links.is_empty()) {
                return Ok(Outcome::Pass);
            }
            warning(&CHECKS[0], 1).saw("host.engines", "systemd's cgroup driver", "docker's configuration").found()
        }
        Some(Subject::Container) => {
            let path = facts.container.cgroups_path.known()?.as_deref().unwrap_or_default();
            if path.split(':').count() != 3 || !rules_behind_the_spec(facts)? {
                return not_applicable();
            }
            warning(&CHECKS[0], 0)
                .saw("container.cgroups_path", crate::model::wording::quote(path), "linux.cgroupsPath")
                .found()
        }
    }
}

fn lost_by_cpu_manager(facts: &Facts<'_>) -> Judgement {
    let Some(subject) = subject(facts)? else { return not_applicable() };
    if facts.host.kubelet_static_cpu != Some(true) {
        return not_applicable();
    }
    let message = match subject {
        Subject::Machine => 1,
        Subject::Container => {
            let others = facts.container.scheduler.is_some_and(|scheduler| scheduler != Scheduler::Kubernetes);
            if others || !rules_behind_the_spec(facts)? {
                return not_applicable();
            }
            0
        }
    };
    warning(&CHECKS[1], message).saw("host.kubelet", "cpu-manager-policy=static", "the kubelet's arguments").found()
}

fn warning(check: &'static Check, message: usize) -> Failure {
    Failure::new(Severity::Warning, check.messages[message])
}

fn no_cgroups_with_rootful(facts: &Facts<'_>) -> Judgement {
    let Some(subject) = subject(facts)? else { return not_applicable() };
    let Some((config, true)) = no_cgroups(facts.host)? else { return not_applicable() };
    if without_device_controller(facts.host) {
        return not_applicable();
    }
    let (severity, message) = match subject {
        Subject::Machine if !legacy_way(facts.host) => return not_applicable(),
        Subject::Machine => {
            let podman = facts.host.engines.iter().any(|engine| engine.kind == EngineKind::Podman);
            (if podman || cdi_way(facts.host) { Severity::Warning } else { Severity::Error }, 1)
        }
        Subject::Container => match allowed_nevertheless(facts)? {
            None => return not_applicable(),
            Some(true) => return Ok(Outcome::Pass),
            Some(false) => (Severity::Error, 0),
        },
    };
    Failure::new(severity, CHECKS[2].messages[message])
        .arg("config", &config)
        .saw("host.toolkit.config", "no-cgroups = true", config)
        .found()
}

/// The container may open its nodes without the hook's rules; `None`: the question does not arise.
fn allowed_nevertheless(facts: &Facts<'_>) -> Result<Option<bool>, Unknown> {
    let container = facts.container;
    if !by_legacy_hook(facts)? || container.rootless {
        return Ok(None);
    }
    // Where the kernel was asked, it knows.
    let answers: Vec<&Access> = if container.legacy_still_to_run() {
        Vec::new()
    } else {
        container.devices.known()?.iter().map(|node| &node.access).collect()
    };
    if answers.iter().any(|access| **access == Access::Refused(Refusal::Cgroup)) {
        return Ok(Some(false));
    }
    if !answers.is_empty() && answers.iter().all(|access| **access == Access::Granted) {
        return Ok(Some(true));
    }
    let denies_all = set_rules(container)?.iter().any(DeviceRule::denies_all);
    Ok(Some(!denies_all || !rules_behind_the_spec(facts)?))
}

fn no_cgroups_needed(facts: &Facts<'_>) -> Judgement {
    if facts.host.inside != Some(Inside::UnprivilegedLxc) {
        return not_applicable();
    }
    let (fails, another_way) = match subject(facts)? {
        None => return not_applicable(),
        Some(Subject::Machine) => (legacy_way(facts.host), cdi_way(facts.host)),
        // A hook that has run did not fail.
        Some(Subject::Container) => (by_legacy_hook(facts)? && facts.container.legacy_still_to_run(), false),
    };
    if !fails {
        return not_applicable();
    }
    if no_cgroups(facts.host)?.is_some_and(|(_, value)| value) {
        return Ok(Outcome::Pass);
    }
    Failure::new(if another_way { Severity::Warning } else { Severity::Error }, CHECKS[3].messages[0])
        .saw("host.inside", "an unprivileged LXC container", "/proc/self/uid_map")
        .saw("host.toolkit.config", "no-cgroups is not true", "nvidia-container-runtime/config.toml")
        .found()
}

/// The toolkit's configuration file and its `no-cgroups`; `None`: there is no such file.
fn no_cgroups(host: &Host) -> Result<Option<(String, bool)>, Unknown> {
    let config = host.toolkit.config.known()?.as_ref();
    Ok(config.map(|config| (config.path.clone(), config.no_cgroups == Some(true))))
}

#[cfg(test)]
mod tests;
