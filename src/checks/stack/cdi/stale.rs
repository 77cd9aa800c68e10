//! A CDI specification that names what is gone, or another driver.

use super::{lacking_node, used};
use crate::checks::nodes::expect::{Compute, compute};
use crate::checks::not_applicable;
use crate::checks::stack::is_native_with_gpu;
use crate::checks::stack::ways::{self, Mechanism};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{CdiNode, CdiSpec, Platform};
use crate::model::{Facts, Host, Unknown};

const GONE: &str = "{spec} names {path}, which is not on this machine (any more)";
const OTHER_DRIVER: &str = "{spec} is of driver {of}, and driver {loaded} is loaded";

pub(in crate::checks::stack) const CHECKS: &[Check] = &[Check {
    id: "cdi-spec-stale",
    title: "the CDI specification is of an earlier state of the machine",
    why: "Containers with a GPU fail to start, or get libraries of a driver that is not loaded.",
    messages: &[GONE, OTHER_DRIVER],
    remedy: &[
        Step {
            action: Action::RegenerateCdi,
            text: "Write the CDI specification anew.",
            command: Some("nvidia-ctk cdi generate --output={spec}"),
        },
        Step {
            action: Action::StartService,
            text: "Let nvidia-cdi-refresh do it after each change of the driver.",
            command: Some("systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service"),
        },
    ],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Hook, Place::Host],
    judge: stale,
}];

fn stale(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    if facts.place == Place::Host {
        return if is_native_with_gpu(host)? { on_machine(host) } else { not_applicable() };
    }
    if host.platform != Platform::Native {
        return not_applicable();
    }
    let Some(node) = lacking_node(facts.container)? else { return not_applicable() };
    let needed = node != "/dev/nvidia-uvm" || compute(facts)? == Compute::Wanted;
    let severity = if needed { Severity::Error } else { Severity::Warning };
    for spec in used(host)? {
        // it started without the node, so that the specification has lost it since
        let lost = || spec.gone.iter().find(|path| *path == node).map(|path| gone(spec, path));
        if let Some(mut failure) = of_another_driver(host, spec)?.or_else(lost) {
            failure.severity = severity;
            return failure.found();
        }
    }
    Ok(Outcome::Pass)
}

fn on_machine(host: &Host) -> Judgement {
    let specs = used(host)?;
    if specs.is_empty() {
        return not_applicable();
    }
    let mut found: Vec<(&CdiSpec, Failure, bool)> = Vec::new();
    for spec in &specs {
        if let Some(failure) = of_another_driver(host, spec)? {
            found.push((spec, failure, false));
        } else if let Some(path) = spec.gone.first() {
            found.push((spec, gone(spec, path), some_device_is_whole(spec)));
        }
    }
    let another_is_fresh = found.len() < specs.len();
    let Some((_, mut failure, partly)) = found.into_iter().next() else { return Ok(Outcome::Pass) };
    let by_other_mechanism = ways::of(host)?.iter().any(|way| way.mechanism != Mechanism::Cdi);
    if partly || another_is_fresh || by_other_mechanism {
        failure.severity = Severity::Warning;
    }
    failure.found()
}

fn of_another_driver(host: &Host, spec: &CdiSpec) -> Result<Option<Failure>, Unknown> {
    let Some(of) = &spec.driver else { return Ok(None) };
    Ok(match host.driver.version.known()? {
        Some(loaded) if loaded != of => Some(
            Failure::new(Severity::Error, OTHER_DRIVER)
                .foreign("spec", &spec.path)
                .foreign("of", of.as_str())
                .foreign("loaded", loaded.as_str())
                .saw("host.cdi", of, &spec.path)
                .saw("host.driver.version", loaded, "kernel"),
        ),
        _ => None,
    })
}

fn gone(spec: &CdiSpec, path: &str) -> Failure {
    Failure::new(Severity::Error, GONE).foreign("spec", &spec.path).foreign("path", path).saw(
        "host.cdi",
        format!("{} paths gone", spec.gone.len()),
        &spec.path,
    )
}

/// Everything that is gone belongs to single devices, and another device lacks nothing.
fn some_device_is_whole(spec: &CdiSpec) -> bool {
    let is_gone = |node: &CdiNode| spec.gone.contains(node.host_path.as_ref().unwrap_or(&node.path));
    let of_a_device = |path: &String| {
        spec.devices.iter().flat_map(|d| &d.nodes).any(|n| n.host_path.as_ref().unwrap_or(&n.path) == path)
            && !spec.nodes.iter().any(is_gone)
    };
    spec.gone.iter().all(of_a_device)
        && spec.devices.iter().any(|d| !d.nodes.is_empty() && !d.nodes.iter().any(is_gone))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{node, spec};
    use crate::checks::testing::{World, unseen};
    use crate::model::host::{CdiDevice, CdiSpec};
    use crate::model::{Observed, Severity};

    const ID: &str = "cdi-spec-stale";
    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libcuda.so.535.161.07";

    fn machine(specs: Vec<CdiSpec>) -> World {
        let mut world = World::machine(1);
        world.host.toolkit.programs = Observed::Known([].into());
        world.host.cdi = Observed::Known(specs);
        world
    }

    fn of_driver(version: &str) -> CdiSpec {
        CdiSpec { driver: Some(version.parse().unwrap()), ..spec("/etc/cdi/nvidia.yaml") }
    }

    #[test]
    fn another_driver_or_a_path_that_is_gone_is_an_error() {
        assert_eq!(machine(vec![of_driver("535.161.07")]).failure(ID).severity, Severity::Error);
        let mut stale = spec("/etc/cdi/nvidia.yaml");
        stale.gone = vec![LIBRARY.into()];
        assert_eq!(machine(vec![stale]).failure(ID).severity, Severity::Error);
    }

    #[test]
    fn another_mechanism_or_a_whole_device_makes_it_a_warning() {
        let mut world = machine(vec![of_driver("535.161.07")]);
        world.host.toolkit = crate::model::testing::host(1).toolkit;
        assert_eq!(world.failure(ID).severity, Severity::Warning);
        let mut two = spec("/etc/cdi/nvidia.yaml");
        two.devices.push(CdiDevice { name: "1".into(), nodes: vec![node("/dev/nvidia1")] });
        two.gone = vec!["/dev/nvidia1".into()];
        assert_eq!(machine(vec![two]).failure(ID).severity, Severity::Warning);
    }

    #[test]
    fn a_fresh_one_or_one_that_stands_over_it_is_fine() {
        machine(vec![spec("/etc/cdi/nvidia.yaml")]).silent(ID);
        machine(vec![of_driver("535.161.07"), spec("/var/run/cdi/nvidia.yaml")]).silent(ID);
        machine(vec![]).silent(ID);
        World::machine(1).silent(ID);
    }

    #[test]
    fn a_container_by_cdi_that_lacks_a_node_asks_for_the_specification() {
        let mut world = World::cdi(1);
        world.host.cdi = unseen();
        world.silent(ID);
        World::asking("all").silent(ID);
        world.without_node("/dev/nvidia-uvm", false);
        world.unknown(ID);
        world.host.cdi = Observed::Known(vec![of_driver("535.161.07")]);
        assert_eq!(world.failure(ID).severity, Severity::Error);
        world.host.cdi = Observed::Known(vec![spec("/etc/cdi/nvidia.yaml")]);
        world.silent(ID);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = World::machine(1);
        world.host.cdi = unseen();
        world.unknown(ID);
        let mut world = machine(vec![spec("/etc/cdi/nvidia.yaml")]);
        world.host.driver.version = unseen();
        world.unknown(ID);
    }
}
