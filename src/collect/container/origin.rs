//! Who started the container, as far as its spec shows.
//!
//! Sources of the signs: specs of docker 26, podman 4 and 5 (measured); containerd
//! `pkg/cri/annotations`, CRI-O `pkg/annotations`, `BuildKit`'s `executor/oci`, buildah `run_common.go`,
//! gVisor `runsc/specutils`, Kata `virtcontainers/pkg/annotations` as of 2026-08.

use super::Spec;
use super::paths::file_name;
use crate::model::container::{Builder, EngineName, Sandbox, Scheduler};

/// Who started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Origin {
    pub(super) engine: EngineName,
    pub(super) scheduler: Option<Scheduler>,
    pub(super) builder: Option<Builder>,
    pub(super) sandbox: Option<Sandbox>,
    pub(super) rootless: bool,
}

impl Origin {
    /// `bundle`: its path, empty if it is not known.
    pub(super) fn of(spec: &Spec, bundle: &str) -> Self {
        Self {
            engine: engine(spec, bundle),
            scheduler: scheduler(spec),
            builder: builder(spec, bundle),
            sandbox: sandbox(spec),
            rootless: rootless(spec, bundle),
        }
    }
}

/// podman first: podman 4 sets some of CRI-O's annotations as well.
fn engine(spec: &Spec, bundle: &str) -> EngineName {
    let manager = annotation(spec, "io.container.manager");
    let cgroup = cgroup(spec);
    let root = spec.root_path().unwrap_or_default();
    if manager == Some("libpod") || cgroup_part(cgroup, "libpod") || any_annotation(spec, "io.podman.") {
        EngineName::Podman
    } else if manager == Some("cri-o")
        || annotation(spec, "io.kubernetes.cri-o.ContainerType").is_some()
        || cgroup_part(cgroup, "crio")
    {
        EngineName::Crio
    } else if any_annotation(spec, "io.kubernetes.cri.") || any_annotation(spec, "nerdctl/") {
        EngineName::Containerd
    } else if is_docker(spec, cgroup, bundle, root) {
        EngineName::Docker
    } else if bundle.contains("/io.containerd.") || cgroup_part(cgroup, "cri-containerd") {
        EngineName::Containerd
    } else {
        EngineName::Unknown
    }
}

fn is_docker(spec: &Spec, cgroup: &str, bundle: &str, root: &str) -> bool {
    let sets_the_network = spec.hooks.seen().is_some_and(|hooks| {
        hooks.items.iter().any(|h| h.stage == "prestart" && h.args.first().is_some_and(|a| a == "libnetwork-setkey"))
    });
    sets_the_network
        || cgroup.starts_with("/docker/")
        || cgroup.contains(":docker:")
        || bundle.contains("/moby/")
        || root.contains("/docker/overlay2/")
        || root.contains("/docker/rootfs/")
        || root.starts_with("/var/lib/docker/")
}

fn scheduler(spec: &Spec) -> Option<Scheduler> {
    let cgroup = cgroup(spec);
    let kubernetes = ["io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType"];
    if kubernetes.iter().any(|name| annotation(spec, name).is_some()) || cgroup_part(cgroup, "kubepods") {
        Some(Scheduler::Kubernetes)
    } else if cgroup_part(cgroup, "nomad") {
        Some(Scheduler::Nomad)
    } else if cgroup.split(['/', ':']).any(|part| part == "ecs" || part.starts_with("ecstasks")) {
        Some(Scheduler::Ecs)
    } else if cgroup_part(cgroup, "slurm") {
        Some(Scheduler::Slurm)
    } else {
        None
    }
}

fn builder(spec: &Spec, bundle: &str) -> Option<Builder> {
    if spec.hostname.as_deref() == Some("buildkitsandbox") || bundle.contains("/buildkit/executor/") {
        Some(Builder::BuildKit)
    } else if bundle.split('/').any(|component| component.starts_with("buildah")) {
        Some(Builder::Buildah)
    } else {
        None
    }
}

fn sandbox(spec: &Spec) -> Option<Sandbox> {
    let handlers = ["io.kubernetes.cri-o.RuntimeHandler", "io.containerd.cri.runtime-handler"];
    let handler = handlers.iter().find_map(|name| annotation(spec, name)).unwrap_or_default();
    let sources = || spec.mounts.seen().into_iter().flat_map(|mounts| &mounts.items).map(|m| m.source.as_str());
    if any_annotation(spec, "dev.gvisor.") || handler.contains("gvisor") || handler.contains("runsc") {
        Some(Sandbox::Gvisor)
    } else if any_annotation(spec, "io.katacontainers.") || handler.contains("kata") {
        Some(Sandbox::Kata)
    } else if sources().chain(spec.root_path()).any(|path| path.starts_with("/var/lib/sysbox")) {
        Some(Sandbox::Sysbox)
    } else {
        None
    }
}

/// Without root: root inside is one single id outside, the user's own (podman, docker and Singularity
/// alike), or the engine keeps its files below a user's home or run directory. docker's userns-remap,
/// which has root, maps a whole range and keeps its files below `/var/lib`.
fn rootless(spec: &Spec, bundle: &str) -> bool {
    let own_id = spec
        .linux
        .uid_mappings
        .seen()
        .is_some_and(|mappings| mappings.iter().any(|m| m.inside == 0 && m.outside != 0 && m.size == 1));
    let of_a_user = |path: &str| {
        ["/.local/share/containers/", "/.local/share/docker/", "/.local/share/nerdctl/"]
            .iter()
            .any(|d| path.contains(d))
            || path.starts_with("/run/user/")
    };
    let engine_files = ["resolv.conf", "hostname", "hosts", ".containerenv"];
    own_id
        || of_a_user(bundle)
        || spec.root_path().is_some_and(of_a_user)
        || spec.mounts.seen().is_some_and(|mounts| {
            mounts.items.iter().any(|m| engine_files.contains(&file_name(&m.source)) && of_a_user(&m.source))
        })
}

fn annotation<'a>(spec: &'a Spec, name: &str) -> Option<&'a str> {
    spec.annotations.seen()?.get(name).map(String::as_str)
}

fn any_annotation(spec: &Spec, start: &str) -> bool {
    let first = spec.annotations.seen().and_then(|all| all.range(start.to_owned()..).next());
    first.is_some_and(|(name, _)| name.starts_with(start))
}

fn cgroup(spec: &Spec) -> &str {
    spec.linux.cgroups_path.seen().and_then(Option::as_deref).unwrap_or_default()
}

/// A part of the path begins so; systemd's form has colons between its parts.
fn cgroup_part(cgroup: &str, start: &str) -> bool {
    cgroup.split(['/', ':']).any(|part| part.starts_with(start))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{parse, plain, with_hook, with_mount};
    use super::*;

    fn of(change: impl FnOnce(&mut Value), bundle: &str) -> Origin {
        let mut spec = plain(&[]);
        spec["linux"]["cgroupsPath"] = json!("/x");
        spec["root"]["path"] = json!("rootfs");
        change(&mut spec);
        Origin::of(&parse(&spec), bundle)
    }

    #[test]
    fn engines() {
        use EngineName::{Containerd, Crio, Docker, Podman, Unknown};
        let engine = |change: fn(&mut Value), bundle| of(change, bundle).engine;
        assert_eq!(engine(|_| (), "/tmp/b"), Unknown);
        assert_eq!(engine(|s| s["linux"]["cgroupsPath"] = json!("system.slice:docker:c0ffee"), ""), Docker);
        assert_eq!(
            engine(|s| *s = with_hook(s.take(), "prestart", "/proc/5000/exe", &["libnetwork-setkey"]), ""),
            Docker
        );
        assert_eq!(engine(|s| s["root"]["path"] = json!("/data/docker/overlay2/x/merged"), ""), Docker);
        assert_eq!(engine(|_| (), "/run/containerd/io.containerd.runtime.v2.task/moby/c0ffee"), Docker);
        assert_eq!(engine(|_| (), "/run/containerd/io.containerd.runtime.v2.task/k8s.io/c0ffee"), Containerd);
        let podman4 = |s: &mut Value| {
            s["annotations"] = json!({"io.container.manager": "libpod", "io.kubernetes.cri-o.TTY": "false"});
        };
        assert_eq!(engine(podman4, ""), Podman);
        assert_eq!(of(podman4, "").scheduler, None);
        assert_eq!(engine(|s| s["linux"]["cgroupsPath"] = json!("machine.slice:libpod:c0ffee"), ""), Podman);
        assert_eq!(engine(|s| s["annotations"] = json!({"io.kubernetes.cri-o.ContainerType": "container"}), ""), Crio);
        assert_eq!(
            engine(|s| s["annotations"] = json!({"io.kubernetes.cri.container-type": "container"}), ""),
            Containerd
        );
    }

    #[test]
    fn schedulers() {
        use Scheduler::{Ecs, Kubernetes, Nomad, Slurm};
        let at = |cgroup: &str| of(|s| s["linux"]["cgroupsPath"] = json!(cgroup), "").scheduler;
        assert_eq!(at("kubepods-burstable-pod1.slice:docker:c0ffee"), Some(Kubernetes));
        assert_eq!(at("/kubepods/besteffort/pod1/c1"), Some(Kubernetes));
        assert_eq!(at("/nomad.slice/share.slice/c0ffee"), Some(Nomad));
        assert_eq!(at("/ecs/task/c0ffee"), Some(Ecs));
        assert_eq!(at("system.slice:slurmstepd:1"), Some(Slurm));
        assert_eq!(at("/docker/specs"), None);
        let by_annotation = of(|s| s["annotations"] = json!({"io.kubernetes.cri.container-type": "sandbox"}), "");
        assert_eq!(by_annotation.scheduler, Some(Kubernetes));
    }

    #[test]
    fn builders_and_sandboxes() {
        let buildkit = of(|s| s["hostname"] = json!("buildkitsandbox"), "");
        assert_eq!(buildkit.builder, Some(Builder::BuildKit));
        assert_eq!(of(|_| (), "/var/lib/docker/buildkit/executor/x1").builder, Some(Builder::BuildKit));
        assert_eq!(of(|_| (), "/var/tmp/buildah123").builder, Some(Builder::Buildah));
        assert_eq!(of(|_| (), "/var/lib/builds").builder, None);
        let sandbox = |name: &str, value: &str| of(|s| s["annotations"] = json!({name: value}), "").sandbox;
        assert_eq!(sandbox("dev.gvisor.spec.rootfs.overlay", "self"), Some(Sandbox::Gvisor));
        assert_eq!(sandbox("io.katacontainers.pkg.oci.bundle_path", "/b"), Some(Sandbox::Kata));
        assert_eq!(sandbox("io.kubernetes.cri-o.RuntimeHandler", "kata-qemu"), Some(Sandbox::Kata));
        assert_eq!(sandbox("io.kubernetes.cri-o.RuntimeHandler", "runc"), None);
        let sysbox = of(|s| *s = with_mount(s.take(), "/var/lib/docker", "/var/lib/sysbox/docker/x"), "");
        assert_eq!(sysbox.sandbox, Some(Sandbox::Sysbox));
    }

    #[test]
    fn without_root() {
        let mapped = |outside: u32, size: u32| {
            of(|s| s["linux"]["uidMappings"] = json!([{"containerID": 0, "hostID": outside, "size": size}]), "")
                .rootless
        };
        assert!(mapped(1000, 1) && !mapped(100_000, 65_536) && !mapped(0, 1));
        assert!(
            of(|s| s["root"]["path"] = json!("/home/u/.local/share/containers/storage/overlay/x/merged"), "").rootless
        );
        let hosts = "/run/user/1000/containers/overlay-containers/x/userdata/hosts";
        assert!(of(|s| *s = with_mount(s.take(), "/etc/hosts", hosts), "").rootless);
        assert!(!of(|s| *s = with_mount(s.take(), "/run/user/1000/bus", "/run/user/1000/bus"), "").rootless);
    }
}
