//! A GPU was given by halves: nodes without the driver's libraries, or the reverse.

use super::asked::visible;
use super::way;
use crate::checks::cuda::only_monitors;
use crate::checks::not_applicable;
use crate::knowledge::driver_capabilities::Capabilities;
use crate::knowledge::driver_files::{is_driver_library, is_libcuda};
use crate::knowledge::visible_devices::{Request, parse};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::Given;
use crate::model::host::{Majors, NodeKind};
use crate::model::{Container, Facts, Unknown};

const NO_LIBRARY: &str = "the container has {node}, but no libcuda for its programs to load: {cause}";
const NO_NODE: &str = "the container has the driver's libraries ({library}), but no GPU node such as /dev/nvidia0";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "passthrough-incomplete",
    title: "the GPU was passed by halves: device nodes without libraries, or libraries without nodes",
    why: "CUDA needs the driver's libcuda and the GPU's nodes; with only one of them it finds no GPU.",
    messages: &[NO_LIBRARY, NO_NODE],
    remedy: &[
        Step { action: Action::PassGpu, text: "Give the GPU with {way} instead.", command: None },
        Step {
            action: Action::RegenerateCdi,
            text: "Write the CDI specification anew while the driver is loaded.",
            command: Some("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
        },
    ],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Hook, Place::Healthcheck],
    judge: passthrough_incomplete,
}];

fn passthrough_incomplete(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    let given = *container.gpu_given.known()?;
    if matches!(given, Given::None | Given::Wsl | Given::Tegra | Given::Vm) {
        return not_applicable();
    }
    // what NVIDIA's hook has still to make counts as made
    if container.legacy_still_to_run() {
        return Ok(Outcome::Pass);
    }
    let environment = container.environment.known()?;
    if !Capabilities::of(environment).allow_compute() && given != Given::Cdi {
        return not_applicable();
    }
    // nodes that came with --privileged and that nobody asked for are no offer of a GPU
    let wanted = if given == Given::Privileged { container.asks_for_gpu() } else { container.wants_gpu.is_asked() };
    if !wanted && given == Given::Privileged {
        return not_applicable();
    }
    if let Some(sandbox) = container.sandbox {
        let reason = format!("{} brings the libraries and opens the nodes itself", sandbox.name());
        return Err(Unknown::new("container.libcuda", "config.json", reason));
    }
    // a spec without a mount, not even of /proc, is a fragment: what else it leaves out nobody knows
    if container.moment.is_foretold() && container.mounts.known()?.items.is_empty() {
        return Err(Unknown::new("container.libcuda", "config.json", "the spec lists no mounts at all"));
    }
    let nodes = container.devices.known()?;
    let gpu = nodes.iter().find(|n| n.kind == NodeKind::CharDevice && Majors::gpu_minor(&n.path).is_some());
    let libraries = container.libcuda.known()?;
    // who watches GPUs, or brings a part of the driver by hand, may do without libcuda
    // and a toolkit from before 1.4, which inside a container nobody can tell, brings none unless it is named
    let old_default = facts.place == Place::Healthcheck
        && given == Given::LegacyHook
        && Capabilities::of(environment) == Capabilities::Default;
    let without_cuda = only_monitors(container) || brings_another_library(container) || old_default;
    let severity = if wanted { Severity::Error } else { Severity::Warning };
    let remedy: &'static [Action] = if given == Given::Cdi { &[Action::RegenerateCdi] } else { &[Action::PassGpu] };
    match (gpu, libraries.first()) {
        (Some(node), None) => Failure::new(if without_cuda { Severity::Warning } else { severity }, NO_LIBRARY)
            .foreign("node", &node.path)
            .arg("cause", cause(given))
            .arg("way", way::to_give(facts)?)
            .saw("container.libcuda", "none", "container")
            .only(remedy)
            .found(),
        (None, Some(library)) if !chose_no_gpu(facts)? => Failure::new(without_node(facts, severity)?, NO_NODE)
            .foreign("library", library)
            .arg("way", way::to_give(facts)?)
            .saw("container.devices", nodes.len(), "container")
            .only(remedy)
            .found(),
        _ => Ok(Outcome::Pass),
    }
}

/// CDI has more to give than GPUs: an IMEX channel, the driver alone for a daemon. Only who wrote that a GPU
/// is wanted is let down.
fn without_node(facts: &Facts<'_>, severity: Severity) -> Result<Severity, Unknown> {
    let container = facts.container;
    let asked = visible(container)?.is_some() && container.scheduler.is_none();
    let by_cdi = *container.gpu_given.known()? == Given::Cdi;
    Ok(if by_cdi && !asked { Severity::Warning } else { severity })
}

/// A library of the driver other than libcuda is mounted by itself: NVML, graphics and video work without it.
fn brings_another_library(container: &Container) -> bool {
    let mounts = container.mounts.seen().map(|mounts| mounts.items.as_slice()).unwrap_or_default();
    mounts.iter().map(|mount| &mount.destination).any(|file| is_driver_library(file) && !is_libcuda(file))
}

fn cause(given: Given) -> &'static str {
    match given {
        Given::Privileged => "--privileged passes nodes and no libraries",
        Given::RawDevices => "single --device options pass nodes and no libraries",
        Given::Cdi => "the CDI specification mounts none",
        _ => "NVIDIA's hook brought none",
    }
}

/// `none` gives the driver's files and no GPU, on purpose.
fn chose_no_gpu(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let container = facts.container;
    let by_cdi = container.variable("NVCT_EMPTY_DEVICE")?.is_some();
    Ok(by_cdi || visible(container)?.is_some_and(|v| parse(v) == Request::None))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::container::{Given, LegacyState, Moment, Mount, Sandbox, Scheduler, Strength, Wants};
    use crate::model::{Observed, Parts, Place, Severity};

    const ID: &str = "passthrough-incomplete";

    fn by_hand(given: Given) -> World {
        let mut world = World::cdi(1);
        world.container.gpu_given = Observed::Known(given);
        world.container.libcuda = Observed::Known(Vec::new());
        world
    }

    #[test]
    fn nodes_without_a_library_are_an_error_where_a_gpu_is_wanted() {
        for given in [Given::Privileged, Given::RawDevices, Given::Cdi] {
            assert_eq!(by_hand(given).failure(ID).severity, Severity::Error, "{given:?}");
        }
        let mut inside = by_hand(Given::Privileged);
        inside.place = Place::Healthcheck;
        assert_eq!(inside.failure(ID).severity, Severity::Error);
    }

    #[test]
    fn inside_nobody_knows_what_an_old_toolkit_brings_unasked() {
        let mut world = World::legacy(1, LegacyState::HasRun);
        world.place = Place::Healthcheck;
        world.container.libcuda = Observed::Known(Vec::new());
        assert_eq!(world.failure(ID).severity, Severity::Error);
        world.unset("NVIDIA_DRIVER_CAPABILITIES");
        assert_eq!(world.failure(ID).severity, Severity::Warning);
    }

    #[test]
    fn nodes_that_nobody_asked_for_are_no_error() {
        let mut world = by_hand(Given::Privileged);
        world.container.wants_gpu = Wants::default();
        world.silent(ID);
        world.container.gpu_given = Observed::Known(Given::RawDevices);
        assert_eq!(world.failure(ID).severity, Severity::Warning);
        // a privileged pod of a CUDA image is given no GPU by its resources, like any other
        let mut pod = by_hand(Given::Privileged);
        pod.container.scheduler = Some(Scheduler::Kubernetes);
        pod.silent(ID);
        pod.container.wants_gpu.strength = Strength::Demand;
        assert_eq!(pod.failure(ID).severity, Severity::Error);
    }

    #[test]
    fn who_does_without_cuda_is_warned() {
        let mount = |path: &str| Mount { destination: path.into(), source: path.into(), ..Mount::default() };
        for library in ["libnvidia-ml.so.1", "libGLX_nvidia.so.0", "libnvidia-encode.so.550.163.01"] {
            let mut world = by_hand(Given::RawDevices);
            let library = mount(&format!("/usr/lib/x86_64-linux-gnu/{library}"));
            world.container.mounts = Observed::Known(Parts::whole(vec![mount("/usr/bin/nvidia-smi"), library]));
            assert_eq!(world.failure(ID).severity, Severity::Warning);
        }
        let mut monitor = by_hand(Given::RawDevices);
        monitor.container.args = Observed::Known(vec!["nvidia-smi".into(), "-L".into()]);
        assert_eq!(monitor.failure(ID).severity, Severity::Warning);
        let mut other = by_hand(Given::RawDevices);
        other.container.mounts = Observed::Known(Parts::whole(vec![mount("/usr/lib/libfoo.so.1")]));
        assert_eq!(other.failure(ID).severity, Severity::Error);
    }

    #[test]
    fn libraries_without_a_gpu_are_an_error_unless_chosen() {
        let mut world = World::cdi(1);
        world.without_node("/dev/nvidia0", false);
        assert_eq!(world.failure(ID).severity, Severity::Error);
        world.container.visible_devices = Observed::Known(Some("none".into()));
        world.silent(ID);
    }

    #[test]
    fn complete_ones_and_those_that_need_no_libcuda_are_fine() {
        World::cdi(1).silent(ID);
        World::legacy(1, LegacyState::HasRun).silent(ID);
        World::legacy(1, LegacyState::StillToRun).silent(ID);
        World::asking("all").silent(ID);
        for given in [Given::Wsl, Given::Tegra, Given::Vm] {
            by_hand(given).silent(ID);
        }
        let mut graphics = by_hand(Given::Privileged);
        graphics.set("NVIDIA_DRIVER_CAPABILITIES", "graphics,utility");
        graphics.silent(ID);
    }

    #[test]
    fn a_spec_without_any_mount_says_nothing_of_libraries() {
        let mut world = by_hand(Given::RawDevices);
        world.container.moment = Moment::NotStarted;
        world.unknown(ID);
        let proc = Mount { destination: "/proc".into(), source: "proc".into(), kind: "proc".into(), options: vec![] };
        world.container.mounts = Observed::Known(Parts::whole(vec![proc]));
        world.failure(ID);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = by_hand(Given::Privileged);
        world.container.libcuda = unseen();
        world.unknown(ID);
        let mut world = by_hand(Given::Privileged);
        world.container.sandbox = Some(Sandbox::Gvisor);
        world.unknown(ID);
        let mut world = World::cdi(1);
        world.container.devices = unseen();
        world.unknown(ID);
    }
}
