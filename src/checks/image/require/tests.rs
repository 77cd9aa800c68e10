use crate::checks::testing::{World, unseen, words};
use crate::model::container::{Given, LegacyState};
use crate::model::host::{Platform, ToolkitConfig};
use crate::model::{Failure, Observed, Place, Severity};

const ID: &str = "require-cuda-unsatisfied";
const OLD: [&str; 10] =
    ["tesla", "unknown", "nvidia", "nvidiartx", "geforce", "geforcertx", "quadro", "quadrortx", "titan", "titanrtx"];
const NEW: [&str; 12] = [
    "unknown",
    "grid",
    "tesla",
    "nvidia",
    "quadro",
    "quadrortx",
    "nvidiartx",
    "vapps",
    "vpc",
    "vcs",
    "vws",
    "cloudgaming",
];

/// As NVIDIA's images have it.
fn listed(cuda: &str, brands: &[&str], branches: &[u32]) -> String {
    let of = |branch: &u32| {
        let next = branch + 1;
        brands.iter().map(move |b| format!("brand={b},driver>={branch},driver<{next}")).collect::<Vec<_>>()
    };
    [vec![format!("cuda>={cuda}")], branches.iter().flat_map(of).collect()].concat().join(" ")
}

fn spoilt(mut world: World, driver: &str, gpus: &[&str], require: &str) -> World {
    world.host.driver.version = Observed::Known(Some(driver.parse().unwrap()));
    // the hook tells a GPU by its place on the bus; here by its name
    if let Observed::Known(functions) = &mut world.host.pci {
        for function in functions {
            function.device = 0;
        }
    }
    let Observed::Known(known) = &mut world.host.gpus else { panic!() };
    for (gpu, name) in known.iter_mut().zip(gpus) {
        gpu.name = Some((*name).into());
    }
    world.set("NVIDIA_REQUIRE_CUDA", require);
    world
}

fn legacy(driver: &str, gpus: &[&str], require: &str) -> World {
    let count = u32::try_from(gpus.len()).unwrap();
    spoilt(World::legacy(count, LegacyState::StillToRun), driver, gpus, require)
}

fn cdi(driver: &str, gpus: &[&str], require: &str) -> World {
    spoilt(World::cdi(u32::try_from(gpus.len()).unwrap()), driver, gpus, require)
}

fn said(failure: &Failure) -> String {
    words(crate::checks::find(ID).unwrap().1, failure)
}

#[track_caller]
fn fails(world: &World, severity: Severity, parts: &[&str]) -> String {
    let failure = world.short(ID);
    let text = said(&failure);
    assert_eq!(failure.severity, severity, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    text
}

#[test]
fn what_the_hook_will_refuse_is_an_error_with_the_ways_out() {
    let d047 = listed("12.4", &OLD, &[470, 525, 535]);
    let text = fails(
        &legacy("530.30.02", &["Tesla V100-PCIE-32GB"], &d047),
        Severity::Error,
        &[
            "cuda>=12.4",
            "brand=tesla,driver>=535,driver<536",
            "driver 530.30.02, which offers CUDA 12.1",
            "will refuse the start",
            "to branch 535, or to 550.54.14 or newer",
            "image for CUDA 12.1",
            "NVIDIA_DISABLE_REQUIRE=1: CUDA 12 starts",
        ],
    );
    assert!(!text.contains("Give it a GPU"), "{text}");
    let d048 = listed("11.8", &OLD, &[470]);
    fails(
        &legacy("515.105.01", &["NVIDIA A100-SXM4-40GB"], &d048),
        Severity::Error,
        &["520.61.05 or newer", "CUDA 11 starts"],
    );
    let d051 = listed("12.8", &NEW, &[470, 535, 550, 565]);
    let rtx4050 = ["NVIDIA GeForce RTX 4050 Laptop GPU"];
    fails(
        &legacy("535.247.01", &rtx4050, &d051),
        Severity::Error,
        &["\"cuda>=12.8\" or one of 48 alternatives", "offers CUDA 12.2", "570.86.10 or newer"],
    );
    fails(&legacy("550.127.05", &["NVIDIA GeForce RTX 4090"], &d051), Severity::Error, &["CUDA 12.4"]);
    legacy("535.247.01", &["NVIDIA A100-SXM4-80GB"], &d051).silent(ID);
    legacy("570.211.01", &rtx4050, &d051).silent(ID);
}

#[test]
fn a_cuda_that_does_not_start_at_all_is_not_to_be_had_by_switching_off() {
    let d049 = "cuda>=10.0 brand=tesla,driver>=384,driver<385";
    let text = fails(&legacy("390.77", &["GeForce GTX 1080 Ti"], d049), Severity::Error, &["cuda>=10.0", "410.48"]);
    assert!(!text.contains("NVIDIA_DISABLE_REQUIRE") && !text.contains("of brand"), "{text}");
    let text =
        fails(&legacy("470.256.02", &["NVIDIA GeForce RTX 3090"], "cuda>=12.8"), Severity::Error, &["570.86.10"]);
    assert!(!text.contains("NVIDIA_DISABLE_REQUIRE"), "{text}");
    let text = fails(&legacy("470.256.02", &["Tesla K80"], "cuda>=12.0"), Severity::Error, &["Give it a GPU"]);
    assert!(!text.contains("Update the driver"), "{text}");
}

#[test]
fn an_alternative_that_holds_is_enough() {
    let d056 = "cuda>=11.3 brand=tesla,driver>=418,driver<419 driver>=450";
    legacy("460.67", &["GeForce RTX 3090", "GeForce RTX 3090"], d056).silent(ID);
    let mut world = legacy("460.67", &["GeForce RTX 3090"], d056);
    world.host.gpus = unseen();
    world.host.pci = unseen();
    world.silent(ID);
}

#[test]
fn a_misspelt_variable_is_pointed_at() {
    let mut world = legacy("515.105.01", &["NVIDIA A100-SXM4-40GB"], "cuda>=11.8 brand=tesla,driver>=470,driver<471");
    world.set("NVIDIA_DISABLE_REQUIRES", "true");
    fails(&world, Severity::Error, &["NVIDIA_DISABLE_REQUIRE=1 (nothing reads \"NVIDIA_DISABLE_REQUIRES\")"]);
}

#[test]
fn nothing_is_said_where_it_is_switched_off_accepted_or_not_declared() {
    let bad = || legacy("470.256.02", &["NVIDIA GeForce RTX 3090"], "cuda>=12.8");
    let mut world = bad();
    world.set("NVIDIA_DISABLE_REQUIRE", "1");
    world.silent(ID);
    let mut world = bad();
    let config = ToolkitConfig { disable_require: Some(true), ..ToolkitConfig::default() };
    world.host.toolkit.config = Observed::Known(Some(config));
    world.silent(ID);
    let mut world = bad();
    world.unset("NVIDIA_REQUIRE_CUDA");
    world.silent(ID);
    let mut world = bad();
    world.container.legacy_hook.as_mut().unwrap().state = LegacyState::HasRun;
    world.silent(ID);
    let mut world = bad();
    world.container.gpu_given = Observed::Known(Given::None);
    world.silent(ID);
    let mut world = bad();
    world.container.visible_devices = Observed::Known(Some("void".into()));
    world.silent(ID);
    let mut world = bad();
    world.host.driver.version = Observed::Known(None);
    world.silent(ID);
    let mut world = bad();
    world.host.platform = Platform::Tegra;
    world.silent(ID);
}

#[test]
fn where_nobody_enforces_it_what_may_run_is_a_warning() {
    let d051 = listed("12.8", &NEW, &[470, 535, 550, 565]);
    let text = fails(
        &cdi("535.247.01", &["NVIDIA GeForce RTX 4050 Laptop GPU"], &d051),
        Severity::Warning,
        &["nobody enforces that here, and minor-version compatibility may let it run", "570.86.10"],
    );
    assert!(!text.contains("NVIDIA_DISABLE_REQUIRE"), "there is nothing to switch off: {text}");
    cdi("535.161.08", &["NVIDIA A100-SXM4-80GB"], &d051).silent(ID);
    let too_new = "cuda>=13.0";
    let text = fails(&cdi("535.161.08", &["NVIDIA GeForce RTX 4090"], too_new), Severity::Warning, &["580.65.06"]);
    assert!(text.contains("programs of CUDA 13 do not start on it"), "{text}");
    let forward = ["forward compatibility may let it run"];
    fails(&cdi("535.161.08", &["NVIDIA H100 PCIe"], too_new), Severity::Warning, &forward);
    let mut monitor = cdi("535.161.08", &["NVIDIA GeForce RTX 4090"], too_new);
    monitor.container.args = Observed::Known(vec!["nvidia-smi".into()]);
    assert_eq!(monitor.failure(ID).severity, Severity::Warning);
    let mut privileged = cdi("535.161.08", &["NVIDIA GeForce RTX 4090"], "cuda>=12.4");
    privileged.container.gpu_given = Observed::Known(Given::Privileged);
    fails(&privileged, Severity::Warning, &["minor-version"]);
}

#[test]
fn of_several_gpus_those_that_fail_are_named() {
    let listed = listed("12.8", &NEW, &[535]);
    let both = ["NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 3090"];
    let refused = ["GPU 1 (NVIDIA GeForce RTX 3090)", "hook will refuse"];
    fails(&legacy("535.161.08", &both, &listed), Severity::Error, &refused);
    let mut by_cdi = cdi("535.161.08", &both, &listed);
    fails(&by_cdi, Severity::Warning, &["GPU 1 (NVIDIA GeForce RTX 3090)"]);
    by_cdi.without_node("/dev/nvidia1", false);
    by_cdi.silent(ID);
    let mut world = legacy("535.161.08", &both, &listed);
    world.container.visible_devices = Observed::Known(Some("0".into()));
    world.silent(ID);
    world.container.visible_devices = Observed::Known(Some("1".into()));
    fails(&world, Severity::Error, &["\"cuda>=12.8\""]);
    world.container.visible_devices = Observed::Known(Some("none".into()));
    world.silent(ID);
    world.set("NVIDIA_REQUIRE_CUDA", "cuda>=12.8");
    fails(&world, Severity::Error, &[]);
    let mut in_parts = legacy("535.161.08", &["NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 3090"], &listed);
    in_parts.container.visible_devices = Observed::Known(Some("MIG-00000000-0000-4000-8000-000000000001".into()));
    in_parts.unknown(ID);
    let both = legacy("530.30.02", &["Tesla V100-SXM2-32GB", "Tesla T4"], "cuda>=13.0");
    fails(&both, Severity::Error, &["580.65.06 or newer"]);
    let mixed = ["NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 3090"];
    let mixed = legacy("530.30.02", &mixed, "cuda>=12.4 brand=unknown,driver>=535,driver<536");
    fails(&mixed, Severity::Error, &["550.54.14 or newer"]);
    fails(&legacy("550.54.14", &["Tesla T4"], "arch>=8.0"), Severity::Error, &["compute capability 7.5", "arch>=8.0"]);
}

#[test]
fn what_the_hook_cannot_read_is_refused_by_it_alone() {
    let mut world = legacy("550.54.14", &["Tesla T4"], "cuda>=10_1");
    let text = fails(&world, Severity::Error, &["\"NVIDIA_REQUIRE_CUDA\" has \"cuda>=10_1\"", "DISABLE_REQUIRE=1"]);
    assert!(!text.contains("Update"), "{text}");
    world.set("NVIDIA_REQUIRE_CUDA", "cuda>=12.0 foo>=1");
    world.silent(ID);
    cdi("550.54.14", &["Tesla T4"], "cuda>=10_1").silent(ID);
    let mut misread = legacy("550.54.14", &["Tesla T4"], "cuda>=12.0");
    misread.set("NVIDIA_REQUIRE_DISABLE", "1");
    fails(&misread, Severity::Error, &["\"NVIDIA_REQUIRE_DISABLE\" has \"1\""]);
    let mut old = legacy("550.54.14", &["Tesla T4"], "");
    old.set("CUDA_VERSION", "cu124");
    assert_eq!(old.short(ID).severity, Severity::Warning);
    old.set("CUDA_VERSION", "12.8.1");
    fails(&old, Severity::Warning, &["takes CUDA_VERSION for \"cuda>=12.8\"", "may refuse", "DISABLE_REQUIRE=1"]);
    old.set("CUDA_VERSION", "13.0.1");
    fails(&old, Severity::Warning, &["\"cuda>=13.0\"", "580.65.06"]);
    let mut geforce = legacy("550.54.14", &["NVIDIA GeForce RTX 4090"], "");
    geforce.set("CUDA_VERSION", "13.0.1");
    fails(&geforce, Severity::Error, &["\"cuda>=13.0\"", "will refuse"]);
    old.set("CUDA_VERSION", "12.4.1");
    old.silent(ID);
}

#[test]
fn a_driver_newer_than_the_tables_is_not_refused_by_them() {
    legacy("655.10", &["NVIDIA B200"], "cuda>=13.5").silent(ID);
    legacy("655.10", &["NVIDIA B200"], "cuda>=14.0").unknown(ID);
    fails(&legacy("620.70.06", &["NVIDIA B200"], "cuda>=14.0"), Severity::Error, &["a branch newer than 620.70.06"]);
}

#[test]
fn what_nobody_saw_is_unknown() {
    let listed = listed("12.8", &NEW, &[535]);
    let mut world = legacy("535.161.08", &["NVIDIA A100-SXM4-80GB"], &listed);
    let Observed::Known(gpus) = &mut world.host.gpus else { panic!() };
    gpus[0].name = None;
    world.unknown(ID);
    let Observed::Known(functions) = &mut world.host.pci else { panic!() };
    functions[0].device = 0x20B2;
    world.silent(ID);
    let mut world = legacy("535.161.08", &["NVIDIA T1000"], &listed);
    world.unknown(ID);
    world.host.driver.version = unseen();
    world.unknown(ID);
    world.container.environment = unseen();
    world.unknown(ID);
    let mut wsl = legacy("551.78", &["x"], &listed);
    wsl.host.platform = Platform::Wsl;
    wsl.container.gpu_given = Observed::Known(Given::Wsl);
    wsl.unknown(ID);
    legacy("535.161.08", &["Tesla T4"], &"cuda>=12.0 ".repeat(2000)).unknown(ID);
    let mut config = legacy("470.256.02", &["Tesla T4"], "cuda>=12.8");
    config.host.toolkit.config = unseen();
    config.unknown(ID);
}

#[test]
fn an_image_is_judged_against_the_machine() {
    let mut world = World { place: Place::Image, ..legacy("470.256.02", &["Tesla T4"], "cuda>=12.8") };
    fails(&world, Severity::Error, &["will refuse"]);
    // nobody need state what the toolkit is told
    world.host.toolkit.config = unseen();
    fails(&world, Severity::Error, &["will refuse"]);
    world.container.gpu_given = Observed::Known(Given::Cdi);
    fails(&world, Severity::Warning, &["nobody enforces"]);
    world.silent_with(|world| world.container.gpu_given = Observed::Known(Given::None), ID);
    world.host.driver.version = Observed::Known(Some("580.95.05".parse().unwrap()));
    world.silent(ID);
}

#[test]
fn hostile_text_is_cut_and_quoted() {
    let long = format!("cuda>=99.{} {}", "9".repeat(60), "brand=\u{1b}[2J,driver<1 ".repeat(300));
    let world = legacy("535.161.08", &["Tesla T4"], &long);
    let failure = world.failure(ID);
    assert!(said(&failure).bytes().all(|b| (0x20..0x7f).contains(&b) || b == b'\n'));
    world.short(ID);
}
