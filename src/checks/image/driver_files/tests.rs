use crate::checks::testing::World;
use crate::model::container::{Given, LegacyState, Strength};
use crate::model::host::Platform;
use crate::model::image::{DriverFile, DriverFileKind, Reach};
use crate::model::{Observed, Place, Severity};

const LIBS: &str = "driver-libs-in-image";
const EMPTY: &str = "zero-byte-driver-files-in-image";
const STUB: &str = "cuda-stub-loaded";
const MULTIARCH: &str = "/usr/lib/x86_64-linux-gnu";

fn file(path: &str, kind: DriverFileKind) -> DriverFile {
    let version = path.split_once(".so.").and_then(|(_, version)| version.parse().ok());
    DriverFile {
        path: path.to_owned(),
        kind,
        version: version.filter(|version: &crate::model::DriverVersion| version.number(0) > 100),
        reach: None,
        link: None,
        link_passes: false,
        in_drivers_place: path.starts_with(MULTIARCH),
    }
}

fn with(mut world: World, files: &[DriverFile]) -> World {
    let Observed::Known(found) = &mut world.image.driver_files else { panic!() };
    found.items.extend(files.iter().cloned());
    world
}

/// One container for each way, and an image.
fn ways() -> Vec<World> {
    let mut all = vec![legacy()];
    all.push(World::legacy(1, LegacyState::HasRun));
    all.push(World::cdi(1));
    all.push(image(legacy()));
    all
}

fn library(version: &str) -> DriverFile {
    file(&format!("{MULTIARCH}/libcuda.so.{version}"), DriverFileKind::Library)
}

fn legacy() -> World {
    World::legacy(1, LegacyState::StillToRun)
}

fn image(world: World) -> World {
    World { place: Place::Image, ..world }
}

#[test]
fn a_newer_library_beside_the_drivers_wins_and_another_only_lies_there() {
    for world in ways() {
        assert_eq!(with(world.clone(), &[library("565.57.01")]).short(LIBS).severity, Severity::Error);
        assert_eq!(with(world.clone(), &[library("535.54.03")]).short(LIBS).severity, Severity::Warning);
        with(world.clone(), &[library("550.163.01")]).silent(LIBS);
        let elsewhere = file("/opt/driver/libcuda.so.565.57.01", DriverFileKind::Library);
        assert_eq!(with(world.clone(), &[elsewhere]).failure(LIBS).severity, Severity::Warning);
        world.silent(LIBS);
    }
    // another library is not what CUDA starts with
    for name in ["libnvidia-encode.so.565.57.01", "libnvidia-ml.so.565.57.01"] {
        let other = file(&format!("{MULTIARCH}/{name}"), DriverFileKind::Library);
        for world in ways() {
            assert_eq!(with(world, std::slice::from_ref(&other)).failure(LIBS).severity, Severity::Warning);
        }
    }
    // an image that speaks of no GPU may be run without one
    let mut for_cpu = image(with(World::plain(), &[library("565.57.01")]));
    for_cpu.container.gpu_given = Observed::Known(Given::LegacyHook);
    assert_eq!(for_cpu.failure(LIBS).severity, Severity::Warning);
    // without a machine nothing is certain
    let mut bare = image(with(legacy(), &[library("565.57.01")]));
    bare.host = crate::model::testing::bare_host();
    assert_eq!(bare.failure(LIBS).severity, Severity::Warning);
    bare.container.wants_gpu.strength = Strength::None;
    bare.silent(LIBS);
}

#[test]
fn a_link_in_the_place_of_the_hosts_program_stops_the_hook_and_not_cdi() {
    let path = "/usr/bin/nvidia-smi";
    let smi = DriverFile { link: Some(path.to_owned()), ..file(path, DriverFileKind::Program) };
    assert_eq!(with(legacy(), std::slice::from_ref(&smi)).short(LIBS).severity, Severity::Error);
    assert_eq!(with(image(legacy()), std::slice::from_ref(&smi)).failure(LIBS).severity, Severity::Error);
    with(World::cdi(1), std::slice::from_ref(&smi)).silent(LIBS);
    with(World::legacy(1, LegacyState::HasRun), std::slice::from_ref(&smi)).silent(LIBS);
    let mut compute_alone = with(legacy(), std::slice::from_ref(&smi));
    compute_alone.set("NVIDIA_DRIVER_CAPABILITIES", "compute");
    compute_alone.silent(LIBS);
    // the hook takes a program behind a relative link for the file that it would make
    let passes = DriverFile { link_passes: true, ..smi };
    for world in [legacy(), image(legacy())] {
        assert_eq!(with(world, std::slice::from_ref(&passes)).short(LIBS).severity, Severity::Warning);
    }
    with(World::cdi(1), &[passes]).silent(LIBS);
    // a plain file is only covered
    with(legacy(), &[file(path, DriverFileKind::Program)]).silent(LIBS);
}

#[test]
fn on_wsl_the_hosts_libraries_have_the_names_of_links() {
    let link = format!("{MULTIARCH}/libnvidia-ml.so.1");
    let linked = DriverFile { link: Some(link), ..library("535.54.03") };
    let mut world = with(legacy(), std::slice::from_ref(&linked));
    assert_eq!(world.failure(LIBS).severity, Severity::Warning, "the same image on Linux");
    world.host.platform = Platform::Wsl;
    world.host.driver.version = Observed::Known(None);
    for given in [Given::Wsl, Given::LegacyHook] {
        world.container.gpu_given = Observed::Known(given);
        assert_eq!(world.failure(LIBS).severity, Severity::Error);
    }
    assert_eq!(image(world.clone()).failure(LIBS).severity, Severity::Error);
    world.host.platform = Platform::Tegra;
    world.silent(LIBS);
}

#[test]
fn empty_files_of_another_driver_are_a_warning_and_mount_points_are_not() {
    let empty = |version: &str| file(&format!("{MULTIARCH}/libcuda.so.{version}"), DriverFileKind::Empty);
    for world in ways() {
        assert_eq!(with(world.clone(), &[empty("418.56")]).short(EMPTY).severity, Severity::Warning);
        with(world.clone(), &[empty("550.163.01")]).silent(EMPTY);
        with(world.clone(), &[empty("418.56")]).silent(LIBS);
        with(world, &[file("/usr/bin/nvidia-smi", DriverFileKind::Empty)]).silent(EMPTY);
    }
    with(World::plain(), &[empty("418.56")]).silent(EMPTY);
    let mut unread = with(World::cdi(1), &[empty("418.56")]);
    unread.host.driver.version = crate::checks::testing::unseen();
    unread.unknown(EMPTY);
}

fn stub(source: &str, before: &[&str]) -> DriverFile {
    let before = before.iter().map(|path| (*path).to_owned()).collect();
    let reach = Some(Reach { source: source.to_owned(), before, cached: None });
    DriverFile { reach, ..file("/usr/local/cuda/lib64/stubs/libcuda.so.1", DriverFileKind::Stub) }
}

#[test]
fn a_stub_counts_where_the_loader_comes_to_it_first() {
    let variable = stub("LD_LIBRARY_PATH", &["/opt/x"]);
    for world in [legacy(), World::cdi(1), image(legacy())] {
        let mut stubbed = with(world.clone(), std::slice::from_ref(&variable));
        assert_eq!(stubbed.short(STUB).severity, Severity::Error);
        stubbed.set("NVIDIA_DRIVER_CAPABILITIES", "utility");
        stubbed.silent(STUB);
        with(world.clone(), &[stub("LD_LIBRARY_PATH", &[MULTIARCH])]).silent(STUB);
        with(world.clone(), &[DriverFile { reach: None, ..variable.clone() }]).silent(STUB);
    }
    // TensorFlow's images have one by design, behind what NVIDIA's hook tells the loader
    let by_file = [stub("/etc/ld.so.conf.d/z-cuda-stubs.conf", &[])];
    with(legacy(), &by_file).silent(STUB);
    assert_eq!(with(World::cdi(1), &by_file).failure(STUB).severity, Severity::Warning);
    let mut sleeping = with(World::cdi(1), std::slice::from_ref(&variable));
    sleeping.container.args = Observed::Known(vec!["sleep".into(), "1".into()]);
    assert_eq!(sleeping.failure(STUB).severity, Severity::Warning);
    // who sets up another environment may take the stubs out of it
    for world in [legacy(), World::cdi(1), image(legacy())] {
        let mut choosing = with(world, std::slice::from_ref(&variable));
        choosing.container.args = Observed::Known(vec!["conda".into(), "run".into(), "python".into()]);
        assert_eq!(choosing.failure(STUB).severity, Severity::Warning);
    }
}
