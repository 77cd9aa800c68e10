//! Engines and places in which no GPU reaches a container.

use super::is_native_with_gpu;
use super::ways::{self, Mechanism};
use crate::checks::not_applicable;
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{EngineKind, Inside, Majors, NodeKind};

const SNAP: &str = "docker is installed as a snap ({path}), and its confinement hides the driver's libraries from it";
const DESKTOP: &str = "Docker Desktop is installed ({path}), whose containers run in a virtual machine without the GPU";
const BUILD: &str = "this is a step of a {builder} build, which has no GPU, though its image asks for one ({why})";
const NESTED: &str = "this machine is a container with {nodes} GPU nodes in /dev, and the driver shows it {gpus} GPUs";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "docker-is-snap",
        title: "docker is a snap",
        why: "NVIDIA's tool fails in it: libnvidia-ml.so.1 cannot be opened.",
        messages: &[SNAP],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Remove the snap and install docker's own packages, then the NVIDIA Container Toolkit.",
            command: Some("snap remove docker"),
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host],
        judge: docker_is_snap,
    },
    Check {
        id: "docker-desktop-linux",
        title: "the engine is Docker Desktop's virtual machine",
        why: "Docker Desktop for Linux has no GPU for its containers: no libnvidia-ml, no runtime nvidia.",
        messages: &[DESKTOP],
        remedy: &[
            Step {
                action: Action::ConfigureEngine,
                text: "Use the machine's own Docker Engine.",
                command: Some("docker context use default"),
            },
            Step {
                action: Action::ChangePackages,
                text: "Install Docker Engine and the toolkit if there is none, and remove Docker Desktop.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Note],
        places: &[Place::Host],
        judge: docker_desktop_linux,
    },
    Check {
        id: "build-time-no-gpu",
        title: "image builds have no GPU",
        why: "CUDA finds no device in a build step; what is compiled there cannot ask the GPU what it is.",
        messages: &[BUILD],
        remedy: &[Step {
            action: Action::ChangeImage,
            text: "Name the GPU's generation in the build (TORCH_CUDA_ARCH_LIST), and use the GPU at run time only.",
            command: None,
        }],
        severities: &[Severity::Note],
        places: &[Place::Hook],
        judge: build_time_no_gpu,
    },
    Check {
        id: "nested-privileged-device-mismatch",
        title: "a privileged container in which an engine runs has nodes of GPUs that are not its own",
        why: "The inner engine's hook finds more GPUs than the driver shows, and stops every start.",
        messages: &[NESTED],
        remedy: &[
            Step {
                action: Action::ChangeEnvironment,
                text: "Ask in it for the GPUs below /proc/driver/nvidia/gpus only, by UUID.",
                command: Some("nvidia-smi -L"),
            },
            Step {
                action: Action::ConfigureEngine,
                text: "Run the outer container without --privileged.",
                command: None,
            },
        ],
        severities: &[Severity::Error],
        places: &[Place::Host],
        judge: nested_device_mismatch,
    },
];

fn docker_is_snap(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    let Some(snap) = host.engines.iter().find(|e| e.kind == EngineKind::Docker && e.snap) else {
        return not_applicable();
    };
    if !is_native_with_gpu(host)? {
        return not_applicable();
    }
    // beside a snap nobody can tell which docker answers, so that its unregistered hook is no way
    let severity = ways::severity(&ways::of(host)?, |way| way.mechanism == Mechanism::Hook);
    Failure::new(severity, SNAP).foreign("path", &snap.path).saw("host.engines", "snap", &snap.path).found()
}

fn docker_desktop_linux(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    if !host.docker_desktop || !is_native_with_gpu(host)? {
        return not_applicable();
    }
    // beside an engine of the machine it is a matter of `docker context`, which is each user's own
    let alone = host.engines.iter().all(ways::may_be_gone);
    let severity = if alone { Severity::Error } else { Severity::Note };
    Failure::new(severity, DESKTOP)
        .arg("path", "/opt/docker-desktop")
        .saw("host.docker_desktop", "installed", "/opt/docker-desktop")
        .found()
}

fn build_time_no_gpu(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    match container.builder {
        Some(builder) if container.wants_gpu.is_asked() => Failure::new(Severity::Note, BUILD)
            .arg("builder", builder.name())
            .foreign("why", &container.wants_gpu.why)
            .found(),
        _ => not_applicable(),
    }
}

fn nested_device_mismatch(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    if host.inside != Some(Inside::Container) {
        return not_applicable();
    }
    let nodes = host.device_nodes.known()?;
    let nodes =
        nodes.iter().filter(|(path, n)| n.kind == NodeKind::CharDevice && Majors::gpu_minor(path).is_some()).count();
    let gpus = host.gpus.known()?.len();
    // none at all is the driver's matter
    if gpus == 0 || nodes <= gpus {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Error, NESTED)
        .arg("nodes", nodes)
        .arg("gpus", gpus)
        .saw("host.device_nodes", nodes, "/dev")
        .saw("host.gpus", gpus, "/proc/driver/nvidia/gpus")
        .found()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::container::Builder;
    use crate::model::host::{Engine, EngineKind, Gpu, Inside, Platform};
    use crate::model::{Observed, Severity};

    const SNAP: &str = "docker-is-snap";
    const DESKTOP: &str = "docker-desktop-linux";
    const BUILD: &str = "build-time-no-gpu";
    const NESTED: &str = "nested-privileged-device-mismatch";

    #[test]
    fn a_snap_is_an_error_unless_another_engine_has_a_way() {
        let mut world = World::machine(1);
        world.silent(SNAP);
        let packaged = world.host.engines[0].clone();
        world.host.engines[0] = Engine { snap: true, path: "/snap/bin/docker".into(), ..packaged.clone() };
        assert_eq!(world.failure(SNAP).severity, Severity::Error);
        world.host.engines.push(Engine { runtimes: [].into(), ..packaged.clone() });
        assert_eq!(world.failure(SNAP).severity, Severity::Error);
        world.host.engines[1] = Engine { kind: EngineKind::Containerd, ..packaged };
        assert_eq!(world.failure(SNAP).severity, Severity::Warning);
        world.host.cdi = unseen();
        world.unknown(SNAP);
    }

    #[test]
    fn docker_desktop_alone_is_an_error() {
        let mut world = World::machine(1);
        world.silent(DESKTOP);
        world.host.docker_desktop = true;
        assert_eq!(world.failure(DESKTOP).severity, Severity::Note);
        world.host.engines[0].path = "/etc/docker/daemon.json".into();
        assert_eq!(world.failure(DESKTOP).severity, Severity::Error, "a configuration is left of the engine");
        world.host.engines.clear();
        assert_eq!(world.failure(DESKTOP).severity, Severity::Error);
        world.host.platform = Platform::Wsl;
        world.silent(DESKTOP);
        let mut bare = World::machine(0);
        bare.host.docker_desktop = true;
        bare.silent(DESKTOP);
    }

    #[test]
    fn a_build_step_that_asks_is_a_note() {
        let mut world = World::asking("all");
        world.silent(BUILD);
        world.container.builder = Some(Builder::Buildah);
        assert_eq!(world.failure(BUILD).severity, Severity::Note);
        let mut plain = World::plain();
        plain.container.builder = Some(Builder::BuildKit);
        plain.silent(BUILD);
    }

    #[test]
    fn nodes_of_others_in_a_container_are_an_error() {
        let mut world = World::machine(4);
        world.silent(NESTED);
        world.host.inside = Some(Inside::Container);
        world.silent(NESTED);
        world.host.gpus = Observed::Known(vec![Gpu::default(), Gpu::default()]);
        assert_eq!(world.failure(NESTED).severity, Severity::Error);
        world.host.inside = Some(Inside::Lxc);
        world.silent(NESTED);
        world.host.inside = Some(Inside::Container);
        world.host.gpus = unseen();
        world.unknown(NESTED);
    }
}
