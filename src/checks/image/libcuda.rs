//! Which libcuda the container's programs will load: the driver's, or one that the image brings for
//! forward compatibility.

use super::gpus;
use crate::checks::nodes::expect::{Subject, subject};
use crate::knowledge::compat::{Activation, Way, toolkit_activates};
use crate::knowledge::cuda::Answer;
use crate::knowledge::driver_files::{DIRECTORIES as OF_DRIVERS, is_libcuda};
use crate::knowledge::programs::chooses_environment;
use crate::knowledge::toolkit::{DRIVER_LAST, base_name, older, parent};
use crate::knowledge::ways::{self, Ways};
use crate::model::container::Given;
use crate::model::host::CdiHook;
use crate::model::image::{Compat, DriverFile, DriverFileKind, Reach};
use crate::model::observed::NOT_STATED;
use crate::model::{CudaVersion, DriverVersion, Facts, Place, Unknown};

/// Branches that had ended before 2025 and that no GPU has to stay on, beside which nobody would put a toolkit of that
/// year: 450, 455, 460, 465 (NVIDIA, Unix driver archive, read 2026-11). 470 is the last for Kepler.
const OF_OLD_TIMES: u32 = 470;

/// What leads to a libcuda of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum By {
    /// The image's own loader: `LD_LIBRARY_PATH` or the file that names it.
    Loader(String),
    /// NVIDIA's toolkit.
    Toolkit,
    /// The program or its entrypoint, where it finds it fit; the variable that says so.
    Program(&'static str),
}

/// The libcuda that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Winner<'a> {
    /// The driver's own.
    Driver,
    /// The image's.
    Image {
        /// Which.
        compat: &'a Compat,
        /// What leads to it.
        by: By,
        /// That is certain.
        sure: bool,
    },
}

/// The container, its driver, and which libcuda its programs load.
pub(super) struct Loaded<'a> {
    /// Of the kernel.
    pub(super) driver: &'a DriverVersion,
    pub(super) winner: Winner<'a>,
    /// What the image brings and nobody uses.
    pub(super) unused: Option<&'a Compat>,
}

/// `None`: no container with a GPU behind this machine's driver, or the driver is not loaded.
pub(super) fn of<'a>(facts: &Facts<'a>) -> Result<Option<Loaded<'a>>, Unknown> {
    if !matches!(facts.place, Place::Hook | Place::Image | Place::Healthcheck)
        || subject(facts)? != Some(Subject::Container)
    {
        return Ok(None);
    }
    let Some(driver) = facts.host.driver.version.known()? else { return Ok(None) };
    let compat = &facts.image.compat.known()?.items;
    if compat.is_empty() {
        return Ok(Some(Loaded { driver, winner: Winner::Driver, unused: None }));
    }
    let preloaded = facts.container.variable("LD_PRELOAD")?.is_some_and(|value| value.contains("libcuda"));
    let by_entrypoint = by_program(facts)?;
    if let Some((compat, source, sure)) = by_loader(facts, compat)? {
        // NVIDIA's framework images make or remove this link when they start
        let by = match by_entrypoint {
            Some(variable) if compat.directory.ends_with("/compat/lib") => By::Program(variable),
            _ => By::Loader(source),
        };
        let sure = sure && !preloaded && !matches!(by, By::Program(_));
        return Ok(Some(Loaded { driver, winner: Winner::Image { compat, by, sure }, unused: None }));
    }
    let newer = |compat: &&Compat| compat.version.as_ref().is_some_and(|version| version > driver);
    // The toolkit looks at what `/usr/local/cuda/compat` is, and at nothing else.
    let current = compat.iter().find(|compat| compat.current);
    if let Some(compat) = current.filter(newer)
        && !driver_is_first(facts)?
        && let Some(sure) = by_toolkit(facts, compat, driver)?
    {
        let winner = Winner::Image { compat, by: By::Toolkit, sure: sure && !preloaded };
        return Ok(Some(Loaded { driver, winner, unused: None }));
    }
    // of one whose version nobody knows it may be
    let perhaps = |compat: &&Compat| compat.version.as_ref().is_none_or(|version| version > driver);
    let unused = current.or_else(|| compat.iter().find(perhaps)).filter(perhaps);
    let winner = match (unused, by_entrypoint) {
        (Some(compat), Some(variable)) => Winner::Image { compat, by: By::Program(variable), sure: false },
        _ => Winner::Driver,
    };
    Ok(Some(Loaded { driver, winner, unused }))
}

/// There is a container with a GPU behind such a driver, for what is the same with each: a driver that nobody stated is
/// there.
pub(super) fn is_behind_driver(facts: &Facts<'_>) -> Result<bool, Unknown> {
    match of(facts) {
        Err(unknown) if unknown.reason == NOT_STATED && facts.host.driver.version.known().is_err() => Ok(true),
        loaded => Ok(loaded?.is_some()),
    }
}

/// The loader comes to one of the driver's directories before it comes there.
pub(super) fn comes_after_driver(facts: &Facts<'_>, reach: &Reach) -> Result<bool, Unknown> {
    let drivers = of_driver(facts)?;
    Ok(reach.before.iter().any(|before| drivers.iter().any(|path| path == before)))
}

/// Directories that the driver's libcuda lies in, or will.
pub(super) fn of_driver(facts: &Facts<'_>) -> Result<Vec<String>, Unknown> {
    if facts.container.legacy_still_to_run() {
        return Ok(OF_DRIVERS.map(str::to_owned).to_vec());
    }
    if facts.place == Place::Image {
        // CDI brings it to where the machine has it, and nobody may have looked
        let own = facts.container.libcuda.seen().map_or(&[][..], Vec::as_slice);
        let own = own.iter().map(|path| parent(path).to_owned());
        return Ok(own.chain(OF_DRIVERS.map(str::to_owned)).collect());
    }
    Ok(facts.container.libcuda.known()?.iter().map(|path| parent(path).to_owned()).collect())
}

/// The environment leads the loader to the driver's before it looks at anything that a tool of NVIDIA's told it.
fn driver_is_first(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let path = facts.container.variable("LD_LIBRARY_PATH")?.unwrap_or_default();
    let drivers = of_driver(facts)?;
    Ok(path.split([':', ';']).map(|entry| entry.trim_end_matches('/')).any(|entry| drivers.iter().any(|d| d == entry)))
}

/// The first that the image's loader comes to before the driver's, what names it, and whether that is certain.
fn by_loader<'a>(facts: &Facts<'_>, compat: &'a [Compat]) -> Result<Option<(&'a Compat, String, bool)>, Unknown> {
    let reached = compat.iter().filter_map(|compat| Some((compat, compat.reach.as_ref()?)));
    let Some((compat, reach)) = reached.min_by_key(|(_, reach)| reach.before.len()) else { return Ok(None) };
    let injected = of_driver(facts)?;
    // CDI says where the driver's lies; of the same directory under its other name (`/lib`) too.
    let is_driver = |before: &String| {
        *before != compat.directory
            && injected.iter().any(|path| path == before || path.strip_prefix("/usr") == Some(before.as_str()))
    };
    if reach.before.iter().any(is_driver) {
        return Ok(None);
    }
    let first = if reach.source.starts_with('/') { by_file(facts, reach)? } else { Some(true) };
    let told = keeps_environment(facts);
    Ok(first.map(|sure| (compat, reach.source.clone(), sure && told)))
}

/// Nothing speaks for the command setting up another environment before anything is loaded.
pub(super) fn keeps_environment(facts: &Facts<'_>) -> bool {
    facts.container.args.seen().is_none_or(|args| !chooses_environment(args))
}

/// Whether a file of the loader's configuration comes before what NVIDIA's tools tell ldconfig, and whether that is
/// certain; `None`: it does not.
///
/// The legacy tool names the driver's directories on ldconfig's command line, which come before all of the
/// configuration (libnvidia-container `src/nvc_ldcache.c`, 0f8e13d6; the order tried with ldconfig of glibc 2.36).
/// The hook `update-ldcache` writes them into a file `00-nvcr-…` in `/etc/ld.so.conf.d`, from toolkit 1.18.1 on into
/// one that comes last (tags of nvidia-container-toolkit, read 2026-11; vllm#33116). Without it the image's own cache
/// is all there is.
pub(super) fn by_file(facts: &Facts<'_>, reach: &Reach) -> Result<Option<bool>, Unknown> {
    let container = facts.container;
    let by_hook = *container.gpu_given.known()? == Given::LegacyHook;
    if facts.place == Place::Image {
        return match ways::of(facts.host) {
            Ways::Hook => Ok(None),
            Ways::Cdi => by_cdi(facts, reach),
            // the one or the other: the engine decides
            Ways::Either => Ok(by_cdi(facts, reach)?.map(|_| false)),
        };
    }
    if by_hook {
        return Ok(None);
    }
    by_cdi(facts, reach)
}

/// The same where CDI gives the GPU.
fn by_cdi(facts: &Facts<'_>, reach: &Reach) -> Result<Option<bool>, Unknown> {
    let name = base_name(&reach.source);
    if !has_argument(facts, |argument| argument == "update-ldcache")? {
        return Ok((reach.cached != Some(false)).then_some(true));
    }
    if name < "00-nvcr-" {
        return Ok(Some(true));
    }
    Ok(match facts.host.toolkit.version.looked_at()? {
        Some(Some(release)) if older(release, DRIVER_LAST) => None,
        Some(Some(_)) => Some(true),
        _ => Some(false),
    })
}

/// One of the container's hooks is called with such an argument.
fn has_argument(facts: &Facts<'_>, is_it: impl Fn(&str) -> bool) -> Result<bool, Unknown> {
    if facts.place == Place::Image {
        // the specification that will be used is the machine's; where none is seen, one as NVIDIA's tools make it
        let specs = facts.host.cdi.seen().map_or(&[][..], Vec::as_slice);
        let mut hooks = specs.iter().filter(|spec| spec.kind.starts_with("nvidia.com/")).flat_map(|spec| &spec.hooks);
        let of_tools = ["update-ldcache", "enable-cuda-compat"];
        let has = |hook: &CdiHook| hook.args.iter().any(|argument| is_it(argument));
        return Ok(if specs.is_empty() { of_tools.into_iter().any(is_it) } else { hooks.any(has) });
    }
    let hooks = &facts.container.hooks.known()?.items;
    Ok(hooks.iter().flat_map(|hook| &hook.args).any(|argument| is_it(argument)))
}

/// Whether NVIDIA's toolkit puts it before the driver's, and whether that is certain; `None`: it does not.
fn by_toolkit(facts: &Facts<'_>, compat: &Compat, driver: &DriverVersion) -> Result<Option<bool>, Unknown> {
    let container = facts.container;
    let way = match container.gpu_given.known()? {
        Given::LegacyHook => Way::Cli,
        Given::Cdi => Way::Cdi,
        _ => return Ok(None),
    };
    let toolkit = &facts.host.toolkit;
    let is_image = facts.place == Place::Image;
    // of an image the engine's own way is meant, to which NVIDIA's runtime adds nothing
    let may_have = !is_image || way == Way::Cdi;
    let has_hook = may_have && has_argument(facts, |argument| argument == "enable-cuda-compat")?;
    let config = match way {
        // nobody need have stated it
        Way::Cli if is_image => toolkit.config.seen().and_then(Option::as_ref),
        Way::Cli => toolkit.config.known()?.as_ref(),
        Way::Cdi => None,
    };
    let mode = config.and_then(|config| config.cuda_compat_mode.as_deref());
    let disabled = config.is_some_and(|config| config.disable_cuda_compat_hook == Some(true));
    let release = match (way, &toolkit.predecessor) {
        (Way::Cli, None) if is_image => toolkit.version.seen().and_then(Option::as_ref),
        (Way::Cli, None) => toolkit.version.known()?.as_ref(),
        // the hook's own arguments say what it does, whatever its release
        (Way::Cdi, _) => None,
        (Way::Cli, Some(old)) => Some(old),
    };
    let activates = |release| toolkit_activates(way, release, mode, disabled, has_hook, compat, driver);
    if way == Way::Cli && release.is_none() {
        if mode == Some("disabled") {
            return Ok(None);
        }
        // Nobody knows its release. Those of the five months from 1.17.4 on leave compat alone.
        return Ok(Some(driver.number(0) < OF_OLD_TIMES));
    }
    // the hook may be told to look elsewhere, and does nothing where the image has no cache to change
    let elsewhere = has_argument(facts, |argument| argument.starts_with("--cuda-compat-container-root"))?;
    Ok(match activates(release) {
        Some(Activation::Ignored) => None,
        Some(Activation::ByHook) => Some(compat.cache && !elsewhere),
        Some(_) => Some(true),
        None => Some(false),
    })
}

/// The variable by which a program or an entrypoint says that it uses the image's where it finds it fit:
/// vLLM's own, and NVIDIA's framework images' (`/opt/nvidia/entrypoint.d`, seen in 26.08).
fn by_program(facts: &Facts<'_>) -> Result<Option<&'static str>, Unknown> {
    let environment = facts.container.environment.known()?;
    let set =
        |name: &&str| environment.get(*name).is_some_and(|value| !matches!(value.trim(), "" | "0" | "false" | "False"));
    Ok(["VLLM_ENABLE_CUDA_COMPATIBILITY", "_CUDA_COMPAT_PATH"].into_iter().find(set))
}

impl Loaded<'_> {
    /// The CUDA that programs are offered; `None`: the driver is older than the tables, or the image's libcuda says
    /// nothing of itself.
    pub(super) fn offers(&self, facts: &Facts<'_>) -> Option<Answer<CudaVersion>> {
        match &self.winner {
            Winner::Image { compat, sure: true, .. } => of_compat(facts, compat),
            _ => facts.knowledge.offered_by(self.driver),
        }
    }

    /// The image brings a newer libcuda that works on these GPUs, and something may put it to use: a program, an
    /// entrypoint, or what nobody looked at. Images of clouds do so by scripts of their own.
    pub(super) fn may_be_helped(&self, facts: &Facts<'_>) -> Result<bool, Unknown> {
        let compat = match &self.winner {
            Winner::Image { sure: true, .. } => return Ok(false),
            Winner::Image { compat, .. } => Some(*compat),
            Winner::Driver => self.unused,
        };
        if other_is_found(facts) {
            return Ok(true);
        }
        if compat.is_none() {
            return Ok(false);
        }
        let switch = facts.container.variable("VLLM_ENABLE_CUDA_COMPATIBILITY")?;
        let is_off = switch.is_some_and(|value| matches!(value.trim(), "0" | "false"));
        facts.host.pci.looked_at()?;
        Ok(!is_off && !is_barred(facts))
    }
}

/// The loader may come to a libcuda that is neither the driver's nor one that is judged here.
fn other_is_found(facts: &Facts<'_>) -> bool {
    if facts.place == Place::Image {
        let files = facts.image.driver_files.seen().map_or(&[][..], |files| &files.items);
        let is_one = |file: &&DriverFile| file.reach.is_some() && file.kind == DriverFileKind::Library;
        return files.iter().filter(is_one).any(|file| is_libcuda(&file.path));
    }
    // what a hook has still to make could not be seen
    let Some(found) = facts.container.libcuda.seen() else { return !facts.container.legacy_still_to_run() };
    let mounts = facts.container.mounts.seen().map_or(&[][..], |mounts| &mounts.items);
    let compat = facts.image.compat.seen().map_or(&[][..], |compat| &compat.items);
    found.iter().any(|path| {
        let directory = parent(path);
        let given = mounts.iter().any(|mount| mount.destination == *path || mount.destination == directory);
        !given && !OF_DRIVERS.contains(&directory) && !compat.iter().any(|known| known.directory == directory)
    })
}

/// One of the GPUs has no forward compatibility, for certain.
pub(super) fn is_barred(facts: &Facts<'_>) -> bool {
    let barred = |gpu: &gpus::Product| gpu.brand().is_some_and(|brand| !brand.allows_forward_compatibility());
    gpus::of(facts).is_ok_and(|gpus| gpus.iter().any(barred))
}

/// The CUDA of an image's libcuda: what it says itself, else that of its driver.
pub(super) fn of_compat(facts: &Facts<'_>, compat: &Compat) -> Option<Answer<CudaVersion>> {
    let noted = compat.note.as_ref().map(|note| Answer { value: note.cuda.clone(), by_rule: false });
    noted.or_else(|| facts.knowledge.offered_by(compat.version.as_ref()?))
}
