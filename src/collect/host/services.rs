//! Services about the container stack that show by a file or a process.

use super::look::{names, seems_there, short};
use crate::collect::tree::Tree;

/// Where its packages for Linux put it (docs.docker.com/desktop/setup/install/linux, 2026-11).
const DOCKER_DESKTOP: &str = "/opt/docker-desktop";

/// The toolkit's packages enable both from 1.18.0 on (nvidia-container-toolkit pull request 1229); the first makes
/// the specification at boot.
const CDI_REFRESH: [&str; 2] = [
    "/etc/systemd/system/multi-user.target.wants/nvidia-cdi-refresh.service",
    "/etc/systemd/system/multi-user.target.wants/nvidia-cdi-refresh.path",
];

/// As the kernel cuts the name of `nvidia-device-plugin`.
const DEVICE_PLUGIN: &str = "nvidia-device-p";
const PROCESSES: usize = 1 << 17;
const LINE_LIMIT: usize = 1 << 17;

/// Docker Desktop is installed, whose containers run in a virtual machine.
pub fn docker_desktop(tree: &Tree) -> bool {
    seems_there(tree, DOCKER_DESKTOP)
}

/// The toolkit's service that makes a CDI specification at boot is enabled.
pub fn cdi_refresh(tree: &Tree) -> bool {
    CDI_REFRESH.iter().all(|unit| seems_there(tree, unit))
}

/// The device list strategy of a device plugin for Kubernetes that runs here: an argument counts before the
/// variable, whose absence is `envvar` (k8s-device-plugin v0.17, `cmd/nvidia-device-plugin/main.go`). `None`: none
/// runs, or nobody may know.
pub fn device_list_strategy(tree: &Tree) -> Option<String> {
    let is_plugin = |pid: &String| {
        pid.bytes().all(|b| b.is_ascii_digit())
            && short(tree, &format!("/proc/{pid}/comm")).ok().flatten().is_some_and(|name| name == DEVICE_PLUGIN)
    };
    let pid = names(tree, "/proc", PROCESSES).ok()?.into_iter().find(is_plugin)?;
    let words = |file: &str| {
        let bytes = tree.read(&format!("/proc/{pid}/{file}"), LINE_LIMIT).ok().flatten()?;
        Some(bytes.split(|b| *b == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>())
    };
    let arguments = words("cmdline")?;
    let joined = arguments.iter().find_map(|word| word.strip_prefix("--device-list-strategy="));
    let apart = || arguments.windows(2).find(|pair| pair[0] == "--device-list-strategy").map(|pair| pair[1].as_str());
    if let Some(argument) = joined.or_else(apart) {
        return Some(argument.to_owned());
    }
    let variables = words("environ")?;
    let variable = variables.iter().find_map(|variable| variable.strip_prefix("DEVICE_LIST_STRATEGY="));
    Some(variable.unwrap_or("envvar").to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    #[test]
    fn docker_desktop_and_the_service_show_by_their_files() {
        let bare = Laid::out(&[("/usr/bin/docker", "")]);
        assert!(!docker_desktop(&bare.tree()) && !cdi_refresh(&bare.tree()));
        let both = Laid::out(&[("/opt/docker-desktop/bin/com.docker.backend", ""), (CDI_REFRESH[0], "")]);
        assert!(docker_desktop(&both.tree()));
        assert!(!cdi_refresh(&both.tree()), "a service that is enabled by halves was enabled by somebody else");
        both.write(CDI_REFRESH[1], "");
        assert!(cdi_refresh(&both.tree()));
    }

    #[test]
    fn the_device_plugin_tells_its_strategy_by_argument_or_variable() {
        let plugin = |line: &str, environ: Option<&str>| {
            let laid = Laid::out(&[("/proc/1/comm", "systemd\n"), ("/proc/77/comm", "nvidia-device-p\n")]);
            laid.write("/proc/77/cmdline", line);
            if let Some(environ) = environ {
                laid.write("/proc/77/environ", environ);
            }
            device_list_strategy(&laid.tree())
        };
        let variable = Some("PATH=/bin\0DEVICE_LIST_STRATEGY=volume-mounts\0");
        let joined = "nvidia-device-plugin\0--device-list-strategy=cdi-cri\0";
        assert_eq!(plugin(joined, variable).as_deref(), Some("cdi-cri"));
        let apart = "nvidia-device-plugin\0--device-list-strategy\0envvar,volume-mounts\0";
        assert_eq!(plugin(apart, None).as_deref(), Some("envvar,volume-mounts"));
        assert_eq!(plugin("nvidia-device-plugin\0", variable).as_deref(), Some("volume-mounts"));
        assert_eq!(plugin("nvidia-device-plugin\0", Some("PATH=/bin\0")).as_deref(), Some("envvar"));
        assert_eq!(plugin("nvidia-device-plugin\0", None), None, "its variables are not ours to read");
        assert_eq!(device_list_strategy(&Laid::out(&[("/proc/1/comm", "systemd\n")]).tree()), None);
    }
}
