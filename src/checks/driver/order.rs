//! In which order CUDA numbers GPUs of different kinds.

use std::collections::BTreeSet;

use crate::checks::not_applicable;
use crate::knowledge::cuda_visible_devices::{Entry, parse};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{Gpu, Platform};
use crate::model::{Facts, Host};

const DIFFERENT: &str = "the GPUs differ ({kinds}), and CUDA_DEVICE_ORDER is {order}: CUDA may number them in another order \
                         than nvidia-smi";

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[Check {
    id: "igpu-dgpu-order",
    title: "CUDA may number the GPUs in another order than nvidia-smi",
    why: "Without CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA puts the fastest GPU first, so index 0 may be another one than nvidia-smi's.",
    messages: &[DIFFERENT],
    remedy: &[Step {
        action: Action::ChangeEnvironment,
        text: "Number them by PCI address, or use UUIDs.",
        command: Some("CUDA_DEVICE_ORDER=PCI_BUS_ID"),
    }],
    severities: &[Severity::Note],
    places: &[Place::Host],
    judge: differ_without_order,
}];

/// CUDA Programming Guide, "CUDA Environment Variables" (2025-12-15): by default the fastest comes first, and which
/// that is CUDA guesses itself. Where all are alike both orders are one.
fn differ_without_order(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    if host.platform != Platform::Native {
        return not_applicable();
    }
    let environment = host.environment.known()?;
    let gpus: Vec<&Gpu> = host.gpus.known()?.iter().filter(|gpu| !gpu.excluded).collect();
    let order = environment.get("CUDA_DEVICE_ORDER").map(String::as_str);
    let by_uuid = environment.get("CUDA_VISIBLE_DEVICES").is_some_and(|value| {
        let entries = parse(value);
        !entries.is_empty() && entries.iter().all(|e| matches!(e, Entry::Uuid(_) | Entry::MigUuid(_)))
    });
    if gpus.len() < 2 || order == Some("PCI_BUS_ID") || by_uuid {
        return not_applicable();
    }
    let kinds: BTreeSet<String> = gpus.iter().filter_map(|gpu| kind(host, gpu)).collect();
    if kinds.len() < 2 {
        return Ok(Outcome::Pass);
    }
    let kinds = kinds.into_iter().collect::<Vec<_>>().join(" and ");
    let failure = Failure::new(Severity::Note, DIFFERENT).arg("kinds", &kinds).saw(
        "host.gpus",
        &kinds,
        "/proc/driver/nvidia/gpus",
    );
    match order {
        None => failure.arg("order", "not set"),
        Some(order) => failure.foreign("order", order),
    }
    .found()
}

/// What product it is: by the bus where that was seen, since the driver may not have told all of their names.
fn kind(host: &Host, gpu: &Gpu) -> Option<String> {
    let device = host.pci.seen().and_then(|all| all.iter().find(|function| function.address == gpu.pci));
    let device = device.map(|function| function.device).filter(|device| *device != 0);
    match (device, &gpu.name) {
        (Some(device), Some(name)) => Some(format!("{name}, 10de:{device:04x}")),
        (Some(device), None) => Some(format!("10de:{device:04x}")),
        (None, name) => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::host::Platform;
    use crate::model::{Observed, Severity};

    const ID: &str = "igpu-dgpu-order";

    /// A workstation with a card for the screen beside that for work.
    fn hybrid() -> World {
        let mut world = World::machine(2);
        let (Observed::Known(gpus), Observed::Known(pci)) = (&mut world.host.gpus, &mut world.host.pci) else {
            panic!()
        };
        (gpus[0].name, pci[0].device) = (Some("NVIDIA T400".into()), 0x1fb2);
        world
    }

    fn set(mut world: World, name: &str, value: &str) -> World {
        world.host.environment = Observed::Known([(name.to_owned(), value.to_owned())].into());
        world
    }

    #[test]
    fn different_gpus_without_an_order_are_a_note() {
        assert_eq!(hybrid().failure(ID).severity, Severity::Note);
        set(hybrid(), "CUDA_DEVICE_ORDER", "FASTEST_FIRST").failure(ID);
        set(hybrid(), "CUDA_VISIBLE_DEVICES", "0").failure(ID);
    }

    #[test]
    fn who_has_chosen_an_order_or_has_none_to_choose_hears_nothing() {
        set(hybrid(), "CUDA_DEVICE_ORDER", "PCI_BUS_ID").silent(ID);
        set(hybrid(), "CUDA_VISIBLE_DEVICES", "GPU-0000,GPU-1111").silent(ID);
        for gpus in [0, 1, 8] {
            World::machine(gpus).silent(ID);
        }
        hybrid().silent_with(|world| world.host.platform = Platform::Wsl, ID);
        // the card for the screen is left to another driver
        hybrid().silent_with(
            |world| {
                let Observed::Known(gpus) = &mut world.host.gpus else { panic!() };
                gpus.remove(0);
            },
            ID,
        );
    }

    #[test]
    fn names_that_nobody_read_are_no_difference() {
        let mut world = World::machine(2);
        let Observed::Known(gpus) = &mut world.host.gpus else { panic!() };
        gpus[0].name = None;
        world.host.pci = unseen();
        world.silent(ID);
        world.host.gpus = unseen();
        world.unknown(ID);
    }
}
