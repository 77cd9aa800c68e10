//! The toolkit's `config.toml`.

use toml::{Table, Value};

use super::super::look::fact;
use crate::collect::tree::Tree;
use crate::knowledge::toolkit::CONFIGURATIONS as PLACES;
use crate::model::host::ToolkitConfig;
use crate::model::{Observed, Unseen};

const LIMIT: usize = 1 << 18;

/// The configuration of the toolkit; `None`: there is no such file. Where both places have one and these differ,
/// as where a package was left behind by the operator's, which of them counts depends on the hook that is called:
/// unknown.
pub(in super::super) fn config(tree: &Tree) -> Observed<Option<ToolkitConfig>> {
    fact("host.toolkit.config", read(tree))
}

fn read(tree: &Tree) -> Result<Option<ToolkitConfig>, Unseen> {
    let [package, operator] = PLACES.map(|path| read_at(tree, path));
    let (package, operator) = match (package?, operator?) {
        (Some(package), Some(operator)) => (package, operator),
        (one, other) => return Ok(one.or(other)),
    };
    let same = ToolkitConfig { path: package.path.clone(), ..operator } == package;
    let differ = || Unseen::new(PLACES[0], format!("differs from {}, and which one counts is open", PLACES[1]));
    same.then_some(Some(package)).ok_or_else(differ)
}

fn read_at(tree: &Tree, path: &str) -> Result<Option<ToolkitConfig>, Unseen> {
    let Some(text) = tree.read_text(path, LIMIT)? else { return Ok(None) };
    let table: Table = text.parse().map_err(|_| Unseen::new(path, "no valid TOML"))?;
    Ok(Some(parse(&table, path)))
}

/// Keys that nobody knows, and values of another kind than expected, count as absent.
fn parse(table: &Table, path: &str) -> ToolkitConfig {
    let at = |keys: &[&str]| {
        let (last, tables) = keys.split_last()?;
        tables.iter().try_fold(table, |table, key| table.get(*key)?.as_table())?.get(*last)
    };
    let boolean = |keys: &[&str]| at(keys).and_then(Value::as_bool);
    let text = |keys: &[&str]| at(keys).and_then(Value::as_str).map(str::to_owned);
    let cli = "nvidia-container-cli";
    let runtime = "nvidia-container-runtime";
    ToolkitConfig {
        path: path.to_owned(),
        disable_require: boolean(&["disable-require"]),
        accept_volume_mounts: boolean(&["accept-nvidia-visible-devices-as-volume-mounts"]),
        accept_envvar_unprivileged: boolean(&["accept-nvidia-visible-devices-envvar-when-unprivileged"]),
        swarm_resource: text(&["swarm-resource"]),
        cli_root: text(&[cli, "root"]),
        no_cgroups: boolean(&[cli, "no-cgroups"]),
        load_kmods: boolean(&[cli, "load-kmods"]),
        cli_user: text(&[cli, "user"]),
        cli_path: text(&[cli, "path"]),
        supported_capabilities: text(&["supported-driver-capabilities"]),
        ldconfig: text(&[cli, "ldconfig"]),
        mode: text(&[runtime, "mode"]),
        runtimes: at(&[runtime, "runtimes"])
            .and_then(Value::as_array)
            .map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        cuda_compat_mode: text(&[runtime, "modes", "legacy", "cuda-compat-mode"]),
        disable_cuda_compat_hook: boolean(&["features", "disable-cuda-compat-lib-hook"]),
        skip_mode_detection: boolean(&["nvidia-container-runtime-hook", "skip-mode-detection"]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::look::testing::Laid;
    use super::*;

    const SAMPLE: &str = r#"
#accept-nvidia-visible-devices-as-volume-mounts = false
disable-require = false
supported-driver-capabilities = "compat32,compute,display,graphics,ngx,utility,video"
accept-nvidia-visible-devices-envvar-when-unprivileged = false
swarm-resource = "DOCKER_RESOURCE_GPU"

[nvidia-container-cli]
environment = []
ldconfig = "@/sbin/ldconfig.real"
load-kmods = true
no-cgroups = "yes"
root = "/run/nvidia/driver"
user = "root:video"

[nvidia-container-runtime]
log-level = "info"
mode = "auto"
runtimes = ["runc", "crun"]

[nvidia-container-runtime.modes.cdi]
annotation-prefixes = ["cdi.k8s.io/"]

[nvidia-container-runtime.modes.legacy]
cuda-compat-mode = "ldconfig"

[features]
disable-cuda-compat-lib-hook = true

[nvidia-container-runtime-hook]
path = "nvidia-container-runtime-hook"
skip-mode-detection = true
"#;

    #[test]
    fn every_key_that_matters_is_read() {
        let laid = Laid::out(&[(PLACES[0], SAMPLE)]);
        let expected = ToolkitConfig {
            path: PLACES[0].into(),
            disable_require: Some(false),
            accept_volume_mounts: None,
            accept_envvar_unprivileged: Some(false),
            swarm_resource: Some("DOCKER_RESOURCE_GPU".into()),
            cli_root: Some("/run/nvidia/driver".into()),
            no_cgroups: None,
            load_kmods: Some(true),
            cli_user: Some("root:video".into()),
            cli_path: None,
            supported_capabilities: Some("compat32,compute,display,graphics,ngx,utility,video".into()),
            ldconfig: Some("@/sbin/ldconfig.real".into()),
            mode: Some("auto".into()),
            runtimes: Some(vec!["runc".into(), "crun".into()]),
            cuda_compat_mode: Some("ldconfig".into()),
            disable_cuda_compat_hook: Some(true),
            skip_mode_detection: Some(true),
        };
        assert_eq!(config(&laid.tree()), Observed::Known(Some(expected)));
    }

    #[test]
    fn of_two_files_that_differ_nobody_knows_which_counts() {
        let laid = Laid::out(&[(PLACES[0], "disable-require = true"), (PLACES[1], "")]);
        assert!(config(&laid.tree()).known().is_err());
        laid.write(PLACES[1], "# the same\ndisable-require = true");
        assert_eq!(config(&laid.tree()).known().unwrap().as_ref().map(|c| c.path.as_str()), Some(PLACES[0]));
        let operators = Laid::out(&[(PLACES[1], "disable-require = true")]);
        assert_eq!(config(&operators.tree()).known().unwrap().as_ref().map(|c| c.path.as_str()), Some(PLACES[1]));
    }

    #[test]
    fn a_broken_file_is_unknown_and_an_absent_one_known() {
        assert_eq!(config(&Laid::out(&[]).tree()), Observed::Known(None));
        assert!(config(&Laid::out(&[(PLACES[1], "[nvidia")]).tree()).known().is_err());
    }
}
