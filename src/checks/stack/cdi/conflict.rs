//! The same CDI device twice at the same priority.

use std::collections::BTreeMap;

use crate::checks::not_applicable;
use crate::checks::stack::ways::{directory, gives_gpus};
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};

const TWICE: &str = "{device} stands in {one} and in {other}, so engines drop both";

pub(in crate::checks::stack) const CHECKS: &[Check] = &[Check {
    id: "cdi-spec-conflict",
    title: "two CDI specifications of the same directory have the same device",
    why: "Engines drop a device that stands twice at the same priority and cannot resolve it.",
    messages: &[TWICE],
    remedy: &[Step { action: Action::RegenerateCdi, text: "Remove one of the two files.", command: None }],
    severities: &[Severity::Warning],
    places: &[Place::Host],
    judge: conflict,
}];

fn conflict(facts: &Facts<'_>) -> Judgement {
    let specs: Vec<_> = facts.host.cdi.known()?.iter().filter(|s| gives_gpus(s)).collect();
    if specs.is_empty() {
        return not_applicable();
    }
    let mut seen = BTreeMap::new();
    for spec in specs {
        for device in &spec.devices {
            let name = format!("{}={}", spec.kind, device.name);
            match seen.insert((directory(spec), name.clone()), &spec.path) {
                Some(other) if *other != spec.path => {
                    return Failure::new(Severity::Warning, TWICE)
                        .foreign("device", name)
                        .foreign("one", other)
                        .foreign("other", &spec.path)
                        .found();
                }
                _ => {}
            }
        }
    }
    Ok(Outcome::Pass)
}

#[cfg(test)]
mod tests {
    use super::super::testing::spec;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::host::CdiSpec;

    const ID: &str = "cdi-spec-conflict";

    fn machine(specs: Vec<CdiSpec>) -> World {
        let mut world = World::machine(1);
        world.host.cdi = Observed::Known(specs);
        world
    }

    #[test]
    fn the_same_device_in_two_files_of_one_directory_is_a_warning() {
        machine(vec![spec("/etc/cdi/a.yaml"), spec("/etc/cdi/b.yaml")]).failure(ID);
    }

    #[test]
    fn another_directory_kind_or_name_is_fine() {
        machine(vec![spec("/etc/cdi/a.yaml"), spec("/run/cdi/a.yaml")]).silent(ID);
        let other = CdiSpec { kind: "k8s.device-plugin.nvidia.com/gpu".into(), ..spec("/etc/cdi/b.yaml") };
        machine(vec![spec("/etc/cdi/a.yaml"), other]).silent(ID);
        machine(vec![]).silent(ID);
        machine(vec![]).silent(ID);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = World::machine(1);
        world.host.cdi = unseen();
        world.unknown(ID);
    }
}
