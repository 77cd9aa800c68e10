//! `linux`: devices, device rules, identity mappings, cgroup.

use oci_spec::runtime::{LinuxDevice, LinuxIdMapping};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::json;
use crate::model::container::{DeviceRule, IdMapping, SpecDevice};
use crate::model::{Observed, Parts};

/// The fields of `linux` that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Linux {
    pub(crate) devices: Observed<Parts<SpecDevice>>,
    pub(crate) rules: Observed<Parts<DeviceRule>>,
    pub(crate) uid_mappings: Observed<Vec<IdMapping>>,
    pub(crate) gid_mappings: Observed<Vec<IdMapping>>,
    pub(crate) cgroups_path: Observed<Option<String>>,
}

impl Linux {
    pub(super) fn read(budget: &json::Budget, source: &str, piece: Option<&RawValue>) -> Self {
        let source = format!("{source} /linux");
        let names = ["devices", "resources", "uidMappings", "gidMappings", "cgroupsPath"];
        let fields = piece.map_or(Ok([None; 5]), |piece| json::fields(piece.get(), names));
        match fields {
            Ok([devices, resources, uids, gids, cgroup]) => Self {
                devices: json::list(budget, "container.spec_devices", &format!("{source}/devices"), devices, device),
                rules: rules(budget, &format!("{source}/resources"), resources),
                uid_mappings: mappings(budget, "container.uid_mappings", &format!("{source}/uidMappings"), uids),
                gid_mappings: mappings(budget, "container.gid_mappings", &format!("{source}/gidMappings"), gids),
                cgroups_path: super::string("container.cgroups_path", &format!("{source}/cgroupsPath"), cgroup),
            },
            Err(reason) => Self::unread(&source, &reason),
        }
    }

    pub(super) fn unread(source: &str, reason: &str) -> Self {
        Self {
            devices: Observed::unknown("container.spec_devices", source, reason),
            rules: Observed::unknown("container.rules", source, reason),
            uid_mappings: Observed::unknown("container.uid_mappings", source, reason),
            gid_mappings: Observed::unknown("container.gid_mappings", source, reason),
            cgroups_path: Observed::unknown("container.cgroups_path", source, reason),
        }
    }
}

fn device(text: &str) -> Result<SpecDevice, String> {
    let device: LinuxDevice = json::value(text)?;
    Ok(SpecDevice {
        path: super::utf8(device.path())?,
        kind: device.typ().as_str().chars().next().unwrap_or('a'),
        major: device.major(),
        minor: device.minor(),
        // podman copies the file type of a privileged container's nodes as well (0o20666, measured with 5.4.2)
        mode: device.file_mode().map(|mode| mode & 0o7777),
        uid: device.uid(),
        gid: device.gid(),
    })
}

fn rules(budget: &json::Budget, source: &str, resources: Option<&RawValue>) -> Observed<Parts<DeviceRule>> {
    let devices = resources.map_or(Ok([None]), |raw| json::fields(raw.get(), ["devices"]));
    match devices {
        Ok([devices]) => json::list(budget, "container.rules", &format!("{source}/devices"), devices, rule),
        Err(reason) => Observed::unknown("container.rules", source, reason),
    }
}

/// As the runtimes take it: an empty or absent type is all, so is a number of -1. `oci_spec`'s own type
/// refuses the empty one.
#[derive(Deserialize)]
struct Rule {
    allow: Option<bool>,
    #[serde(rename = "type")]
    kind: Option<String>,
    major: Option<i64>,
    minor: Option<i64>,
    access: Option<String>,
}

fn rule(text: &str) -> Result<DeviceRule, String> {
    let rule: Rule = json::value(text)?;
    let kind = match rule.kind.as_deref() {
        None | Some("" | "a") => 'a',
        Some("c") => 'c',
        Some("u") => 'u',
        Some("b") => 'b',
        Some("p") => 'p',
        Some(_) => return Err("a kind of device that is not known".to_owned()),
    };
    let number = |n: Option<i64>| n.filter(|n| *n != -1);
    Ok(DeviceRule {
        allow: rule.allow.unwrap_or(false),
        kind,
        major: number(rule.major),
        minor: number(rule.minor),
        access: rule.access.unwrap_or_default(),
    })
}

/// All or none: a mapping with a hole in it maps wrongly.
fn mappings(budget: &json::Budget, fact: &str, source: &str, piece: Option<&RawValue>) -> Observed<Vec<IdMapping>> {
    match json::list(budget, fact, source, piece, json::value::<LinuxIdMapping>) {
        Observed::Unknown(unknown) => Observed::Unknown(unknown),
        Observed::Known(parts) => parts
            .all()
            .map(|all| {
                all.iter()
                    .map(|m| IdMapping { inside: m.container_id(), outside: m.host_id(), size: m.size() })
                    .collect()
            })
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linux(text: &str) -> Linux {
        Linux::read(&json::Budget::new(), "config.json", Some(serde_json::from_str(text).unwrap()))
    }

    #[test]
    fn wildcards_are_written_in_three_ways() {
        let l = linux(
            r#"{"resources":{"devices":[
            {"allow":false,"type":"","major":-1,"minor":-1,"access":"rwm"},
            {"allow":true,"type":"c","major":195,"minor":null,"access":"rw"},
            {"allow":true,"type":"new-kind","access":"rwm"},
            {"allow":true,"access":"rwm"}]}}"#,
        );
        let rules = l.rules.known().unwrap();
        assert_eq!(rules.unread.len(), 1);
        assert_eq!(rules.unread[0].source, "config.json /linux/resources/devices/2");
        let kinds: Vec<_> = rules.items.iter().map(|r| (r.kind, r.major, r.minor)).collect();
        assert_eq!(kinds, [('a', None, None), ('c', Some(195), None), ('a', None, None)]);
        assert!(DeviceRule::allow_read_write(&rules.items, 1, 3));
    }

    #[test]
    fn devices_one_by_one() {
        let l = linux(
            r#"{"devices":[{"path":"/dev/nvidia0","type":"c","major":195,"minor":0,"fileMode":8630,"gid":44},
            {"path":"/dev/odd","type":""},{"type":"c"},{"path":"/dev/dxg","type":"u","major":10}],
            "namespaces":[{"type":"from-tomorrow"}],"seccomp":{"defaultAction":"SCMP_ACT_NEW"}}"#,
        );
        let devices = l.devices.known().unwrap();
        assert_eq!(devices.unread.len(), 1, "{devices:?}");
        assert_eq!((devices.items[0].mode, devices.items[0].gid, devices.items[0].uid), (Some(0o666), Some(44), None));
        assert_eq!((devices.items[2].path.as_str(), devices.items[2].kind), ("/dev/dxg", 'u'));
    }

    #[test]
    fn a_mapping_is_whole_or_unknown() {
        let l = linux(
            r#"{"uidMappings":[{"containerID":0,"hostID":1000,"size":1}],"gidMappings":[{"containerID":0},{"size":-1}]}"#,
        );
        assert_eq!(l.uid_mappings.known().unwrap(), &[IdMapping { inside: 0, outside: 1000, size: 1 }]);
        assert!(l.gid_mappings.known().is_err());
        assert!(linux("{}").gid_mappings.known().unwrap().is_empty());
    }
}
