//! Who started the container, as far as its spec shows.
//!
//! Sources of the signs: specs of docker 26, podman 4 and 5 (measured); containerd
//! `pkg/cri/annotations`, CRI-O `pkg/annotations`, BuildKit `executor/oci`, buildah `run_common.go`,
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
