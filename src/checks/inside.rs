//! What the checks say where the health check asks them: from inside a container that runs.

use crate::checks::testing::{World, unseen};
use crate::model::container::{Access, FromInside, Given, LegacyState, Moment, Refusal, Strength, Wants};
use crate::model::host::{Nvml, NvmlGpu, NvmlTrouble};
use crate::model::{Action, Host, Observed, Place, Severity};

const CONTROL: &str = "/dev/nvidiactl";
const UVM: &str = "/dev/nvidia-uvm";

/// It sees its own nodes alone, and nothing of what started it.
fn inside(mut world: World) -> World {
    world.place = Place::Healthcheck;
    world.container.moment = Moment::Running;
    world.container.inside = Some(FromInside::default());
    world.host.engines.clear();
    world
}

fn well() -> World {
    inside(World::cdi(2))
}

fn had(mut world: World, nodes: &[&str]) -> World {
    let had = nodes.iter().map(|node| (*node).to_owned()).collect();
    world.container.inside = Some(FromInside { had, ..FromInside::default() });
    world
}

fn lacks(mut world: World, nodes: &[&str]) -> World {
    for node in nodes {
        world.without_node(node, true);
    }
    world
}

fn refused(mut world: World, node: &str, refusal: Refusal) -> World {
    world.node(node).access = Access::Refused(refusal);
    world
}

fn severity(world: &World, id: &str) -> Severity {
    world.failure(id).severity
}

#[test]
fn a_container_that_is_well_gives_no_finding_and_leaves_nothing_open() {
    for world in [well(), inside(World::legacy(2, LegacyState::HasRun)), inside(World::plain())] {
        for (_, check) in super::all().filter(|(_, check)| check.places.contains(&Place::Healthcheck)) {
            let judgement = world.judge(check.id);
            assert!(judgement.as_ref().is_ok_and(|outcome| outcome.failure().is_none()), "{}: {judgement:?}", check.id);
        }
    }
}

#[test]
fn a_node_that_is_gone_is_an_error_whatever_the_machine_still_has() {
    for (node, id) in [(CONTROL, "control-node-missing"), (UVM, "uvm-node-missing")] {
        let never = lacks(well(), &[node]);
        assert_eq!(severity(&never, id), Severity::Error);
        assert_eq!(never.failure(id).only, &[Action::RegenerateCdi]);
        let lost = had(never, &[node, "/dev/nvidia0"]);
        assert_eq!((severity(&lost, id), lost.failure(id).only), (Severity::Error, &[Action::ConfigureEngine][..]));
    }
}

#[test]
fn all_of_them_gone_is_a_loss_only_where_it_had_them() {
    let all = [CONTROL, UVM, "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"];
    let mut never = lacks(well(), &all);
    never.container.gpu_given = Observed::Known(Given::None);
    for id in ["control-node-missing", "gpu-node-missing", "uvm-node-missing"] {
        never.silent(id);
        assert_eq!(severity(&had(never.clone(), &all), id), Severity::Error, "{id}");
    }
    assert_eq!(severity(&never, "gpu-not-requested"), Severity::Error);
}

#[test]
fn of_several_gpus_one_lost_is_a_warning() {
    let both = ["/dev/nvidia0", "/dev/nvidia1"];
    assert_eq!(severity(&had(lacks(well(), &both[..1]), &both), "gpu-node-missing"), Severity::Warning);
    assert_eq!(severity(&had(lacks(well(), &both), &both), "gpu-node-missing"), Severity::Error);
}

#[test]
fn what_a_container_by_hand_never_had_is_doubtful_and_what_it_lost_is_not() {
    let mut by_hand = lacks(well(), &[UVM]);
    by_hand.container.gpu_given = Observed::Known(Given::RawDevices);
    assert_eq!(severity(&by_hand, "uvm-node-missing"), Severity::Warning, "it may be after nvidia-smi only");
    assert_eq!(severity(&had(by_hand, &[UVM, "/dev/nvidia0"]), "uvm-node-missing"), Severity::Error);
}

#[test]
fn each_refusal_of_the_kernel_has_its_own_name() {
    const IDS: [&str; 4] =
        ["cgroup-lost-after-daemon-reload", "node-access-refused", "driver-not-loaded", "driver-call-hung"];
    for (refusal, expected) in [
        (Refusal::Cgroup, IDS[0]),
        (Refusal::Mode, IDS[1]),
        (Refusal::NoDev, IDS[1]),
        (Refusal::NoDriver, IDS[2]),
        (Refusal::Hangs, IDS[3]),
    ] {
        let world = refused(well(), CONTROL, refusal);
        for id in IDS {
            if id == expected {
                assert_eq!(severity(&world, id), Severity::Error, "{refusal:?}");
            } else {
                world.silent(id);
            }
        }
    }
}

#[test]
fn a_rule_that_was_there_is_told_from_one_that_never_was() {
    let world = refused(well(), "/dev/nvidia0", Refusal::Cgroup);
    let id = "cgroup-lost-after-daemon-reload";
    let (never, lost) = (world.failure(id), had(world, &["/dev/nvidia0"]).failure(id));
    assert_ne!(never.message, lost.message);
    assert_eq!((never.severity, lost.severity), (Severity::Warning, Severity::Warning), "the other GPU is left");
}

#[test]
fn a_node_of_another_number_that_nobody_serves_is_of_another_number() {
    let mut world = refused(well(), UVM, Refusal::NoDriver);
    world.node(UVM).major = 507;
    world.silent("driver-not-loaded");
    let failure = world.failure("uvm-major-mismatch");
    assert_eq!((failure.severity, failure.only), (Severity::Error, &[Action::RegenerateCdi][..]));
}

#[test]
fn the_library_that_the_loader_takes_must_be_the_modules() {
    let id = "driver-library-mismatch";
    let with_library = |version: &str| {
        let mut world = well();
        let Observed::Known(libraries) = &mut world.host.driver.libraries else { panic!() };
        libraries[1].version = Some(version.parse().unwrap());
        world
    };
    let without_cuda = with_library("560.28.03");
    assert_eq!(severity(&without_cuda, id), Severity::Warning, "libcuda is the module's, and CUDA does without NVML");
    let worked = |mut world: World| {
        world.container.inside = Some(FromInside { nvml_worked: true, ..FromInside::default() });
        world
    };
    let other = worked(without_cuda.clone());
    assert_eq!(severity(&other, id), Severity::Error, "it worked since the container's start");
    let mut both = without_cuda;
    let Observed::Known(libraries) = &mut both.host.driver.libraries else { panic!() };
    libraries[0].version = Some("560.28.03".parse().unwrap());
    assert_eq!(severity(&both, id), Severity::Error);
    both.set("NVIDIA_DRIVER_CAPABILITIES", "compute");
    assert_eq!(severity(&both, id), Severity::Warning, "it asked for no NVML, and the image brings one");
    // a second one, in front of it or behind
    let mut two = other.clone();
    let (Observed::Known(all), Observed::Known(more)) = (&mut two.host.driver.libraries, well().host.driver.libraries)
    else {
        panic!()
    };
    all.extend(more);
    two.silent(id);
    let refuses = Nvml { trouble: Some(NvmlTrouble::Failed("nvmlInit_v2".into(), 18)), ..Nvml::default() };
    two.host.nvml = Some(refuses.clone());
    assert_eq!(severity(&two, id), Severity::Error, "NVML knows which one it is");
    let mut nameless = worked(World { host: Host { nvml: Some(refuses), ..well().host }, ..well() });
    nameless.host.driver.libraries = Observed::default();
    assert_eq!(severity(&nameless, id), Severity::Error);
    let mut answers = other;
    answers.host.nvml = Some(Nvml { driver: Some("550.163.01".into()), ..Nvml::default() });
    answers.silent(id);
}

#[test]
fn nvml_is_missed_where_it_was_asked_for() {
    let mut world = well();
    world.host.driver.libraries = Observed::default();
    assert_eq!(severity(&world, "driver-library-missing"), Severity::Warning, "CUDA works without it");
    world.set("NVIDIA_DRIVER_CAPABILITIES", "compute");
    world.silent("driver-library-missing");
    world.host.driver.libraries = unseen();
    world.unknown("driver-library-missing");
}

#[test]
fn memory_counts_where_somebody_wants_it_to_be_free() {
    let id = "gpu-memory-occupied";
    let with_free = |free: &[u64], wanted: Option<u64>| {
        let mut world = well();
        let gpu = |(index, free): (usize, &u64)| NvmlGpu {
            index: u32::try_from(index).unwrap(),
            memory: Some(80 << 30),
            memory_free: Some(*free),
            ..NvmlGpu::default()
        };
        world.host.nvml = Some(Nvml { gpus: free.iter().enumerate().map(gpu).collect(), ..Nvml::default() });
        world.container.inside = Some(FromInside { min_free_memory: wanted, ..FromInside::default() });
        world
    };
    with_free(&[1 << 20], None).silent(id);
    with_free(&[4 << 30, 2 << 30], Some(2 << 30)).silent(id);
    assert_eq!(severity(&with_free(&[4 << 30, 1 << 30], Some(2 << 30)), id), Severity::Warning);
    assert_eq!(severity(&with_free(&[1 << 30, 1 << 20], Some(2 << 30)), id), Severity::Error);
    with_free(&[], Some(1)).unknown(id);
    let mut not_asked = with_free(&[], Some(1));
    not_asked.host.nvml = None;
    not_asked.unknown(id);
}

#[test]
fn a_code_of_nvml_that_nothing_explains_is_said_and_harms_nobody() {
    let mut world = well();
    world.host.nvml = Some(Nvml { trouble: Some(NvmlTrouble::Failed("nvmlInit_v2".into(), 999)), ..Nvml::default() });
    world.unknown("one-gpu-unhealthy");
}

fn with_trouble(trouble: NvmlTrouble) -> World {
    let mut world = well();
    world.host.nvml = Some(Nvml { trouble: Some(trouble), ..Nvml::default() });
    world
}

#[test]
fn a_call_that_takes_its_time_is_an_error_where_the_gpu_cannot_have_been_asleep() {
    let id = "driver-call-hung";
    let late = || with_trouble(NvmlTrouble::Late("nvmlInit_v2".into()));
    let knowing = |inside: FromInside| {
        let mut world = late();
        world.container.inside = Some(inside);
        severity(&world, id)
    };
    assert_eq!(severity(&late(), id), Severity::Warning, "it may be starting GPUs");
    assert_eq!(knowing(FromInside { in_use: true, ..FromInside::default() }), Severity::Error);
    assert_eq!(knowing(FromInside { still_stuck: true, ..FromInside::default() }), Severity::Error);
    let worked = FromInside { nvml_worked: true, ..FromInside::default() };
    assert_eq!(knowing(worked), Severity::Warning, "they may be asleep again");
    let told = |persistent: &[bool]| {
        let mut world = late();
        let gpu = |on: &bool| NvmlGpu { persistent: Some(*on), ..NvmlGpu::default() };
        world.host.nvml.as_mut().unwrap().gpus = persistent.iter().map(gpu).collect();
        // the daemon runs, whatever its mode
        world.host.sockets = Observed::Known(vec!["/run/nvidia-persistenced/socket".into()]);
        severity(&world, id)
    };
    assert_eq!((told(&[]), told(&[true, false])), (Severity::Warning, Severity::Warning));
    assert_eq!(told(&[true, true]), Severity::Error);
}

#[test]
fn what_ends_or_starves_the_health_check_harms_nobody() {
    let id = "driver-call-hung";
    assert_eq!(severity(&with_trouble(NvmlTrouble::Died("nvmlInit_v2".into())), id), Severity::Warning);
    let starved = with_trouble(NvmlTrouble::NotAsked("no process could be made".into()));
    starved.unknown(id);
    starved.unknown("one-gpu-unhealthy");
}

#[test]
fn a_privileged_container_that_wants_no_gpu_has_none_that_could_be_ill() {
    let mut world = with_trouble(NvmlTrouble::Late("nvmlInit_v2".into()));
    world.container.inside = Some(FromInside { in_use: true, ..FromInside::default() });
    world.container.gpu_given = Observed::Known(Given::Privileged);
    world.container.wants_gpu = Wants::default();
    world.silent("driver-call-hung");
    world.host.nvml = Some(gpus(&[Some(15)]));
    world.silent("one-gpu-unhealthy");
    let mut world = refused(world, CONTROL, Refusal::Hangs);
    world.silent("driver-call-hung");
    world.container.wants_gpu = Wants { wanted: true, strength: Strength::Environment, why: String::new() };
    assert_eq!(severity(&world, "driver-call-hung"), Severity::Error);
}

/// NVML with so many GPUs, each silent with the code or answering.
fn gpus(codes: &[Option<u32>]) -> Nvml {
    let gpu = |(index, code): (usize, &Option<u32>)| NvmlGpu {
        index: u32::try_from(index).unwrap(),
        minor: code.is_none().then(|| u32::try_from(index).unwrap()),
        trouble: code.map(|code| NvmlTrouble::Failed("nvmlDeviceGetHandleByIndex_v2".into(), code)),
        ..NvmlGpu::default()
    };
    Nvml { driver: Some("550.163.01".into()), gpus: codes.iter().enumerate().map(gpu).collect(), ..Nvml::default() }
}

#[test]
fn a_gpu_of_others_and_one_of_several_kill_nobody() {
    const LOST: Option<u32> = Some(15);
    let says = |codes: &[Option<u32>]| World { host: Host { nvml: Some(gpus(codes)), ..well().host }, ..well() };
    says(&[None, None, Some(4), Some(4)]).silent("one-gpu-unhealthy");
    says(&[None, None, LOST]).silent("one-gpu-unhealthy");
    assert_eq!(severity(&says(&[None, LOST]), "one-gpu-unhealthy"), Severity::Warning);
    assert_eq!(severity(&says(&[LOST, LOST]), "one-gpu-unhealthy"), Severity::Error);
    assert_eq!(severity(&says(&[None, Some(16)]), "gpu-reset-required"), Severity::Warning);
    assert_eq!(severity(&says(&[Some(16), Some(16)]), "gpu-reset-required"), Severity::Error);
}

#[test]
fn faults_of_memory_and_mig_without_instances_kill_only_whom_they_stop() {
    let mut world = well();
    let mut nvml = gpus(&[None, None]);
    for gpu in &mut nvml.gpus {
        (gpu.uncorrectable, gpu.remap_failed, gpu.mig, gpu.mig_devices) =
            (Some(3), Some(true), Some(true), Some(Vec::new()));
    }
    world.host.nvml = Some(nvml);
    assert_eq!(severity(&world, "ecc-uncorrectable"), Severity::Warning, "it counts since the driver was loaded");
    assert_eq!(severity(&world, "row-remap-failed"), Severity::Warning);
    assert_eq!(severity(&world, "mig-enabled-without-instances"), Severity::Error);
    world.set("NVIDIA_DRIVER_CAPABILITIES", "utility");
    assert_eq!(severity(&world, "mig-enabled-without-instances"), Severity::Warning, "it watches GPUs");
}

#[test]
fn what_one_user_may_not_open_another_may() {
    let mut world = refused(well(), CONTROL, Refusal::Mode);
    assert_eq!(severity(&world, "node-access-refused"), Severity::Error);
    world.container.inside = Some(FromInside { has_other_users: true, ..FromInside::default() });
    assert_eq!(severity(&world, "node-access-refused"), Severity::Warning);
}

#[test]
fn who_may_set_the_machine_up_and_had_nothing_yet_is_only_warned() {
    let mut world = lacks(well(), &[UVM]);
    let Observed::Known(user) = &mut world.container.user else { panic!() };
    user.capabilities.as_mut().unwrap().bounding |= 1 << 16;
    assert_eq!(severity(&world, "uvm-node-missing"), Severity::Warning);
    assert_eq!(severity(&had(world, &[UVM]), "uvm-node-missing"), Severity::Error);
}
