//! NVIDIA's legacy hook is there and cannot do its work with this configuration or on this machine.

use super::is_native_with_gpu;
use super::ways::{self, Mechanism};
use crate::checks::not_applicable;
use crate::checks::request::asked::{has_legacy_hook, reads_variables};
use crate::knowledge::toolkit::{CGROUP_V2, SUSE_USER, older};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{EngineKind, Node, NodeKind};
use crate::model::{Facts, Host, Unknown};

const MODE: &str = "mode = {mode} in {config}: NVIDIA's hook, which docker --gpus calls by itself, refuses to work";
const TOO_OLD: &str =
    "NVIDIA Container Toolkit {toolkit} does not know cgroup v2, the only hierarchy here; {since} does";
const NO_GROUP: &str = "{node} has mode {mode} and nvidia-container-cli opens it as nobody, for {config} sets no user";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "toolkit-mode-conflict",
        title: "the toolkit's mode does not go with the way in which containers get the GPU",
        why: "The start fails: invoking the NVIDIA Container Runtime Hook directly is not supported.",
        messages: &[MODE],
        remedy: &[
            Step {
                action: Action::PassGpu,
                text: "Start with --runtime=nvidia, or with --device nvidia.com/gpu=all.",
                command: None,
            },
            Step {
                action: Action::ConfigureEngine,
                text: "Or set the toolkit's mode to auto.",
                command: Some("nvidia-ctk config --in-place --set nvidia-container-runtime.mode=auto"),
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host],
        judge: mode_conflict,
    },
    Check {
        id: "toolkit-too-old-for-cgroup-v2",
        title: "the toolkit is too old for a machine with cgroup v2",
        why: "Every start of a container that gets its GPU by the hook fails: cgroup subsystem devices is missing.",
        messages: &[TOO_OLD],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Update the NVIDIA Container Toolkit from NVIDIA's repository, libnvidia-container1 included.",
            command: None,
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host],
        judge: too_old_for_cgroup_v2,
    },
    Check {
        id: "cli-user-not-in-video-group",
        title: "nvidia-container-cli runs as a user that may not open the device nodes",
        why: "Every start of a container that gets its GPU by the hook fails: insufficient permissions.",
        messages: &[NO_GROUP],
        remedy: &[Step {
            action: Action::ConfigureEngine,
            text: "Let it run with the group of the nodes.",
            command: Some("nvidia-ctk config --in-place --set nvidia-container-cli.user=root:video"),
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host],
        judge: cli_user_not_in_video_group,
    },
];

const CONFIG: &str = "/etc/nvidia-container-runtime/config.toml";

/// The hook's work on this container is still to come.
fn concerns(facts: &Facts<'_>) -> Result<bool, Unknown> {
    Ok(has_legacy_hook(facts.container)? && facts.container.legacy_still_to_run())
}

fn mode_conflict(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    let on_machine = facts.place == Place::Host;
    let docker = |e: &&crate::model::host::Engine| e.kind == EngineKind::Docker && ways::is_installed(e);
    let asked = if on_machine {
        host.engines.iter().any(|e| docker(&e)) && is_native_with_gpu(host)? && ways::has_hook(host)?
    } else {
        // the hook of `ctr --gpus` is the tool itself, which knows no mode
        concerns(facts)? && reads_variables(facts.container)
    };
    if !asked {
        return not_applicable();
    }
    let Some(config) = host.toolkit.config.known()? else { return Ok(Outcome::Pass) };
    let Some(mode) = config.mode.as_deref().filter(|m| matches!(*m, "cdi" | "csv" | "jit-cdi")) else {
        return Ok(Outcome::Pass);
    };
    // NVIDIA's runtime takes the hook out again before it is called
    let removed = host.engines.iter().filter(docker).any(|engine| {
        let default = engine.default_runtime.as_ref().and_then(|name| engine.runtimes.get(name));
        default.is_some_and(|program| crate::knowledge::toolkit::is_runtime(program))
    });
    if config.skip_mode_detection == Some(true) || removed {
        return Ok(Outcome::Pass);
    }
    let severity = if on_machine {
        ways::severity(&ways::of(host)?, |way| way.mechanism == Mechanism::Hook)
    } else {
        Severity::Error
    };
    Failure::new(severity, MODE)
        .foreign("mode", mode)
        .foreign("config", &config.path)
        .saw("host.toolkit.config.mode", mode, &config.path)
        .found()
}

fn too_old_for_cgroup_v2(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    let on_machine = facts.place == Place::Host;
    let asked = if on_machine { is_native_with_gpu(host)? } else { concerns(facts)? && !facts.container.rootless };
    if !asked {
        return not_applicable();
    }
    // the hook itself does not look into package databases; the command line program does
    let release = if on_machine { host.toolkit.version.known()?.as_ref() } else { host.toolkit_release() };
    let Some(release) = release else { return not_applicable() };
    if !older(release, CGROUP_V2) || !*host.cgroup_v2.known()? {
        return Ok(Outcome::Pass);
    }
    if host.toolkit.config.known()?.as_ref().is_some_and(|c| c.no_cgroups == Some(true)) {
        return Ok(Outcome::Pass);
    }
    let severity = match on_machine {
        true if host.engines.is_empty() => Severity::Warning,
        true => ways::severity(&ways::of(host)?, |way| way.mechanism != Mechanism::Cdi),
        false => Severity::Error,
    };
    Failure::new(severity, TOO_OLD)
        .foreign("toolkit", release.as_str())
        .arg("since", CGROUP_V2)
        .saw("host.toolkit.version", release, "package database")
        .found()
}

fn cli_user_not_in_video_group(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    let on_machine = facts.place == Place::Host;
    let asked = if on_machine {
        is_native_with_gpu(host)? && hook_is_in_use(host)?
    } else {
        concerns(facts)? && !facts.container.rootless
    };
    if !asked {
        return not_applicable();
    }
    let nodes = host.device_nodes.known()?;
    let closed = ["/dev/nvidiactl", "/dev/nvidia0"].into_iter().find_map(|path| {
        nodes.get(path).filter(|n| n.kind == NodeKind::CharDevice && n.mode & 0o006 != 0o006).map(|n| (path, n))
    });
    let Some((path, node)) = closed else { return Ok(Outcome::Pass) };
    if may_open(host, node)? {
        return Ok(Outcome::Pass);
    }
    let severity = if on_machine {
        let alone = ways::runtime_works_alone(host);
        ways::severity(&ways::of(host)?, |way| match way.mechanism {
            Mechanism::Cdi => false,
            Mechanism::Runtime => !alone,
            Mechanism::Hook => true,
        })
    } else {
        Severity::Error
    };
    let config = host.toolkit.config.seen().and_then(Option::as_ref).map_or(CONFIG, |c| c.path.as_str());
    Failure::new(severity, NO_GROUP)
        .arg("node", path)
        .arg("mode", format!("{:04o}", node.mode & 0o7777))
        .foreign("config", config)
        .saw("host.device_nodes", format!("{path} {:04o} {}:{}", node.mode & 0o7777, node.uid, node.gid), "/dev")
        .found()
}

/// docker with the hook, or a configuration of it: somebody gives GPUs by the hook.
fn hook_is_in_use(host: &Host) -> Result<bool, Unknown> {
    let docker = host.engines.iter().any(|e| e.kind == EngineKind::Docker && ways::is_installed(e));
    Ok(ways::has_hook(host)? && (docker || host.toolkit.config.known()?.is_some()))
}

/// `nvidia-container-cli` gives up root for the user of its configuration, else for the overflow user,
/// nobody (libnvidia-container `src/nvc.c`, 06deb20d). On SUSE newer toolkits set `root:video`.
fn may_open(host: &Host, node: &Node) -> Result<bool, Unknown> {
    let config = host.toolkit.config.known()?.as_ref();
    if let Some(user) = config.and_then(|c| c.cli_user.as_deref()) {
        let mut parts = user.split(':');
        if matches!(parts.next(), Some("root" | "0")) && node.uid == 0 {
            return Ok(true);
        }
        let gid = parts.next().and_then(|group| group.parse::<u32>().ok());
        if gid.is_some_and(|gid| gid == node.gid && node.mode & 0o060 == 0o060) {
            return Ok(true);
        }
        let path = config.map_or(CONFIG, |c| c.path.as_str());
        return Err(Unknown::new("host.toolkit.config.user", path, "who this user is was not looked up"));
    }
    if !host.os.known()?.iter().any(|id| id.contains("suse") || id.starts_with("sle")) {
        return Ok(false);
    }
    match (host.toolkit_release(), config) {
        (Some(release), _) => Ok(!older(release, SUSE_USER)),
        // a newer toolkit would have written the user into its configuration
        (None, Some(_)) => Ok(false),
        (None, None) => Err(host.toolkit.version.known().err().unwrap_or_else(|| {
            Unknown::new("host.toolkit.version", "package database", "no package of the toolkit is installed")
        })),
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::container::LegacyState;
    use crate::model::host::{CdiDevice, CdiNode, CdiSpec, ToolkitConfig};
    use crate::model::{Observed, Severity};

    const MODE: &str = "toolkit-mode-conflict";
    const CGROUP: &str = "toolkit-too-old-for-cgroup-v2";
    const USER: &str = "cli-user-not-in-video-group";

    fn both() -> [World; 2] {
        [World::machine(1), World::legacy(1, LegacyState::StillToRun)]
    }

    fn config(world: &mut World, change: impl Fn(&mut ToolkitConfig)) {
        let mut config = ToolkitConfig { path: super::CONFIG.into(), ..ToolkitConfig::default() };
        change(&mut config);
        world.host.toolkit.config = Observed::Known(Some(config));
    }

    fn without_runtime(world: &mut World) {
        world.host.engines[0].runtimes.clear();
    }

    fn with_spec(world: &mut World) {
        let node = CdiNode { path: "/dev/nvidia0".into(), ..CdiNode::default() };
        world.host.cdi = Observed::Known(vec![CdiSpec {
            path: "/etc/cdi/nvidia.yaml".into(),
            devices: vec![CdiDevice { name: "0".into(), nodes: vec![node] }],
            ..CdiSpec::default()
        }]);
    }

    #[test]
    fn a_mode_that_the_hook_refuses() {
        for mut world in both() {
            world.silent(MODE);
            without_runtime(&mut world);
            config(&mut world, |c| c.mode = Some("cdi".into()));
            assert_eq!(world.failure(MODE).severity, Severity::Error);
            config(&mut world, |c| c.mode = Some("auto".into()));
            world.silent(MODE);
            config(&mut world, |c| {
                c.mode = Some("cdi".into());
                c.skip_mode_detection = Some(true);
            });
            world.silent(MODE);
            world.host.toolkit.config = unseen();
            world.unknown(MODE);
        }
    }

    #[test]
    fn on_a_machine_the_runtime_is_another_way_and_as_the_default_it_takes_the_hook_out() {
        let mut world = World::machine(1);
        config(&mut world, |c| c.mode = Some("cdi".into()));
        assert_eq!(world.failure(MODE).severity, Severity::Warning);
        world.host.engines[0].default_runtime = Some("nvidia".into());
        world.silent(MODE);
        World::cdi(1).silent(MODE);
    }

    #[test]
    fn an_old_toolkit_on_cgroup_v2() {
        for mut world in both() {
            world.host.toolkit.version = Observed::Known(Some("1.5.1".parse().unwrap()));
            world.silent(CGROUP);
            world.host.cgroup_v2 = Observed::Known(true);
            assert_eq!(world.failure(CGROUP).severity, Severity::Error);
            config(&mut world, |c| c.no_cgroups = Some(true));
            world.silent(CGROUP);
            world.host.toolkit.config = Observed::Known(None);
            world.host.cgroup_v2 = unseen();
            world.unknown(CGROUP);
            world.host.toolkit.version = Observed::Known(Some("1.8.0".parse().unwrap()));
            world.silent(CGROUP);
        }
        let mut world = World::machine(1);
        world.host.toolkit.version = unseen();
        world.unknown(CGROUP);
        World::cdi(1).silent(CGROUP);
    }

    #[test]
    fn on_a_machine_cdi_is_another_way() {
        let mut world = World::machine(1);
        world.host.toolkit.version = Observed::Known(Some("1.5.1".parse().unwrap()));
        world.host.cgroup_v2 = Observed::Known(true);
        with_spec(&mut world);
        assert_eq!(world.failure(CGROUP).severity, Severity::Warning);
    }

    fn closed(world: &mut World) {
        let Observed::Known(nodes) = &mut world.host.device_nodes else { panic!() };
        for node in nodes.values_mut() {
            (node.mode, node.gid) = (0o660, 44);
        }
    }

    #[test]
    fn nobody_may_not_open_a_node_of_root_and_video() {
        for mut world in both() {
            world.silent(USER);
            closed(&mut world);
            assert_eq!(world.failure(USER).severity, Severity::Error);
            for user in ["root:video", "root", "0:0", "1000:44"] {
                config(&mut world, |c| c.cli_user = Some(user.into()));
                world.silent(USER);
            }
            config(&mut world, |c| c.cli_user = Some("nobody:video".into()));
            world.unknown(USER);
            world.host.toolkit.config = unseen();
            world.unknown(USER);
        }
    }

    #[test]
    fn suses_newer_toolkits_set_the_user() {
        let mut world = World::machine(1);
        without_runtime(&mut world);
        closed(&mut world);
        world.host.os = Observed::Known(vec!["sles".into(), "suse".into()]);
        world.silent(USER);
        world.host.toolkit.version = unseen();
        world.unknown(USER);
        config(&mut world, |_| {});
        assert_eq!(world.failure(USER).severity, Severity::Error);
        world.host.os = unseen();
        world.unknown(USER);
    }

    #[test]
    fn where_nobody_uses_the_hook_its_user_does_not_matter() {
        let mut world = World::machine(1);
        closed(&mut world);
        world.host.engines.clear();
        world.silent(USER);
        with_spec(&mut world);
        let mut world = World::machine(1);
        closed(&mut world);
        with_spec(&mut world);
        assert_eq!(world.failure(USER).severity, Severity::Warning);
    }
}
