//! Modes of nodes that lock out whom they should let in.

use crate::checks::not_applicable;
use crate::model::container::{Access, ContainerNode};
use crate::model::host::Node;
use crate::model::{Action, Check, Facts, Failure, Host, Judgement, Outcome, Place, Severity, Step, Unknown};

use super::expect::{Subject, subject};
use super::role::{Role, list, role, weight};
use super::ways::cdi_way;

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[Check {
    id: "device-file-mode-bad",
    title: "the nodes have a mode that makes no sense",
    why: "NVreg_DeviceFileMode without a leading zero is read as a decimal number (666 becomes 01232), and the nodes lock out even their owner.",
    messages: &[
        "{node} has mode {mode}, which makes no sense and locks users out{option}",
        "NVreg_DeviceFileMode={value} is read as {mode}: nodes made at the driver's next load will lock users out",
    ],
    remedy: &[Step {
        action: Action::FixPermissions,
        text: "Write the mode in octal with a leading zero (NVreg_DeviceFileMode=0666), reload the driver, mend the nodes.",
        command: Some("chmod 0666 /dev/nvidiactl /dev/nvidia[0-9]* /dev/nvidia-uvm"),
    }],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Host, Place::Hook],
    judge: mode_bad,
}];

fn mode_bad(facts: &Facts<'_>) -> Judgement {
    match subject(facts)? {
        None => not_applicable(),
        Some(Subject::Machine) => mode_bad_on_machine(facts.host),
        Some(Subject::Container) => mode_bad_in_container(facts),
    }
}

fn mode_bad_on_machine(host: &Host) -> Judgement {
    let nodes = host.device_nodes.known()?;
    let bad: Vec<(&str, &Node)> = nodes
        .iter()
        .filter(|(path, node)| is_needed(path) && is_nonsense(node.mode))
        .map(|(path, node)| (path.as_str(), node))
        .collect();
    if let Some((_, first)) = bad.first() {
        // By CDI a container of root's gets nodes that root may open whatever their mode.
        let severity = if cdi_way(host) { Severity::Warning } else { Severity::Error };
        return bad_mode(host, severity, &list(bad.iter().map(|(path, _)| *path)), first.mode);
    }
    let Some((value, mode)) = configured(host)?.filter(|(_, mode)| is_nonsense(*mode)) else {
        return Ok(Outcome::Pass);
    };
    Failure::new(Severity::Warning, CHECKS[0].messages[1])
        .arg("value", value)
        .arg("mode", format!("{mode:05o}"))
        .saw("host.module_options", format!("NVreg_DeviceFileMode={value}"), "/etc/modprobe.d")
        .found()
}

fn mode_bad_in_container(facts: &Facts<'_>) -> Judgement {
    let devices = facts.container.devices.known()?;
    let granted = |node: &ContainerNode| node.access == Access::Granted;
    let bad: Vec<&ContainerNode> =
        devices.iter().filter(|n| is_needed(&n.path) && is_nonsense(n.mode) && !granted(n)).collect();
    let Some(first) = bad.first() else { return Ok(Outcome::Pass) };
    let refused = bad.iter().all(|node| matches!(node.access, Access::Refused(_)));
    // The legacy tool looks at the GPU as a user of its own, whom such a mode locks out.
    let config = facts.host.toolkit.config.seen().and_then(Option::as_ref);
    let by_tool = facts.container.legacy_still_to_run() && config.is_none_or(|c| c.cli_user.is_none());
    let severity = if refused || by_tool { weight(facts, &bad, devices)? } else { Severity::Warning };
    bad_mode(facts.host, severity, &list(bad.iter().map(|node| node.path.as_str())), first.mode)
}

fn bad_mode(host: &Host, severity: Severity, names: &str, mode: u32) -> Judgement {
    let option = configured(host)?.filter(|(_, configured)| *configured == mode);
    let option = option.map(|(value, _)| format!("; NVreg_DeviceFileMode={value} is read as a decimal number"));
    Failure::new(severity, CHECKS[0].messages[0])
        .arg("node", names)
        .arg("mode", format!("{mode:05o}"))
        .arg("option", option.unwrap_or_default())
        .saw("host.device_nodes", format!("{names}: {mode:05o}"), "/dev")
        .found()
}

/// The driver's option and the mode that the kernel makes of it: octal with a leading zero, else decimal.
fn configured(host: &Host) -> Result<Option<(&str, u32)>, Unknown> {
    let options = host.driver.module_options.looked_at()?;
    let Some(value) = options.and_then(|options| options.get("NVreg_DeviceFileMode")).map(|v| v.trim()) else {
        return Ok(None);
    };
    let mode = match value.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u32::from_str_radix(octal, 8).ok(),
        _ => value.parse().ok(),
    };
    Ok(mode.map(|mode| (value, mode)))
}

/// Not even the owner may read and write, or others may not, and bits are set that mean nothing for a node.
fn is_nonsense(mode: u32) -> bool {
    mode & 0o600 != 0o600 || (mode & 0o7000 != 0 && mode & 0o006 != 0o006)
}

fn is_needed(path: &str) -> bool {
    matches!(role(path), Role::Control | Role::Gpu | Role::Uvm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::{LegacyState, Refusal};

    const MODE: &str = "device-file-mode-bad";

    fn option(mut world: World, value: &str) -> World {
        world.host.driver.module_options =
            Observed::Known([("NVreg_DeviceFileMode".to_owned(), value.to_owned())].into());
        world
    }

    #[test]
    fn decimal_modes_lock_users_out() {
        let world = option(World::machine(1).with_mode(0o1232), "666");
        let failure = world.short(MODE);
        assert_eq!(failure.severity, Severity::Error);
        assert!(crate::model::wording::fill(failure.message, &failure.args).contains("NVreg_DeviceFileMode=666"));
        let mut by_cdi = world;
        by_cdi.host.cdi = Observed::Known(vec![crate::checks::testing::cdi_spec()]);
        assert_eq!(by_cdi.short(MODE).severity, Severity::Warning);
        for mode in [0o666, 0o660, 0o600, 0o1666] {
            World::machine(1).with_mode(mode).silent(MODE);
        }
    }

    #[test]
    fn the_next_load_is_foretold() {
        for (value, fires) in [("666", true), ("660", true), ("0660", false), ("438", false), ("0", true), ("x", false)]
        {
            let world = option(World::machine(1), value);
            if fires {
                assert_eq!(world.short(MODE).severity, Severity::Warning, "{value}");
            } else {
                world.silent(MODE);
            }
        }
    }

    #[test]
    fn in_a_container_the_kernels_answer_decides() {
        let mut world = World::cdi(1).with_mode(0o1232);
        world.silent(MODE);
        world.node("/dev/nvidiactl").access = Access::Refused(Refusal::Mode);
        assert_eq!(world.short(MODE).severity, Severity::Error);
        world.node("/dev/nvidiactl").access = Access::default();
        assert_eq!(world.short(MODE).severity, Severity::Warning);
        let mut legacy = world;
        legacy.container.legacy_hook = World::legacy(1, LegacyState::StillToRun).container.legacy_hook;
        assert_eq!(legacy.short(MODE).severity, Severity::Error);
        legacy.container.devices = unseen();
        legacy.unknown(MODE);
    }
}
