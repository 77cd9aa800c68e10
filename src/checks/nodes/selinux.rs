//! Does `SELinux` let the container use devices?

use crate::checks::not_applicable;
use crate::model::{Action, Check, Facts, Failure, Judgement, Outcome, Place, Severity, Step, Unknown};

use super::expect::{Subject, subject};

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[Check {
    id: "selinux-denies-device",
    title: "SELinux keeps the container from the GPU's nodes",
    why: "Under an enforcing policy a confined container may not use device nodes of the machine, whatever their modes; NVML says \"Insufficient Permissions\".",
    messages: &[
        "SELinux enforces, container_use_devices is {boolean}, and the container runs as {label}: it may open the GPU's nodes only if their label or a policy of your own lets it",
        "SELinux enforces and container_use_devices is {boolean}: confined containers may open the GPU's nodes only if their label or a policy of your own lets them",
    ],
    remedy: &[Step {
        action: Action::ConfigureEngine,
        text: "Let containers use devices, or start this one with --security-opt label=disable.",
        command: Some("setsebool -P container_use_devices on"),
    }],
    severities: &[Severity::Warning],
    places: &[Place::Hook, Place::Host],
    judge: denies_device,
}];

fn denies_device(facts: &Facts<'_>) -> Judgement {
    let Some(subject) = subject(facts)? else { return not_applicable() };
    let confinement = match subject {
        Subject::Machine => None,
        Subject::Container => match facts.container.selinux_label.known()? {
            None => return not_applicable(),
            Some(label) => Some(label),
        },
    };
    let Some(selinux) = facts.host.selinux.known()? else { return not_applicable() };
    if !selinux.enforcing || selinux.container_use_devices == Some(true) {
        return Ok(Outcome::Pass);
    }
    let boolean = match selinux.container_use_devices {
        Some(_) => "off",
        None => "not in the policy",
    };
    let Some(label) = confinement else {
        return Failure::new(Severity::Warning, CHECKS[0].messages[1])
            .arg("boolean", boolean)
            .saw_policy(boolean)
            .found();
    };
    match confined(label) {
        Some(false) => return Ok(Outcome::Pass),
        Some(true) => {}
        None => {
            return Err(Unknown::new(
                "container.selinux_label",
                "process.selinuxLabel",
                "a type of its own, of which only the policy knows what it may",
            ));
        }
    }
    // The nodes' own label counts as well, which many set to that of containers' files, and so do modules of
    // the site's own: only the loaded policy as a whole knows, and no file shows that.
    Failure::new(Severity::Warning, CHECKS[0].messages[0])
        .arg("boolean", boolean)
        .foreign("label", label)
        .saw_policy(boolean)
        .found()
}

impl Failure {
    fn saw_policy(self, boolean: &str) -> Self {
        self.saw("host.selinux", format!("enforcing, container_use_devices {boolean}"), "/sys/fs/selinux")
    }
}

/// The type in a label `system_u:system_r:container_t:s0:c1,c2` is one that only the boolean lets use
/// devices; `None`: a type of somebody's own. Source: container-selinux container.te, 2.2xx.
fn confined(label: &str) -> Option<bool> {
    match label.split(':').nth(2)? {
        "container_t" | "svirt_lxc_net_t" | "container_init_t" => Some(true),
        "spc_t" | "unconfined_t" | "container_device_t" | "container_device_plugin_t" | "nvidia_container_t" => {
            Some(false)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::LegacyState;
    use crate::model::host::SeLinux;

    const ID: &str = "selinux-denies-device";

    fn enforcing(mut world: World, container_use_devices: Option<bool>) -> World {
        world.host.selinux = Observed::Known(Some(SeLinux { enforcing: true, container_use_devices }));
        labelled(world, "container_t")
    }

    fn labelled(mut world: World, kind: &str) -> World {
        world.container.selinux_label = Observed::Known(Some(format!("system_u:system_r:{kind}:s0:c1,c2")));
        world
    }

    /// After `chcon -t container_file_t /dev/nvidia*`, or with a policy module of the site's, it works.
    #[test]
    fn a_confined_container_is_warned_however_its_nodes_came() {
        for state in [LegacyState::HasRun, LegacyState::StillToRun] {
            for boolean in [Some(false), None] {
                assert_eq!(enforcing(World::legacy(1, state), boolean).short(ID).severity, Severity::Warning);
            }
            enforcing(World::legacy(1, state), Some(true)).silent(ID);
        }
        let mut cdi = enforcing(World::cdi(1), Some(false));
        assert_eq!(cdi.short(ID).severity, Severity::Warning);
        cdi.container.rootless = true;
        assert_eq!(cdi.short(ID).severity, Severity::Warning);
    }

    #[test]
    fn labels_that_may_use_devices() {
        let world = enforcing(World::legacy(1, LegacyState::HasRun), Some(false));
        for kind in ["spc_t", "nvidia_container_t", "container_device_t"] {
            labelled(world.clone(), kind).silent(ID);
        }
        labelled(world.clone(), "my_own.process").unknown(ID);
        let mut bare = world.clone();
        bare.container.selinux_label = Observed::Known(None);
        bare.silent(ID);
        bare.container.selinux_label = unseen();
        bare.unknown(ID);
    }

    #[test]
    fn a_policy_that_is_off_or_not_seen() {
        let mut world = enforcing(World::legacy(1, LegacyState::HasRun), Some(false));
        world.host.selinux = Observed::Known(Some(SeLinux { enforcing: false, container_use_devices: Some(false) }));
        world.silent(ID);
        world.host.selinux = Observed::Known(None);
        world.silent(ID);
        world.host.selinux = unseen();
        world.unknown(ID);
    }

    #[test]
    fn a_machine_is_warned() {
        assert_eq!(enforcing(World::machine(1), Some(false)).short(ID).severity, Severity::Warning);
        enforcing(World::machine(1), Some(true)).silent(ID);
        World::machine(1).silent(ID);
    }
}
