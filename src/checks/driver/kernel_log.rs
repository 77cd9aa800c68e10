//! What the kernel's log says of the GPUs since the driver was loaded.

use crate::checks::nodes::expect::{Subject, subject};
use crate::checks::nodes::role::list;
use crate::checks::not_applicable;
use crate::knowledge::nvml::{GPU_IS_LOST, said};
use crate::model::host::{Nvml, NvmlGpu, NvmlTrouble};
use crate::model::observed::NO_LOG_FILE;
use crate::model::{Action, Check, Facts, Failure, Judgement, Outcome, Place, Severity, Step, Unknown};

use super::nvidia_loaded;
use super::nvml::{named, silent};

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "gpu-fallen-off-bus",
        title: "a GPU has fallen off the bus",
        why: "The driver can no longer reach the GPU over PCIe (Xid 79); nvidia-smi and the container toolkit may stop at it, although others work.",
        messages: &[
            "the kernel's log says that {gpus} fell off the bus (Xid 79) since the driver was loaded",
            "NVML says that {gpus} is lost: it no longer answers on the bus",
        ],
        remedy: &[
            Step {
                action: Action::Reboot,
                text: "Power-cycle the machine (a warm reboot may not do); if it comes again, look at power, cooling and seating.",
                command: None,
            },
            Step {
                action: Action::ReplaceHardware,
                text: "Have the GPU replaced if it keeps falling off.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: fallen_off_bus,
    },
    Check {
        id: "xid-recent",
        title: "the driver logged GPU errors (Xid)",
        why: "Xid lines report faults of a GPU or of a program on it; some mean that work fails until the GPU is reset.",
        messages: &["the kernel's log has GPU errors since the driver was loaded: {errors}"],
        remedy: &[Step {
            action: Action::ResetGpu,
            text: "Look the numbers up in NVIDIA's Xid catalogue; those of the hardware ask for a reset of the GPU or a reboot.",
            command: Some("dmesg | grep -i xid"),
        }],
        severities: &[Severity::Warning],
        places: &[Place::Host],
        judge: xid_recent,
    },
];

/// A line `NVRM: Xid (PCI:0000:09:00): 79, pid=0, GPU has fallen off the bus.`
#[derive(Debug, Clone, PartialEq, Eq)]
struct Xid {
    /// Domain, bus and slot, `0000:09:00`.
    gpu: String,
    number: u32,
}

/// Fallen off the bus.
const OFF_THE_BUS: u32 = 79;

/// The lines since the driver was loaded last: log files outlive reboots, and what was before is over.
pub(super) fn since_load(lines: &[String]) -> &[String] {
    let start = lines.iter().rposition(|line| line.contains("NVRM: loading NVIDIA"));
    start.and_then(|at| lines.get(at..)).unwrap_or(lines)
}

fn parse(line: &str) -> Option<Xid> {
    let (_, rest) = line.split_once("NVRM: Xid (")?;
    let (gpu, rest) = rest.split_once("): ")?;
    let gpu = gpu.strip_prefix("PCI:").unwrap_or(gpu);
    let address = gpu.len() <= 16 && gpu.bytes().all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    address.then_some(())?;
    Some(Xid { gpu: gpu.to_owned(), number: digits.parse().ok()? })
}

/// The errors since the driver was loaded, each GPU and number once; `None`: the question does not arise.
fn logged(facts: &Facts<'_>) -> Result<Option<Vec<Xid>>, Unknown> {
    if subject(facts)? != Some(Subject::Machine) || !nvidia_loaded(facts.host)? {
        return Ok(None);
    }
    let lines = match facts.host.kernel_log.known() {
        // Most machines keep a journal alone, which is not read: nobody asked it, and nothing is in doubt.
        Err(unknown) if unknown.reason == NO_LOG_FILE => return Ok(None),
        lines => lines?,
    };
    let mut all = Vec::new();
    for xid in since_load(lines).iter().filter_map(|line| parse(line)) {
        if !all.contains(&xid) {
            all.push(xid);
        }
    }
    Ok(Some(all))
}

fn fallen_off_bus(facts: &Facts<'_>) -> Judgement {
    let is_lost = |gpu: &&NvmlGpu| gpu.trouble.as_ref().and_then(NvmlTrouble::code) == Some(GPU_IS_LOST);
    if let Some(nvml) = &facts.host.nvml
        && let lost = silent::gpus(facts, nvml)?.into_iter().filter(is_lost).collect::<Vec<_>>()
        && !lost.is_empty()
    {
        return Failure::new(silent::severity(facts, nvml), CHECKS[0].messages[1])
            .arg("gpus", named(&lost))
            .saw("host.nvml.gpus", said(GPU_IS_LOST), "NVML")
            .found();
    }
    let Some(all) = logged(facts)? else { return not_applicable() };
    // one that answers now was brought back since
    let answers = |gpu: &str| {
        let mut answering = facts.host.nvml.iter().flat_map(Nvml::answering);
        answering.any(|other| other.pci.as_deref().is_some_and(|pci| pci.starts_with(gpu)))
    };
    let fallen = all.iter().filter(|x| x.number == OFF_THE_BUS).map(|x| x.gpu.as_str());
    let fallen: Vec<&str> = fallen.filter(|gpu| !answers(gpu)).collect();
    if fallen.is_empty() {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Error, CHECKS[0].messages[0])
        .arg("gpus", list(fallen.iter().copied()))
        .saw("host.kernel_log", format!("Xid 79: {}", fallen.join(", ")), "the kernel's log")
        .found()
}

fn xid_recent(facts: &Facts<'_>) -> Judgement {
    let Some(all) = logged(facts)? else { return not_applicable() };
    let others: Vec<String> = all
        .iter()
        .filter(|x| x.number != OFF_THE_BUS)
        .map(|x| format!("{} Xid {}{}", x.gpu, x.number, meaning(x.number)))
        .collect();
    if others.is_empty() {
        return Ok(Outcome::Pass);
    }
    // The newest say most.
    Failure::new(Severity::Warning, CHECKS[1].messages[0])
        .arg("errors", list(others.iter().rev().take(2).map(String::as_str)))
        .saw("host.kernel_log", list(others.iter().map(String::as_str)), "the kernel's log")
        .found()
}

/// What a number means, in brackets. Source: NVIDIA, "Xid Errors" (docs.nvidia.com/deploy/xid-errors), 2025.
fn meaning(number: u32) -> &'static str {
    match number {
        13 => " (exception in a program's kernel)",
        31 => " (a program's wrong memory access)",
        43 => " (GPU stopped processing a program)",
        45 => " (a program was cleaned up)",
        48 => " (uncorrectable memory error)",
        61 | 62 => " (internal micro-controller halted)",
        63 => " (memory row to be remapped)",
        64 => " (remapping of a memory row failed)",
        74 => " (NVLink error)",
        94 => " (contained memory error)",
        95 => " (uncontained memory error)",
        119 | 120 => " (the GPU's system processor failed)",
        154 => " (the GPU asks for a recovery)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::host::Nvml;
    use proptest::prelude::*;

    const FALLEN: &str = "Jul  1 kernel: NVRM: Xid (PCI:0000:09:00): 79, pid=0, GPU has fallen off the bus.";
    const FAULT: &str = "NVRM: Xid (0000:01:00): 31, Ch 0000000b, engmask 00000120";
    const LOAD: &str = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025";

    #[test]
    fn a_machine_with_a_journal_alone_is_not_in_doubt() {
        let mut world = World::machine(1);
        world.host.kernel_log = Observed::unknown("host.kernel_log", "/var/log", NO_LOG_FILE);
        for check in CHECKS {
            world.silent(check.id);
        }
    }

    fn logging(lines: &[&str]) -> World {
        let mut world = World::machine(2);
        world.host.kernel_log = Observed::Known(lines.iter().map(|l| (*l).to_owned()).collect());
        world
    }

    #[test]
    fn both_forms_of_the_line_are_read() {
        assert_eq!(parse(FALLEN), Some(Xid { gpu: "0000:09:00".into(), number: 79 }));
        assert_eq!(parse(FAULT), Some(Xid { gpu: "0000:01:00".into(), number: 31 }));
        assert_eq!(parse("NVRM: Xid (PCI:; reboot): 79"), None);
        assert_eq!(parse("NVRM: GPU at PCI:0000:01:00: GPU-bc0fa0b9"), None);
    }

    #[test]
    fn a_gpu_off_the_bus_is_found_until_the_driver_is_loaded_anew() {
        assert_eq!(logging(&[LOAD, FAULT, FALLEN]).short("gpu-fallen-off-bus").severity, Severity::Error);
        assert_eq!(logging(&[FALLEN]).short("gpu-fallen-off-bus").severity, Severity::Error);
        logging(&[FALLEN, LOAD]).silent("gpu-fallen-off-bus");
        logging(&[FAULT]).silent("gpu-fallen-off-bus");
        logging(&[]).silent("gpu-fallen-off-bus");
    }

    #[test]
    fn nvml_knows_a_lost_gpu_whatever_the_log_says() {
        let trouble = |code| Some(NvmlTrouble::Failed("nvmlDeviceGetHandleByIndex_v2(1)".into(), code));
        let nvml =
            |code| Nvml { gpus: vec![NvmlGpu { trouble: trouble(code), ..NvmlGpu::default() }], ..Nvml::default() };
        let mut world = logging(&[]);
        world.host.kernel_log = unseen();
        world.host.nvml = Some(nvml(GPU_IS_LOST));
        assert_eq!(world.failure("gpu-fallen-off-bus").severity, Severity::Error);
        let mut inside = World::cdi(1);
        inside.place = Place::Healthcheck;
        inside.host.nvml = Some(nvml(GPU_IS_LOST));
        assert_eq!(inside.failure("gpu-fallen-off-bus").severity, Severity::Error);
        let well = |index| NvmlGpu { index, minor: Some(index), ..NvmlGpu::default() };
        let mut several = World::cdi(2);
        several.place = Place::Healthcheck;
        several.host.nvml = Some(Nvml { gpus: [nvml(GPU_IS_LOST).gpus, vec![well(0)]].concat(), ..Nvml::default() });
        assert_eq!(several.failure("gpu-fallen-off-bus").severity, Severity::Warning, "one is left");
        several.host.nvml.as_mut().unwrap().gpus.push(well(1));
        several.silent("gpu-fallen-off-bus");
        inside.host.nvml = Some(nvml(999));
        inside.silent("gpu-fallen-off-bus");
    }

    #[test]
    fn a_gpu_that_answers_now_was_brought_back() {
        let mut world = logging(&[LOAD, FALLEN]);
        let gpu = |pci: &str| NvmlGpu { pci: Some(pci.to_owned()), ..NvmlGpu::default() };
        world.host.nvml = Some(Nvml { gpus: vec![gpu("0000:01:00.0")], ..Nvml::default() });
        world.failure("gpu-fallen-off-bus");
        world.host.nvml = Some(Nvml { gpus: vec![gpu("0000:09:00.0")], ..Nvml::default() });
        world.silent("gpu-fallen-off-bus");
    }

    #[test]
    fn other_errors_are_told_with_their_meaning() {
        let failure =
            logging(&[LOAD, FALLEN, FAULT, FAULT, "NVRM: Xid (PCI:0000:02:00): 1048576, x"]).short("xid-recent");
        assert_eq!(failure.severity, Severity::Warning);
        assert!(failure.args.iter().any(|(_, a)| matches!(a, crate::model::check::Arg::Ours(t) if t.contains("Xid 31 (a program's wrong memory access)"))));
        logging(&[FALLEN]).silent("xid-recent");
        logging(&[FAULT, LOAD]).silent("xid-recent");
    }

    #[test]
    fn a_log_that_nobody_could_read_is_unknown_where_a_driver_runs() {
        let mut world = World::machine(1);
        world.host.kernel_log = unseen();
        world.unknown("gpu-fallen-off-bus");
        world.unknown("xid-recent");
        world.host.driver.version = Observed::Known(None);
        world.host.driver.modules = Observed::Known([].into());
        world.silent("xid-recent");
    }

    proptest! {
        #[test]
        fn no_line_breaks_the_reader(line in "(NVRM: Xid \\((PCI:)?)?\\PC{0,40}(\\): )?\\PC{0,20}") {
            if let Some(xid) = parse(&line) {
                prop_assert!(xid.gpu.len() <= 16 && xid.gpu.is_ascii());
            }
        }
    }
}
