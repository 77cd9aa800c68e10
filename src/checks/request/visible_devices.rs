//! Devices asked for that are no devices, or not here. Judged where NVIDIA's legacy hook has still to
//! act on the list: with CDI the engine has resolved it already, and a hook that has run accepted it.

use super::asked::{self, Asked};
use crate::checks::not_applicable;
use crate::knowledge::toolkit;
use crate::knowledge::visible_devices::{Item, Request, select};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{Gpu, Platform};
use crate::model::{Facts, Unknown};

const NOT_A_DEVICE: &str = "{asked} names {item}, which is no index, UUID, PCI address, MIG or CDI name of a GPU";
const OUT_OF_RANGE: &str = "{asked} names GPU {item}, and this machine has {host}, counted from 0";
const UUID_UNKNOWN: &str = "{asked} names {item}, and none of this machine's GPUs ({host}) has that UUID";
const ADDRESS_UNKNOWN: &str = "{asked} names {item}, and none of this machine's GPUs ({host}) has that address";
const OLD_NAME: &str = "{asked} names {item}, and driver {driver} names MIG devices MIG-<uuid>";

const ASK_FOR_WHAT_IS_HERE: Step = Step {
    action: Action::ChangeEnvironment,
    text: "Ask for GPUs that are here, or for all.",
    command: Some("nvidia-smi -L"),
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "visible-devices-not-a-device",
        title: "the list of devices has a word that is no device",
        why: "NVIDIA's hook stops the start with an unknown device.",
        messages: &[NOT_A_DEVICE],
        remedy: &[
            Step {
                action: Action::ChangeEnvironment,
                text: "Set it to all, to an index or to a UUID of nvidia-smi -L.",
                command: None,
            },
            Step {
                action: Action::ConfigureEngine,
                text: "If a scheduler or device plugin wrote the word, look for its error there.",
                command: None,
            },
        ],
        severities: &[Severity::Error],
        places: &[Place::Hook],
        judge: not_a_device,
    },
    Check {
        id: "visible-devices-index-out-of-range",
        title: "the list of devices has an index that this machine does not have",
        why: "NVIDIA's hook stops the start with an unknown device.",
        messages: &[OUT_OF_RANGE],
        remedy: &[ASK_FOR_WHAT_IS_HERE],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: index_out_of_range,
    },
    Check {
        id: "visible-devices-uuid-unknown",
        title: "the list of devices names a GPU that is not in this machine",
        why: "NVIDIA's hook stops the start with an unknown device.",
        messages: &[UUID_UNKNOWN, ADDRESS_UNKNOWN],
        remedy: &[ASK_FOR_WHAT_IS_HERE],
        severities: &[Severity::Error],
        places: &[Place::Hook],
        judge: uuid_unknown,
    },
    Check {
        id: "mig-old-style-name",
        title: "a MIG device is asked for by the name that drivers used before 470",
        why: "NVIDIA's hook stops the start with an unknown device.",
        messages: &[OLD_NAME],
        remedy: &[Step {
            action: Action::ChangeEnvironment,
            text: "Use the MIG UUID.",
            command: Some("nvidia-smi -L"),
        }],
        severities: &[Severity::Error],
        places: &[Place::Hook],
        judge: mig_old_style_name,
    },
];

/// Drivers name MIG devices by a UUID of their own from here on (MIG User Guide, "CUDA visible
/// devices", R470).
const MIG_UUIDS_SINCE: &str = "470";

fn not_a_device(facts: &Facts<'_>) -> Judgement {
    let Some((asked, list)) = list(facts)? else { return not_applicable() };
    let Some(item) = list.iter().find(|i| matches!(i, Item::Other(_))) else { return Ok(Outcome::Pass) };
    asked.certain.clone()?;
    failure(facts, NOT_A_DEVICE, &asked, item).found()
}

fn index_out_of_range(facts: &Facts<'_>) -> Judgement {
    let Some((asked, list)) = list(facts)? else { return not_applicable() };
    if !list.iter().any(|i| matches!(i, Item::Index(_) | Item::Mig { .. })) {
        return not_applicable();
    }
    missing(facts, &asked, |item| match item {
        Item::Index(_) | Item::Mig { .. } => Some(OUT_OF_RANGE),
        _ => None,
    })
}

fn uuid_unknown(facts: &Facts<'_>) -> Judgement {
    let Some((asked, list)) = list(facts)? else { return not_applicable() };
    if !list.iter().any(|i| matches!(i, Item::Uuid(_) | Item::Pci(_))) {
        return not_applicable();
    }
    missing(facts, &asked, |item| match item {
        Item::Uuid(_) => Some(UUID_UNKNOWN),
        Item::Pci(_) => Some(ADDRESS_UNKNOWN),
        _ => None,
    })
}

fn mig_old_style_name(facts: &Facts<'_>) -> Judgement {
    let Some((asked, list)) = list(facts)? else { return not_applicable() };
    let Some(item) = list.iter().find(|i| matches!(i, Item::MigOldName(_))) else { return not_applicable() };
    let Some(driver) = facts.host.driver.version.known()? else { return not_applicable() };
    if toolkit::older(driver, MIG_UUIDS_SINCE) {
        return Ok(Outcome::Pass);
    }
    asked.certain.clone()?;
    failure(facts, OLD_NAME, &asked, item).arg("driver", driver).found()
}

/// The list that the hook has still to act on, on a machine whose GPUs have indices and UUIDs.
fn list(facts: &Facts<'_>) -> Result<Option<(Asked, Vec<Item>)>, Unknown> {
    if facts.host.platform != Platform::Native {
        return Ok(None);
    }
    let Some(asked) = asked::of_hook(facts)? else { return Ok(None) };
    match asked.request.clone() {
        Request::List(list) => Ok(Some((asked, list))),
        _ => Ok(None),
    }
}

/// The first item of the list that is certainly not here and is of the kind that `message` speaks of.
fn missing(facts: &Facts<'_>, asked: &Asked, message: fn(&Item) -> Option<&'static str>) -> Judgement {
    let gpus = facts.host.gpus.known()?;
    // without a GPU in the driver the driver's checks speak
    if gpus.is_empty() {
        return not_applicable();
    }
    let selection = select(&asked.request, gpus);
    if let Some((message, item)) = selection.unmatched.iter().find_map(|i| Some((message(i)?, i))) {
        asked.certain.clone()?;
        return failure(facts, message, asked, item)
            .arg("host", number(gpus))
            .saw("host.gpus", in_words(gpus), "/proc/driver/nvidia/gpus")
            .found();
    }
    match selection.open.iter().find(|i| matches!(i, Item::Uuid(_)) && message(i).is_some()) {
        Some(_) => Err(Unknown::new("host.gpus", "/proc/driver/nvidia/gpus", "the UUID of a GPU was not read")),
        None => Ok(Outcome::Pass),
    }
}

fn failure(facts: &Facts<'_>, message: &'static str, asked: &Asked, item: &Item) -> Failure {
    // a list that an image brings gives way to one that its starter names
    let severity = if facts.place == Place::Image { Severity::Warning } else { Severity::Error };
    Failure::new(severity, message).foreign("asked", &asked.text).foreign("item", item.to_string()).saw(
        "container.visible_devices",
        &asked.text,
        "config.json",
    )
}

fn number(gpus: &[Gpu]) -> String {
    match gpus.iter().filter(|g| !g.excluded).count() {
        1 => "1 GPU".to_owned(),
        count => format!("{count} GPUs"),
    }
}

fn in_words(gpus: &[Gpu]) -> String {
    let usable = gpus.iter().filter(|g| !g.excluded);
    usable.map(|g| format!("{} {}", g.pci, g.uuid.as_deref().unwrap_or("?"))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::{Given, LegacyState};
    use crate::model::host::Platform;

    const WORD: &str = "visible-devices-not-a-device";
    const INDEX: &str = "visible-devices-index-out-of-range";
    const UUID: &str = "visible-devices-uuid-unknown";
    const MIG: &str = "mig-old-style-name";
    const HERE: &str = "GPU-00000000-0000-4000-8000-000000000001";
    const ELSEWHERE: &str = "GPU-ffffffff-0000-4000-8000-000000000001";
    const OLD: &str = "MIG-GPU-00000000-0000-4000-8000-000000000001/1/0";

    fn asking(value: &str) -> World {
        let mut world = World::legacy(2, LegacyState::StillToRun);
        world.container.visible_devices = Observed::Known(Some(value.into()));
        world
    }

    #[test]
    fn a_word_that_is_no_device_is_an_error_among_good_ones_too() {
        for value in ["false", "no-gpu-has-10MiB-to-run", "0,x", "0-1", "cuda:0"] {
            asking(value).failure(WORD);
        }
        for value in ["all", "none", "void", "", "0, 1", HERE, "0:0", "0000:01:00.0", "nvidia.com/gpu=0", OLD, "7"] {
            asking(value).silent(WORD);
        }
    }

    #[test]
    fn an_index_beyond_the_last_gpu_is_an_error() {
        for value in ["2", "0,1,2", "5:0", "99999999999"] {
            asking(value).failure(INDEX);
        }
        for value in ["0", "1,0", "1:3", "all", ELSEWHERE, "x"] {
            asking(value).silent(INDEX);
        }
    }

    #[test]
    fn a_uuid_or_address_of_another_machine_is_an_error() {
        for value in [ELSEWHERE, "0000:7f:00.0", &format!("0,{ELSEWHERE}")] {
            asking(value).failure(UUID);
        }
        for value in [HERE, &HERE.to_lowercase(), "00000000:02:00.0", "MIG-0b", "9"] {
            asking(value).silent(UUID);
        }
    }

    #[test]
    fn an_old_mig_name_fails_where_the_driver_has_new_ones() {
        let mut world = asking(OLD);
        world.failure(MIG);
        world.host.driver.version = Observed::Known(Some("460.91.03".parse().unwrap()));
        world.silent(MIG);
        asking("MIG-0000000b-0000-4000-8000-000000000001").silent(MIG);
        world.host.driver.version = unseen();
        world.unknown(MIG);
    }

    #[test]
    fn nobody_else_reads_the_list() {
        for id in [WORD, INDEX, UUID, MIG] {
            for value in ["false", "9", ELSEWHERE, OLD] {
                let mut world = World::legacy(2, LegacyState::HasRun);
                world.container.visible_devices = Observed::Known(Some(value.into()));
                world.silent(id);
                world.container.gpu_given = Observed::Known(Given::None);
                world.silent(id);
                world.container.gpu_given = Observed::Known(Given::Cdi);
                world.silent(id);
                let mut wsl = asking(value);
                wsl.host.platform = Platform::Wsl;
                wsl.silent(id);
            }
        }
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = asking("9");
        world.host.gpus = unseen();
        world.unknown(INDEX);
        let mut world = asking("x");
        world.host.toolkit.config = unseen();
        world.unknown(WORD);
        let mut world = asking(ELSEWHERE);
        let Observed::Known(gpus) = &mut world.host.gpus else { panic!() };
        gpus[1].uuid = None;
        world.unknown(UUID);
        let mut world = asking("x");
        world.container.visible_devices = unseen();
        world.unknown(WORD);
    }

    #[test]
    fn without_a_gpu_in_the_driver_other_checks_speak() {
        let mut world = asking("0");
        world.host.gpus = Observed::Known(Vec::new());
        world.silent(INDEX);
    }
}
