//! Device nodes and the numbers that the kernel registered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum NodeKind {
    #[default]
    CharDevice,
    BlockDevice,
    File,
    Directory,
    Fifo,
    Socket,
}

/// A device node. It was looked at, never opened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Device number.
    pub major: u32,
    /// Device number.
    pub minor: u32,
    /// Permission bits, `0o666`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// Character devices of `/proc/devices`, name to major. All numbers of devices come from here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Majors(pub BTreeMap<String, u32>);

impl Majors {
    /// The major of GPUs and `nvidiactl`: named `nvidia-frontend` before driver 550.40, `nvidia` since.
    pub fn gpu(&self) -> Option<u32> {
        ["nvidia", "nvidia-frontend", "nvidiactl"].iter().find_map(|name| self.0.get(*name)).copied()
    }

    /// The major of `nvidia-uvm`, given anew at every load of its module.
    pub fn uvm(&self) -> Option<u32> {
        self.0.get("nvidia-uvm").copied()
    }

    /// The major of MIG's capability nodes.
    pub fn caps(&self) -> Option<u32> {
        self.0.get("nvidia-caps").copied()
    }

    /// The major of IMEX channels.
    pub fn imex(&self) -> Option<u32> {
        self.0.get("nvidia-caps-imex-channels").copied()
    }

    /// The major that the kernel registered for a node of NVIDIA's, by the node's path.
    /// `None`: the path is none of NVIDIA's, or its driver has not registered.
    pub fn of(&self, path: &str) -> Option<u32> {
        let name = path.strip_prefix("/dev/")?;
        if name == "nvidia-uvm" || name == "nvidia-uvm-tools" {
            self.uvm()
        } else if name.starts_with("nvidia-caps-imex-channels/") {
            self.imex()
        } else if name.starts_with("nvidia-caps/") {
            self.caps()
        } else if name == "nvidiactl" || name == "nvidia-modeset" || Self::gpu_minor(path).is_some() {
            self.gpu()
        } else {
            None
        }
    }

    /// The number in `/dev/nvidiaN`.
    pub fn gpu_minor(path: &str) -> Option<u32> {
        let digits = path.strip_prefix("/dev/nvidia")?;
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) { None } else { digits.parse().ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn majors_come_from_the_kernel_under_both_names() {
        let old = Majors([("nvidia-frontend".into(), 195), ("nvidia-uvm".into(), 237)].into());
        assert_eq!(
            (old.of("/dev/nvidia3"), old.of("/dev/nvidiactl"), old.of("/dev/nvidia-uvm-tools")),
            (Some(195), Some(195), Some(237))
        );
        assert_eq!(
            (old.of("/dev/nvidia-caps/nvidia-cap1"), old.of("/dev/null"), old.of("/dev/nvidia3x")),
            (None, None, None)
        );
        assert_eq!((Majors::gpu_minor("/dev/nvidia12"), Majors::gpu_minor("/dev/nvidia")), (Some(12), None));
    }
}
