//! What only the health check knows: it is itself a process of the container, and may have been here before.

use super::{Access, ContainerNode};

/// What the health check was told, and remembers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FromInside {
    /// Nodes of NVIDIA's that the container could use at some time since its start; empty: none, or nothing is
    /// remembered.
    pub had: Vec<String>,
    /// NVML answered at some time since its start, or its library was of the kernel module's version.
    pub nvml_worked: bool,
    /// A process that asked the driver at an earlier check could not be ended, and is still there.
    pub still_stuck: bool,
    /// Processes of the container's have the nodes of all its GPUs open, which are awake then.
    pub in_use: bool,
    /// Another user than this one runs programs in the container, or may.
    pub has_other_users: bool,
    /// Bytes of GPU memory that are to be free.
    pub min_free_memory: Option<u64>,
    /// CUDA is to be started.
    pub wants_cuda: bool,
}

impl FromInside {
    /// The container could use this node since its start.
    pub fn had(&self, path: &str) -> bool {
        self.had.iter().any(|node| node == path)
    }

    /// What is to be remembered: what it could use before, and what it can use now.
    #[must_use]
    pub fn with(&self, devices: &[ContainerNode]) -> Vec<String> {
        let usable = devices.iter().filter(|node| node.access == Access::Granted).map(|node| node.path.clone());
        let mut all: Vec<String> = self.had.iter().cloned().chain(usable).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
