//! What mounts do to the GPU: shared memory, and what a user's mount hides.

use crate::checks::not_applicable;
use crate::knowledge::driver_capabilities::Capabilities;
use crate::knowledge::toolkit::{CDI_HOOK, SKIPS_EXISTING, library_is_older};
use crate::model::container::{Given, Mount};
use crate::model::{Action, Check, Facts, Failure, Host, Judgement, Outcome, Place, Severity, Step, Unknown};

use super::expect::{arguments_of_tool, subject};
use super::given::given_count;

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "shm-too-small",
        title: "/dev/shm is small for work on several GPUs",
        why: "NCCL and the workers of data loaders share memory through /dev/shm; the default of 64 MiB ends in bus errors or \"no space left on device\".",
        messages: &["/dev/shm holds {size} MiB and {count} GPUs were given: NCCL and data loaders will run out of it"],
        remedy: &[Step {
            action: Action::ConfigureEngine,
            text: "Give more shared memory: --shm-size=8g, --ipc=host, or an emptyDir of medium Memory on /dev/shm.",
            command: None,
        }],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Healthcheck],
        judge: shm_too_small,
    },
    Check {
        id: "user-mount-covers-run",
        title: "a mount of /run collides with what the toolkit injects",
        why: "The legacy hook mounts the driver's sockets below /run; where a user's bind of the machine's /run already shows them it cannot create its target, and the container does not start.",
        messages: &[
            "the bind of {source} on {destination} collides with {socket}, which NVIDIA's hook mounts there: before toolkit 1.12 the hook fails",
        ],
        remedy: &[
            Step {
                action: Action::ChangeEnvironment,
                text: "Mount only the files that the container needs (such as /var/run/docker.sock), not all of /run.",
                command: None,
            },
            Step {
                action: Action::ChangePackages,
                text: "Update the NVIDIA Container Toolkit to 1.12 or later.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook],
        judge: mount_covers_run,
    },
];

/// What engines give by default (docker's and the CRI's).
const DEFAULT_SHM: u64 = 64 << 20;

fn shm_too_small(facts: &Facts<'_>) -> Judgement {
    if subject(facts)?.is_none() {
        return not_applicable();
    }
    let count = given_count(facts)?;
    if count < 2 {
        return not_applicable();
    }
    let Some(size) = *facts.container.shm_size.known()? else { return not_applicable() };
    if size > DEFAULT_SHM {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Warning, CHECKS[0].messages[0])
        .arg("size", size >> 20)
        .arg("count", count)
        .saw("container.shm_size", size, "mounts")
        .saw("container.devices", format!("{count} GPUs"), "the container's /dev")
        .found()
}

fn mount_covers_run(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    if subject(facts)?.is_none()
        || *container.gpu_given.known()? != Given::LegacyHook
        || !container.legacy_still_to_run()
    {
        return not_applicable();
    }
    // The sockets come with utility alone (libnvidia-container src/nvc_info.c, `lookup_ipcs`).
    let capabilities = Capabilities::of(container.environment.known()?);
    let utility = match arguments_of_tool(facts) {
        Some(arguments) => arguments.iter().any(|argument| argument == "--utility"),
        None => capabilities == Capabilities::Default || capabilities.names("utility"),
    };
    if !utility {
        return not_applicable();
    }
    // Without a socket on the machine there is nothing to collide with.
    if facts.host.sockets.looked_at()?.is_some_and(Vec::is_empty) {
        return Ok(Outcome::Pass);
    }
    let mounts = container.mounts.known()?;
    let binds: Vec<&Mount> = mounts.items.iter().filter(|mount| is_bind_of_run(mount)).collect();
    if binds.is_empty() {
        return mounts.all().map(|_| Outcome::Pass);
    }
    let sockets = facts.host.sockets.known()?;
    let covered = binds.iter().find_map(|bind| {
        let inside = below_run(&bind.destination)?;
        Some((*bind, sockets.iter().find(|socket| below_run(socket).is_some_and(|s| is_below(&s, &inside)))?))
    });
    let Some((bind, socket)) = covered else { return Ok(Outcome::Pass) };
    let Some(severity) = of_the_tools_age(facts.host)? else { return Ok(Outcome::Pass) };
    Failure::new(severity, CHECKS[1].messages[0])
        .foreign("source", &bind.source)
        .foreign("destination", &bind.destination)
        .arg("socket", socket)
        .saw("container.mounts", format!("{} on {}", short(&bind.source), short(&bind.destination)), "mounts")
        .saw("host.sockets", socket, "/run")
        .found()
}

/// Older tools stop at what is there already; `None`: this one does not.
fn of_the_tools_age(host: &Host) -> Result<Option<Severity>, Unknown> {
    let toolkit = &host.toolkit;
    toolkit.version.looked_at()?;
    Ok(match library_is_older(toolkit, SKIPS_EXISTING) {
        Ok(Some(true)) => Some(Severity::Error),
        Ok(Some(false)) => None,
        // no package tells; a program that is younger than the change does
        Ok(None) | Err(_) if toolkit.programs.seen().is_some_and(|p| p.contains_key(CDI_HOOK)) => None,
        Ok(None) | Err(_) => Some(Severity::Warning),
    })
}

fn short(path: &str) -> String {
    crate::model::wording::quote(path)
}

/// The same part of `/run` that it is on the machine, so that the machine's sockets show in it.
fn is_bind_of_run(mount: &Mount) -> bool {
    let bind = mount.kind == "bind" || mount.options.iter().any(|option| option == "bind" || option == "rbind");
    let (source, destination) = (below_run(&mount.source), below_run(&mount.destination));
    bind && source.is_some() && source == destination
}

/// The path relative to `/run`, for which `/var/run` is another name; `None`: it lies elsewhere.
fn below_run(path: &str) -> Option<String> {
    let path = path.trim_end_matches('/');
    let path = path.strip_prefix("/var").filter(|rest| rest.starts_with("/run")).unwrap_or(path);
    let rest = path.strip_prefix("/run")?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::container::LegacyState;
    use crate::model::{Observed, Parts};

    const SHM: &str = "shm-too-small";
    const RUN: &str = "user-mount-covers-run";
    const SOCKET: &str = "/run/nvidia-persistenced/socket";

    fn with_shm(mut world: World, size: Option<u64>) -> World {
        world.container.shm_size = Observed::Known(size);
        world
    }

    fn binding(source: &str, destination: &str) -> World {
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.host.sockets = Observed::Known(vec![SOCKET.into()]);
        world.host.toolkit.version = Observed::Known(Some("1.11.0".parse().unwrap()));
        let mount = Mount {
            source: source.into(),
            destination: destination.into(),
            kind: "bind".into(),
            options: vec!["rbind".into()],
        };
        world.container.mounts = Observed::Known(Parts::whole(vec![mount]));
        world
    }

    #[test]
    fn several_gpus_need_more_than_the_default() {
        assert_eq!(with_shm(World::cdi(2), Some(DEFAULT_SHM)).short(SHM).severity, Severity::Warning);
        with_shm(World::cdi(1), Some(DEFAULT_SHM)).silent(SHM);
        with_shm(World::cdi(2), Some(8 << 30)).silent(SHM);
        with_shm(World::cdi(2), None).silent(SHM);
        let mut world = World::cdi(2);
        world.container.shm_size = unseen();
        world.unknown(SHM);
    }

    #[test]
    fn the_machines_run_collides_with_its_sockets() {
        for (source, destination) in
            [("/var/run", "/var/run"), ("/run", "/var/run/"), ("/run/nvidia-persistenced", "/run/nvidia-persistenced")]
        {
            assert_eq!(binding(source, destination).short(RUN).severity, Severity::Error, "{source} {destination}");
        }
        for (source, destination) in [
            ("/var/run/docker.sock", "/var/run/docker.sock"),
            ("/srv/run", "/run"),
            ("/running", "/running"),
            ("/run/user", "/run/user"),
            ("/run/nvidia", "/run/nvidia"),
        ] {
            binding(source, destination).silent(RUN);
        }
    }

    #[test]
    fn newer_tools_leave_alone_what_is_there() {
        let mut world = binding("/run", "/run");
        world.host.toolkit.libnvidia_container = Some("1.12.0".parse().unwrap());
        world.silent(RUN);
        world.host.toolkit.libnvidia_container = None;
        world.host.toolkit.version = Observed::Known(Some("1.17.8".parse().unwrap()));
        world.silent(RUN);
        world.host.toolkit.version = unseen();
        world.silent(RUN);
        world.host.toolkit.programs = Observed::default();
        assert_eq!(world.short(RUN).severity, Severity::Warning);
    }

    #[test]
    fn who_does_not_ask_for_utility_gets_no_socket() {
        let mut world = binding("/run", "/run");
        for (value, collides) in [("compute", false), ("compute,video", false), ("all", true), ("", true)] {
            world.set("NVIDIA_DRIVER_CAPABILITIES", value);
            if collides {
                assert_eq!(world.short(RUN).severity, Severity::Error, "{value}");
            } else {
                world.silent(RUN);
            }
        }
    }

    #[test]
    fn only_a_hook_that_has_still_to_run_can_collide() {
        let mut world = binding("/run", "/run");
        world.host.sockets = Observed::default();
        world.silent(RUN);
        world.host.sockets = unseen();
        world.unknown(RUN);
        world.container.mounts = unseen();
        world.unknown(RUN);
        let mut ran = World::legacy(1, LegacyState::HasRun);
        ran.container.mounts = binding("/run", "/run").container.mounts;
        ran.silent(RUN);
        World::cdi(1).silent(RUN);
    }
}
