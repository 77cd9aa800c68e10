use crate::checks::testing::{World, unseen};
use crate::model::container::LegacyState;
use crate::model::{Action, Failure, Severity};

const FRAMEWORK: &str = "framework-cuda-newer-than-driver";
const IMAGE: &str = "cuda-newer-than-driver";
const MINOR: &str = "minor-version-compat";
const PTX: &str = "ptx-newer-than-driver";
const COMPRESSED: &str = "fatbin-needs-newer-driver";

fn says(failure: &Failure, id: &str, words: &[&str]) {
    let (_, check) = crate::checks::find(id).unwrap();
    let text = crate::checks::testing::words(check, failure);
    for word in words {
        assert!(text.contains(word), "{word} is not in {text}");
    }
}

#[test]
fn an_image_of_cuda_12_8_is_too_new_for_470_and_runs_on_535() {
    let mut world = World::cdi(1).driver("470.256.02");
    world.set("CUDA_VERSION", "12.8.1");
    let failure = world.failure(IMAGE);
    assert_eq!(failure.severity, Severity::Warning);
    says(
        &failure,
        IMAGE,
        &["12.8.1", "470.256.02 offers CUDA 11.4", "525.60.13", "CUDA 11 or older", "cuda-compat-12-8"],
    );
    let mut world = world.driver("535.183.01");
    world.silent(IMAGE);
    let failure = world.failure(MINOR);
    says(&failure, MINOR, &["12.8.1", "535.183.01 offers CUDA 12.2"]);
    world.host.driver.version = unseen();
    world.unknown(IMAGE);
    world.silent_with(|world| world.host.driver.version = crate::model::Observed::Known(None), IMAGE);
}

#[test]
fn a_framework_for_another_major_does_not_start() {
    let world = World::legacy(1, LegacyState::StillToRun).driver("570.86.10").framework("torch", "2.11.0", "13.0");
    let failure = world.short(FRAMEWORK);
    assert_eq!(failure.severity, Severity::Error);
    says(&failure, FRAMEWORK, &["torch 2.11.0", "13.0", "570.86.10 offers CUDA 12.8", "580.65.06", "CUDA 12 or older"]);
    world.clone().driver("580.65.06").silent(FRAMEWORK);
    // before 11 the minor counts as well
    let old = World::cdi(1).driver("410.104").framework("paddlepaddle-gpu", "2.0.0", "10.2");
    assert_eq!(old.short(FRAMEWORK).severity, Severity::Error);
    old.driver("440.33.01").silent(FRAMEWORK);
    // a library that lies somewhere may be there for a part that nobody runs
    let program = World::cdi(1).driver("535.161.08").runtime("13.1.80", "/opt/app/libcudart.so.13");
    assert_eq!(program.failure(FRAMEWORK).severity, Severity::Warning);
    World::cdi(1).driver("470.57.02").runtime("12", "/usr/lib/x86_64-linux-gnu/libcudart.so.12").silent(FRAMEWORK);
    World::cdi(1)
        .driver("535.161.08")
        .runtime("13.1.80", "/usr/local/cuda-13.1/lib64/libcudart.so.13")
        .silent(FRAMEWORK);
}

#[test]
fn an_error_needs_all_of_them_and_a_whole_look() {
    let torch = || World::cdi(1).driver("570.86.10").framework("torch", "2.11.0", "13.0");
    let severity = |world: World| world.failure(FRAMEWORK).severity;
    assert_eq!(severity(torch().framework("onnxruntime-gpu", "1.20.0", "12")), Severity::Warning);
    assert_eq!(severity(torch().in_part()), Severity::Warning);
    // who knows what that one was built for
    let mut unknown = torch().framework("llama-cpp-python", "0.3.2", "12");
    let crate::model::Observed::Known(frameworks) = &mut unknown.image.frameworks else { panic!() };
    frameworks.items[1].cuda = None;
    assert_eq!(severity(unknown.clone()), Severity::Warning);
    let crate::model::Observed::Known(frameworks) = &mut unknown.image.frameworks else { panic!() };
    frameworks.items[1].name = "vllm".to_owned();
    assert_eq!(severity(unknown), Severity::Error);
    let mut guessed = torch();
    let crate::model::Observed::Known(frameworks) = &mut guessed.image.frameworks else { panic!() };
    frameworks.items.iter_mut().for_each(|framework| framework.sure = false);
    assert_eq!(severity(guessed), Severity::Warning);
    let mut monitor = torch();
    monitor.container.args = crate::model::Observed::Known(vec!["nvidia-smi".into()]);
    assert_eq!(severity(monitor), Severity::Warning);
    for (name, value) in [("CUDA_VISIBLE_DEVICES", "-1"), ("CUDA_VISIBLE_DEVICES", ""), ("JAX_PLATFORMS", "cpu")] {
        let mut hidden = torch();
        hidden.set(name, value);
        assert_eq!(severity(hidden), Severity::Warning, "{name}={value}");
    }
    for program in [&["sleep", "infinity"][..], &["ffmpeg", "-i", "x"]] {
        let mut other = torch();
        other.container.args = crate::model::Observed::Known(program.iter().map(|w| (*w).to_owned()).collect());
        assert_eq!(severity(other), Severity::Warning, "{program:?}");
    }
    // somebody's own libcuda may offer anything
    let mut own = torch();
    let crate::model::Observed::Known(libcuda) = &mut own.container.libcuda else { panic!() };
    libcuda.push("/opt/fwd/libcuda.so.1".to_owned());
    assert_eq!(severity(own), Severity::Warning);
    let mut utility = torch();
    utility.set("NVIDIA_DRIVER_CAPABILITIES", "utility");
    utility.silent(FRAMEWORK);
    World::plain().framework("torch", "2.11.0", "13.0").silent(FRAMEWORK);
    World::cdi(1).in_part().unknown(FRAMEWORK);
}

#[test]
fn a_stated_driver_was_read_on_the_command_line() {
    use crate::model::observed::NOT_STATED;
    use crate::model::{Host, Observed, Place};
    let source_of = |world: &World| {
        let found = world.failure("framework-cuda-newer-than-driver");
        let driver = found.evidence.iter().find(|seen| seen.fact == "host.driver.version").unwrap();
        driver.source.clone()
    };
    let world = World { place: Place::Image, ..World::legacy(1, LegacyState::StillToRun) };
    let mut world = world.framework("torch", "2.11.0+cu130", "13.0");
    assert_eq!(source_of(&world), "/sys/module/nvidia/version");
    let version = world.host.driver.version.clone();
    world.host = Host::unseen("the command line", NOT_STATED);
    world.host.driver.version = version;
    world.host.pci = Observed::Known(Vec::new());
    assert_eq!(source_of(&world), "the command line");
}

#[test]
fn ollama_takes_the_backend_that_the_driver_runs() {
    let both = World::cdi(1).driver("550.163.01").framework("ollama", "", "12").framework("ollama", "", "13");
    both.silent(FRAMEWORK);
    both.silent(COMPRESSED);
    let older = both.driver("535.183.01");
    older.silent(FRAMEWORK);
    assert_eq!(older.failure(COMPRESSED).severity, Severity::Warning);
    assert_eq!(older.driver("470.57.02").failure(FRAMEWORK).severity, Severity::Error);
}

#[test]
fn an_image_of_a_newer_cuda_alone_refuses_nothing() {
    let image = || {
        let mut world = World::cdi(1).driver("535.183.01");
        world.set("CUDA_VERSION", "13.0.1");
        world
    };
    // What it is made from is not what runs in it.
    assert_eq!(image().failure(IMAGE).severity, Severity::Warning);
    let needs_less = image().framework("torch", "2.9.0+cu128", "12.8");
    says(&needs_less.failure(IMAGE), IMAGE, &["needs less"]);
    let mut digits = image();
    digits.set("CUDA_VERSION", "130");
    digits.silent(IMAGE);
    // what really runs says it better
    let framework = image().framework("torch", "2.11.0", "13.0");
    framework.silent(IMAGE);
    framework.short(FRAMEWORK);
}

#[test]
fn ptx_is_a_warning_for_those_that_compile_it() {
    let torch = World::cdi(1).driver("550.144.03").framework("torch", "2.9.0+cu128", "12.8");
    assert_eq!(torch.failure(PTX).severity, Severity::Warning);
    torch.failure(MINOR);
    says(&torch.failure(PTX), PTX, &["570.86.10"]);
    torch.clone().driver("570.86.10").silent(PTX);
    World::cdi(1).driver("550.144.03").framework("onnxruntime-gpu", "1.26.0", "12.8").silent(PTX);
}

#[test]
fn a_driver_newer_than_every_table_is_never_too_old_and_an_unknown_cuda_needs_its_own() {
    let newer = World::cdi(1).driver("699.10").framework("torch", "4.0.0", "13.2");
    newer.silent(FRAMEWORK);
    newer.silent(PTX);
    World::cdi(1).driver("699.10").framework("torch", "4.0.0", "15.0").unknown(FRAMEWORK);
    let unknown = World::cdi(1).driver("620.70.06").framework("torch", "4.0.0", "15.0");
    says(&unknown.failure(FRAMEWORK), FRAMEWORK, &["15.0", "620.70.06 offers CUDA 13.5", "newer than 620.70.06"]);
}

#[test]
fn forward_compatibility_helps_where_it_is_used() {
    let image = || World::cdi(1).driver("575.57.08").framework("torch", "2.10.0+cu130", "13.0");
    image().failure(FRAMEWORK);
    let used = image().compat("580.82.07", None).with_compat_hook().gpu("NVIDIA A100-SXM4-80GB", 0x20b2);
    used.silent(FRAMEWORK);
    // it lies there, and an entrypoint may lead to it
    let unused = image().compat("580.82.07", None).gpu("NVIDIA A100-SXM4-80GB", 0x20b2);
    assert_eq!(unused.failure(FRAMEWORK).severity, Severity::Warning);
    let mut by_vllm = unused.clone();
    by_vllm.set("VLLM_ENABLE_CUDA_COMPATIBILITY", "1");
    assert_eq!(by_vllm.failure(FRAMEWORK).severity, Severity::Warning);
    by_vllm.set("VLLM_ENABLE_CUDA_COMPATIBILITY", "0");
    assert_eq!(by_vllm.failure(FRAMEWORK).severity, Severity::Error);
    assert_eq!(unused.gpu("NVIDIA GeForce RTX 4090", 0x2684).failure(FRAMEWORK).severity, Severity::Error);
    // one that says nothing of itself may offer anything
    let mut nameless = image().compat("580.82.07", Some(&[])).gpu("NVIDIA A100-SXM4-80GB", 0x20b2);
    let crate::model::Observed::Known(compat) = &mut nameless.image.compat else { panic!() };
    compat.items[0].version = None;
    nameless.silent(FRAMEWORK);
    let geforce = image().gpu("NVIDIA GeForce RTX 4090", 0x2684).failure(FRAMEWORK);
    assert!(!geforce.only.contains(&Action::ChangePackages) && !geforce.only.is_empty());
}
