//! Whom the container's program runs as.

use serde::{Serialize, Serializer};

/// User, groups and capabilities of the container's program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// Inside the container.
    pub uid: u32,
    /// Inside the container.
    pub gid: u32,
    /// Supplementary groups.
    pub additional_gids: Vec<u32>,
    /// `None`: the spec has no `capabilities` object, and what that means depends on the runtime.
    pub capabilities: Option<CapabilitySets>,
    /// `noNewPrivileges`
    pub no_new_privileges: bool,
}

impl Identity {
    /// The effective set after the runtime has executed the container's program, by the kernel's rules
    /// (capabilities(7), "Transformation of capabilities during `execve`"), which is not the spec's effective
    /// set. `None`: the spec has no `capabilities` object, and what that means depends on the runtime. The
    /// program's own file capabilities and setuid bits are not considered.
    pub fn effective_after_exec(&self) -> Option<u64> {
        let CapabilitySets { bounding, inheritable, permitted, ambient, .. } = self.capabilities?;
        Some(match (self.uid, self.no_new_privileges) {
            (0, false) => bounding | inheritable,
            (0, true) => (bounding | inheritable) & permitted,
            _ => ambient & permitted & inheritable,
        })
    }
}

/// In the report the user is `uid:gid`.
impl Serialize for Identity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}:{}", self.uid, self.gid))
    }
}

/// Capability sets of the spec as the kernel's bit masks. Names that nobody knows are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names are the kernel's")]
pub struct CapabilitySets {
    pub bounding: u64,
    pub effective: u64,
    pub inheritable: u64,
    pub permitted: u64,
    pub ambient: u64,
}

/// A range of a user namespace's mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdMapping {
    /// First id inside.
    pub inside: u32,
    /// First id outside.
    pub outside: u32,
    /// How many.
    pub size: u32,
}

impl IdMapping {
    /// What an id that is not mapped shows as (`/proc/sys/kernel/overflowuid` and `overflowgid`, 65534 wherever
    /// nobody changed them).
    pub const OVERFLOW: u32 = 65_534;

    /// What an outside id is inside; `None`: it is not mapped, and shows as the overflow id.
    pub fn inward(mappings: &[Self], outside: u32) -> Option<u32> {
        mappings.iter().find_map(|m| {
            let offset = outside.checked_sub(m.outside)?;
            (offset < m.size).then(|| m.inside.checked_add(offset))?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_outside_a_mapping_do_not_exist_inside() {
        let mappings =
            [IdMapping { inside: 0, outside: 1000, size: 1 }, IdMapping { inside: 1, outside: 100_000, size: 65_536 }];
        assert_eq!(IdMapping::inward(&mappings, 1000), Some(0));
        assert_eq!(IdMapping::inward(&mappings, 100_043), Some(44));
        assert_eq!(IdMapping::inward(&mappings, 44), None);
        assert_eq!(IdMapping::inward(&[IdMapping { inside: u32::MAX, outside: 0, size: 2 }], 1), None);
    }
}
