//! A libcuda of the image for forward compatibility: helps a data-centre GPU, breaks what would have worked
//! where it is older than the driver, on a GPU that it is not for, or of a branch that has dropped the GPU.

use super::gpus::{self, Product};
use super::libcuda::{self, By, Loaded, Winner, of_compat};
use super::meant;
use super::needs;
use crate::checks::nodes::role::list;
use crate::checks::not_applicable;
use crate::knowledge::compat::{Because, Decided, Gpu, Lacking, Outcome, Question, outcome};
use crate::knowledge::cuda::Start;
use crate::knowledge::toolkit::{COMPAT_MODES, IGNORES_COMPAT, USES_COMPAT_AGAIN, older};
use crate::model::check::{Action, Check, Failure, Judgement, Place, Severity, Step};
use crate::model::container::Given;
use crate::model::image::Compat;
use crate::model::{self, DriverVersion, Facts, Release, Unknown};

const IN_USE: &str = "the image's libcuda {version} is used in place of the driver's {driver}: forward compatibility \
                      offers CUDA {cuda}";
const NOT_FOR_GPU: &str = "{gpu} has no forward compatibility, and the image's libcuda {version} comes before the \
                           driver's {driver}, by {by}: error 804";
const MAY_BE_USED: &str = "{gpu} has no forward compatibility, and the image's libcuda {version} may come before the \
                           driver's {driver}, by {by}: then error 804";
const OLDER: &str = "the image's libcuda {version} is older than the driver {driver} and comes before its own, by {by}: \
                     CUDA does not start, error 803";
const MAY_BE_OLDER: &str = "the image's libcuda {version} is older than the driver {driver} and may come before its own, \
                            by {by}: then error 803";
const OTHER_BRANCH: &str = "the image's libcuda {version} comes before the driver's {driver}, by {by}, and says of itself \
                            that it works with the branches {branches} only";
const IGNORED: &str = "the image brings libcuda {version} for forward compatibility and nothing puts it to use here \
                       ({why}); the driver {driver} offers CUDA {offered}, the image has {cuda}";
const TOOLKIT: &str = "{toolkit} uses no libraries for forward compatibility that images bring";
const DROPPED: &str = "the image's libcuda {version} has no code for {gpu} and comes before the driver's {driver}, by \
                       {by}: CUDA finds no device";

const WITHOUT_COMPAT: Step = Step {
    action: Action::ChangeImage,
    text: "Delete the image's compat directory, or take it off LD_LIBRARY_PATH and ld.so.conf.d.",
    command: Some("rm -rf /usr/local/cuda*/compat && ldconfig"),
};
const SWITCHED_OFF: Step = Step {
    action: Action::ConfigureEngine,
    text: "Switch it off for all containers: [nvidia-container-runtime.modes.legacy] cuda-compat-mode.",
    command: Some("nvidia-ctk config --in-place --set nvidia-container-runtime.modes.legacy.cuda-compat-mode=disabled"),
};
const NEWER_DRIVER: Step = Step {
    action: Action::UpdateDriver,
    text: "Install a driver that is as new as the image's libcuda.",
    command: None,
};
const OLDER_IMAGE: Step = Step { action: Action::ChangeImage, text: "Use an image with an older CUDA.", command: None };

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "compat-in-use",
        title: "the image's own libcuda is used, by forward compatibility",
        why: "CUDA in the container is newer than the driver's; nvidia-smi shows the image's version.",
        messages: &[IN_USE],
        remedy: &[],
        severities: &[Severity::Note],
        places: &[Place::Hook, Place::Image],
        judge: in_use,
    },
    Check {
        id: "compat-on-unsupported-gpu",
        title: "the image's libcuda is for forward compatibility, which this GPU does not have",
        why: "Forward compatibility was attempted on non supported HW (804); without it the program might run.",
        messages: &[NOT_FOR_GPU, MAY_BE_USED],
        remedy: &[WITHOUT_COMPAT, SWITCHED_OFF],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: on_unsupported_gpu,
    },
    Check {
        id: "compat-older-than-driver-wins",
        title: "an older libcuda of the image comes before the driver's",
        why: "System has unsupported display driver / cuda driver combination (803), or a silent fall to the CPU.",
        messages: &[OLDER, MAY_BE_OLDER, OTHER_BRANCH],
        remedy: &[WITHOUT_COMPAT],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: older_wins,
    },
    Check {
        id: "compat-not-enabled-by-toolkit",
        title: "the image's libraries for forward compatibility are not put to use",
        why: "What is newer than the driver fails: 222 for PTX, 35 for another major version.",
        messages: &[IGNORED, TOOLKIT],
        remedy: &[
            Step {
                action: Action::ChangePackages,
                text: "Update the NVIDIA Container Toolkit to 1.17.7 or newer, which uses them by itself.",
                command: None,
            },
            Step {
                action: Action::RegenerateCdi,
                text: "Make the CDI specification anew with toolkit 1.17.5 or newer: its hook uses them.",
                command: Some("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
            },
            Step {
                action: Action::ConfigureEngine,
                text: "Let the toolkit use them: [nvidia-container-runtime.modes.legacy] cuda-compat-mode = ldconfig.",
                command: None,
            },
            Step {
                action: Action::ChangeEnvironment,
                text: "Lead the loader to them on GPUs that they are for: LD_LIBRARY_PATH=/usr/local/cuda/compat.",
                command: None,
            },
            NEWER_DRIVER,
        ],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Image, Place::Host],
        judge: not_enabled,
    },
    Check {
        id: "compat-dropped-gpu-generation",
        title: "the image's libcuda is of a driver branch that has dropped this GPU",
        why: "No CUDA-capable device is detected, though the driver has one.",
        messages: &[DROPPED],
        remedy: &[WITHOUT_COMPAT, OLDER_IMAGE],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: dropped_generation,
    },
];

/// The image's libcuda that counts, and what comes of it.
struct Used<'a> {
    driver: &'a DriverVersion,
    source_of_driver: &'a str,
    compat: &'a Compat,
    by: By,
    sure: bool,
    gpus: Vec<Product>,
    decided: Decided,
    /// NVIDIA's toolkit can be told to leave it alone: its legacy tool, from a release on.
    can_be_switched_off: bool,
}

/// `None`: programs load the driver's own, or one that an entrypoint will look at before it is used.
fn used<'a>(facts: &Facts<'a>) -> Result<Option<Used<'a>>, Unknown> {
    let Some(Loaded { driver, winner: Winner::Image { compat, by, sure }, .. }) = libcuda::of(facts)? else {
        return Ok(None);
    };
    // Monitors and graphics do not load it.
    let Some(certain) = meant::computes(facts)? else { return Ok(None) };
    if matches!(by, By::Program(_)) {
        return Ok(None);
    }
    let sure = sure && certain;
    let cuda = needs::newest(facts)?;
    let decide =
        |gpus: &[Gpu]| outcome(facts.knowledge, &Question { cuda: cuda.as_ref(), driver, compat: Some(compat), gpus });
    // Who is older than the driver breaks on any GPU, so that none has to be asked for.
    let (gpus, decided) = match decide(&[]) {
        Err(Lacking::Brand) => {
            let products = gpus::of(facts)?;
            let asked: Vec<Gpu> = products.iter().map(|gpu| gpu.for_compat(facts)).collect();
            (products, decide(&asked))
        }
        decided => (Vec::new(), decided),
    };
    match decided {
        Ok(decided) => {
            let can_be_switched_off = by == By::Toolkit && knows_modes(facts);
            let source_of_driver = facts.host.source_of_driver();
            Ok(Some(Used { driver, source_of_driver, compat, by, sure, gpus, decided, can_be_switched_off }))
        }
        // it is the driver's own version, and nobody asks for more
        Err(Lacking::Runtime) => Ok(None),
        Err(lacking) => Err(unknown(lacking)),
    }
}

/// For messages.
fn version_of(compat: &Compat) -> String {
    compat.version.as_ref().map_or_else(|| "of its own".to_owned(), ToString::to_string)
}

fn knows_modes(facts: &Facts<'_>) -> bool {
    let release = facts.host.toolkit.version.seen().and_then(Option::as_ref);
    facts.container.gpu_given.seen() == Some(&Given::LegacyHook)
        && release.is_some_and(|release| !older(release, COMPAT_MODES))
}

fn unknown(lacking: Lacking) -> Unknown {
    let (fact, source, reason) = match lacking {
        Lacking::Runtime => ("image.cuda_runtime", "the image's files", "nothing says which CUDA it has"),
        Lacking::Driver => ("host.driver.cuda", "the tables of drivers", "they do not have this driver"),
        Lacking::CompatVersion => ("image.compat", "the image's libcuda", "its name tells no version"),
        Lacking::Brand => ("host.gpus.brand", "the tables of GPUs", "they do not have this GPU"),
        Lacking::Capability => ("host.gpus.compute_capability", "the tables of GPUs", "they do not have this GPU"),
        Lacking::Branches => ("image.compat.branches", "the tables", "they do not have this driver's branch"),
    };
    Unknown::new(fact, source, reason)
}

impl Used<'_> {
    fn failure(&self, severity: Severity, message: &'static str) -> Failure {
        let by = match &self.by {
            By::Loader(source) => source.as_str(),
            By::Toolkit => "NVIDIA's toolkit",
            By::Program(variable) => variable,
        };
        let version = version_of(self.compat);
        Failure::new(severity, message)
            .arg("version", &version)
            .arg("driver", self.driver)
            .foreign("by", by)
            .saw("image.compat", version, self.compat.directory.clone())
            .saw("host.driver.version", self.driver, self.source_of_driver)
    }

    fn severity(&self) -> Severity {
        if self.sure { Severity::Error } else { Severity::Warning }
    }

    fn products(&self) -> String {
        gpus::names(self.gpus.iter())
    }
}

fn in_use(facts: &Facts<'_>) -> Judgement {
    let Some(used) = used(facts)? else { return not_applicable() };
    if used.decided.outcome != Outcome::Forward || !used.sure {
        return not_applicable();
    }
    let cuda = match &used.decided.because {
        Because::CompatOffers(cuda) => cuda.to_string(),
        _ => "of its own".to_owned(),
    };
    used.failure(Severity::Note, IN_USE).arg("cuda", cuda).found()
}

fn on_unsupported_gpu(facts: &Facts<'_>) -> Judgement {
    let Some(used) = used(facts)? else { return not_applicable() };
    let (Outcome::RefusedOnGpu, Because::Brand(brand)) = (used.decided.outcome, &used.decided.because) else {
        return Ok(model::Outcome::Pass);
    };
    // One that it is not for is enough, among all that are visible.
    let gpu = used.gpus.iter().find(|gpu| gpu.brand().is_some_and(|of| of.number() == *brand));
    let gpu = gpu.map_or_else(|| used.products(), Product::label);
    // CUDA_VISIBLE_DEVICES can leave out the one that it is not for.
    let chosen = used.gpus.len() > 1 && facts.container.variable("CUDA_VISIBLE_DEVICES")?.is_some();
    let sure = used.sure && !chosen;
    let (severity, message) = if sure { (Severity::Error, NOT_FOR_GPU) } else { (Severity::Warning, MAY_BE_USED) };
    let failure = used.failure(severity, message).foreign("gpu", &gpu).saw("host.gpus", &gpu, "host");
    if used.can_be_switched_off { failure } else { failure.only(&[Action::ChangeImage]) }.found()
}

fn older_wins(facts: &Facts<'_>) -> Judgement {
    let Some(used) = used(facts)? else { return not_applicable() };
    match (used.decided.outcome, &used.decided.because) {
        (Outcome::OlderWins, Because::Older(_)) => {
            used.failure(used.severity(), if used.sure { OLDER } else { MAY_BE_OLDER }).found()
        }
        // That it fails then is not recorded, only that its own note does not have the branch.
        (Outcome::OlderWins, Because::Branches(branches)) => {
            let branches: Vec<String> = branches.iter().map(u32::to_string).collect();
            let branches = list(branches.iter().map(String::as_str));
            used.failure(Severity::Warning, OTHER_BRANCH).arg("branches", branches).found()
        }
        _ => Ok(model::Outcome::Pass),
    }
}

fn dropped_generation(facts: &Facts<'_>) -> Judgement {
    let Some(used) = used(facts)? else { return not_applicable() };
    match (used.decided.outcome, &used.decided.because) {
        (Outcome::Impossible, Because::Generation(_)) => {
            used.failure(used.severity(), DROPPED).foreign("gpu", used.products()).found()
        }
        _ => Ok(model::Outcome::Pass),
    }
}

fn not_enabled(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Host {
        return on_machine(facts);
    }
    let Some(loaded) = libcuda::of(facts)? else { return not_applicable() };
    let (Winner::Driver, Some(compat)) = (&loaded.winner, loaded.unused) else { return not_applicable() };
    let (Some(offered), Some(of_image)) = (loaded.offers(facts), of_compat(facts, compat)) else {
        return not_applicable();
    };
    let wanted = needs::newest(facts)?.unwrap_or(of_image.value);
    let release = facts.host.toolkit.version.seen().and_then(Option::as_ref);
    let ignored = release.is_some_and(ignores_compat);
    // by minor-version compatibility it starts; that a toolkit has stopped to help is news even so
    match facts.knowledge.starts(&wanted, &offered.value) {
        Start::Fully => return not_applicable(),
        Start::ByMinorVersion if !ignored => return not_applicable(),
        Start::ByMinorVersion | Start::No => {}
    }
    let old = release.is_some_and(|release| older(release, COMPAT_MODES));
    let by_cdi = facts.container.gpu_given.seen() == Some(&Given::Cdi);
    let ways: &'static [Action] = match (by_cdi, old) {
        (true, _) => &[Action::RegenerateCdi, Action::ChangeEnvironment, Action::UpdateDriver],
        (false, true) => &[Action::ChangePackages, Action::ChangeEnvironment, Action::UpdateDriver],
        (false, false) => &[Action::ConfigureEngine, Action::ChangeEnvironment, Action::UpdateDriver],
    };
    // On a GPU that it is not for it is well left alone.
    let gpus: Vec<Gpu> = gpus::of(facts)?.iter().map(|gpu| gpu.for_compat(facts)).collect();
    let question = Question { cuda: Some(&wanted), driver: loaded.driver, compat: Some(compat), gpus: &gpus };
    if outcome(facts.knowledge, &question).map(|decided| decided.outcome) != Ok(Outcome::Forward) {
        return not_applicable();
    }
    let version = version_of(compat);
    Failure::new(Severity::Warning, IGNORED)
        .arg("version", &version)
        .arg("why", reason(release.filter(|_| ignored)))
        .arg("driver", loaded.driver)
        .arg("offered", &offered.value)
        .arg("cuda", &wanted)
        .saw("image.compat", version, compat.directory.clone())
        .saw("host.driver.version", loaded.driver, facts.host.source_of_driver())
        .only(ways)
        .found()
}

fn reason(ignores: Option<&Release>) -> String {
    match ignores {
        Some(release) => format!("NVIDIA Container Toolkit {release} leaves it alone"),
        None => "neither the toolkit nor the image's loader is led to it".to_owned(),
    }
}

fn on_machine(facts: &Facts<'_>) -> Judgement {
    if !facts.host.has_gpu()? {
        return not_applicable();
    }
    match facts.host.toolkit.version.known()? {
        Some(release) if ignores_compat(release) => {
            let name = format!("NVIDIA Container Toolkit {release}");
            Failure::new(Severity::Warning, TOOLKIT).arg("toolkit", name).only(&[Action::ChangePackages]).found()
        }
        _ => Ok(model::Outcome::Pass),
    }
}

fn ignores_compat(release: &Release) -> bool {
    !older(release, IGNORES_COMPAT) && older(release, USES_COMPAT_AGAIN)
}

#[cfg(test)]
mod tests;
