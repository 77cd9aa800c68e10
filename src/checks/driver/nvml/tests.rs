use super::*;
use crate::checks::testing::World;

fn gpu(index: u32) -> NvmlGpu {
    NvmlGpu {
        index,
        uuid: Some(format!("GPU-{index}")),
        pci: Some(format!("0000:0{index}:00.0")),
        memory: Some(80 << 30),
        memory_free: Some(79 << 30),
        persistent: Some(true),
        compute_mode: Some(ComputeMode::Default),
        processes: Some(Vec::new()),
        ..NvmlGpu::default()
    }
}

pub(super) fn machine(spoil: impl FnOnce(&mut Nvml)) -> World {
    let mut world = World::machine(2);
    let mut nvml = Nvml { gpus: vec![gpu(0), gpu(1)], ..Nvml::default() };
    spoil(&mut nvml);
    world.host.nvml = Some(nvml);
    world
}

#[test]
fn nobody_asked_and_all_is_well() {
    for world in [World::machine(2), machine(|_| ())] {
        for check in CHECKS {
            world.silent(check.id);
        }
    }
}

#[test]
fn each_defect_has_its_own_name() {
    type Spoil = fn(&mut NvmlGpu);
    let spoil: [(&str, Spoil, Severity); 9] = [
        ("ecc-uncorrectable", |gpu| gpu.uncorrectable = Some(2), Severity::Warning),
        ("row-remap-failed", |gpu| gpu.remap_failed = Some(true), Severity::Warning),
        ("row-remap-pending", |gpu| gpu.remap_pending = Some(true), Severity::Warning),
        ("page-retirement-pending", |gpu| gpu.retirement_pending = Some(true), Severity::Warning),
        (
            "mig-enabled-without-instances",
            |gpu| (gpu.mig, gpu.mig_devices) = (Some(true), Some(Vec::new())),
            Severity::Warning,
        ),
        ("gpu-memory-occupied", |gpu| gpu.memory_free = Some(1 << 30), Severity::Warning),
        ("persistence-off", |gpu| gpu.persistent = Some(false), Severity::Note),
        (
            "gpu-exclusive-busy",
            |gpu| {
                gpu.compute_mode = Some(ComputeMode::Exclusive);
                gpu.processes = Some(vec![crate::model::host::NvmlProcess { pid: Some(7), memory: None }]);
            },
            Severity::Warning,
        ),
        (
            "one-gpu-unhealthy",
            |gpu| gpu.trouble = Some(NvmlTrouble::Failed("nvmlDeviceGetHandleByIndex_v2(1)".into(), 999)),
            Severity::Error,
        ),
    ];
    for (id, spoil, severity) in spoil {
        let world = machine(|nvml| spoil(&mut nvml.gpus[1]));
        let failure = world.failure(id);
        assert_eq!(failure.severity, severity, "{id}");
        for other in CHECKS.iter().filter(|check| check.id != id) {
            world.silent(other.id);
        }
    }
}

#[test]
fn a_reset_is_asked_for_and_a_call_that_hangs_is_named() {
    let reset = NvmlTrouble::Failed("nvmlDeviceGetUUID".into(), 16);
    let world = machine(|nvml| nvml.gpus[0].trouble = Some(reset));
    world.failure("gpu-reset-required");
    for trouble in [NvmlTrouble::Late("nvmlInit_v2".into()), NvmlTrouble::Died("nvmlInit_v2".into())] {
        let world = machine(|nvml| {
            nvml.gpus.clear();
            nvml.trouble = Some(trouble);
        });
        let is_late = matches!(world.host.nvml.as_ref().and_then(|n| n.trouble.clone()), Some(NvmlTrouble::Late(_)));
        let expected = if is_late { Severity::Warning } else { Severity::Error };
        assert_eq!(world.failure("driver-call-hung").severity, expected, "GPUs may sleep");
        let mut awake = world.clone();
        awake.host.nvml.as_mut().unwrap().gpus = vec![gpu(0)];
        assert_eq!(awake.failure("driver-call-hung").severity, Severity::Error, "persistence mode is on");
    }
    let broken = machine(|nvml| {
        nvml.gpus.clear();
        nvml.trouble = Some(NvmlTrouble::Failed("nvmlInit_v2".into(), 9));
    });
    broken.silent("driver-call-hung");
    broken.unknown("one-gpu-unhealthy");
    broken.unknown("ecc-uncorrectable");
}

#[test]
fn mig_on_all_is_an_error_and_an_instance_is_enough() {
    let all = machine(|nvml| {
        for gpu in &mut nvml.gpus {
            (gpu.mig, gpu.mig_devices) = (Some(true), Some(Vec::new()));
        }
    });
    assert_eq!(all.failure("mig-enabled-without-instances").severity, Severity::Error);
    let made = machine(|nvml| {
        nvml.gpus[0].mig = Some(true);
        nvml.gpus[0].mig_devices = Some(vec![crate::model::host::MigDevice::default()]);
    });
    made.silent("mig-enabled-without-instances");
}

#[test]
fn what_could_not_be_read_is_no_defect_and_mps_may_share() {
    machine(|nvml| nvml.gpus.iter_mut().for_each(|gpu| gpu.mig = Some(true))).silent("mig-enabled-without-instances");
    let exclusive = |mps| {
        machine(|nvml| {
            let gpu = &mut nvml.gpus[0];
            (gpu.compute_mode, gpu.mps) = (Some(ComputeMode::Exclusive), mps);
            gpu.processes = Some(vec![crate::model::host::NvmlProcess { pid: Some(7), memory: None }]);
        })
    };
    exclusive(Some(true)).silent("gpu-exclusive-busy");
    exclusive(None).failure("gpu-exclusive-busy");
    let nobody = machine(|nvml| nvml.gpus[1].compute_mode = Some(ComputeMode::Prohibited));
    assert_eq!(nobody.failure("gpu-exclusive-busy").message, PROHIBITED);
}

#[test]
fn where_no_gpu_answers_none_is_offered() {
    let trouble = NvmlTrouble::Failed("nvmlDeviceGetHandleByIndex_v2(0)".into(), 15);
    let world = machine(|nvml| nvml.gpus.iter_mut().for_each(|gpu| gpu.trouble = Some(trouble.clone())));
    let failure = world.failure("one-gpu-unhealthy");
    assert_eq!(failure.message, NONE_ANSWERS);
    assert!(!failure.only.contains(&Action::PassGpu) && !failure.only.is_empty());
}
