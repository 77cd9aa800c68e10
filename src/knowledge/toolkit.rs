//! What changed with which release of the NVIDIA Container Toolkit, and the names of its programs.

use crate::model::host::Toolkit;
use crate::model::{Release, Unknown};

/// `NVIDIA_DRIVER_CAPABILITIES` unset means `utility,compute` from here on, `utility` before
/// (toolkit CHANGELOG, 1.4.0).
pub const COMPUTE_BY_DEFAULT: &str = "1.4.0";

/// libnvidia-container knows cgroup v2 from here on (its CHANGELOG, 1.8.0; the toolkit's packages have
/// had the same number since 1.5).
pub const CGROUP_V2: &str = "1.8.0";

/// The hook leaves alone what lies already where it would mount a socket from here on (toolkit CHANGELOG,
/// 1.12.0-rc.2: skip creation of existing files).
pub const SKIPS_EXISTING: &str = "1.12.0";

/// `libnvdxgdmal.so.1`, which Windows drivers from 555 on need in WSL, is brought along from here on
/// (toolkit CHANGELOG 1.15.0-rc.2 and its stable 1.14.4).
pub const WSL_DXGDMAL: &str = "1.14.4";

/// On SUSE the tool runs as `root:video` by itself from here on (toolkit CHANGELOG, 1.15.0-rc.2).
pub const SUSE_USER: &str = "1.15.0";

/// NVIDIA's runtime makes the devices itself, without `nvidia-container-cli`, from here on
/// (`mode = "auto"` means `jit-cdi`; toolkit CHANGELOG, 1.18.0).
pub const JIT_CDI: &str = "1.18.0";

/// An image's libraries for forward compatibility are not mounted from here on (toolkit CHANGELOG, 1.17.4), and
/// until [`USES_COMPAT_AGAIN`] by nothing else.
pub const IGNORES_COMPAT: &str = "1.17.4";

/// A hook leads the loader to them again from here on (toolkit CHANGELOG, 1.17.5).
pub const USES_COMPAT_AGAIN: &str = "1.17.5";

/// The hook that refreshes the loader's cache puts the driver's directories behind the image's own from here on
/// (toolkit, tag v1.18.1).
pub const DRIVER_LAST: &str = "1.18.1";

/// `cuda-compat-mode` is known from here on (toolkit CHANGELOG, 1.17.7).
pub const COMPAT_MODES: &str = "1.17.7";

/// A program that came with release 1.10 and is a sign of that or a later one, where no package database
/// tells the release (toolkit CHANGELOG, 1.10.0).
pub const CTK: &str = "nvidia-ctk";

/// The same of release 1.16 (toolkit CHANGELOG, 1.16.0).
pub const CDI_HOOK: &str = "nvidia-cdi-hook";

/// NVIDIA's runtime in any of its forms.
pub const RUNTIME: &str = "nvidia-container-runtime";

/// NVIDIA's injecting hook.
pub const HOOK: &str = "nvidia-container-runtime-hook";

/// The tool that the hook calls.
pub const CLI: &str = "nvidia-container-cli";

/// Its configuration: the package's place, then the GPU operator's (nvidia-container-toolkit d34b3046, 2026-08-21).
pub const CONFIGURATIONS: [&str; 2] = [
    "/etc/nvidia-container-runtime/config.toml",
    "/usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml",
];

/// One of NVIDIA's own hooks, by its program: what these give is recognised from the spec. The GPU Operator wraps its
/// programs and adds `.real`.
pub fn is_hook_of_nvidia(program: &str) -> bool {
    let name = base_name(program);
    [HOOK, "nvidia-container-toolkit", CLI, CTK, CDI_HOOK].contains(&name.strip_suffix(".real").unwrap_or(name))
}

/// Where packages, the GPU Operator, NixOS and snaps put the programs, and where the host's facts come from: a
/// program that is named there and was not seen is missing. Of other places nobody can say so.
pub const PROGRAM_DIRS: [&str; 10] = [
    "/usr/bin",
    "/usr/local/bin",
    "/usr/local/nvidia/toolkit",
    "/usr/sbin",
    "/usr/local/sbin",
    "/sbin",
    "/bin",
    "/opt/bin",
    "/run/current-system/sw/bin",
    "/var/lib/snapd/snap/bin",
];

/// The release is older than `since`, one of the constants above.
pub fn older(release: &Release, since: &str) -> bool {
    since.parse::<Release>().is_ok_and(|since| *release < since)
}

/// The toolkit is older than `since`; `None`: there is no package of it.
pub fn is_older(toolkit: &Toolkit, since: &str) -> Result<Option<bool>, Unknown> {
    let release = toolkit.version.known()?.as_ref();
    Ok(release.map(|release| older(release, since)).or(toolkit.predecessor.as_ref().map(|_| true)))
}

/// The same of its library, libnvidia-container, which does the hook's work.
pub fn library_is_older(toolkit: &Toolkit, since: &str) -> Result<Option<bool>, Unknown> {
    match &toolkit.libnvidia_container {
        Some(release) => Ok(Some(older(release, since))),
        None => is_older(toolkit, since),
    }
}

/// The same of the toolkit's hook, which may come of the package that the toolkit replaced though the
/// library below it is newer.
pub fn hook_is_older(toolkit: &Toolkit, since: &str) -> Result<Option<bool>, Unknown> {
    if toolkit.predecessor.is_some() { Ok(Some(true)) } else { is_older(toolkit, since) }
}

/// The package that brings the hook, with its version, for messages.
pub fn name_of_hook(toolkit: &Toolkit) -> String {
    match (&toolkit.predecessor, toolkit.version.seen()) {
        (Some(release), _) => format!("nvidia-container-runtime-hook {release}"),
        (None, Some(Some(release))) => format!("NVIDIA Container Toolkit {release}"),
        (None, _) => "the NVIDIA Container Toolkit".to_owned(),
    }
}

/// The last part of a path.
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What is before it, without the slash; nothing for a bare name and below the root.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// NVIDIA's runtime, by the name of the program: the plain one, or one with its mode in the name.
pub fn is_runtime(program: &str) -> bool {
    matches!(
        base_name(program),
        "nvidia-container-runtime"
            | "nvidia-container-runtime.cdi"
            | "nvidia-container-runtime.legacy"
            | "nvidia-container-runtime.experimental"
            | "nvidia-container-runtime.real"
    )
}

/// The program was looked for: it is named without a path, or with one of a directory of programs.
pub fn is_where_programs_are(program: &str) -> bool {
    match program.rsplit_once('/') {
        None => true,
        Some((dir, _)) => PROGRAM_DIRS.contains(&dir),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Observed;

    #[test]
    fn releases_are_compared_by_number() {
        let older = |release: &str, since| older(&release.parse().unwrap(), since);
        assert!(older("1.3.0", COMPUTE_BY_DEFAULT) && !older("1.4.0", COMPUTE_BY_DEFAULT));
        assert!(older("1.7.0", CGROUP_V2) && !older("1.10.0", CGROUP_V2));
        assert!(older("1.14.3", WSL_DXGDMAL) && !older("1.15.0", WSL_DXGDMAL));
    }

    #[test]
    fn what_the_toolkit_replaced_is_older_whatever_its_number() {
        let toolkit = |version: Option<&str>, predecessor: Option<&str>| Toolkit {
            version: Observed::Known(version.map(|v| v.parse().unwrap())),
            predecessor: predecessor.map(|v| v.parse().unwrap()),
            ..Toolkit::default()
        };
        let old = toolkit(None, Some("1.4.0"));
        assert_eq!(is_older(&old, COMPUTE_BY_DEFAULT), Ok(Some(true)));
        assert_eq!(name_of_hook(&old), "nvidia-container-runtime-hook 1.4.0");
        let mut newer_below = toolkit(Some("1.7.0"), None);
        assert_eq!(library_is_older(&newer_below, CGROUP_V2), Ok(Some(true)));
        newer_below.libnvidia_container = Some("1.14.3".parse().unwrap());
        assert_eq!(library_is_older(&newer_below, CGROUP_V2), Ok(Some(false)));
        let mixed = toolkit(Some("1.10.0"), Some("1.4.0"));
        assert_eq!(is_older(&mixed, CGROUP_V2), Ok(Some(false)), "its library is new");
        assert_eq!(hook_is_older(&mixed, COMPUTE_BY_DEFAULT), Ok(Some(true)));
        let new = toolkit(Some("1.4.0"), None);
        assert_eq!(hook_is_older(&new, COMPUTE_BY_DEFAULT), Ok(Some(false)));
        assert_eq!(name_of_hook(&new), "NVIDIA Container Toolkit 1.4.0");
        assert_eq!(hook_is_older(&toolkit(None, None), COMPUTE_BY_DEFAULT), Ok(None));
    }

    #[test]
    fn programs_are_known_by_name_and_place() {
        assert!(is_runtime("/usr/bin/nvidia-container-runtime") && is_runtime("nvidia-container-runtime.cdi"));
        assert!(!is_runtime("/usr/bin/nvidia-container-runtime-hook") && !is_runtime("runc"));
        assert!(is_where_programs_are("nvidia-container-runtime") && is_where_programs_are("/usr/bin/x"));
        assert!(is_where_programs_are("/usr/local/sbin/x"), "it was looked for there");
        assert!(!is_where_programs_are("/srv/toolkit/nvidia-container-runtime"));
    }
}
