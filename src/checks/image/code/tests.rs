use crate::checks::testing::World;
use crate::model::check::{Arg, Place};
use crate::model::host::Gpu;
use crate::model::image::{CodeGroup, DeviceCode};
use crate::model::observed::NOT_STATED;
use crate::model::{ComputeCapability, Host, Observed, Parts, Severity};

const CODE: &str = "framework-lacks-gpu-arch";
const DROPPED: &str = "gpu-generation-dropped";

fn v100(world: World) -> World {
    world.gpu("Tesla V100-SXM2-32GB", 0x1db5)
}

#[test]
fn a_published_build_without_code_for_the_gpu_is_certain_to_fail() {
    let torch = |version: &str, cuda| v100(World::cdi(1).driver("570.133.20").framework("torch", version, cuda));
    torch("2.5.1+cu121", "12.1").silent(CODE);
    let older = World::cdi(1).driver("570.133.20").framework("torch", "2.5.1+cu121", "12.1");
    assert!(older.gpu("NVIDIA GeForce RTX 5090", 0x2b85).short(CODE).severity >= Severity::Warning);
    // a build of one's own may have it
    let own = torch("2.15.0a0+ecf3bae40a.nv25.01", "13.2");
    own.silent(CODE);
    let plain = World::cdi(1).driver("620.70.06").framework("torch", "2.15.0", "13.2").gpu("Tesla T4", 0x1eb8);
    plain.silent(CODE);
}

#[test]
fn a_gpu_is_enough_to_judge_code_for_it() {
    let mut stated = World::cdi(1).framework("torch", "2.11.0", "13.0");
    stated.place = Place::Image;
    stated.host = Host::unseen("the command line", NOT_STATED);
    let gpu = |major| Gpu { compute_capability: Some(ComputeCapability::new(major, 0)), ..Gpu::default() };
    stated.host.gpus = Observed::Known(vec![gpu(7)]);
    let found = stated.short(DROPPED);
    assert_eq!(found.severity, Severity::Error);
    assert!(found.args.iter().any(|(_, arg)| *arg == Arg::Foreign("sm_70".to_owned())), "{found:?}");
    stated.host.gpus = Observed::Known(vec![gpu(9)]);
    stated.silent(DROPPED);
    // whether it starts is another question, which nobody asked
    stated.unknown("framework-cuda-newer-than-driver");
}

#[test]
fn what_was_read_counts_before_the_tables() {
    let code = |machine: &[&str], containers| CodeGroup {
        machine: machine.iter().map(|name| (*name).to_owned()).collect(),
        ptx: Vec::new(),
        containers,
    };
    let with = |groups: Vec<CodeGroup>, source: &str| {
        let mut world = v100(World::cdi(1).driver("570.133.20").framework("torch", "2.5.1", "12.1"));
        let source = source.to_owned();
        let code = DeviceCode { source, groups, ..DeviceCode::default() };
        world.image.device_code = Observed::Known(Parts::whole(vec![code]));
        World { place: Place::Image, ..world }
    };
    let own = "/usr/lib/python3/dist-packages/torch/lib/libtorch_cuda.so";
    let ampere = || code(&["8.0", "9.0"], 600);
    let nothing = with(vec![ampere()], own);
    assert_eq!(nothing.short(CODE).severity, Severity::Error);
    let mut in_part = nothing;
    let Observed::Known(read) = &mut in_part.image.device_code else { panic!() };
    read.unread.push(crate::model::Unknown::new("image.gpu_archs", "layer 2", "its window is too large"));
    assert_eq!(in_part.failure(CODE).severity, Severity::Warning);
    let Observed::Known(read) = &mut in_part.image.device_code else { panic!() };
    read.unread[0].source = "/usr/lib/python3/dist-packages/torch/lib/libc10_cuda.so".to_owned();
    assert_eq!(in_part.failure(CODE).severity, Severity::Warning);
    let Observed::Known(read) = &mut in_part.image.device_code else { panic!() };
    read.unread[0].source = "/usr/lib/python3/dist-packages/other/x.so".to_owned();
    assert_eq!(in_part.failure(CODE).severity, Severity::Error, "another's library");
    assert_eq!(with(vec![ampere(), code(&["7.0"], 8)], own).failure(CODE).severity, Severity::Warning);
    // some kernels exist for some generations alone
    with(vec![ampere(), code(&["7.0", "8.0"], 217)], own).silent(CODE);
    // another's library says nothing of it, and has a note of its own
    let other = with(vec![ampere()], "/usr/lib/python3/dist-packages/other/x.so");
    other.silent(CODE);
    other.short("extension-lacks-gpu-arch");
    other.gpu("NVIDIA A100-SXM4-80GB", 0x20b2).silent("extension-lacks-gpu-arch");
    with(vec![ampere()], own).silent("extension-lacks-gpu-arch");
    with(vec![ampere()], "/opt/x/y.so").silent("extension-lacks-gpu-arch");
}

#[test]
fn a_release_without_code_in_any_build_fails_where_the_images_cuda_could_not_make_it() {
    let blackwell = ("NVIDIA GeForce RTX 5090 D", 0x2b87);
    let paddle = |cuda: &str, place| {
        let mut world = World::cdi(1).driver("570.124.04").framework("paddlepaddle-gpu", "3.0.0rc0", "12.3");
        let Observed::Known(frameworks) = &mut world.image.frameworks else { panic!() };
        frameworks.items[0].cuda = None;
        world.set("CUDA_VERSION", cuda);
        World { place, ..world }
    };
    for place in [Place::Hook, Place::Image] {
        let world = paddle("12.3.2", place).gpu(blackwell.0, blackwell.1);
        assert_eq!(world.short(CODE).severity, Severity::Error);
        // somebody's own build
        let own = paddle("12.9.0", place).gpu(blackwell.0, blackwell.1);
        assert_eq!(own.failure(CODE).severity, Severity::Warning);
        paddle("12.3.2", place).gpu("NVIDIA L20", 0x26ba).silent(CODE);
    }
}

#[test]
fn the_wheel_of_torch_2_7_for_cuda_12_8_has_nothing_for_volta() {
    let world = v100(World::cdi(1).driver("570.133.20").framework("torch", "2.7.0+cu128", "12.8"));
    assert_eq!(world.short(CODE).severity, Severity::Error);
    let image = World { place: Place::Image, ..world };
    assert_eq!(image.failure(CODE).severity, Severity::Error);
    // a GPU that is stated without a driver
    let mut stated = image.clone();
    stated.host.driver.version = Observed::unknown("host.driver.version", "--driver", NOT_STATED);
    assert_eq!(stated.failure(CODE).severity, Severity::Error);
    let mut arm = image;
    arm.image.architecture = Observed::Known(Some("arm64".into()));
    arm.silent(CODE);
}

#[test]
fn cuda_13_makes_no_code_for_volta() {
    let torch = v100(World::cdi(1).driver("580.95.05").framework("torch", "2.11.0", "13.0"));
    assert_eq!(torch.short(DROPPED).severity, Severity::Error);
    torch.clone().framework("onnxruntime-gpu", "1.20.0", "12").failure(DROPPED);
    assert_eq!(torch.clone().framework("onnxruntime-gpu", "1.20.0", "12").failure(DROPPED).severity, Severity::Warning);
    torch.clone().gpu("Tesla T4", 0x1eb8).silent(DROPPED);
    v100(World::cdi(1).driver("580.95.05").framework("torch", "2.8.0+cu128", "12.8")).silent(DROPPED);
    let mut unknown = torch;
    unknown.host.pci = crate::checks::testing::unseen();
    unknown.unknown(DROPPED);
    let mut strange = v100(World::cdi(1).driver("580.95.05").framework("torch", "2.11.0", "13.0"));
    if let Observed::Known(functions) = &mut strange.host.pci {
        functions[0].device = 0xffff;
    }
    if let Observed::Known(gpus) = &mut strange.host.gpus {
        gpus[0].name = Some("NVIDIA Z9000".into());
    }
    strange.silent(DROPPED);
}
