//! The container that an image will be run as, by its configuration and the way in which this machine gives GPUs.

use std::collections::BTreeMap;

use super::environment::{self, VISIBLE_DEVICES};
use super::intent::{self, Signals};
use crate::knowledge::driver_files::is_libcuda;
use crate::knowledge::ways::{self, Ways};
use crate::model::container::{
    CapabilitySets, Container, EngineName, Given, Identity, LegacyHook, LegacyState, Moment, Strength, Wants,
};
use crate::model::host::{DriverLibrary, EngineKind, Platform};
use crate::model::image::Configuration;
use crate::model::{Host, Observed, Unknown};

/// Labels of ours, which stand for the annotations of the same name: no engine hands labels on.
const OURS: &str = "io.gpu-preflight.";
/// What docker and containerd give a container by default (moby `oci/caps/defaults.go`, containerd
/// `pkg/oci/spec_opts.go`, both as of 2026-08).
const DEFAULT_CAPABILITIES: u64 = 0xa804_25fb;

/// As if somebody started it here with all of the machine's GPUs, in the way this machine gives them.
///
/// An image that says itself that it wants none (`void`, `none`) is given none.
pub fn of_image(configuration: &Configuration, host: &Host) -> Container {
    let environment = configuration.environment.clone();
    let visible = environment.get(VISIBLE_DEVICES).cloned();
    let declines = visible.as_deref().is_some_and(|value| !value.trim().is_empty() && !environment::asks(value));
    let given = if declines { Given::None } else { given(host) };
    let annotations: BTreeMap<String, String> = configuration
        .labels
        .iter()
        .filter(|(name, _)| name.starts_with(OURS))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let by_hook = given == Given::LegacyHook || (given == Given::Wsl && ways::of(host) != Ways::Cdi);
    Container {
        moment: Moment::NotStarted,
        engine: engine(host),
        wants_gpu: wants(&annotations, &environment, visible.as_deref()),
        gpu_given: Observed::Known(given),
        legacy_hook: by_hook.then(|| LegacyHook {
            path: "nvidia-container-runtime-hook".to_owned(),
            stage: "prestart".to_owned(),
            state: LegacyState::StillToRun,
        }),
        visible_devices: Observed::Known(Some(visible.unwrap_or_else(|| "all".to_owned()))),
        environment: Observed::Known(environment),
        annotations: Observed::Known(annotations),
        args: Observed::Known(configuration.args()),
        working_directory: Some(configuration.working_directory.clone()),
        user: user(&configuration.user),
        devices: unknown("container.devices"),
        libcuda: libcuda(host),
        ..Container::default()
    }
}

fn unknown<T>(fact: &str) -> Observed<T> {
    Observed::unknown(fact, "the container", "it has not been started")
}

/// A machine on which no engine shows is taken for one with docker.
fn given(host: &Host) -> Given {
    let is_told = host.toolkit.config.seen().and_then(Option::as_ref).is_some_and(|config| config.mode.is_some());
    let ways = if host.engines.is_empty() && !is_told { Ways::Either } else { ways::of(host) };
    match (host.platform, ways) {
        (Platform::Tegra, _) => Given::Tegra,
        (Platform::Wsl, _) => Given::Wsl,
        (Platform::Native, Ways::Cdi) => Given::Cdi,
        (Platform::Native, Ways::Hook | Ways::Either) => Given::LegacyHook,
    }
}

/// The machine's only engine, in whose words remedies are said.
fn engine(host: &Host) -> EngineName {
    match host.engines.as_slice() {
        [engine] => match engine.kind {
            EngineKind::Docker => EngineName::Docker,
            EngineKind::Podman => EngineName::Podman,
            EngineKind::Containerd => EngineName::Containerd,
            EngineKind::Crio => EngineName::Crio,
        },
        _ => EngineName::Unknown,
    }
}

fn wants(annotations: &BTreeMap<String, String>, variables: &BTreeMap<String, String>, visible: Option<&str>) -> Wants {
    let entries: Vec<(String, String)> = variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let environment = environment::Environment::new(&entries, false);
    let signals = Signals {
        annotations: Some(annotations),
        environment: Some(&environment),
        cdi_annotations: &[],
        volume_mount_devices: &[],
        given: None,
    };
    let wants = intent::wants(&signals);
    // a place of volume mounts is a wish too, which the cluster's plugin fulfils
    let by_mounts = wants.strength == Strength::None && visible.is_some_and(environment::is_volume_mounts);
    if by_mounts {
        let why = format!("{VISIBLE_DEVICES}={}", visible.unwrap_or_default());
        return Wants { wanted: true, strength: Strength::Environment, why };
    }
    wants
}

/// By its number; which number a name has only the image's user database tells.
fn user(user: &str) -> Observed<Identity> {
    let (name, group) = user.split_once(':').unwrap_or((user, ""));
    let number = |text: &str| if text.is_empty() || text == "root" { Some(0) } else { text.parse().ok() };
    let (Some(uid), Some(gid)) = (number(name), number(group)) else {
        return Observed::Unknown(Unknown::new("container.user", "the image's configuration", "it is a name"));
    };
    let capabilities = CapabilitySets {
        bounding: DEFAULT_CAPABILITIES,
        effective: if uid == 0 { DEFAULT_CAPABILITIES } else { 0 },
        permitted: if uid == 0 { DEFAULT_CAPABILITIES } else { 0 },
        ..CapabilitySets::default()
    };
    Observed::Known(Identity { uid, gid, capabilities: Some(capabilities), ..Identity::default() })
}

/// The driver's, where the machine has it: each way brings it to its own place.
fn libcuda(host: &Host) -> Observed<Vec<String>> {
    let of = |libraries: &Vec<DriverLibrary>| {
        libraries.iter().map(|library| library.path.clone()).filter(|path| is_libcuda(path)).collect()
    };
    host.driver.libraries.as_ref().map(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::host::ToolkitConfig;

    fn configured(variables: &[(&str, &str)]) -> Configuration {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Configuration { environment: variables.iter().map(pair).collect(), ..Configuration::default() }
    }

    fn of(variables: &[(&str, &str)]) -> Container {
        of_image(&configured(variables), &Host::default())
    }

    #[test]
    fn all_gpus_are_given_whatever_the_image_asks_for_unless_it_declines() {
        let plain = of(&[]);
        assert_eq!(plain.gpu_given, Observed::Known(Given::LegacyHook));
        assert_eq!(plain.visible_devices, Observed::Known(Some("all".to_owned())));
        assert!(!plain.wants_gpu.wanted && plain.legacy_still_to_run());
        let asking = of(&[(VISIBLE_DEVICES, "0,1")]);
        assert_eq!(asking.wants_gpu.strength, Strength::Environment);
        assert_eq!(asking.visible_devices, Observed::Known(Some("0,1".to_owned())));
        for value in ["void", "none"] {
            let declining = of(&[(VISIBLE_DEVICES, value)]);
            assert_eq!(declining.gpu_given, Observed::Known(Given::None));
            assert!(!declining.wants_gpu.wanted && declining.legacy_hook.is_none());
        }
        assert!(of(&[(VISIBLE_DEVICES, "/var/run/nvidia-container-devices")]).wants_gpu.wanted);
    }

    #[test]
    fn the_machine_says_the_way() {
        let given = |host: &Host| of_image(&Configuration::default(), host).gpu_given;
        let mut host = Host { platform: Platform::Wsl, ..Host::default() };
        assert_eq!(given(&host), Observed::Known(Given::Wsl));
        assert!(of_image(&Configuration::default(), &host).legacy_still_to_run());
        host.platform = Platform::Tegra;
        assert_eq!(given(&host), Observed::Known(Given::Tegra));
        host.platform = Platform::Native;
        host.toolkit.version = Observed::Known(Some("1.18.1".parse().unwrap()));
        assert_eq!(given(&host), Observed::Known(Given::LegacyHook), "no engine shows");
        let config = ToolkitConfig { mode: Some("cdi".to_owned()), ..ToolkitConfig::default() };
        host.toolkit.config = Observed::Known(Some(config));
        assert_eq!(given(&host), Observed::Known(Given::Cdi));
        let library = DriverLibrary {
            name: "libcuda".to_owned(),
            path: "/usr/lib64/libcuda.so.580.95.05".to_owned(),
            version: None,
            current: true,
            size: 1,
        };
        host.driver.libraries = Observed::Known(vec![library.clone()]);
        let container = of_image(&Configuration::default(), &host);
        assert_eq!((container.libcuda, container.legacy_hook), (Observed::Known(vec![library.path]), None));
    }

    #[test]
    fn labels_of_ours_stand_for_annotations_and_others_do_not() {
        let labels = [("io.gpu-preflight.require", "true"), ("maintainer", "nobody")];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let configuration = Configuration { labels, ..Configuration::default() };
        let container = of_image(&configuration, &Host::default());
        assert_eq!(container.wants_gpu.strength, Strength::Demand);
        assert_eq!(container.annotations.seen().unwrap().len(), 1);
    }

    #[test]
    fn a_users_number_is_known_and_a_name_is_not() {
        let of = |user: &str| {
            let configuration = Configuration { user: user.to_owned(), ..Configuration::default() };
            of_image(&configuration, &Host::default()).user.seen().map(|user| (user.uid, user.gid))
        };
        assert_eq!(of(""), Some((0, 0)));
        assert_eq!(of("1000"), Some((1000, 0)));
        assert_eq!(of("1000:44"), Some((1000, 44)));
        assert_eq!(of("root"), Some((0, 0)));
        assert_eq!(of("app"), None);
    }
}
