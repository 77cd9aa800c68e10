//! What a node of NVIDIA's is for, and how much hangs on it.

use crate::model::container::ContainerNode;
use crate::model::host::Majors;
use crate::model::{Facts, Severity, Unknown};

use super::expect::{Compute, compute};

pub(crate) const CONTROL: &str = "/dev/nvidiactl";
pub(crate) const UVM: &str = "/dev/nvidia-uvm";
pub(crate) const UVM_TOOLS: &str = "/dev/nvidia-uvm-tools";
pub(crate) const MODESET: &str = "/dev/nvidia-modeset";

/// What a node is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// `/dev/nvidiactl`: nothing works without it.
    Control,
    /// `/dev/nvidiaN`: one GPU.
    Gpu,
    /// `/dev/nvidia-uvm`: CUDA does not start without it.
    Uvm,
    /// MIG's capability nodes.
    Cap,
    /// What only debuggers, displays, fabrics and others need.
    Other,
}

/// What the node of this path is for.
pub(crate) fn role(path: &str) -> Role {
    match path {
        CONTROL => Role::Control,
        UVM => Role::Uvm,
        _ if Majors::gpu_minor(path).is_some() => Role::Gpu,
        _ if path.starts_with("/dev/nvidia-caps/") => Role::Cap,
        _ => Role::Other,
    }
}

/// How bad it is that some of the container's nodes do not work: certain failure if CUDA cannot start,
/// or if no GPU is left.
pub(crate) fn weight(facts: &Facts<'_>, broken: &[&ContainerNode], all: &[ContainerNode]) -> Result<Severity, Unknown> {
    let count = |nodes: &mut dyn Iterator<Item = &ContainerNode>| nodes.filter(|n| role(&n.path) == Role::Gpu).count();
    let gpus = count(&mut broken.iter().copied());
    let has = |wanted| broken.iter().any(|n| role(&n.path) == wanted);
    let certain = has(Role::Control)
        || (has(Role::Uvm) && compute(facts)? == Compute::Wanted)
        || (gpus > 0 && gpus == count(&mut all.iter()));
    Ok(if certain { Severity::Error } else { Severity::Warning })
}

/// The container has this node, or its legacy hook will still give it what the machine has.
pub(crate) fn has_node(facts: &Facts<'_>, path: &str) -> Result<bool, Unknown> {
    let container = facts.container;
    if container.devices.known()?.iter().any(|n| n.path == path) {
        return Ok(true);
    }
    Ok(container.legacy_still_to_run() && facts.host.device_nodes.known()?.contains_key(path))
}

/// The machine has neither a control node nor a GPU's: nothing has made nodes since boot.
pub(crate) fn machine_has_no_nodes(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let nodes = facts.host.device_nodes.known()?;
    Ok(!nodes.keys().any(|path| matches!(role(path), Role::Control | Role::Gpu)))
}

/// Names for a message: a few, then how many more.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 4;
    let names: Vec<&str> = names.into_iter().collect();
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::World;

    #[test]
    fn roles_are_told_by_path() {
        for (path, expected) in [
            ("/dev/nvidiactl", Role::Control),
            ("/dev/nvidia12", Role::Gpu),
            ("/dev/nvidia-uvm", Role::Uvm),
            ("/dev/nvidia-caps/nvidia-cap3", Role::Cap),
            ("/dev/nvidia-uvm-tools", Role::Other),
            ("/dev/nvmap", Role::Other),
        ] {
            assert_eq!(role(path), expected, "{path}");
        }
    }

    #[test]
    fn one_gpu_of_several_is_a_warning_and_all_of_them_an_error() {
        let world = World::cdi(2);
        let facts = Facts { host: &world.host, image: &world.image, container: &world.container, place: world.place };
        let all = world.container.devices.known().unwrap();
        let of = |paths: &[&str]| {
            let broken: Vec<_> = all.iter().filter(|n| paths.contains(&n.path.as_str())).collect();
            weight(&facts, &broken, all).unwrap()
        };
        assert_eq!(of(&["/dev/nvidia0"]), Severity::Warning);
        assert_eq!(of(&["/dev/nvidia0", "/dev/nvidia1"]), Severity::Error);
        assert_eq!(of(&["/dev/nvidiactl"]), Severity::Error);
        assert_eq!(of(&["/dev/nvidia-uvm"]), Severity::Error);
        assert_eq!(of(&["/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"]), Severity::Warning);
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(list(["a", "b"]), "a, b");
        assert_eq!(list(["a", "b", "c", "d", "e", "f"]), "a, b, c, d and 2 more");
    }
}
