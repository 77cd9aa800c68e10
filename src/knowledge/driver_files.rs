//! Names of the driver's libraries, by its package for Linux (`libGLX_nvidia.so.0`, `libnvidia-ml.so.1`, …),
//! WSL's and Jetson's, as of 2026-08.

use super::toolkit::base_name;

/// Where drivers are put into containers: by the toolkit, Debian's way and the other distributions'.
pub const DIRECTORIES: [&str; 8] = [
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
    "/lib",
];

/// Where NVIDIA's tools bring the driver's program for people to.
pub const SMI: &str = "/usr/bin/nvidia-smi";

/// A library of the driver, by the name of its file: `libcuda.so.550.163.01`, `libnvidia-ml.so.1`.
pub fn is_driver_library(path: &str) -> bool {
    let name = base_name(path);
    name.contains(".so")
        && !path.contains("/stubs/")
        && (is_libcuda(name)
            || ["libnvidia-", "libnvcuvid.", "libnvoptix.", "libcudadebugger.", "libdxcore.", "libnvrm_"]
                .iter()
                .any(|start| name.starts_with(start))
            || name.contains("_nvidia.so"))
}

/// libcuda itself, not a stub of it.
pub fn is_libcuda(path: &str) -> bool {
    base_name(path).starts_with("libcuda.so") && !path.contains("/stubs/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_by_name() {
        assert!(is_driver_library("/usr/lib/libnvidia-ml.so.550.163.01") && is_driver_library("/x/libEGL_nvidia.so.0"));
        assert!(is_driver_library("/x/libcuda.so.1") && is_libcuda("/x/libcuda.so.1"));
        assert!(!is_driver_library("/usr/local/cuda/lib64/stubs/libcuda.so") && !is_libcuda("/x/stubs/libcuda.so"));
        assert!(!is_driver_library("/x/libcudart.so.12") && !is_libcuda("/x/libcudart.so.12"));
        assert!(!is_driver_library("/usr/share/libnvidia-container/notes"));
    }
}
