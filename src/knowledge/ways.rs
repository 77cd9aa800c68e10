//! By which way a machine gives containers their GPUs, as far as what is installed on it shows.

use super::toolkit::{JIT_CDI, older};
use crate::model::Host;
use crate::model::host::EngineKind;

/// The ways of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ways {
    /// NVIDIA's legacy hook, as far as is shown.
    Hook,
    /// CDI alone: the engine's, or that of NVIDIA's runtime.
    Cdi,
    /// Either: it depends on how a container is started, or nothing of it is known.
    Either,
}

/// What is shown of a machine's ways.
///
/// docker calls NVIDIA's hook for `--gpus`, containerd's clients for theirs; podman has CDI. NVIDIA's runtime makes
/// the devices itself from toolkit 1.18 on unless its mode says otherwise.
pub fn of(host: &Host) -> Ways {
    let mode = host.toolkit.config.seen().and_then(Option::as_ref).and_then(|config| config.mode.as_deref());
    let has = |kind: EngineKind| host.engines.iter().any(|engine| engine.kind == kind);
    let calls_hook = has(EngineKind::Docker) || has(EngineKind::Containerd) || mode == Some("legacy");
    let only_podman = !host.engines.is_empty() && host.engines.iter().all(|engine| engine.kind == EngineKind::Podman);
    let Some(release) = host.toolkit_release() else {
        return if mode == Some("cdi") || only_podman { Ways::Cdi } else { Ways::Either };
    };
    let by_runtime = !older(release, JIT_CDI);
    if mode == Some("cdi") || only_podman || (by_runtime && !calls_hook) {
        return Ways::Cdi;
    }
    let has_specs = host.cdi.seen().is_none_or(|specs| specs.iter().any(|spec| spec.kind.starts_with("nvidia.com/")));
    if by_runtime || has_specs { Ways::Either } else { Ways::Hook }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Observed;
    use crate::model::host::{CdiSpec, Engine, ToolkitConfig};

    fn host(release: Option<&str>, engines: &[EngineKind], mode: Option<&str>) -> Host {
        let mut host = Host::default();
        host.toolkit.version = Observed::Known(release.map(|release| release.parse().unwrap()));
        let config = mode.map(|mode| ToolkitConfig { mode: Some(mode.to_owned()), ..ToolkitConfig::default() });
        host.toolkit.config = Observed::Known(config);
        host.engines = engines.iter().map(|kind| Engine::new(*kind, "")).collect();
        host
    }

    #[test]
    fn what_is_installed_shows_the_ways() {
        use EngineKind::{Containerd, Crio, Docker, Podman};
        for (release, engines, mode, ways) in [
            (None, &[][..], None, Ways::Either),
            (None, &[Podman], None, Ways::Cdi),
            (Some("1.17.8"), &[Docker], None, Ways::Hook),
            (Some("1.17.8"), &[Docker], Some("cdi"), Ways::Cdi),
            (Some("1.17.8"), &[Podman], None, Ways::Cdi),
            (Some("1.17.8"), &[Docker, Podman], None, Ways::Hook),
            (Some("1.18.1"), &[Docker], None, Ways::Either),
            (Some("1.18.1"), &[Containerd], None, Ways::Either),
            (Some("1.18.1"), &[Crio], None, Ways::Cdi),
            (Some("1.18.1"), &[], None, Ways::Cdi),
            (Some("1.18.1"), &[], Some("legacy"), Ways::Either),
        ] {
            assert_eq!(of(&host(release, engines, mode)), ways, "{release:?} {engines:?} {mode:?}");
        }
        let mut with_specs = host(Some("1.17.8"), &[Docker], None);
        let spec = CdiSpec { kind: "nvidia.com/gpu".to_owned(), ..CdiSpec::default() };
        with_specs.cdi = Observed::Known(vec![spec]);
        assert_eq!(of(&with_specs), Ways::Either);
    }
}
