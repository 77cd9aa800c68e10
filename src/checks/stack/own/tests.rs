use super::*;
use crate::checks::testing::{World, words};

const FILE: &str = "/usr/share/containers/oci/hooks.d/zz-gpu-preflight.json";

fn entry(way: EntryWay) -> Entry {
    let file = if way == EntryWay::HooksDirectory { FILE } else { "/etc/docker/daemon.json" };
    Entry { way, file: file.into(), program: HOOK.into(), there: true, searched: true, called: true, timeout: Some(5) }
}

fn engine(kind: EngineKind, way: EntryWay) -> RegisteredEngine {
    RegisteredEngine { engine: kind, entries: vec![entry(way)], daemon: Daemon::Current, passed_by: None, unread: None }
}

/// docker by its default runtime, podman by its hooks directory.
fn registered() -> World {
    let mut world = World::machine(1);
    world.place = Place::Status;
    world.host.registration = Some(Registration {
        program: OwnProgram::Sound,
        engines: vec![
            engine(EngineKind::Docker, EntryWay::DefaultRuntime),
            engine(EngineKind::Podman, EntryWay::HooksDirectory),
        ],
        overwritten: Vec::new(),
        rootless: Vec::new(),
        lowered: None,
        wait: 0,
    });
    world
}

fn of(world: &mut World) -> &mut Registration {
    world.host.registration.as_mut().unwrap()
}

#[test]
fn where_all_is_registered_nothing_is_said() {
    let world = registered();
    for check in CHECKS {
        world.silent(check.id);
    }
    assert!(world.host.registration.iter().flat_map(|r| &r.engines).all(|engine| engine.passes().is_some()));
}

#[test]
fn each_gap_is_found_and_closes_the_way() {
    type Spoil = fn(&mut Registration);
    let spoil: [(&str, Spoil, Severity); 12] = [
        ("preflight-program-missing", |r| r.engines[1].entries[0].there = false, Severity::Error),
        ("preflight-program-unsound", |r| r.program = OwnProgram::Unsound("dynamic".into()), Severity::Error),
        ("preflight-not-loaded", |r| r.engines[0].daemon = Daemon::Unaware("runc".into()), Severity::Error),
        ("preflight-not-loaded", |r| r.engines[0].daemon = Daemon::Older("/f".into()), Severity::Warning),
        ("preflight-overwritten", |r| r.overwritten.push("/etc/docker/daemon.json".into()), Severity::Error),
        ("preflight-not-searched", |r| r.engines[1].entries[0].searched = false, Severity::Error),
        ("preflight-not-registered", |r| r.engines[1].entries.clear(), Severity::Warning),
        ("preflight-passed-by", |r| r.engines[0].passed_by = Some("nvidia".into()), Severity::Warning),
        ("preflight-not-searched", |r| r.engines[1].entries[0].called = false, Severity::Error),
        ("preflight-mode-lowered", |r| r.lowered = Some("warn"), Severity::Warning),
        ("preflight-rootless-apart", |r| r.rootless.push("/home/a".into()), Severity::Warning),
        ("preflight-timeout-too-short", |r| r.wait = 60, Severity::Warning),
    ];
    for (id, spoil, severity) in spoil {
        let mut world = registered();
        spoil(of(&mut world));
        assert_eq!(world.failure(id).severity, severity, "{id}");
        let others = CHECKS.iter().filter(|check| check.id != id);
        others.for_each(|check| world.silent(check.id));
    }
}

#[test]
fn a_docker_that_was_only_reloaded_after_uninstall_still_needs_the_program() {
    let mut world = registered();
    let docker = &mut of(&mut world).engines[0];
    docker.entries.clear();
    docker.daemon = Daemon::Lingers { there: true };
    assert!(docker.checks_now() && docker.passes().is_none());
    let found = |world: &World| {
        let failure = world.failure("preflight-not-loaded");
        (failure.message, failure.severity, failure.only)
    };
    assert_eq!(found(&world), (LINGERS, Severity::Warning, &[Action::StartService][..]));
    of(&mut world).engines[0].daemon = Daemon::Lingers { there: false };
    assert_eq!(found(&world), (LINGERS_IN_VAIN, Severity::Error, &[Action::StartService][..]));
    of(&mut world).engines[0].daemon = Daemon::KeepsName;
    assert_eq!(found(&world), (KEEPS_NAME, Severity::Warning, &[Action::StartService][..]));
}

/// What is said of one engine must not hide the others.
#[test]
fn every_engine_is_named() {
    let mut world = registered();
    of(&mut world).engines.push(engine(EngineKind::Containerd, EntryWay::DefaultRuntime));
    of(&mut world).engines.iter_mut().for_each(|engine| engine.entries.clear());
    assert_eq!(
        said(&world, "preflight-not-registered"),
        "containers of docker, podman and containerd are not checked: nothing calls the hook there\n\
         Register it.gpu-preflight install docker podman containerd"
    );
    of(&mut world).engines[0].entries.push(entry(EntryWay::NamedRuntime));
    assert_eq!(world.failure("preflight-not-registered").message, NONE_OR_NAMED);

    let mut world = registered();
    of(&mut world).engines[0].daemon = Daemon::Unaware("runc".into());
    let containerd = engine(EngineKind::Containerd, EntryWay::DefaultRuntime);
    of(&mut world).engines.push(RegisteredEngine { daemon: Daemon::Older("/f".into()), ..containerd });
    let words = said(&world, "preflight-not-loaded");
    assert!(words.starts_with("docker and containerd have not read"), "{words}");
    assert!(words.contains("systemctl reload docker") && words.ends_with("systemctl restart containerd"), "{words}");
    assert_eq!(world.failure("preflight-not-loaded").severity, Severity::Error);
}

/// Message and remedy as they are printed.
fn said(world: &World, id: &str) -> String {
    let check = CHECKS.iter().find(|check| check.id == id).unwrap();
    words(check, &world.failure(id))
}

/// Nobody knows what a file registers that cannot be read; and with a broken one docker must not be restarted.
#[test]
fn of_a_file_that_cannot_be_read_nothing_is_said() {
    let mut world = registered();
    let docker = &mut of(&mut world).engines[0];
    docker.entries.clear();
    docker.unread = Some("/etc/docker/daemon.json: no valid JSON".into());
    docker.daemon = Daemon::Lingers { there: true };
    world.silent("preflight-not-loaded");
    world.unknown("preflight-not-registered");
    of(&mut world).engines[1].entries.clear();
    let words = said(&world, "preflight-not-registered");
    assert!(words.starts_with("containers of podman are not"), "{words}");
}

#[test]
fn an_entry_that_does_not_count_leads_nowhere() {
    let spoil: [fn(&mut RegisteredEngine); 5] = [
        |engine| engine.entries[0].there = false,
        |engine| engine.entries[0].searched = false,
        |engine| engine.entries[0].way = EntryWay::NamedRuntime,
        |engine| engine.daemon = Daemon::Unaware(String::new()),
        |engine| engine.daemon = Daemon::Older(String::new()),
    ];
    for spoil in spoil {
        let mut engine = engine(EngineKind::Docker, EntryWay::DefaultRuntime);
        spoil(&mut engine);
        assert_eq!(engine.passes(), None);
    }
}

#[test]
fn a_runtime_that_is_gone_stops_containers_and_a_hook_only_checks_none() {
    let mut world = registered();
    of(&mut world).engines[0].entries[0].there = false;
    assert_eq!(world.failure("preflight-program-missing").message, NO_START);
    of(&mut world).engines[0].entries[0].there = true;
    of(&mut world).engines[1].entries[0].there = false;
    assert_eq!(world.failure("preflight-program-missing").message, NO_CHECK);
}

#[test]
fn only_status_asks() {
    let mut world = registered();
    world.host.registration = None;
    for check in CHECKS {
        world.unknown(check.id);
        assert_eq!(check.places, [Place::Status]);
    }
    let mut bare = registered();
    *of(&mut bare) = Registration::default();
    for check in CHECKS {
        bare.silent(check.id);
    }
}
