//! What NVIDIA's container toolkit does with `/usr/local/cuda/compat` of an image.
//!
//! Read in the toolkit's sources at each release (`cmd/nvidia-container-runtime-hook`, `cmd/nvidia-cdi-hook/
//! cudacompat`, `internal/modifier/gated.go`) and in libnvidia-container's `src/cli/compat_mode.c` (2026-11):
//!
//! | release | date | legacy (`nvidia-container-cli`) | hook `enable-cuda-compat` |
//! |---|---|---|---|
//! | before 1.17.4 | | mounts the image's libraries, except those of the driver's own major | none |
//! | 1.17.4 | 2025-01 | nothing (a security update, its issue 934) | none |
//! | 1.17.5, 1.17.6 | 2025-03 | nothing; the runtime adds the hook | newer major |
//! | 1.17.7 to 1.19 | 2025-05 | `cuda-compat-mode`, `ldconfig` by default: newer major | newer major; in modes `hook` and CDI |
//! | from 1.20.0 | 2026-08 | the same | by the note if there is one, else newer major |
//!
//! A library that the old tool mounts lies beside the driver's, and ldconfig points `libcuda.so.1` at the newer of
//! two: an older one is mounted and not used.

use crate::knowledge::toolkit::{COMPAT_MODES, IGNORES_COMPAT, older};
use crate::model::image::Compat;
use crate::model::{DriverVersion, Release};

/// How a container gets its GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By `nvidia-container-cli` (legacy).
    Cli,
    /// By CDI, whoever makes the specification.
    Cdi,
}

/// How the toolkit has an image's libcuda used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// It mounts it beside the driver's.
    Mounted,
    /// It has ldconfig search its directory first.
    ByLoader,
    /// The hook `enable-cuda-compat` does.
    ByHook,
    /// It does not; the image's own configuration still may.
    Ignored,
}

/// Since this one the hook reads the note. (The reader came with 1.19.0, which uses it on Jetson boards alone.)
const READS_NOTE: &str = "1.20.0";

/// One release of each behaviour, for where the toolkit's is not known.
const OF_EACH: [&str; 4] = ["1.17.3", "1.17.4", COMPAT_MODES, READS_NOTE];

/// What the toolkit makes of an image's libcuda. `compat` is the one in `/usr/local/cuda/compat`, and the only
/// `libcuda.so.*.*` there: with more of them the hook does nothing.
///
/// `config_mode` is `cuda-compat-mode` of its configuration, `hook_disabled` the feature
/// `disable-cuda-compat-lib-hook`, which keeps NVIDIA's runtime from adding the hook. `has_enable_hook`: the
/// container's specification has the hook, or the runtime that has still to make it would put it there. The feature
/// `allow-cuda-compat-libs-from-container` is taken as unset. Before 1.19 the hook does nothing in an image without
/// `/etc/ld.so.cache`.
///
/// `None`: not known, because releases that come into question differ, or the library's name tells no version.
pub fn toolkit_activates(
    way: Way,
    toolkit: Option<&Release>,
    config_mode: Option<&str>,
    hook_disabled: bool,
    has_enable_hook: bool,
    compat: &Compat,
    host_driver: &DriverVersion,
) -> Option<Activation> {
    let hook_runs = has_enable_hook && !(way == Way::Cli && hook_disabled);
    let by = |toolkit: &Release| match way {
        Way::Cli => by_cli(toolkit, config_mode, hook_runs, compat, host_driver),
        Way::Cdi => by_hook(toolkit, hook_runs, compat, host_driver),
    };
    let Some(toolkit) = toolkit else {
        let mut answers = OF_EACH.iter().map(|release| release.parse().ok().and_then(|release| by(&release)));
        let first = answers.next()??;
        return answers.all(|answer| answer == Some(first)).then_some(first);
    };
    by(toolkit)
}

fn by_cli(
    toolkit: &Release,
    mode: Option<&str>,
    hook_runs: bool,
    compat: &Compat,
    host: &DriverVersion,
) -> Option<Activation> {
    if older(toolkit, IGNORES_COMPAT) {
        return newer_major(compat, host, Activation::Mounted);
    }
    let by_tool = match mode {
        _ if older(toolkit, COMPAT_MODES) => Activation::Ignored,
        None | Some("ldconfig") => newer_major(compat, host, Activation::ByLoader)?,
        Some("mount") => newer_major(compat, host, Activation::Mounted)?,
        // `disabled`, `hook`, and what the toolkit does not know
        Some(_) => Activation::Ignored,
    };
    if by_tool == Activation::Ignored { by_hook(toolkit, hook_runs, compat, host) } else { Some(by_tool) }
}

/// The hook's own rule. It never looks at the GPU.
fn by_hook(toolkit: &Release, runs: bool, compat: &Compat, host: &DriverVersion) -> Option<Activation> {
    if !runs {
        return Some(Activation::Ignored);
    }
    match &compat.note {
        Some(note) if !older(toolkit, READS_NOTE) => {
            let uses = note.branches.contains(&host.number(0)) && compat.version.as_ref()? > host;
            Some(if uses { Activation::ByHook } else { Activation::Ignored })
        }
        _ => newer_major(compat, host, Activation::ByHook),
    }
}

fn newer_major(compat: &Compat, host: &DriverVersion, then: Activation) -> Option<Activation> {
    let version = compat.version.as_ref()?;
    Some(if version.number(0) > host.number(0) { then } else { Activation::Ignored })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::image::CompatNote;

    fn v(text: &str) -> Release {
        text.parse().unwrap()
    }

    fn compat(version: &str, branches: Option<&[u32]>) -> Compat {
        Compat {
            directory: "/usr/local/cuda/compat".to_owned(),
            current: true,
            cache: true,
            version: version.parse().ok(),
            note: branches.map(|branches| CompatNote { cuda: v("12.9"), branches: branches.to_vec(), brands: vec![] }),
            reach: None,
        }
    }

    fn cli(toolkit: &str, mode: Option<&str>, hook: bool, version: &str, host: &str) -> Option<Activation> {
        toolkit_activates(Way::Cli, toolkit.parse().ok().as_ref(), mode, false, hook, &compat(version, None), &v(host))
    }

    #[test]
    fn releases_of_the_tool_differ() {
        use Activation::{ByHook, ByLoader, Ignored, Mounted};
        let (newer, host) = ("570.86.10", "550.54.14");
        for (toolkit, expected) in [
            ("1.0.7", Mounted),
            ("1.17.3", Mounted),
            ("1.17.4", Ignored),
            ("1.17.5", ByHook),
            ("1.17.6", ByHook),
            ("1.17.7", ByLoader),
            ("1.18.1", ByLoader),
            ("1.20.0", ByLoader),
        ] {
            assert_eq!(
                cli(toolkit, None, toolkit == "1.17.5" || toolkit == "1.17.6", newer, host),
                Some(expected),
                "{toolkit}"
            );
        }
        for toolkit in ["1.10.0", "1.17.4", "1.17.6", "1.18.0"] {
            assert_eq!(cli(toolkit, None, true, "520.61.05", "535.154.05"), Some(Ignored), "{toolkit}: older");
            assert_eq!(cli(toolkit, None, true, "580.126.20", "580.95.05"), Some(Ignored), "{toolkit}: same major");
        }
        assert_eq!(cli("1.18.1", Some("hook"), true, newer, host), Some(ByHook));
        assert_eq!(cli("1.18.1", Some("hook"), false, newer, host), Some(Ignored));
        assert_eq!(cli("1.18.1", Some("mount"), false, newer, host), Some(Mounted));
        assert_eq!(cli("1.18.1", Some("disabled"), false, newer, host), Some(Ignored));
        let disabled =
            toolkit_activates(Way::Cli, Some(&v("1.17.5")), None, true, true, &compat(newer, None), &v(host));
        assert_eq!(disabled, Some(Ignored));
    }

    #[test]
    fn the_hook_goes_by_the_note_since_1_20() {
        let cdi = |toolkit: &str, version: &str, branches: Option<&[u32]>, host: &str| {
            let toolkit = toolkit.parse().ok();
            toolkit_activates(Way::Cdi, toolkit.as_ref(), None, true, true, &compat(version, branches), &v(host))
        };
        let note = Some(&[535, 550, 575][..]);
        assert_eq!(cdi("1.20.0", "575.57.08", note, "550.54.14"), Some(Activation::ByHook));
        assert_eq!(cdi("1.20.0", "575.57.08", note, "575.51.03"), Some(Activation::ByHook), "same branch");
        assert_eq!(cdi("1.20.0", "575.57.08", note, "575.64.03"), Some(Activation::Ignored));
        assert_eq!(cdi("1.20.0", "575.57.08", note, "545.23.08"), Some(Activation::Ignored), "not listed");
        assert_eq!(cdi("1.20.0", "575.57.08", None, "545.23.08"), Some(Activation::ByHook), "without a note");
        assert_eq!(cdi("1.18.0", "575.57.08", note, "545.23.08"), Some(Activation::ByHook), "which it does not read");
        assert_eq!(cdi("1.18.0", "575.57.08", note, "575.51.03"), Some(Activation::Ignored));
    }

    #[test]
    fn what_releases_disagree_about_is_not_known() {
        assert_eq!(cli("", None, false, "570.86.10", "550.54.14"), None);
        assert_eq!(cli("", None, false, "520.61.05", "535.154.05"), Some(Activation::Ignored));
        assert_eq!(cli("1.18.0", None, false, "", "535.154.05"), None, "no version in the name");
        let cdi = |hook, branches| {
            toolkit_activates(Way::Cdi, None, None, false, hook, &compat("575.57.08", branches), &v("545.23.08"))
        };
        assert_eq!(cdi(false, None), Some(Activation::Ignored));
        assert_eq!(cdi(true, None), Some(Activation::ByHook));
        assert_eq!(cdi(true, Some(&[550][..])), None);
    }
}
