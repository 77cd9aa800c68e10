use crate::checks::testing::{World, unseen};
use crate::model::container::LegacyState;
use crate::model::image::CompatNote;
use crate::model::{Observed, Severity};

const UNSUPPORTED: &str = "compat-on-unsupported-gpu";
const OLDER: &str = "compat-older-than-driver-wins";
const IN_USE: &str = "compat-in-use";
const UNUSED: &str = "compat-not-enabled-by-toolkit";
const DROPPED: &str = "compat-dropped-gpu-generation";

/// CUDA 13 on a driver for 12.9, given by NVIDIA's hook of toolkit 1.17.8.
fn image() -> World {
    World::legacy(1, LegacyState::StillToRun)
        .driver("575.57.08")
        .framework("torch", "2.10.0+cu130", "13.0")
        .compat("580.82.07", None)
}

fn a100(world: World) -> World {
    world.gpu("NVIDIA A100-SXM4-80GB", 0x20b2)
}

fn geforce(world: World) -> World {
    world.gpu("NVIDIA GeForce RTX 4090", 0x2684)
}

fn toolkit(mut world: World, release: Option<&str>) -> World {
    world.host.toolkit.version = Observed::Known(release.map(|release| release.parse().unwrap()));
    world
}

#[test]
fn it_helps_an_a100_and_breaks_a_geforce() {
    a100(image()).failure(IN_USE);
    a100(image()).silent(UNSUPPORTED);
    geforce(image()).silent(IN_USE);
    assert_eq!(geforce(image()).short(UNSUPPORTED).severity, Severity::Error);
    let by_cdi = |world: World| {
        let image = world.image;
        World { image, ..World::cdi(1) }.driver("575.57.08").with_compat_hook()
    };
    assert_eq!(geforce(by_cdi(image())).failure(UNSUPPORTED).severity, Severity::Error);
    a100(by_cdi(image())).failure(IN_USE);
}

#[test]
fn one_geforce_among_the_gpus_is_enough() {
    let mut world = World { image: image().image, ..World::legacy(2, LegacyState::StillToRun) }.driver("575.57.08");
    world = a100(world);
    world.silent(UNSUPPORTED);
    if let (Observed::Known(gpus), Observed::Known(pci)) = (&mut world.host.gpus, &mut world.host.pci) {
        gpus[1].name = Some("NVIDIA GeForce RTX 4090".into());
        pci[1].device = 0x2684;
    }
    assert_eq!(world.failure(UNSUPPORTED).severity, Severity::Error);
    world.set("CUDA_VISIBLE_DEVICES", "GPU-00000000-0000-4000-8000-000000000001");
    assert_eq!(world.failure(UNSUPPORTED).severity, Severity::Warning);
    world.set("NVIDIA_VISIBLE_DEVICES", "0");
    world.container.visible_devices = Observed::Known(Some("0".into()));
    world.silent(UNSUPPORTED);
}

#[test]
fn its_own_note_says_which_gpus_it_is_for() {
    let mut world = geforce(image());
    let Observed::Known(compat) = &mut world.image.compat else { panic!() };
    compat.items[0].note =
        Some(CompatNote { cuda: "13.0".parse().unwrap(), branches: vec![575], brands: vec![1, 2, 5] });
    world.silent(UNSUPPORTED);
    world.failure(IN_USE);
}

#[test]
fn an_older_one_wins_only_by_the_images_own_loader() {
    let image = |before: Option<&[&str]>| World::cdi(1).driver("580.95.05").compat("580.82.07", before);
    assert_eq!(image(Some(&[])).short(OLDER).severity, Severity::Error);
    image(None).silent(OLDER);
    image(None).with_compat_hook().silent(OLDER);
    // the driver's own directory comes first
    image(Some(&["/usr/lib/x86_64-linux-gnu"])).silent(OLDER);
    image(Some(&["/usr/local/nvidia/lib64"])).short(OLDER);
    World::cdi(1).driver("580.82.07").compat("580.82.07", Some(&[])).silent(OLDER);
    let mut unread = image(Some(&[]));
    unread.image.compat = unseen();
    unread.unknown(OLDER);
}

#[test]
fn a_file_of_the_loaders_comes_before_the_driver_where_nobody_puts_that_first() {
    let of_file = |mut world: World, file: &str| {
        let Observed::Known(compat) = &mut world.image.compat else { panic!() };
        compat.items[0].reach.as_mut().unwrap().source = format!("/etc/ld.so.conf.d/{file}");
        world
    };
    let older = |world: World, file| of_file(world.driver("580.95.05").compat("575.57.08", Some(&[])), file);
    // the image's own cache is all there is
    assert_eq!(older(World::cdi(1), "cuda-compat.conf").short(OLDER).severity, Severity::Error);
    // the legacy tool names the driver's directories first
    older(World::legacy(1, LegacyState::StillToRun), "00-a.conf").silent(OLDER);
    let mut uncached = older(World::cdi(1), "cuda-compat.conf");
    let Observed::Known(compat) = &mut uncached.image.compat else { panic!() };
    compat.items[0].reach.as_mut().unwrap().cached = Some(false);
    uncached.silent(OLDER);
    let cdi = |release| toolkit(World::cdi(1).with_hook("update-ldcache"), release);
    older(cdi(Some("1.17.8")), "cuda-compat.conf").silent(OLDER);
    assert_eq!(older(cdi(Some("1.17.8")), "00-cuda-compat.conf").failure(OLDER).severity, Severity::Error);
    assert_eq!(older(cdi(Some("1.18.1")), "cuda-compat.conf").failure(OLDER).severity, Severity::Error);
    assert_eq!(older(cdi(None), "cuda-compat.conf").failure(OLDER).severity, Severity::Warning);
}

#[test]
fn the_environment_comes_before_what_the_toolkit_tells_the_loader() {
    let mut world = geforce(image());
    world.set("LD_LIBRARY_PATH", "/opt/lib:/usr/lib/x86_64-linux-gnu/");
    world.silent(UNSUPPORTED);
    a100(world).silent(IN_USE);
    let mut preloaded = geforce(image());
    preloaded.set("LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libcuda.so.1");
    assert_eq!(preloaded.failure(UNSUPPORTED).severity, Severity::Warning);
}

#[test]
fn a_hook_without_a_cache_to_change_is_no_certainty() {
    let mut world = World { image: image().image, ..World::cdi(1) }.driver("575.57.08").with_compat_hook();
    world = geforce(world);
    let Observed::Known(compat) = &mut world.image.compat else { panic!() };
    compat.items[0].cache = false;
    assert_eq!(world.failure(UNSUPPORTED).severity, Severity::Warning);
}

#[test]
fn a_command_that_sets_its_environment_up_is_no_certainty() {
    let mut world = World::cdi(1).driver("580.95.05").compat("580.82.07", Some(&[]));
    world.short(OLDER);
    world.container.args = Observed::Known(["env", "-u", "LD_LIBRARY_PATH", "run"].map(str::to_owned).into());
    assert_eq!(world.failure(OLDER).severity, Severity::Warning);
}

#[test]
fn who_does_not_work_with_cuda_does_not_load_it() {
    let mut graphics = geforce(image());
    graphics.set("NVIDIA_DRIVER_CAPABILITIES", "graphics,utility");
    graphics.silent(UNSUPPORTED);
    let mut monitor = geforce(image());
    monitor.container.args = Observed::Known(vec!["nvidia-smi".into()]);
    assert_eq!(monitor.failure(UNSUPPORTED).severity, Severity::Warning);
    monitor = World::cdi(1).driver("580.95.05").compat("575.57.08", Some(&[]));
    monitor.container.args = Observed::Known(vec!["nvidia-smi".into()]);
    assert_eq!(monitor.failure(OLDER).severity, Severity::Warning);
}

#[test]
fn a_toolkit_that_leaves_it_alone_is_named() {
    let left = toolkit(a100(image()), Some("1.17.4"));
    assert!(left.failure(UNUSED).severity == Severity::Warning);
    left.silent(IN_USE);
    // well left alone where it would break
    toolkit(geforce(image()), Some("1.17.4")).silent(UNUSED);
    toolkit(geforce(image()), Some("1.17.4")).silent(UNSUPPORTED);
    a100(image()).silent(UNUSED);
    toolkit(World::machine(1), Some("1.17.4")).failure(UNUSED);
    toolkit(World::machine(1), Some("1.17.8")).silent(UNUSED);
    toolkit(World::machine(0), Some("1.17.4")).silent(UNUSED);
}

#[test]
fn of_a_toolkit_without_release_only_old_drivers_are_certain() {
    let old = toolkit(geforce(World::legacy(1, LegacyState::StillToRun)), None).compat("465.19.01", None);
    assert_eq!(old.driver("460.80").failure(UNSUPPORTED).severity, Severity::Error);
    assert_eq!(toolkit(geforce(image()), None).failure(UNSUPPORTED).severity, Severity::Warning);
}

#[test]
fn a_branch_that_dropped_the_gpu_finds_no_device() {
    let k80 = toolkit(World::legacy(1, LegacyState::StillToRun), Some("1.7.0"))
        .driver("470.82.01")
        .compat("495.29.05", None)
        .gpu("Tesla K80", 0x102d);
    assert_eq!(k80.short(DROPPED).severity, Severity::Error);
    k80.silent(IN_USE);
    let v100 = toolkit(World::legacy(1, LegacyState::StillToRun), Some("1.7.0"))
        .driver("470.82.01")
        .compat("495.29.05", None)
        .gpu("Tesla V100-SXM2-32GB", 0x1db5);
    v100.silent(DROPPED);
    v100.failure(IN_USE);
}

fn before_start(world: World) -> World {
    World { place: crate::model::Place::Image, ..world }
}

#[test]
fn of_an_image_the_machines_ways_decide() {
    assert_eq!(geforce(before_start(image())).short(UNSUPPORTED).severity, Severity::Error);
    a100(before_start(image())).failure(IN_USE);
    // the engine's own way gets no hook from NVIDIA's runtime
    a100(toolkit(before_start(image()), Some("1.17.4"))).failure(UNUSED);
    // nobody stated the toolkit
    let mut stated = geforce(before_start(image()));
    stated.host.toolkit.version = unseen();
    stated.host.toolkit.config = unseen();
    assert_eq!(stated.failure(UNSUPPORTED).severity, Severity::Warning);
}

#[test]
fn of_an_image_a_file_of_the_loader_leads_to_an_older_one_by_cdi_alone() {
    let leading = |mut world: World| {
        let Observed::Known(compat) = &mut world.image.compat else { panic!() };
        compat.items[0].version = Some("570.86.10".parse().unwrap());
        let source = "/etc/ld.so.conf.d/00-compat.conf".to_owned();
        compat.items[0].reach = Some(crate::model::image::Reach { source, before: Vec::new(), cached: None });
        before_start(world)
    };
    leading(image()).silent(OLDER);
    // docker with a toolkit that may give by CDI as well
    assert_eq!(toolkit(leading(image()), Some("1.18.1")).failure(OLDER).severity, Severity::Warning);
    let mut alone = toolkit(leading(image()), Some("1.18.1"));
    alone.host.engines.clear();
    assert_eq!(alone.short(OLDER).severity, Severity::Error);
}
