//! The user that NVIDIA's tool runs as may not open the device nodes.

use super::is_native_with_gpu;
use super::legacy::concerns;
use super::ways::{self, Mechanism};
use crate::checks::not_applicable;
use crate::knowledge::toolkit::{SUSE_USER, is_older};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{EngineKind, Node, NodeKind};
use crate::model::{Facts, Host, Unknown};

const NO_GROUP: &str = "{node} has mode {mode} and nvidia-container-cli opens it as nobody, for {config} sets no user";

pub(super) const CHECKS: &[Check] = &[Check {
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
}];

const CONFIG: &str = "/etc/nvidia-container-runtime/config.toml";

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
    match (is_older(&host.toolkit, SUSE_USER), config) {
        (Ok(Some(older)), _) => Ok(!older),
        // a newer toolkit would have written the user into its configuration
        (_, Some(_)) => Ok(false),
        (_, None) => Err(host.toolkit.version.known().err().unwrap_or_else(|| {
            Unknown::new("host.toolkit.version", "package database", "no package of the toolkit is installed")
        })),
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::stack::testing::{both, with_spec, without_runtime};
    use crate::checks::testing::{World, unseen};
    use crate::model::host::ToolkitConfig;
    use crate::model::{Observed, Severity};

    const USER: &str = "cli-user-not-in-video-group";

    fn config(world: &mut World, change: impl Fn(&mut ToolkitConfig)) {
        let mut config = ToolkitConfig { path: super::CONFIG.into(), ..ToolkitConfig::default() };
        change(&mut config);
        world.host.toolkit.config = Observed::Known(Some(config));
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
