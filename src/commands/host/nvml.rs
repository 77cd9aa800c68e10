//! What `host` is told by NVML, now or as somebody recorded it, and by libcuda.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::cli::{self, Common};
use crate::collect::host::cuda;
use crate::collect::host::nvml::{Library, Recording, Source};
use crate::collect::host::{Suspects, holders, sees_all_processes};
use crate::collect::tree::{Kind, Tree};
use crate::commands::output::Failed;
use crate::commands::{saved, setting};
use crate::model::host::{Gpu, Nvml, NvmlGpu, NvmlTrouble};
use crate::model::observed::NOT_STATED;
use crate::model::{Host, Knowledge, Observed};
use crate::report::recording;

/// A GPU that sleeps takes seconds to answer, one that hangs never does. Before it the files may have taken their time:
/// so long after its start `host` has all its answers, or does without.
const PATIENCE: Duration = Duration::from_secs(4);
const ALL: Duration = Duration::from_millis(4700);

/// What the kernel calls this program and its children.
const OWN_NAME: &str = "gpu-preflight";

/// Who tells of the GPUs themselves.
pub(crate) enum Told<'a> {
    /// Nobody.
    Nobody,
    /// This machine's library.
    Library,
    /// What it said once, in this file.
    Recording(&'a Path),
}

impl<'a> Told<'a> {
    pub(super) fn of(asked: &'a cli::Host) -> Self {
        match &asked.nvml {
            Some(file) => Self::Recording(file),
            None if asked.no_nvml => Self::Nobody,
            None => Self::Library,
        }
    }
}

/// A recording is judged by itself, as the machine on which it was made.
pub(super) fn is_all_there_is(common: &Common, told: &Told<'_>) -> bool {
    matches!(told, Told::Recording(_)) && common.host_root.is_none()
}

/// The machine, with what a recording tells of it.
pub(super) fn machine(common: &Common, tree: &Tree, knowledge: &Knowledge, told: &Told<'_>) -> Result<Host, Failed> {
    let Told::Recording(file) = told else { return Ok(setting::machine(common, tree, knowledge)) };
    // a file that cannot be read is said before the machine is looked at
    let recording = recorded(file)?;
    let alone = is_all_there_is(common, told);
    let mut host = if alone { unseen() } else { setting::machine(common, tree, knowledge) };
    let nvml = listen(&mut host, &recording, Instant::now() + PATIENCE).clone();
    if alone {
        take_over(&nvml, &mut host);
        if let Some(architecture) = recording.architecture {
            host.architecture = Observed::Known(architecture);
        }
    }
    Ok(host)
}

/// Asks this machine's library, if it is to be asked.
/// `started`: when this program was asked.
pub(super) fn ask(tree: &Tree, host: &mut Host, told: &Told<'_>, suspects: Option<&Suspects>, started: Instant) {
    let (Told::Library, Some(file)) = (told, library(host, "libnvidia-ml")) else { return };
    // One that asked in an earlier run and hangs in the driver cannot be ended: no other is to join it at every run.
    if let Some(suspects) = suspects.filter(|suspects| suspects.has(OWN_NAME)) {
        host.stuck = suspects.that_stay(tree);
        if joins_an_earlier_run(host) {
            return;
        }
    }
    let by = (started + ALL).min(Instant::now() + PATIENCE);
    let nvml = listen(host, &Library { file: file.as_ref() }, by);
    nvml.sees_all_processes = sees_all_processes(tree);
    let all = nvml.gpus.iter().flat_map(NvmlGpu::holders).filter_map(|process| process.pid);
    let pids: Vec<u32> = all.filter(|_| nvml.sees_all_processes).collect();
    host.gpu_processes = holders(tree, pids, !host.in_user_namespace);
}

/// An earlier run hangs in the driver, and this one would: that is said in the place of what NVML would say.
fn joins_an_earlier_run(host: &mut Host) -> bool {
    let hangs = host.stuck.seen().is_some_and(|stuck| stuck.items.iter().any(|process| process.name == OWN_NAME));
    if hangs {
        let trouble = Some(NvmlTrouble::Late("the call of an earlier run".to_owned()));
        host.nvml = Some(Nvml { trouble, ..Nvml::default() });
    }
    hangs
}

/// What it says, which is added to the GPUs that files told of.
fn listen<'h>(host: &'h mut Host, source: &dyn Source, by: Instant) -> &'h mut Nvml {
    let nvml = source.read(by);
    if let Observed::Known(gpus) = &mut host.gpus {
        for gpu in gpus {
            let same = |other: &&NvmlGpu| other.pci.as_deref() == Some(gpu.pci.as_str());
            let Some(said) = nvml.gpus.iter().find(same) else { continue };
            gpu.memory = said.memory;
            gpu.uuid = said.uuid.clone().or(gpu.uuid.take());
        }
    }
    host.nvml.insert(nvml)
}

/// A machine of which nothing is known, nor asked.
fn unseen() -> Host {
    Host { laid_out: true, ..Host::unseen("the recording", NOT_STATED) }
}

/// As much of the machine as NVML alone tells.
fn take_over(nvml: &Nvml, host: &mut Host) {
    if let Some(version) = nvml.driver.as_deref().and_then(|version| version.parse().ok()) {
        host.driver.version = Observed::Known(Some(version));
    }
    let gpu = |gpu: &NvmlGpu| Gpu {
        index: gpu.index,
        pci: gpu.pci.clone().unwrap_or_default(),
        uuid: gpu.uuid.clone(),
        minor: gpu.minor,
        name: gpu.name.clone(),
        compute_capability: gpu.compute_capability.as_deref().and_then(|text| text.parse().ok()),
        memory: gpu.memory,
        ..Gpu::default()
    };
    host.gpus = Observed::Known(nvml.gpus.iter().map(gpu).collect());
}

fn recorded(file: &Path) -> Result<Recording, Failed> {
    let name = file.display().to_string();
    let failed = |reason: String| {
        Failed::new(name.clone(), reason, "name a file that gpu-preflight host --save-nvml wrote with --nvml")
    };
    let path = setting::readable(file, "--nvml")?;
    let here = Tree::open(Path::new("/"), Kind::Host).map_err(|error| failed(error.to_string()))?;
    Recording::open(&here, &path.to_string_lossy(), &name).map_err(|unseen| failed(unseen.reason))
}

/// Writes what NVML said.
pub(super) fn save(host: &Host, file: &Path) -> Result<(), Failed> {
    let failed = |reason: String, way_out: &str| Failed::new(file.display().to_string(), reason, way_out);
    let nvml = host.nvml.as_ref().ok_or_else(|| {
        failed(
            "NVML was not asked: its driver is not loaded here, or only files are judged".to_owned(),
            "leave --save-nvml out; host --save FILE writes what files tell",
        )
    })?;
    let way_out = "name a file in a directory that can be written to with --save-nvml";
    let text = recording::text(nvml, host.architecture.seen().map(String::as_str))
        .map_err(|error| failed(error.to_string(), way_out))?;
    if super::holds_something_else(file, recording::KIND) {
        return Err(failed("what stands there is no recording of NVML, and stays".to_owned(), way_out));
    }
    saved::replace(file, text.as_bytes()).map_err(|error| failed(format!("it could not be written ({error})"), way_out))
}

/// Starts CUDA, unless NVML has shown that the driver does not come back.
pub(super) fn start_cuda(host: &mut Host) {
    let is_stuck = matches!(host.nvml.as_ref().and_then(|nvml| nvml.trouble.as_ref()), Some(NvmlTrouble::Late(_)));
    if let (Some(file), false) = (library(host, "libcuda"), is_stuck) {
        host.cuda_start = Some(cuda::start(file.as_ref(), Instant::now() + PATIENCE));
    }
}

/// A library of the driver, where that is loaded on this machine: without it the library would have the driver's own
/// helper load modules and make nodes. It is what the loader finds by its name, or in a driver root of its own the file
/// there.
fn library(host: &Host, name: &str) -> Option<String> {
    host.driver.version.seen()?.as_ref()?;
    if host.laid_out {
        return None;
    }
    let root = host.driver.root.path.trim_end_matches('/');
    let file = host.driver.libraries.seen().into_iter().flatten().find(|l| l.name == name && l.current);
    Some(match file {
        // NixOS: programs are led there by themselves, and the loader knows nothing of it
        Some(library) if !root.is_empty() || library.path.starts_with("/run/opengl-driver/") => library.path.clone(),
        _ => format!("{name}.so.1"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Parts;
    use crate::model::host::StuckProcess;

    #[test]
    fn where_an_earlier_run_hangs_in_the_driver_nobody_joins_it() {
        let mut host = crate::model::testing::host(1);
        let process =
            |name: &str| StuckProcess { pid: 7, name: name.to_owned(), function: "os_acquire_semaphore".to_owned() };
        host.stuck = Observed::Known(Parts::whole(vec![process("python3")]));
        assert!(!joins_an_earlier_run(&mut host));
        host.stuck = Observed::Known(Parts::whole(vec![process(OWN_NAME)]));
        assert!(joins_an_earlier_run(&mut host));
        start_cuda(&mut host);
        assert!(matches!(host.nvml.unwrap().trouble, Some(NvmlTrouble::Late(_))) && host.cuda_start.is_none());
    }
}
