//! What cannot be foretold of a container that is about to be handed to its runtime.

use super::Spec;
use super::foretell::{is_bind, mounts};
use super::names;
use super::paths::{below, clean, file_name};
use crate::collect::tree::Tree;
use crate::model::host::NodeKind;
use crate::model::{Parts, Unknown};

/// Hooks that run before ours, or about then, make nothing that is not foretold: NVIDIA's, whose work is in its
/// request, and those that join networks, as docker (`libnetwork-setkey`, moby `libnetwork/sandbox_externalkey_unix.go`)
/// and nerdctl (`internal oci-hook`, nerdctl `pkg/cmd/container/create.go`) have them. As of 2026-11.
pub(super) fn is_foreseeable(spec: &Spec) -> bool {
    let Ok(Ok(hooks)) = spec.hooks.known().map(Parts::all) else { return false };
    let mut before = hooks.iter().filter(|hook| matches!(hook.stage.as_str(), "prestart" | "createRuntime"));
    before.all(|hook| {
        let ours = |word: &str| file_name(word).starts_with("gpu-preflight");
        let joins_network = hook.args.iter().any(|arg| arg == "libnetwork-setkey")
            || hook.args.windows(2).any(|pair| pair == ["internal", "oci-hook"]);
        let by_words = [&hook.path].into_iter().chain(&hook.args).any(|word| names::is_legacy_hook(word));
        joins_network
            || by_words
            || names::is_cdi_hook(&hook.path)
            || ours(&hook.path)
            || hook.args.first().is_some_and(|name| ours(name))
    })
}

/// Mounts that put something in the place of the image's files where a link may lead, so that only who looks when
/// they are done sees the container's: directories, but for those that engines mount into every container.
pub(super) fn hides_files(spec: &Spec, files: &Tree) -> Option<Unknown> {
    let unknown = |source: &str, reason: &str| Some(Unknown::new("container.mounts", source, reason));
    let mounts = match mounts(spec) {
        Ok(mounts) => mounts,
        Err(unseen) => return Some(unseen),
    };
    let harmless = |path: &str| OF_ENGINES.iter().any(|top| below(path, top).is_some());
    for mount in mounts {
        let destination = clean(&mount.destination);
        if harmless(&destination) {
            continue;
        }
        let is_file = || matches!(files.stat(&mount.source), Ok(Some(stat)) if stat.kind != NodeKind::Directory);
        if !(is_bind(&mount) && is_file()) {
            return unknown(&destination, "what will be mounted there may take the place of the image's files");
        }
    }
    None
}

/// Where engines mount what no library and no framework lies in.
const OF_ENGINES: [&str; 6] = ["/dev", "/proc", "/sys", "/run", "/var/run", "/tmp"];

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::super::testing::{parse, plain, with_hook, with_mount};
    use super::*;
    use crate::collect::tree::Kind;

    #[test]
    fn a_hook_of_unknown_effect_before_ours_leaves_open_what_will_be() {
        let with =
            |stage: &str, path: &str, args: &[&str]| is_foreseeable(&parse(&with_hook(plain(&[]), stage, path, args)));
        for (path, args) in [
            ("/usr/bin/nvidia-container-runtime-hook", &["nvidia-container-runtime-hook", "prestart"][..]),
            ("/usr/bin/containerd", &["containerd", "oci-hook", "--", "/usr/bin/nvidia-container-cli", "configure"]),
            ("/usr/bin/nvidia-cdi-hook", &["nvidia-cdi-hook", "create-symlinks"]),
            ("/proc/314/exe", &["libnetwork-setkey", "-exec-root=/var/run/docker", "c1", "0"]),
            ("/usr/bin/nerdctl", &["/usr/bin/nerdctl", "internal", "oci-hook", "createRuntime"]),
            ("/usr/libexec/gpu-preflight/gpu-preflight-hook", &["gpu-preflight-hook"]),
        ] {
            assert!(with("createRuntime", path, args) && with("prestart", path, args), "{path}");
        }
        assert!(with("createContainer", "/usr/bin/any", &[]) && with("poststop", "/usr/bin/any", &[]));
        for stage in ["prestart", "createRuntime"] {
            assert!(!with(stage, "/usr/bin/any", &[]) && !with(stage, "/usr/bin/any", &["oci-hook", "internal"]));
        }
        let mut unread = plain(&[]);
        unread["hooks"] = json!({"prestart": [1]});
        assert!(!is_foreseeable(&parse(&unread)));
    }

    #[test]
    fn a_folder_over_the_image_hides_its_files() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("srv/data")).unwrap();
        fs::write(dir.path().join("srv/file"), "").unwrap();
        let files = Tree::open(dir.path(), Kind::Host).unwrap();
        let hidden = |destination: &str, source: &str| {
            hides_files(&parse(&with_mount(plain(&[]), destination, source)), &files).is_some()
        };
        for (destination, source) in [("/data", "/srv/data"), ("/usr/local", "/srv/data"), ("/data", "/srv/absent")] {
            assert!(hidden(destination, source), "{destination}");
        }
        for (destination, source) in
            [("/etc/hosts", "/srv/file"), ("/usr/lib/libcuda.so.1", "/srv/file"), ("/run/secrets", "/srv/data")]
        {
            assert!(!hidden(destination, source), "{destination}");
        }
        let mut volume = plain(&[]);
        let list = volume["mounts"].as_array_mut().unwrap();
        list.push(json!({"destination": "/opt", "type": "tmpfs", "source": "tmpfs"}));
        assert!(hides_files(&parse(&volume), &files).is_some());
    }
}
