//! A CDI specification that gives GPUs without nvidia-uvm, written before its module was loaded.

use super::{lacking_node, used};
use crate::checks::nodes::expect::{Compute, compute};
use crate::checks::not_applicable;
use crate::checks::stack::is_native_with_gpu;
use crate::checks::stack::ways::{self, Mechanism};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{CdiDevice, CdiNode, CdiSpec, Majors, Platform};
use crate::model::{Facts, Host};

const LACKS: &str = "{spec} gives {device} without /dev/nvidia-uvm, so CUDA cannot start with it";

const UVM: &str = "/dev/nvidia-uvm";

pub(in crate::checks::stack) const CHECKS: &[Check] = &[Check {
    id: "cdi-spec-lacks-uvm",
    title: "the CDI specification gives GPUs without nvidia-uvm",
    why: "nvidia-smi works in the container and CUDA fails with an unknown error (999).",
    messages: &[LACKS],
    remedy: &[
        Step {
            action: Action::LoadModule,
            text: "Load nvidia-uvm and make its nodes.",
            command: Some("nvidia-modprobe -u -c=0"),
        },
        Step {
            action: Action::RegenerateCdi,
            text: "Then write the CDI specification anew.",
            command: Some("nvidia-ctk cdi generate --output={spec}"),
        },
    ],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Hook, Place::Host],
    judge: lacks_uvm,
}];

fn lacks_uvm(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    if facts.place == Place::Host {
        return if is_native_with_gpu(host)? { on_machine(host) } else { not_applicable() };
    }
    if host.platform != Platform::Native || lacking_node(facts.container)? != Some(UVM) {
        return not_applicable();
    }
    let severity = match compute(facts)? {
        Compute::Unwanted => return not_applicable(),
        Compute::Likely => Severity::Warning,
        Compute::Wanted => Severity::Error,
    };
    match used(host)?.into_iter().find_map(|spec| Some((spec, first_without(spec)?))) {
        Some((spec, device)) => failure(severity, spec, device),
        None => Ok(Outcome::Pass),
    }
}

fn on_machine(host: &Host) -> Judgement {
    let specs = used(host)?;
    let Some((spec, device)) = specs.iter().find_map(|spec| Some((*spec, first_without(spec)?))) else {
        return if specs.is_empty() { not_applicable() } else { Ok(Outcome::Pass) };
    };
    let another_has_it = specs.iter().any(|s| s.devices.iter().any(|d| gives_a_gpu(d) && has_uvm(s, d)));
    let by_other_mechanism = ways::of(host)?.iter().any(|way| way.mechanism != Mechanism::Cdi);
    let severity = if another_has_it || by_other_mechanism { Severity::Warning } else { Severity::Error };
    failure(severity, spec, device)
}

fn failure(severity: Severity, spec: &CdiSpec, device: &CdiDevice) -> Judgement {
    Failure::new(severity, LACKS)
        .foreign("spec", &spec.path)
        .foreign("device", format!("{}={}", spec.kind, device.name))
        .saw("host.cdi", format!("{}={} without {UVM}", spec.kind, device.name), &spec.path)
        .found()
}

fn first_without(spec: &CdiSpec) -> Option<&CdiDevice> {
    spec.devices.iter().find(|device| gives_a_gpu(device) && !has_uvm(spec, device))
}

fn gives_a_gpu(device: &CdiDevice) -> bool {
    device.nodes.iter().any(|n| Majors::gpu_minor(&n.path).is_some())
}

fn has_uvm(spec: &CdiSpec, device: &CdiDevice) -> bool {
    let is_uvm = |node: &CdiNode| node.path == UVM;
    spec.nodes.iter().any(is_uvm) || device.nodes.iter().any(is_uvm)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{node, spec};
    use super::UVM;
    use crate::checks::testing::{World, unseen};
    use crate::model::host::CdiSpec;
    use crate::model::{Observed, Severity};

    const ID: &str = "cdi-spec-lacks-uvm";

    fn without() -> CdiSpec {
        let mut spec = spec("/etc/cdi/nvidia.yaml");
        spec.nodes.retain(|n| n.path != UVM);
        spec
    }

    fn machine(spec: CdiSpec) -> World {
        let mut world = World::machine(1);
        world.host.toolkit.programs = Observed::Known([].into());
        world.host.cdi = Observed::Known(vec![spec]);
        world
    }

    fn container() -> World {
        let mut world = World::cdi(1);
        world.without_node(UVM, false);
        world.host.cdi = Observed::Known(vec![without()]);
        world
    }

    #[test]
    fn a_specification_without_it_is_an_error_where_it_is_the_only_way() {
        assert_eq!(machine(without()).failure(ID).severity, Severity::Error);
        let mut world = machine(without());
        world.host.toolkit = crate::model::testing::host(1).toolkit;
        assert_eq!(world.failure(ID).severity, Severity::Warning);
        let mut partly = without();
        partly.devices[1].nodes.push(node(UVM));
        assert_eq!(machine(partly).failure(ID).severity, Severity::Warning);
    }

    #[test]
    fn with_it_for_all_devices_it_is_fine() {
        machine(spec("/etc/cdi/nvidia.yaml")).silent(ID);
        let mut each = without();
        for device in &mut each.devices {
            device.nodes.push(node(UVM));
        }
        machine(each).silent(ID);
        World::machine(1).silent(ID);
    }

    #[test]
    fn a_container_that_lacks_the_node_for_this_reason_fails() {
        assert_eq!(container().failure(ID).severity, Severity::Error);
        let mut world = container();
        world.host.cdi = Observed::Known(vec![spec("/etc/cdi/nvidia.yaml")]);
        world.silent(ID);
        let mut graphics = container();
        graphics.set("NVIDIA_DRIVER_CAPABILITIES", "graphics,display");
        graphics.silent(ID);
        let mut monitor = container();
        monitor.container.args = Observed::Known(vec!["nvidia-smi".into()]);
        assert_eq!(monitor.failure(ID).severity, Severity::Warning);
        monitor.set("NVIDIA_DRIVER_CAPABILITIES", "utility");
        monitor.silent(ID);
    }

    #[test]
    fn a_container_that_lacks_nothing_does_not_ask_for_the_specification() {
        let mut world = World::cdi(1);
        world.host.cdi = unseen();
        world.silent(ID);
        World::plain().silent(ID);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = container();
        world.host.cdi = unseen();
        world.unknown(ID);
        let mut world = machine(without());
        world.host.cdi = unseen();
        world.unknown(ID);
    }
}
