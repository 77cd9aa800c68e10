//! Device nodes of a container, the rules about them, and whether its user may use them.

use serde::Serialize;

use crate::model::host::NodeKind;

/// A node that the spec tells the runtime to make.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpecDevice {
    /// Path in the container.
    pub path: String,
    /// `c`, `u`, `b` or `p`.
    pub kind: char,
    /// Device number.
    pub major: i64,
    /// Device number.
    pub minor: i64,
    /// Mode, if the spec sets one; the runtimes take 0666.
    pub mode: Option<u32>,
    /// Owner, if the spec sets one.
    pub uid: Option<u32>,
    /// Group, if the spec sets one.
    pub gid: Option<u32>,
}

/// A rule of the device controller.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceRule {
    /// Allow or deny.
    pub allow: bool,
    /// `a` for all.
    pub kind: char,
    /// `None`: any. The spec says so by leaving it out, some engines by -1.
    pub major: Option<i64>,
    /// `None`: any.
    pub minor: Option<i64>,
    /// Some of `rwm`.
    pub access: String,
}

impl DeviceRule {
    /// The rule speaks of this character device.
    pub fn covers(&self, major: u32, minor: u32) -> bool {
        matches!(self.kind, 'a' | 'c' | 'u')
            && self.major.is_none_or(|m| m == i64::from(major))
            && self.minor.is_none_or(|m| m == i64::from(minor))
    }

    /// The rule denies every device, as the first one of most engines does.
    pub fn denies_all(&self) -> bool {
        !self.allow && self.kind == 'a' && self.major.is_none() && self.minor.is_none()
    }

    /// What a list of rules says of reading and writing a character device: the last word on each counts.
    pub fn allow_read_write(rules: &[Self], major: u32, minor: u32) -> bool {
        let last = |access| {
            rules.iter().rev().find(|r| r.covers(major, minor) && r.access.contains(access)).is_some_and(|r| r.allow)
        };
        last('r') && last('w')
    }
}

/// A node of NVIDIA's as the container has it, or will have it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ContainerNode {
    /// Path in the container.
    pub path: String,
    /// What stands there.
    #[serde(skip)]
    pub kind: NodeKind,
    /// Device number.
    pub major: u32,
    /// Device number.
    pub minor: u32,
    /// Permission bits, in octal in the report.
    #[serde(serialize_with = "octal")]
    pub mode: u32,
    /// Owner, as the container sees it where the node was looked at.
    pub uid: u32,
    /// Group, likewise.
    pub gid: u32,
    /// May the container's user read and write it? The kernel's own answer (`collect::rehearsal`).
    pub access: Access,
    /// It was looked at; else it is foretold from spec or host.
    #[serde(skip)]
    pub looked_at: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
fn octal<S: serde::Serializer>(mode: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{mode:04o}"))
}

/// Whether the container's user may read and write a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// The kernel says yes.
    Granted,
    /// The kernel says no.
    Refused(Refusal),
    /// The kernel was not, or could not be, asked.
    Unknown(String),
}

impl Default for Access {
    fn default() -> Self {
        Self::Unknown("not asked".to_owned())
    }
}

impl Serialize for Access {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Granted => "granted",
            Self::Refused(_) => "refused",
            Self::Unknown(_) => "unknown",
        })
    }
}

/// Who in the kernel said no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Mode, owner, group, ACL, or a directory on the way.
    Mode,
    /// The device cgroup.
    Cgroup,
    /// The mount has `nodev`.
    NoDev,
    /// Nobody serves a node of this number (ENXIO, ENODEV). Only who opens it learns that.
    NoDriver,
    /// Whoever opens it does not come back.
    Hangs,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(allow: bool, major: Option<i64>, minor: Option<i64>, access: &str) -> DeviceRule {
        DeviceRule {
            allow,
            kind: if major.is_none() && minor.is_none() { 'a' } else { 'c' },
            major,
            minor,
            access: access.into(),
        }
    }

    #[test]
    fn the_last_word_on_reading_and_on_writing_counts() {
        let deny = rule(false, None, None, "rwm");
        assert!(!DeviceRule::allow_read_write(&[], 195, 0));
        assert!(!DeviceRule::allow_read_write(std::slice::from_ref(&deny), 195, 0));
        assert!(DeviceRule::allow_read_write(&[deny.clone(), rule(true, Some(195), None, "rwm")], 195, 0));
        assert!(!DeviceRule::allow_read_write(&[deny.clone(), rule(true, Some(195), Some(0), "r")], 195, 0));
        assert!(DeviceRule::allow_read_write(
            &[deny.clone(), rule(true, Some(195), Some(0), "r"), rule(true, Some(195), None, "w")],
            195,
            0
        ));
        assert!(!DeviceRule::allow_read_write(
            &[rule(true, None, None, "rwm"), rule(false, Some(195), Some(0), "w")],
            195,
            0
        ));
        assert!(!DeviceRule::allow_read_write(&[deny, rule(true, Some(195), Some(255), "rwm")], 195, 0));
    }
}
