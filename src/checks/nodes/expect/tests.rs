use super::*;
use crate::checks::testing::World;
use crate::model::container::{Builder, LegacyHook, LegacyState, Mount, Sandbox, SpecHook};
use crate::model::{Observed, Parts};

fn asked(world: &World) -> Option<Subject> {
    subject(&world.facts()).unwrap()
}

#[test]
fn a_container_counts_if_it_was_given_nodes_of_this_machine() {
    assert_eq!(asked(&World::cdi(1)), Some(Subject::Container));
    assert_eq!(asked(&World::legacy(1, LegacyState::StillToRun)), Some(Subject::Container));
    assert_eq!(asked(&World::plain()), None);
    for given in [Given::Wsl, Given::Tegra, Given::Vm] {
        let mut world = World::cdi(1);
        world.container.gpu_given = Observed::Known(given);
        assert_eq!(asked(&world), None, "{given:?}");
    }
    let mut world = World::cdi(1);
    world.container.builder = Some(Builder::BuildKit);
    assert_eq!(asked(&world), None);
}

#[test]
fn a_legacy_hook_that_is_asked_for_no_gpu_gives_none() {
    for (value, gives) in
        [(Some("all"), true), (Some("0,1"), true), (Some("none"), false), (Some(""), false), (None, true)]
    {
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.container.visible_devices = Observed::Known(value.map(str::to_owned));
        assert_eq!(asked(&world).is_some(), gives, "{value:?}");
    }
}

#[test]
fn containerds_hook_says_by_its_arguments_what_it_brings() {
    let mut world = World::legacy(1, LegacyState::StillToRun);
    world.container.visible_devices = Observed::Known(Some("none".into()));
    let args =
        ["containerd", "oci-hook", "--", "/usr/bin/nvidia-container-cli", "configure", "--device=0", "--utility"];
    let mut hook = SpecHook {
        stage: "createRuntime".into(),
        path: "/usr/bin/containerd".into(),
        args: args.map(str::to_owned).into(),
        ..SpecHook::default()
    };
    world.container.legacy_hook = Some(LegacyHook {
        path: "/usr/bin/nvidia-container-cli".into(),
        stage: "createRuntime".into(),
        state: LegacyState::StillToRun,
    });
    world.container.hooks = Observed::Known(Parts::whole(vec![hook.clone()]));
    assert_eq!(asked(&world), Some(Subject::Container));
    assert_eq!(compute(&world.facts()), Ok(Compute::Unwanted));
    hook.args.push("--compute".into());
    world.container.hooks = Observed::Known(Parts::whole(vec![hook]));
    assert_eq!(compute(&world.facts()), Ok(Compute::Wanted));
}

#[test]
fn a_request_that_the_toolkit_refuses_gives_nothing() {
    let mut world = World::legacy(1, LegacyState::StillToRun);
    let config = crate::model::host::ToolkitConfig { accept_envvar_unprivileged: Some(false), ..Default::default() };
    world.host.toolkit.config = Observed::Known(Some(config));
    assert_eq!(asked(&world), None);
    let Observed::Known(user) = &mut world.container.user else { panic!() };
    user.capabilities.as_mut().unwrap().bounding |= 1 << CAP_SYS_ADMIN;
    assert_eq!(asked(&world), Some(Subject::Container));
}

#[test]
fn a_sandbox_is_unknown_only_if_it_was_given_a_gpu() {
    let mut world = World::cdi(1);
    world.container.sandbox = Some(Sandbox::Gvisor);
    assert!(subject(&world.facts()).is_err());
    let mut plain = World::plain();
    plain.container.sandbox = Some(Sandbox::Gvisor);
    assert_eq!(asked(&plain), None);
}

#[test]
fn a_machine_counts_if_it_has_a_gpu_behind_the_driver() {
    assert_eq!(asked(&World::machine(1)), Some(Subject::Machine));
    assert_eq!(asked(&World::machine(0)), None);
    let mut wsl = World::machine(1);
    wsl.host.platform = Platform::Wsl;
    assert_eq!(asked(&wsl), None);
}

#[test]
fn compute_follows_the_variable_and_the_way_of_giving() {
    let of = |world: &World| compute(&world.facts()).unwrap();
    let mut world = World::cdi(1);
    assert_eq!(of(&world), Compute::Wanted);
    world.set("NVIDIA_DRIVER_CAPABILITIES", "graphics, utility");
    assert_eq!(of(&world), Compute::Unwanted);
    assert_eq!(graphics(&world.facts()), Ok(true));
    world.set("NVIDIA_DRIVER_CAPABILITIES", "all");
    assert_eq!(of(&world), Compute::Wanted);
    world.set("NVIDIA_DRIVER_CAPABILITIES", "");
    world.container.gpu_given = Observed::Known(Given::RawDevices);
    assert_eq!(of(&world), Compute::Likely);

    let mut world = World::legacy(1, LegacyState::StillToRun);
    world.set("NVIDIA_DRIVER_CAPABILITIES", "");
    assert_eq!(of(&world), Compute::Wanted);
    world.host.toolkit.version = Observed::Known(Some("1.3.0".parse().unwrap()));
    assert_eq!(of(&world), Compute::Unwanted);
    world.set("CUDA_VERSION", "9.0");
    world.unset("NVIDIA_DRIVER_CAPABILITIES");
    assert_eq!(of(&world), Compute::Wanted);
    assert_eq!(display_by_legacy(&world.facts()), Ok(true));
    let config = crate::model::host::ToolkitConfig {
        supported_capabilities: Some("compute,utility,video".into()),
        ..Default::default()
    };
    world.host.toolkit.config = Observed::Known(Some(config));
    assert_eq!(display_by_legacy(&world.facts()), Ok(false));
}

#[test]
fn a_policy_that_nobody_saw_may_refuse_the_request() {
    let mut world = World::legacy(1, LegacyState::HasRun);
    world.host.toolkit.config = crate::checks::testing::unseen();
    assert_eq!(asked(&world), Some(Subject::Container), "its nodes are there");
    world.container.devices = Observed::default();
    assert!(subject(&world.facts()).is_err());
    let Observed::Known(user) = &mut world.container.user else { panic!() };
    user.capabilities.as_mut().unwrap().bounding |= 1 << CAP_SYS_ADMIN;
    assert_eq!(asked(&world), Some(Subject::Container));
}

#[test]
fn monitors_and_graphics_may_do_without_cuda() {
    let of = |world: &World| compute(&world.facts()).unwrap();
    for mut world in [World::cdi(1), World::legacy(1, LegacyState::HasRun)] {
        world.set("CUDA_VERSION", "12.4.1");
        assert_eq!(of(&world), Compute::Wanted);
        world.container.args = Observed::Known(vec!["/usr/bin/nvidia-smi".into()]);
        assert_eq!(of(&world), Compute::Likely);
        world.set("NVIDIA_DRIVER_CAPABILITIES", "utility");
        assert_eq!(of(&world), Compute::Unwanted);
    }
    let mut desktop = World::cdi(1);
    desktop.set("WAYLAND_DISPLAY", "wayland-0");
    assert_eq!(of(&desktop), Compute::Likely);
    desktop.image.cuda = Observed::Known(Some("/usr/local/cuda/lib64".into()));
    assert_eq!(of(&desktop), Compute::Wanted);
    let mut raw = World::cdi(1);
    raw.container.gpu_given = Observed::Known(Given::RawDevices);
    raw.set("NVIDIA_DRIVER_CAPABILITIES", "compute");
    assert_eq!(of(&raw), Compute::Wanted);
}

#[test]
fn containers_that_may_set_up_the_machine_are_told_by_capability_and_mount() {
    let mut world = World::cdi(1);
    assert!(!may_set_up_the_machine(&world.container));
    for source in ["/dev", "/", "/lib/modules/", "/usr/lib/modules"] {
        let mount = Mount { source: source.into(), destination: "/host".into(), ..Mount::default() };
        world.container.mounts = Observed::Known(Parts::whole(vec![mount]));
        assert!(may_set_up_the_machine(&world.container), "{source}");
    }
    let other = ["tmpfs", "/dev/shm", "/home"].map(|s| Mount { source: s.into(), ..Mount::default() });
    world.container.mounts = Observed::Known(Parts::whole(other.into()));
    assert!(!may_set_up_the_machine(&world.container));
    let Observed::Known(user) = &mut world.container.user else { panic!() };
    user.capabilities.as_mut().unwrap().bounding |= 1 << CAP_SYS_MODULE;
    assert!(may_set_up_the_machine(&world.container));
}
