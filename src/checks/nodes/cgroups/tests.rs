use super::*;
use crate::checks::testing::{World, unseen};
use crate::model::container::LegacyState;
use crate::model::host::ToolkitConfig;
use crate::model::{Observed, Parts};

const RELOAD: &str = "cgroup-lost-after-daemon-reload";
const MANAGER: &str = "cgroup-lost-cpu-manager";
const ROOTFUL: &str = "no-cgroups-with-rootful";
const LXC: &str = "no-cgroups-needed-in-lxc";

fn denying(mut world: World) -> World {
    let deny = DeviceRule { kind: 'a', access: "rwm".into(), ..DeviceRule::default() };
    world.container.rules = Observed::Known(Parts::whole(vec![deny]));
    world
}

fn by_hook(state: LegacyState) -> World {
    denying(World::legacy(1, state))
}

fn allow(world: &mut World, major: Option<i64>) {
    let Observed::Known(rules) = &mut world.container.rules else { panic!() };
    rules.items.push(DeviceRule { allow: true, kind: 'c', major, minor: None, access: "rwm".into() });
}

fn under_systemd(mut world: World) -> World {
    world.container.cgroups_path = Observed::Known(Some("system.slice:docker:0123abcd".into()));
    world
}

fn with_config(mut world: World, no_cgroups: Option<bool>) -> World {
    let path = "/etc/nvidia-container-runtime/config.toml".to_owned();
    world.host.toolkit.config = Observed::Known(Some(ToolkitConfig { path, no_cgroups, ..ToolkitConfig::default() }));
    world
}

#[test]
fn rules_that_systemd_does_not_know_are_lost() {
    for state in [LegacyState::HasRun, LegacyState::StillToRun] {
        let mut world = under_systemd(by_hook(state));
        assert_eq!(world.short(RELOAD).severity, Severity::Warning);
        allow(&mut world, Some(195));
        world.silent(RELOAD);
    }
    by_hook(LegacyState::HasRun).silent(RELOAD);
    under_systemd(World::cdi(1)).silent(RELOAD);
    let mut lost = under_systemd(by_hook(LegacyState::HasRun));
    lost.container.rules = unseen();
    lost.unknown(RELOAD);
}

#[test]
fn a_machine_where_docker_uses_systemd() {
    let mut world = World::machine(1);
    world.silent(RELOAD);
    world.host.engines[0].systemd_cgroup = Some(true);
    assert_eq!(world.short(RELOAD).severity, Severity::Warning);
    world.host.dev_char = Observed::Known(Some(vec!["195:0".into()]));
    world.silent(RELOAD);
    world.host.dev_char = unseen();
    world.unknown(RELOAD);
}

#[test]
fn the_static_cpu_manager() {
    for mut world in [by_hook(LegacyState::StillToRun), World::machine(1)] {
        world.silent(MANAGER);
        world.host.kubelet_static_cpu = Some(true);
        assert_eq!(world.short(MANAGER).severity, Severity::Warning);
        world.container.scheduler = Some(Scheduler::Slurm);
        if world.place == Place::Hook {
            world.silent(MANAGER);
        }
    }
    let mut lost = by_hook(LegacyState::HasRun);
    lost.host.kubelet_static_cpu = Some(true);
    lost.host.majors = unseen();
    lost.unknown(MANAGER);
}

#[test]
fn a_rootless_setting_under_a_rootful_engine() {
    let mut world = with_config(by_hook(LegacyState::StillToRun), Some(true));
    assert_eq!(world.short(ROOTFUL).severity, Severity::Error);
    world.container.rootless = true;
    world.silent(ROOTFUL);
    world.container.rootless = false;
    let mut namespaced = world.clone();
    namespaced.host.in_user_namespace = true;
    namespaced.silent(ROOTFUL);
    allow(&mut world, None);
    world.silent(ROOTFUL);
    with_config(by_hook(LegacyState::StillToRun), None).silent(ROOTFUL);
    with_config(World::cdi(1), Some(true)).silent(ROOTFUL);
}

#[test]
fn after_the_hook_the_kernel_knows() {
    let mut world = with_config(by_hook(LegacyState::HasRun), Some(true));
    world.silent(ROOTFUL);
    world.node("/dev/nvidiactl").access = Access::Refused(Refusal::Cgroup);
    assert_eq!(world.short(ROOTFUL).severity, Severity::Error);
    world.container.devices = unseen();
    world.unknown(ROOTFUL);
    world.host.toolkit.config = unseen();
    world.unknown(ROOTFUL);
}

#[test]
fn on_the_machine_other_ways_make_it_a_warning() {
    let mut world = with_config(World::machine(1), Some(true));
    assert_eq!(world.short(ROOTFUL).severity, Severity::Error);
    world.host.cdi = Observed::Known(vec![crate::checks::testing::cdi_spec()]);
    assert_eq!(world.short(ROOTFUL).severity, Severity::Warning);
    world.host.engines.clear();
    world.silent(ROOTFUL);
    with_config(World::machine(1), Some(false)).silent(ROOTFUL);
}

#[test]
fn unprivileged_lxc_needs_the_setting() {
    for mut world in [by_hook(LegacyState::StillToRun), World::machine(1)] {
        world.silent(LXC);
        world.host.inside = Some(Inside::UnprivilegedLxc);
        assert_eq!(world.short(LXC).severity, Severity::Error);
        assert_eq!(with_config(world.clone(), None).short(LXC).severity, Severity::Error);
        let set = with_config(world.clone(), Some(true));
        set.silent(LXC);
        set.silent(ROOTFUL);
        world.host.toolkit.config = unseen();
        world.unknown(LXC);
    }
    let mut ran = by_hook(LegacyState::HasRun);
    ran.host.inside = Some(Inside::UnprivilegedLxc);
    ran.silent(LXC);
    ran.host.inside = Some(Inside::Lxc);
    ran.silent(LXC);
}
