//! Does the container want a GPU?

use std::collections::BTreeMap;

use super::environment::{self, Environment, VISIBLE_DEVICES};
use super::paths::{below, clean};
use crate::knowledge::visible_devices::VOLUME_MOUNTS;
use crate::model::container::{Given, Mount, Strength, Wants};

/// Our own annotation and variable.
const REQUIRE_ANNOTATION: &str = "io.gpu-preflight.require";
const REQUIRE_VARIABLE: &str = "GPU_PREFLIGHT_REQUIRE";
/// Annotations in which CDI devices are asked for (CDI specification, "Annotations").
const CDI_ANNOTATIONS: &str = "cdi.k8s.io/";
/// Vendors whose GPUs are not NVIDIA's, as they write themselves into CDI kinds.
const OTHER_VENDORS: [&str; 10] =
    ["amd.", "intel.", "habana.", "mthreads.", "moorethreads.", "metax", "biren", "cambricon", "hygon", "iluvatar"];

/// What the wish is read from. A piece that could not be read is empty.
pub(super) struct Signals<'a> {
    pub(super) annotations: Option<&'a BTreeMap<String, String>>,
    pub(super) environment: Option<&'a Environment>,
    pub(super) cdi_annotations: &'a [String],
    pub(super) volume_mount_devices: &'a [String],
    pub(super) given: Option<Given>,
}

/// The wish, by its strongest sign.
pub(super) fn wants(signals: &Signals<'_>) -> Wants {
    demand(signals)
        .map(|why| (Strength::Demand, why))
        .or_else(|| environment(signals).map(|why| (Strength::Environment, why)))
        .map_or_else(Wants::default, |(strength, why)| Wants { wanted: true, strength, why })
}

fn demand(signals: &Signals<'_>) -> Option<String> {
    let of = |map: &BTreeMap<String, String>, name: &str| {
        map.get(name).filter(|value| is_true(value)).map(|value| format!("{name}={value}"))
    };
    signals
        .annotations
        .and_then(|annotations| of(annotations, REQUIRE_ANNOTATION))
        .or_else(|| signals.environment.and_then(|e| of(&e.variables, REQUIRE_VARIABLE)))
        .or_else(|| signals.cdi_annotations.first().map(|device| format!("CDI annotation {device}")))
        .or_else(|| signals.volume_mount_devices.first().map(|device| format!("mount {VOLUME_MOUNTS}/{device}")))
}

fn environment(signals: &Signals<'_>) -> Option<String> {
    let environment = signals.environment?;
    let asked = environment.variables.get(VISIBLE_DEVICES).filter(|value| environment::asks(value));
    let by_cdi = environment.cdi_marked || signals.given == Some(Given::Cdi);
    asked
        .map(|value| format!("{VISIBLE_DEVICES}={value}"))
        .or_else(|| by_cdi.then(|| "devices given by CDI".to_owned()))
}

fn is_true(value: &str) -> bool {
    ["1", "true", "yes"].iter().any(|word| value.trim().eq_ignore_ascii_case(word))
}

/// GPUs of NVIDIA's among the CDI devices that the annotations name. A kind is vendor and class; DRA and
/// the device plugin have kinds of their own, so that a class of GPUs counts unless its vendor makes others.
pub(super) fn cdi_annotations(annotations: &BTreeMap<String, String>) -> Vec<String> {
    annotations
        .iter()
        .filter(|(name, _)| name.starts_with(CDI_ANNOTATIONS))
        .flat_map(|(_, value)| value.split(','))
        .map(str::trim)
        .filter(|device| is_gpu_of_nvidia(device))
        .map(str::to_owned)
        .collect()
}

fn is_gpu_of_nvidia(device: &str) -> bool {
    let Some((vendor, class)) = device.split_once('=').and_then(|(kind, _)| kind.split_once('/')) else { return false };
    let (vendor, class) = (vendor.to_ascii_lowercase(), class.to_ascii_lowercase());
    if vendor == "nvidia.com" || vendor.ends_with(".nvidia.com") {
        // its network cards: `nvidia.com/net-pci`, `nvidia.com/net-rdma`
        return !class.starts_with("net") && !class.contains("rdma");
    }
    class.contains("gpu") && !OTHER_VENDORS.iter().any(|other| vendor.contains(other))
}

/// Devices that the device plugin hands over as mounts of `/dev/null`: identifiers, or
/// `vendor/class=device` for its CDI form (toolkit, `internal/config/image`).
pub(super) fn volume_mount_devices(mounts: &[Mount]) -> Vec<String> {
    mounts.iter().filter(|mount| clean(&mount.source) == "/dev/null").filter_map(volume_mount_device).collect()
}

fn volume_mount_device(mount: &Mount) -> Option<String> {
    let destination = clean(&mount.destination);
    let name = below(&destination, VOLUME_MOUNTS).or_else(|| below(&destination, "/run/nvidia-container-devices"))?;
    let name = name.strip_prefix('/')?;
    if name.starts_with("imex/") {
        return None;
    }
    let Some(cdi) = name.strip_prefix("cdi/") else { return Some(name.to_owned()) };
    let mut parts = cdi.splitn(3, '/');
    Some(format!("{}/{}={}", parts.next()?, parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    }

    fn wish(
        variables: &[(&str, &str)],
        injected: bool,
        annotations: &[(&str, &str)],
        given: Given,
    ) -> (Strength, String) {
        let entries: Vec<_> = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let environment = Environment::new(&entries, injected);
        let annotations = map(annotations);
        let wants = wants(&Signals {
            annotations: Some(&annotations),
            environment: Some(&environment),
            cdi_annotations: &cdi_annotations(&annotations),
            volume_mount_devices: &[],
            given: Some(given),
        });
        assert_eq!(wants.wanted, wants.strength != Strength::None);
        (wants.strength, wants.why)
    }

    #[test]
    fn a_demand_is_stronger_than_the_environment() {
        let all = ("NVIDIA_VISIBLE_DEVICES", "all");
        assert_eq!(wish(&[all], false, &[], Given::None), (Strength::Environment, "NVIDIA_VISIBLE_DEVICES=all".into()));
        assert_eq!(wish(&[all], false, &[("io.gpu-preflight.require", "true")], Given::None).0, Strength::Demand);
        assert_eq!(wish(&[("GPU_PREFLIGHT_REQUIRE", "Yes")], false, &[], Given::None).0, Strength::Demand);
        assert_eq!(wish(&[("GPU_PREFLIGHT_REQUIRE", "0"), all], false, &[], Given::None).0, Strength::Environment);
        assert_eq!(wish(&[("NVIDIA_VISIBLE_DEVICES", "none")], false, &[], Given::LegacyHook).0, Strength::None);
        assert_eq!(wish(&[], false, &[], Given::Privileged).0, Strength::None);
    }

    #[test]
    fn whoever_was_given_nodes_by_cdi_wanted_them() {
        let void = ("NVIDIA_VISIBLE_DEVICES", "void");
        let by_cdi = (Strength::Environment, "devices given by CDI".to_owned());
        assert_eq!(wish(&[void], true, &[], Given::Cdi), by_cdi);
        assert_eq!(wish(&[("NVIDIA_VISIBLE_DEVICES", "none"), void], true, &[], Given::Cdi), by_cdi);
        assert_eq!(wish(&[], false, &[], Given::Cdi), by_cdi);
        assert_eq!(wish(&[void], false, &[], Given::None).0, Strength::None);
        let both = [("NVIDIA_VISIBLE_DEVICES", "0"), void];
        assert_eq!(wish(&both, true, &[], Given::Cdi).1, "NVIDIA_VISIBLE_DEVICES=0");
    }

    #[test]
    fn cdi_annotations_by_kind() {
        let found = cdi_annotations(&map(&[
            ("cdi.k8s.io/nvidia-device-plugin_x", "k8s.device-plugin.nvidia.com/gpu=GPU-1, nvidia.com/mig=2"),
            ("cdi.k8s.io/a", "amd.com/gpu=0,gpu.intel.com/gpu=1,nvidia.com/net-rdma=3"),
            ("cdi.k8s.io/b", "run.example/fractional-gpu=x"),
            ("cdi.k8s.io/c", "nonsense,a=b,/="),
            ("other.io/d", "nvidia.com/gpu=0"),
        ]));
        assert_eq!(
            found,
            ["run.example/fractional-gpu=x", "k8s.device-plugin.nvidia.com/gpu=GPU-1", "nvidia.com/mig=2"]
        );
    }

    #[test]
    fn volume_mounts_name_devices() {
        let mount = |source: &str, destination: &str| Mount {
            source: source.into(),
            destination: destination.into(),
            ..Mount::default()
        };
        let names = volume_mount_devices(&[
            mount("/dev/null", "/var/run/nvidia-container-devices/GPU-1"),
            mount("/dev/null", "/var/run/nvidia-container-devices/cdi/nvidia.com/gpu/2"),
            mount("/dev/null", "/var/run/nvidia-container-devices/imex/0"),
            mount("/dev/zero", "/var/run/nvidia-container-devices/3"),
            mount("/dev/null", "/var/run/nvidia-container-devices"),
            mount("/dev/null", "/var/run/other"),
        ]);
        assert_eq!(names, ["GPU-1", "nvidia.com/gpu=2"]);
    }
}
