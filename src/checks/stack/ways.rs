//! The ways in which this machine hands GPUs to containers, by its files: an installed engine with its
//! mechanism registered. Programs of the toolkit alone are none.

use crate::knowledge::toolkit::{
    self, CLI, HOOK, JIT_CDI, RUNTIME, base_name, is_runtime, is_where_programs_are, parent,
};
use crate::model::host::{CdiSpec, Engine, EngineKind, Majors};
use crate::model::{Host, Severity, Unknown};

/// A mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mechanism {
    /// NVIDIA's runtime, registered with the engine.
    Runtime,
    /// NVIDIA's hook, which `docker run --gpus` looks for by itself.
    Hook,
    /// A CDI specification in a directory that the engine searches.
    Cdi,
}

/// One way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) engine: &'a Engine,
    pub(super) mechanism: Mechanism,
}

/// All ways of this machine.
pub(super) fn of(host: &Host) -> Result<Vec<Way<'_>>, Unknown> {
    let specs = host.cdi.known()?;
    let mut ways = Vec::new();
    for engine in host.engines.iter().filter(|e| is_installed(e) && !e.snap) {
        if registered_runtime(engine).map(|program| is_there(host, program)).transpose()? == Some(true) {
            ways.push(Way { engine, mechanism: Mechanism::Runtime });
        }
        if engine.kind == EngineKind::Docker && has_hook(host)? {
            ways.push(Way { engine, mechanism: Mechanism::Hook });
        }
        if engine.cdi != Some(false) && specs.iter().any(|s| gives_gpus(s) && is_searched(engine, s)) {
            ways.push(Way { engine, mechanism: Mechanism::Cdi });
        }
    }
    Ok(ways)
}

/// By what an engine would give a container a GPU now, in words; none: by nothing.
pub fn words(host: &Host, engine: &Engine) -> Result<Vec<&'static str>, Unknown> {
    let own = of(host)?.into_iter().filter(|way| way.engine == engine);
    Ok(own
        .map(|way| match (way.mechanism, engine.kind) {
            (Mechanism::Runtime, EngineKind::Docker) => "NVIDIA's runtime (--runtime nvidia)",
            (Mechanism::Runtime, _) => "NVIDIA's runtime",
            (Mechanism::Hook, _) => "NVIDIA's hook (--gpus)",
            (Mechanism::Cdi, EngineKind::Docker | EngineKind::Podman) => "CDI (--device nvidia.com/gpu=all)",
            (Mechanism::Cdi, _) => "CDI",
        })
        .collect())
}

/// An error only if no way to a GPU is left but those that have the fault.
pub(super) fn severity(ways: &[Way<'_>], has_the_fault: impl Fn(&Way<'_>) -> bool) -> Severity {
    if ways.iter().all(has_the_fault) { Severity::Error } else { Severity::Warning }
}

/// Not only a configuration that an engine left behind. containerd is often known by its configuration
/// alone (k3s brings its own program), docker never.
pub(super) fn is_installed(engine: &Engine) -> bool {
    engine.kind != EngineKind::Docker || base_name(&engine.path) != "daemon.json"
}

/// Only its configuration was seen, which may be what is left of it.
pub(super) fn may_be_gone(engine: &Engine) -> bool {
    !is_installed(engine) || base_name(&engine.path) == "containers.conf"
}

/// The program of NVIDIA's runtime that the engine is configured with, behind a wrapper too.
pub(super) fn registered_runtime(engine: &Engine) -> Option<&str> {
    let plain = engine.runtimes.values().find(|program| is_runtime(program));
    let wrapped = || engine.runtime_args.values().flatten().find(|arg| is_runtime(arg));
    plain.or_else(wrapped).map(String::as_str)
}

/// A program of the toolkit is there, or lies where nobody looked.
pub(super) fn is_there(host: &Host, program: &str) -> Result<bool, Unknown> {
    let programs = host.toolkit.programs.known()?;
    // runtimes with a mode in their name are links to the plain one
    let name = if is_runtime(program) { RUNTIME } else { base_name(program) };
    Ok(programs.contains_key(name) || !is_where_programs_are(program))
}

/// NVIDIA's hook, under its present name or that before toolkit 1.11.
pub(super) fn has_hook(host: &Host) -> Result<bool, Unknown> {
    let programs = host.toolkit.programs.known()?;
    Ok([HOOK, "nvidia-container-toolkit"].iter().any(|name| programs.contains_key(*name)))
}

/// NVIDIA's runtime makes the devices itself, without hook and `nvidia-container-cli`. Of a toolkit of
/// unknown age that counts as possible.
pub(super) fn runtime_works_alone(host: &Host) -> bool {
    let mode = host.toolkit.config.seen().and_then(Option::as_ref).and_then(|c| c.mode.as_deref()).unwrap_or("auto");
    match mode {
        "legacy" => false,
        "auto" => toolkit::is_older(&host.toolkit, JIT_CDI) != Ok(Some(true)),
        _ => true,
    }
}

/// The specification hands over GPUs of NVIDIA's, by its nodes.
pub(in crate::checks) fn gives_gpus(spec: &CdiSpec) -> bool {
    spec.broken.is_none()
        && spec
            .nodes
            .iter()
            .chain(spec.devices.iter().flat_map(|d| &d.nodes))
            .any(|node| Majors::gpu_minor(&node.path).is_some() || node.path == "/dev/dxg")
}

/// The engine searches the specification's directory: what it is configured with, else the usual ones.
pub(in crate::checks) fn is_searched(engine: &Engine, spec: &CdiSpec) -> bool {
    let directory = directory(spec);
    match &engine.cdi_spec_dirs {
        Some(directories) => directories.iter().any(|d| canonical(d) == directory),
        None => matches!(directory.as_str(), "/etc/cdi" | "/run/cdi"),
    }
}

/// The specification's directory.
pub(super) fn directory(spec: &CdiSpec) -> String {
    canonical(parent(&spec.path))
}

/// `/var/run` is a link to `/run`.
fn canonical(directory: &str) -> String {
    let directory = directory.trim_end_matches('/');
    directory.strip_prefix("/var/run/").map_or_else(|| directory.to_owned(), |rest| format!("/run/{rest}"))
}

/// The toolkit's library is older than `since`. Where no package tells its release, a program that is younger than
/// `since` proves that it is not. `None`: there is no package of it.
pub(super) fn is_older(host: &Host, since: &str, younger: &str) -> Result<Option<bool>, Unknown> {
    match toolkit::library_is_older(&host.toolkit, since) {
        Err(_) if host.toolkit.programs.seen().is_some_and(|p| p.contains_key(younger)) => Ok(Some(false)),
        answer => answer,
    }
}

/// The tool that the hook calls is there.
pub(super) fn has_cli(host: &Host) -> Result<bool, Unknown> {
    Ok(host.toolkit.programs.known()?.contains_key(CLI))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{cdi_spec, unseen};
    use crate::model::Observed;

    fn spec(path: &str) -> CdiSpec {
        CdiSpec { path: path.into(), ..cdi_spec() }
    }

    fn mechanisms(host: &Host) -> Vec<Mechanism> {
        of(host).unwrap().iter().map(|w| w.mechanism).collect()
    }

    #[test]
    fn a_way_is_an_engine_with_its_mechanism() {
        let mut host = crate::model::testing::host(1);
        assert_eq!(mechanisms(&host), [Mechanism::Runtime, Mechanism::Hook]);
        host.cdi = Observed::Known(vec![spec("/var/run/cdi/nvidia.yaml")]);
        assert_eq!(mechanisms(&host), [Mechanism::Runtime, Mechanism::Hook, Mechanism::Cdi]);
        host.engines[0].cdi_spec_dirs = Some(vec!["/etc/cdi".into()]);
        host.toolkit.programs = Observed::Known([].into());
        assert_eq!(mechanisms(&host), []);
        host.engines[0].cdi_spec_dirs = Some(vec!["/run/cdi/".into()]);
        assert_eq!(mechanisms(&host), [Mechanism::Cdi]);
        host.engines[0].cdi = Some(false);
        assert_eq!(mechanisms(&host), []);
    }

    #[test]
    fn what_is_left_behind_or_a_snap_is_no_way_and_what_lies_elsewhere_counts() {
        let mut host = crate::model::testing::host(1);
        host.engines[0].path = "/etc/docker/daemon.json".into();
        assert_eq!(mechanisms(&host), []);
        host.engines[0].path = "/usr/bin/dockerd".into();
        host.engines[0].snap = true;
        assert_eq!(mechanisms(&host), []);
        host.engines[0].snap = false;
        host.toolkit.programs = Observed::Known([].into());
        host.engines[0].runtimes = [("n".to_owned(), "/srv/t/nvidia-container-runtime".to_owned())].into();
        assert_eq!(mechanisms(&host), [Mechanism::Runtime]);
    }

    #[test]
    fn a_younger_program_stands_in_for_an_unread_release() {
        let mut host = crate::model::testing::host(1);
        assert_eq!(is_older(&host, "1.8.0", "nvidia-ctk"), Ok(Some(false)));
        assert_eq!(is_older(&host, "1.18.0", "nvidia-ctk"), Ok(Some(true)));
        host.toolkit.version = unseen();
        assert_eq!(is_older(&host, "1.8.0", "nvidia-ctk"), Ok(Some(false)));
        assert!(is_older(&host, "1.8.0", "absent").is_err());
        host.toolkit.version = Observed::Known(None);
        assert_eq!(is_older(&host, "1.8.0", "nvidia-ctk"), Ok(None));
    }

    #[test]
    fn the_runtime_works_alone_by_mode_or_age() {
        let mut host = crate::model::testing::host(1);
        assert!(!runtime_works_alone(&host), "1.17.8 in auto is legacy");
        host.toolkit.version = Observed::Known(Some("1.18.0".parse().unwrap()));
        assert!(runtime_works_alone(&host));
        host.toolkit.config = Observed::Known(Some(crate::model::host::ToolkitConfig {
            mode: Some("legacy".into()),
            ..Default::default()
        }));
        assert!(!runtime_works_alone(&host));
    }
}
