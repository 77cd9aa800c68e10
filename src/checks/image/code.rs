//! Has the image code that these GPUs run?

use super::dropped::{BY_DRIVER, OLDER_DRIVER, by_driver};
use super::gpus::{self, Product};
use super::libcuda;
use super::meant;
use super::needs::{self, Need};
use super::share::{self, Share};
use crate::checks::not_applicable;
use crate::knowledge::architecture::oci_name;
use crate::knowledge::frameworks::{Archs, Coverage, architectures, architectures_of_any, covers, minimum_capability};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::image::Build;
use crate::model::knowledge::Targets;
use crate::model::{ComputeCapability, Facts, Unknown};

const LACKS: &str =
    "{what} has no code that {gpu} (compute capability {capability}) runs: no kernel image is available";
const LACKS_MOST: &str =
    "{what} has hardly any code that {gpu} (compute capability {capability}) runs: most of its kernels are not there";
const EXTENSION: &str = "{path} has no code that {gpu} (compute capability {capability}) runs: calls into it fail";
const SEEMS_TO_LACK: &str = "{what} is not known to have code that {gpu} (compute capability {capability}) runs";
const BY_TOOLKIT: &str = "{what} is built with CUDA {cuda}, which makes no code for {gpu} (compute capability \
                          {capability}): it starts at {least}";

const OTHER_BUILD: Step = Step {
    action: Action::ChangePackages,
    text: "Use a build that has code for compute capability {capability}.",
    command: None,
};
const OLDER_CUDA: Step =
    Step { action: Action::ChangeImage, text: "Use an image or build of CUDA {newest} or older.", command: None };

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "framework-lacks-gpu-arch",
        title: "the framework's build has no code for this GPU",
        why: "No kernel image is available for execution on the device (209), at the first kernel.",
        messages: &[LACKS, LACKS_MOST, SEEMS_TO_LACK],
        remedy: &[OTHER_BUILD],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: lacks_code,
    },
    Check {
        id: "extension-lacks-gpu-arch",
        title: "an extension has no code for this GPU",
        why: "An extension was compiled for other GPUs than the framework, mostly in a build without a GPU.",
        messages: &[EXTENSION],
        remedy: &[Step {
            action: Action::ChangeImage,
            text: "Compile it for this GPU.",
            command: Some("TORCH_CUDA_ARCH_LIST=\"8.6;9.0;12.0\" pip install --no-build-isolation ..."),
        }],
        severities: &[Severity::Note],
        places: &[Place::Image],
        judge: extension_lacks_code,
    },
    Check {
        id: "gpu-generation-dropped",
        title: "the GPU is of a generation that the image's CUDA or the driver has dropped",
        why: "No kernel image is available for execution on the device (209), or the driver leaves the GPU alone.",
        messages: &[BY_TOOLKIT, BY_DRIVER],
        remedy: &[OLDER_CUDA, OLDER_DRIVER],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: generation_dropped,
    },
];

/// The newest toolkit that still makes code for all of them.
fn newest_for(facts: &Facts<'_>, gpus: &[&Known]) -> String {
    let makes = |targets: &&Targets| gpus.iter().all(|(_, of)| targets.min().is_some_and(|least| least <= *of));
    let newest = facts.knowledge.targets.iter().rev().find(makes);
    newest.map_or_else(|| "of its time".to_owned(), |targets| format!("{}.{}", targets.cuda.0, targets.cuda.1))
}

/// A GPU with its compute capability.
type Known = (Product, ComputeCapability);

/// The container's GPUs, those of unknown kind left out; and whether there are such.
fn known_gpus(facts: &Facts<'_>) -> Result<(Vec<Known>, bool), Unknown> {
    let all = gpus::of(facts)?;
    let number = all.len();
    let known: Vec<Known> =
        all.into_iter().filter_map(|gpu| gpu.capability(facts).map(|capability| (gpu, capability))).collect();
    let whole = known.len() == number;
    Ok((known, whole))
}

/// It concerns a container with a GPU for CUDA work; whether that is certain. An image may be judged against a GPU
/// alone.
fn concerned(facts: &Facts<'_>) -> Result<Option<bool>, Unknown> {
    if !libcuda::is_behind_driver(facts)? {
        return Ok(None);
    }
    meant::computes(facts)
}

fn severity(certain: bool) -> Severity {
    if certain { Severity::Error } else { Severity::Warning }
}

/// The GPUs, for messages, and the capability of the first.
fn named(failure: Failure, lacking: &[&Known]) -> Failure {
    let capability = lacking.first().map_or_else(String::new, |(_, capability)| capability.to_string());
    failure
        .foreign("gpu", gpus::names(lacking.iter().map(|(gpu, _)| gpu)))
        .saw("host.gpus.compute_capability", &capability, "the tables of GPUs")
        .arg("capability", capability)
}

fn lacks_code(facts: &Facts<'_>) -> Judgement {
    let Some(certain) = concerned(facts)? else { return not_applicable() };
    let needs = needs::of(facts)?;
    let frameworks = needs.all.iter().filter(|need| need.framework.is_some());
    let known = frameworks.map(|need| (need, carries(facts, need), least(need)));
    let is_known = |need: &Need<'_>| share::own(facts, need).is_some();
    let known: Vec<_> =
        known.filter(|(need, archs, least)| archs.is_some() || least.is_some() || is_known(need)).collect();
    if known.is_empty() {
        return of_no_build(facts, certain)?.map_or_else(not_applicable, Failure::found);
    }
    let (gpus, whole) = known_gpus(facts)?;
    for (need, carried, least) in known {
        // what was read counts before what is known of published builds
        if let Some((code, read)) = share::own(facts, need) {
            let of = |wanted| gpus.iter().filter(|(_, of)| share::share(&code, *of) == wanted).collect::<Vec<_>>();
            let (nothing, few) = (of(Share::Nothing), of(Share::Few));
            let all = nothing.len() == gpus.len() && whole && read && needs.complete && needs.all.len() == 1;
            let (severity, message, lacking) = match (nothing.is_empty(), few.is_empty()) {
                (false, _) => (severity(all && certain), LACKS, nothing),
                (true, false) => (Severity::Warning, LACKS_MOST, few),
                (true, true) => continue,
            };
            let source = code.first().map_or_else(String::new, |code| code.source.clone());
            let failure =
                Failure::new(severity, message).foreign("what", &need.what).saw("image.gpu_archs", &need.what, source);
            return named(failure, &lacking).found();
        }
        let published = need.sure && carried.as_ref().is_some_and(|(archs, published)| archs.confirmed && *published);
        // what its CUDA cannot make is said by a check of its own, with more certainty
        let makes = facts.knowledge.targets_of(need.cuda).and_then(|targets| targets.value.min());
        let dropped = |capability: ComputeCapability| !published && makes.is_some_and(|least| capability < least);
        let lacks = |(_, capability): &&Known| match &carried {
            Some((archs, _)) => covers(archs, *capability) == Coverage::No && !dropped(*capability),
            None => least.is_some_and(|least| *capability < least) && !dropped(*capability),
        };
        let lacking: Vec<&Known> = gpus.iter().filter(lacks).collect();
        if lacking.is_empty() {
            continue;
        }
        // Somebody's own build of the same version may have code for it; only a published one is known.
        let all = lacking.len() == gpus.len() && whole && needs.complete && needs.all.len() == 1;
        let message = if published { LACKS } else { SEEMS_TO_LACK };
        let failure = Failure::new(severity(published && all && certain), message).foreign("what", &need.what).saw(
            "image.frameworks",
            &need.what,
            need.source,
        );
        return named(failure, &lacking).found();
    }
    Ok(Outcome::Pass)
}

/// What its published build carries, and whether it is one: it says so in its version.
fn carries(facts: &Facts<'_>, need: &Need<'_>) -> Option<(Archs, bool)> {
    // what is known is known of builds for x86
    let framework = need.framework.filter(|_| is_of_x86(facts))?;
    let local = framework.version.split_once('+').map(|(_, local)| local);
    if !local.is_none_or(|local| local.strip_prefix("cu").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit())))
    {
        return None;
    }
    architectures(&framework.name, &framework.version, need.cuda).map(|archs| (archs, local.is_some()))
}

/// By the image, or where nobody looked at it by the machine that it runs on.
fn is_of_x86(facts: &Facts<'_>) -> bool {
    match facts.image.architecture.seen() {
        Some(Some(architecture)) => oci_name(architecture) == "amd64",
        _ => facts.host.architecture.seen().is_some_and(|architecture| oci_name(architecture) == "amd64"),
    }
}

/// A framework of which nobody knows for which CUDA it is built, and whose release has no code for these GPUs in any
/// build. Certain where the image's own toolkit could not have made it, either.
fn of_no_build(facts: &Facts<'_>, certain: bool) -> Result<Option<Failure>, Unknown> {
    let frameworks = facts.image.frameworks.known()?;
    let mut open = frameworks.items.iter().filter(|of| of.build == Build::Cuda && of.cuda.is_none());
    let found = open.find_map(|of| Some((of, architectures_of_any(&of.name, &of.version)?)));
    let Some((framework, archs)) = found.filter(|_| is_of_x86(facts)) else { return Ok(None) };
    let (gpus, whole) = known_gpus(facts)?;
    let lacking: Vec<&Known> = gpus.iter().filter(|(_, of)| covers(&archs, *of) == Coverage::No).collect();
    if lacking.is_empty() {
        return Ok(None);
    }
    let toolkit = needs::of_image(facts)?;
    let targets = toolkit.as_ref().and_then(|(cuda, _)| facts.knowledge.targets_of(cuda));
    let newest = targets.filter(|targets| !targets.by_rule).and_then(|targets| targets.value.max());
    let cannot_make = newest.is_some_and(|newest| lacking.iter().all(|(_, of)| newest < *of));
    let alone =
        frameworks.unread.is_empty() && frameworks.items.iter().filter(|of| of.build != Build::Cpu).count() == 1;
    let all = lacking.len() == gpus.len() && whole;
    let what = format!("{} {}", framework.name, framework.version);
    let message = if cannot_make { LACKS } else { SEEMS_TO_LACK };
    let failure = Failure::new(severity(certain && cannot_make && alone && all), message).foreign("what", &what).saw(
        "image.frameworks",
        what,
        framework.source.clone(),
    );
    Ok(Some(named(failure, &lacking)))
}

fn least(need: &Need<'_>) -> Option<ComputeCapability> {
    let framework = need.framework?;
    minimum_capability(&framework.name, &framework.version)
}

fn extension_lacks_code(facts: &Facts<'_>) -> Judgement {
    if concerned(facts)?.is_none() {
        return not_applicable();
    }
    let (gpus, _) = known_gpus(facts)?;
    let capabilities: Vec<ComputeCapability> = gpus.iter().map(|(_, capability)| *capability).collect();
    let Some(code) = share::extension(facts, &capabilities) else { return Ok(Outcome::Pass) };
    let failure = Failure::new(Severity::Note, EXTENSION).foreign("path", &code.source).saw(
        "image.gpu_archs",
        "of other GPUs",
        code.source.clone(),
    );
    named(failure, &gpus.iter().collect::<Vec<_>>()).found()
}

fn generation_dropped(facts: &Facts<'_>) -> Judgement {
    let Some(certain) = concerned(facts)? else { return not_applicable() };
    if let Some(failure) = by_driver(facts, certain)? {
        return failure.found();
    }
    let needs = needs::of(facts)?;
    let newest = needs.all.iter().filter_map(|need| Some((need, facts.knowledge.targets_of(need.cuda)?.value.min()?)));
    let Some((need, least)) = newest.max_by_key(|(need, least)| (*least, need.sure)) else { return not_applicable() };
    let (gpus, whole) = known_gpus(facts)?;
    let dropped: Vec<&Known> = gpus.iter().filter(|(_, capability)| *capability < least).collect();
    if dropped.is_empty() {
        return Ok(Outcome::Pass);
    }
    let of_all = |need: &Need<'_>| {
        let targets = facts.knowledge.targets_of(need.cuda);
        need.sure && targets.and_then(|targets| targets.value.min()) == Some(least)
    };
    let all = dropped.len() == gpus.len() && whole && needs.complete && needs.all.iter().all(of_all);
    let failure = Failure::new(severity(all && certain), BY_TOOLKIT)
        .foreign("what", &need.what)
        .arg("cuda", need.cuda)
        .arg("least", least)
        .arg("newest", newest_for(facts, &dropped))
        .saw("image.frameworks", &need.what, need.source)
        .only(&[Action::ChangeImage]);
    named(failure, &dropped).found()
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            torch.clone().framework("onnxruntime-gpu", "1.20.0", "12").failure(DROPPED).severity,
            Severity::Warning
        );
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
}
