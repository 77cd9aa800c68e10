//! Packages of the driver, by the names that distributions and NVIDIA's repositories have (Debian 12 and 13, Ubuntu 24.04,
//! NVIDIA's for RHEL 9 and SUSE, RPM Fusion, Arch; read 2026-11).

use crate::model::DriverVersion;

/// The package that brings libnvidia-ml.
pub fn brings_libraries(name: &str) -> bool {
    let numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    matches!(
        name,
        "libnvidia-ml1" | "libnvidia-ml" | "nvidia-driver-cuda-libs" | "xorg-x11-drv-nvidia-cuda-libs" | "nvidia-utils"
    ) || name.strip_prefix("libnvidia-compute-").is_some_and(numbered)
        || name.strip_prefix("nvidia-compute-G").is_some_and(numbered)
        || (name.starts_with("libnvidia-tesla-") && name.strip_suffix("-ml1").is_some())
}

/// The driver's version in a package's: `550.163.01` of `3:550.163.01-1.el9`, `535.183.01-1~deb12u1`.
pub fn driver_of(version: &str) -> Option<DriverVersion> {
    let upstream = version.split_once(':').map_or(version, |(_epoch, rest)| rest);
    let end = upstream.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(upstream.len());
    upstream.get(..end).filter(|text| text.contains('.'))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_the_libraries_are_known_with_their_driver() {
        for name in ["libnvidia-ml1", "libnvidia-compute-550-server", "libnvidia-tesla-535-ml1", "nvidia-compute-G06"] {
            assert!(brings_libraries(name), "{name}");
        }
        for name in ["nvidia-driver-550", "libnvidia-container1", "nvidia-ml-py", "libnvidia-compute-all", ""] {
            assert!(!brings_libraries(name), "{name}");
        }
        for (version, driver) in [
            ("550.163.01-0ubuntu0.24.04.1", Some("550.163.01")),
            ("3:580.95.05-1.el9", Some("580.95.05")),
            ("535.183.01-1~deb12u1", Some("535.183.01")),
            ("2", None),
            ("", None),
        ] {
            assert_eq!(driver_of(version).map(|v| v.to_string()).as_deref(), driver, "{version}");
        }
    }
}
