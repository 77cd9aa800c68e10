//! Names of NVIDIA's device nodes, driver files and hooks.
//!
//! Sources, as of 2026-08: the sources of NVIDIA's container toolkit and libnvidia-container (hooks, tools,
//! `/dev/nvidia*`, Jetson's CSV lists with `nvmap`, `nvhost-*`, `nvgpu`), WSL's documentation (`/dev/dxg`),
//! Linux `Documentation/driver-api/vfio.rst`.

use super::paths::file_name;

pub(super) use crate::knowledge::driver_files::{is_driver_library, is_libcuda};

/// Whose node a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeFamily {
    /// `/dev/nvidia…`
    Nvidia,
    /// `/dev/dxg`
    Wsl,
    /// Jetson's integrated GPU.
    Tegra,
    /// A function handed to a virtual machine.
    Vfio,
}

/// Whose node it is, by its clean path in the container; `None`: nobody's that matters here.
pub(super) fn node_family(path: &str) -> Option<NodeFamily> {
    let name = path.strip_prefix("/dev/")?;
    if name.starts_with("nvidia") {
        Some(NodeFamily::Nvidia)
    } else if name == "dxg" {
        Some(NodeFamily::Wsl)
    } else if name == "nvmap" || name.starts_with("nvhost-") || name == "nvgpu" || name.starts_with("nvgpu/") {
        Some(NodeFamily::Tegra)
    } else if name.strip_prefix("vfio/").is_some_and(|group| group != "vfio") {
        Some(NodeFamily::Vfio)
    } else {
        None
    }
}

/// A node of NVIDIA's, under whatever driver: what the lists of a container's nodes hold.
pub(super) fn is_gpu_node(path: &str) -> bool {
    node_family(path).is_some_and(|family| family != NodeFamily::Vfio)
}

/// The tool that injects for the legacy hook and for `ctr --gpus`.
pub(super) const CONTAINER_CLI: &str = "nvidia-container-cli";

/// NVIDIA's injecting hook, by the name of a program. The operator wraps its programs and adds `.real`.
pub(super) fn is_legacy_hook(program: &str) -> bool {
    let name = file_name(program);
    matches!(
        name.strip_suffix(".real").unwrap_or(name),
        "nvidia-container-runtime-hook" | "nvidia-container-toolkit" | CONTAINER_CLI
    )
}

/// A hook of a CDI specification of NVIDIA's: `nvidia-cdi-hook`, or `nvidia-ctk hook` before 1.17.
pub(super) fn is_cdi_hook(program: &str) -> bool {
    let name = file_name(program);
    matches!(name.strip_suffix(".real").unwrap_or(name), "nvidia-cdi-hook" | "nvidia-ctk")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_by_name() {
        use NodeFamily::{Nvidia, Tegra, Vfio, Wsl};
        let family = |path| node_family(path);
        assert_eq!((family("/dev/nvidia0"), family("/dev/nvidia-caps/nvidia-cap1")), (Some(Nvidia), Some(Nvidia)));
        assert_eq!((family("/dev/dxg"), family("/dev/dxgx")), (Some(Wsl), None));
        assert_eq!((family("/dev/nvmap"), family("/dev/nvgpu/igpu0/ctrl")), (Some(Tegra), Some(Tegra)));
        assert_eq!((family("/dev/vfio/45"), family("/dev/vfio/vfio")), (Some(Vfio), None));
        assert_eq!((family("/dev/nvme0"), family("/dev/nvram"), family("/mnt/nvidia0")), (None, None, None));
    }

    #[test]
    fn files_by_name() {
        assert!(is_legacy_hook("/usr/local/nvidia/toolkit/nvidia-container-runtime-hook.real"));
        assert!(!is_legacy_hook("/usr/bin/nvidia-cdi-hook") && is_cdi_hook("/usr/bin/nvidia-cdi-hook"));
    }
}
