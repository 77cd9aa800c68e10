//! `CUDA_VISIBLE_DEVICES`: what it hides from CUDA.

use super::{gpus, judged};
use crate::checks::nodes::expect::{Compute, compute};
use crate::checks::not_applicable;
use crate::knowledge::cuda_visible_devices::{Entry, hides_all, parse};
use crate::knowledge::toolkit::older;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::Given;
use crate::model::{Facts, Unknown};

const INDEX: &str = "CUDA_VISIBLE_DEVICES={value} names GPU {entry}, and {where} has {count}, counted from 0: {effect}";
const UUID: &str = "CUDA_VISIBLE_DEVICES={value} names {entry}, which is none of the {count} in {where}: {effect}";
const EMPTY: &str = "CUDA_VISIBLE_DEVICES={value} hides every GPU from CUDA";
const NO_FORM: &str = "CUDA_VISIBLE_DEVICES={value} has {entry}, which CUDA cannot read: {effect}";
const NUMBER_AND_MORE: &str =
    "CUDA_VISIBLE_DEVICES={value} has {entry}, of which CUDA reads only the number it begins with";
const TWICE: &str = "CUDA_VISIBLE_DEVICES={value} has {entry} twice, for which CUDA may show no GPU at all";
const MIG_NAME: &str =
    "CUDA_VISIBLE_DEVICES={value} names MIG device {entry} in a form that driver {driver} does not use";

const COUNT_FROM_ZERO: Step = Step {
    action: Action::ChangeEnvironment,
    text: "Unset CUDA_VISIBLE_DEVICES, or count {whose} GPUs from 0.",
    command: None,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "cuda-visible-devices-out-of-range",
        title: "CUDA_VISIBLE_DEVICES names a GPU that is not there",
        why: "CUDA shows only the GPUs before the first one that is not there; none, if that is the first.",
        messages: &[INDEX, UUID],
        remedy: &[COUNT_FROM_ZERO],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Healthcheck, Place::Host],
        judge: out_of_range,
    },
    Check {
        id: "cuda-visible-devices-empty",
        title: "CUDA_VISIBLE_DEVICES hides all GPUs",
        why: "CUDA reports no device, although the GPUs are there.",
        messages: &[EMPTY],
        remedy: &[Step {
            action: Action::ChangeEnvironment,
            text: "Unset CUDA_VISIBLE_DEVICES, unless the program is to work on the CPU.",
            command: None,
        }],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Healthcheck, Place::Host],
        judge: empty,
    },
    Check {
        id: "cuda-visible-devices-bad-form",
        title: "CUDA_VISIBLE_DEVICES has an entry that CUDA cannot read",
        why: "CUDA shows only the GPUs before the first entry that it cannot read; none, if that is the first.",
        messages: &[NO_FORM, NUMBER_AND_MORE, TWICE, MIG_NAME],
        remedy: &[Step {
            action: Action::ChangeEnvironment,
            text: "Use indices counted from 0, GPU-<uuid> or MIG-<uuid>, with commas.",
            command: None,
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Healthcheck, Place::Host],
        judge: bad_form,
    },
];

/// The value with its entries; `None`: not set, or not judged here.
fn value<'a>(facts: &Facts<'a>) -> Result<Option<(&'a str, Vec<Entry>)>, Unknown> {
    let value = judged(facts)?.and_then(|environment| environment.get("CUDA_VISIBLE_DEVICES"));
    Ok(value.map(|value| (value.as_str(), parse(value))))
}

/// Certain only for a container that works with CUDA: the machine's own environment does not reach into one,
/// NVML does not read the variable, and whoever is privileged without a wish for a GPU has its nodes by the way.
fn severity(facts: &Facts<'_>, first: bool) -> Result<Severity, Unknown> {
    if !first || facts.place == Place::Host {
        return Ok(Severity::Warning);
    }
    let container = facts.container;
    let meant = *container.gpu_given.known()? != Given::Privileged || container.asks_for_gpu();
    let certain = meant && compute(facts)? != Compute::Unwanted;
    Ok(if certain { Severity::Error } else { Severity::Warning })
}

fn effect(first: bool) -> &'static str {
    if first { "CUDA sees no GPU" } else { "CUDA sees only those before it" }
}

fn out_of_range(facts: &Facts<'_>) -> Judgement {
    let Some((value, entries)) = value(facts)? else { return not_applicable() };
    if hides_all(&entries) {
        return not_applicable();
    }
    let Some(gpus) = gpus::of(facts)? else { return not_applicable() };
    let known = |uuid: &str, all: &[String]| all.iter().any(|u| starts_with(u, uuid));
    for (place, entry) in entries.iter().enumerate() {
        let (message, entry) = match entry {
            Entry::Index(n) | Entry::IndexAnd(n, _) if usize::try_from(*n).unwrap_or(usize::MAX) >= gpus.count => {
                (INDEX, n.to_string())
            }
            Entry::Uuid(uuid) if gpus.uuids.as_ref().is_some_and(|all| !known(uuid, all)) => (UUID, uuid.clone()),
            entry if entry.ends_the_list() => break,
            _ => continue,
        };
        let first = place == 0;
        let on_host = facts.place == Place::Host;
        let severity = if gpus.in_parts { Severity::Warning } else { severity(facts, first)? };
        let count = if gpus.count == 1 { "1 GPU".to_owned() } else { format!("{} GPUs", gpus.count) };
        let failure = Failure::new(severity, message)
            .foreign("value", value)
            .arg("count", count)
            .arg("where", if on_host { "this machine" } else { "the container" })
            .arg("whose", if on_host { "this machine's" } else { "the container's own" })
            .arg("effect", effect(first))
            .saw(format!("{}.environment.CUDA_VISIBLE_DEVICES", super::subject(facts)), value, "environment");
        return match message {
            INDEX => failure.arg("entry", entry).found(),
            _ => failure.foreign("entry", entry).found(),
        };
    }
    Ok(Outcome::Pass)
}

/// Letters of a UUID may be of any case in what people write.
fn starts_with(uuid: &str, beginning: &str) -> bool {
    uuid.get(..beginning.len()).is_some_and(|s| s.eq_ignore_ascii_case(beginning))
}

fn empty(facts: &Facts<'_>) -> Judgement {
    let Some((value, entries)) = value(facts)? else { return not_applicable() };
    if !hides_all(&entries) {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Warning, EMPTY).foreign("value", value).found()
}

fn bad_form(facts: &Facts<'_>) -> Judgement {
    let Some((value, entries)) = value(facts)? else { return not_applicable() };
    if hides_all(&entries) {
        return not_applicable();
    }
    let failure = |severity, message, entry: &str| {
        Failure::new(severity, message).foreign("value", value).foreign("entry", entry)
    };
    for (place, entry) in entries.iter().enumerate() {
        match entry {
            Entry::Other(word) => {
                let first = place == 0;
                return failure(severity(facts, first)?, NO_FORM, word).arg("effect", effect(first)).found();
            }
            Entry::Negative => break,
            Entry::IndexAnd(_, word) => return failure(Severity::Warning, NUMBER_AND_MORE, word).found(),
            Entry::MigUuid(name) | Entry::MigOldName(name) => {
                // without a known driver nobody can say which form it uses
                let Some(driver) = facts.host.driver.version.seen().and_then(Option::as_ref) else { continue };
                let old_form = matches!(entry, Entry::MigOldName(_));
                if old_form != older(driver, MIG_UUIDS_SINCE) {
                    return failure(Severity::Warning, MIG_NAME, name).foreign("driver", driver.as_str()).found();
                }
            }
            Entry::Index(n) if entries.iter().take(place).any(|e| e == entry) => {
                return failure(Severity::Warning, TWICE, &n.to_string()).found();
            }
            Entry::Index(_) | Entry::Uuid(_) => {}
        }
    }
    Ok(Outcome::Pass)
}

/// MIG User Guide, "CUDA visible devices": `MIG-<uuid>` from R470 on, the other form before.
const MIG_UUIDS_SINCE: &str = "470";

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::container::{Given, LegacyState};
    use crate::model::host::Platform;
    use crate::model::{Observed, Place, Severity};

    const RANGE: &str = "cuda-visible-devices-out-of-range";
    const EMPTY: &str = "cuda-visible-devices-empty";
    const FORM: &str = "cuda-visible-devices-bad-form";

    fn with(value: &str) -> World {
        let mut world = World::cdi(2);
        world.set("CUDA_VISIBLE_DEVICES", value);
        world
    }

    fn on_machine(value: &str) -> World {
        let mut world = World::machine(2);
        world.host.environment = Observed::Known([("CUDA_VISIBLE_DEVICES".to_owned(), value.to_owned())].into());
        world
    }

    #[test]
    fn the_first_entry_decides_between_error_and_warning() {
        for (value, severity) in [
            ("2", Severity::Error),
            ("7,0", Severity::Error),
            ("0,2", Severity::Warning),
            ("GPU-ffff", Severity::Error),
            ("GPU-00000001,GPU-ffff", Severity::Warning),
        ] {
            assert_eq!(with(value).failure(RANGE).severity, severity, "{value}");
            assert_eq!(on_machine(value).failure(RANGE).severity, Severity::Warning, "{value}");
        }
        let mut inside = with("2");
        inside.place = Place::Healthcheck;
        assert_eq!(inside.failure(RANGE).severity, Severity::Error);
    }

    #[test]
    fn indices_count_inside_the_container() {
        let mut world = World::legacy(2, LegacyState::StillToRun);
        world.container.visible_devices = Observed::Known(Some("1".into()));
        world.set("CUDA_VISIBLE_DEVICES", "1");
        assert_eq!(world.failure(RANGE).severity, Severity::Error);
        world.set("CUDA_VISIBLE_DEVICES", "0");
        world.silent(RANGE);
    }

    #[test]
    fn a_gpu_under_another_name_is_the_one_of_its_number() {
        let mut world = with("GPU-00000001");
        world.without_node("/dev/nvidia1", false);
        world.node("/dev/nvidia0").minor = 1;
        world.silent(RANGE);
    }

    #[test]
    fn words_for_nothing_hide_the_gpus_on_purpose() {
        for value in ["none", "None", "void", "NoDevFiles", "cpu"] {
            with(value).silent(FORM);
            assert_eq!(with(value).failure(EMPTY).severity, Severity::Warning, "{value}");
        }
    }

    #[test]
    fn who_works_without_cuda_does_not_mind() {
        for (id, value) in [(RANGE, "7"), (FORM, "all")] {
            let mut world = with(value);
            assert_eq!(world.failure(id).severity, Severity::Error);
            world.set("NVIDIA_DRIVER_CAPABILITIES", "utility");
            assert_eq!(world.failure(id).severity, Severity::Warning);
        }
    }

    #[test]
    fn who_is_privileged_and_wants_no_gpu_is_not_stopped() {
        for (id, value) in [(RANGE, "7"), (FORM, "all")] {
            let mut world = with(value);
            world.container.gpu_given = Observed::Known(Given::Privileged);
            assert_eq!(world.failure(id).severity, Severity::Error);
            world.container.wants_gpu = crate::model::container::Wants::default();
            assert_eq!(world.failure(id).severity, Severity::Warning);
        }
    }

    #[test]
    fn parts_of_gpus_are_counted_otherwise() {
        let mut world = with("2");
        let path = "/dev/nvidia-caps/nvidia-cap21".to_owned();
        let Observed::Known(nodes) = &mut world.container.devices else { panic!() };
        nodes.push(crate::model::container::ContainerNode { path, ..Default::default() });
        assert_eq!(world.failure(RANGE).severity, Severity::Warning);
    }

    #[test]
    fn what_is_there_is_fine() {
        for value in ["0", "1,0", "GPU-00000001", "gpu", "MIG-0b", "", "-1", "0,-1,9"] {
            with(value).silent(RANGE);
        }
        World::cdi(1).silent(RANGE);
        let mut wsl = with("5");
        wsl.host.platform = Platform::Wsl;
        wsl.silent(RANGE);
        let mut none = World::asking("all");
        none.set("CUDA_VISIBLE_DEVICES", "5");
        none.silent(RANGE);
    }

    #[test]
    fn hidden_gpus_are_a_warning() {
        for value in ["", "-1", "NoDevFiles", " "] {
            assert_eq!(with(value).failure(EMPTY).severity, Severity::Warning, "{value:?}");
            assert_eq!(on_machine(value).failure(EMPTY).severity, Severity::Warning, "{value:?}");
            with(value).silent(FORM);
        }
        with("0").silent(EMPTY);
        World::cdi(1).silent(EMPTY);
    }

    #[test]
    fn a_form_that_cuda_cannot_read() {
        for (value, severity) in [
            ("all", Severity::Error),
            ("cuda:0", Severity::Error),
            ("0,all", Severity::Warning),
            ("0-1", Severity::Warning),
            ("0;1", Severity::Warning),
            ("0,0", Severity::Warning),
            ("MIG-GPU-0000/1/0", Severity::Warning),
        ] {
            assert_eq!(with(value).failure(FORM).severity, severity, "{value}");
            assert_eq!(on_machine(value).failure(FORM).severity, Severity::Warning, "{value}");
        }
        for value in ["0, 1", "GPU-00", "MIG-0000000b", "1,-1,x"] {
            with(value).silent(FORM);
        }
    }

    #[test]
    fn before_470_mig_devices_have_the_other_name() {
        let mut world = with("MIG-GPU-0000/1/0");
        world.host.driver.version = Observed::Known(Some("460.91.03".parse().unwrap()));
        world.silent(FORM);
        world.set("CUDA_VISIBLE_DEVICES", "MIG-0000000b");
        world.failure(FORM);
        world.host.driver.version = unseen();
        world.silent(FORM);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        for id in [RANGE, EMPTY, FORM] {
            let mut world = with("0");
            world.container.environment = unseen();
            world.unknown(id);
            let mut world = on_machine("0");
            world.host.environment = unseen();
            world.unknown(id);
        }
        let mut world = with("5");
        world.container.devices = unseen();
        world.unknown(RANGE);
    }
}
