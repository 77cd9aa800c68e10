//! From the container's own view of itself to an answer.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{Answer, Wish};
use crate::checks;
use crate::checks::nodes::role::{CONTROL, Role, UVM, role};
use crate::collect::container::{Reading, own_environment, read_inside, try_nodes};
use crate::collect::host::{self, Options, Scope};
use crate::collect::image::{self, Hints};
use crate::collect::knowledge;
use crate::collect::remembered::Memory;
use crate::collect::tree::{Kind, Tree};
use crate::commands::hook::configuration;
use crate::model::container::{Access, FromInside, Refusal};
use crate::model::host::{CudaStart, Nvml};
use crate::model::{Container, Facts, Host, Image, Observed, Place, Unseen, Verdict};
use crate::policy;
use crate::report::health;

/// How the driver's libraries are asked: each by its file, until the deadline.
pub(crate) struct Driver<'a> {
    pub(crate) nvml: &'a dyn Fn(&Path, Instant) -> Nvml,
    pub(crate) cuda: &'a dyn Fn(&Path, Instant) -> CudaStart,
}

/// Judges; `deadline`: that of whatever asks the driver.
pub(super) fn judge(wish: &Wish, driver: Option<&Driver<'_>>, deadline: Instant) -> Answer {
    match look(wish, driver, deadline) {
        Ok(answer) => answer,
        Err(unseen) => super::unjudged(wish, &format!("{}: {}", unseen.source, unseen.reason)),
    }
}

fn look(wish: &Wish, driver: Option<&Driver<'_>>, deadline: Instant) -> Result<Answer, Unseen> {
    let root = wish.host_root.as_deref().unwrap_or(Path::new("/"));
    let files = open(root, Kind::Host)?;
    let own = open(Path::new("/"), Kind::Host)?;
    let environment = own_environment();
    let value =
        |wanted: &str| environment.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    let memory = Memory::of(value("XDG_RUNTIME_DIR").as_deref(), &own);
    let libraries: Vec<String> = value("LD_LIBRARY_PATH")
        .unwrap_or_default()
        .split([':', ';'])
        .filter(|directory| directory.starts_with('/'))
        .map(str::to_owned)
        .collect();

    let options =
        Options { laid_out: wish.host_root.is_some(), driver_root: wish.driver_root.clone(), scope: Scope::Full };
    let mut host = host::inside(&files, &options, &libraries, deadline);
    let Reading { mut container, rootfs, .. } = read_inside(environment, open(root, Kind::Container)?, &host, &own)?;
    container.inside =
        Some(FromInside { had: memory.recall(), min_free_memory: wish.min_free_memory, wants_cuda: wish.cuda });
    let mut image = Image::default();
    if concerns_gpus(&container) {
        try_the_nodes(wish, root, &host, &mut container, deadline);
        if let Some(driver) = driver {
            host.nvml = library(wish, &host, &container, "libnvidia-ml").map(|file| (driver.nvml)(&file, deadline));
            let libcuda = library(wish, &host, &container, "libcuda").filter(|_| wish.cuda);
            host.cuda_start = libcuda.map(|file| (driver.cuda)(&file, deadline));
        }
        if let Some(rootfs) = &rootfs {
            image = image::look(rootfs, &Hints::of(&container));
        }
    }

    let (policy, mut notes) = configuration::read(wish.config.as_deref(), &files);
    let (knowledge, odd) = knowledge::read(&files, nix::unistd::geteuid().as_raw());
    notes.extend(odd);
    let facts =
        Facts { host: &host, image: &image, container: &container, knowledge: &knowledge, place: Place::Healthcheck };
    let report = policy::report(&policy, Some(&container), &wish.ignore, checks::judge(&facts));
    let healthy = report.first_error().is_none();
    if healthy {
        remember(&memory, &container);
    }
    if driver.is_none() && report.verdict != Verdict::Skip {
        notes.push("NVML was not asked: this program is static, gpu-preflight asks it and libcuda".to_owned());
    }
    let usable = state(&host, &container);
    let text = if wish.json { health::json(&report) } else { health::text(&report, &usable, &notes, wish.verbose) };
    Ok(Answer { healthy, text })
}

fn open(path: &Path, kind: Kind) -> Result<Tree, Unseen> {
    Tree::open(path, kind).map_err(|error| Unseen::new(path.display().to_string(), format!("{:?}", error.kind())))
}

/// One is wanted, given or was given, or nobody knows.
fn concerns_gpus(container: &Container) -> bool {
    container.wants_gpu.wanted || container.has_gpu() != Ok(false) || container.had(|_| true)
}

/// What every CUDA program opens is opened; GPUs, which may sleep, only where that is asked for.
fn try_the_nodes(wish: &Wish, root: &Path, host: &Host, container: &mut Container, deadline: Instant) {
    let Observed::Known(nodes) = &mut container.devices else { return };
    let opens = |path: &str| path == CONTROL || path == UVM || (wish.open && role(path) == Role::Gpu);
    try_nodes(root, nodes, host.majors.seen(), opens, deadline);
}

/// Which library tells; `None`: none is to be asked. It is not where its driver is not loaded or its node cannot be
/// used: it would have the driver's own helper load modules and make nodes.
fn library(wish: &Wish, host: &Host, container: &Container, name: &str) -> Option<PathBuf> {
    host.driver.version.seen()?.as_ref()?;
    let nodes = container.devices.seen()?;
    if nodes.iter().any(|node| node.access == Access::Refused(Refusal::Hangs)) {
        return None;
    }
    nodes.iter().find(|node| node.path == CONTROL && node.access == Access::Granted)?;
    let library = host.driver.libraries.seen()?.iter().find(|l| l.name == name && l.current);
    let below = wish.host_root.is_some() || !matches!(host.driver.root.path.as_str(), "" | "/");
    match (library, below) {
        (Some(library), true) => {
            let root = wish.host_root.as_deref().unwrap_or(Path::new("/"));
            Some(root.join(library.path.trim_start_matches('/')))
        }
        (None, true) => None,
        // As the container's programs find it.
        (_, false) => Some(format!("{name}.so.1").into()),
    }
}

fn remember(memory: &Memory, container: &Container) {
    let (Some(inside), Some(devices)) = (&container.inside, container.devices.seen()) else { return };
    let now = inside.with(devices);
    if now != inside.had {
        memory.keep(&now);
    }
}

/// `2 GPUs, driver 550.163.01`
fn state(host: &Host, container: &Container) -> String {
    let nodes = container.devices.seen().map(Vec::as_slice).unwrap_or_default();
    let gpus = nodes.iter().filter(|node| role(&node.path) == Role::Gpu && node.access == Access::Granted).count();
    let driver = match host.driver.version.seen() {
        Some(Some(version)) => format!("driver {version}"),
        Some(None) => "no driver".to_owned(),
        None => "driver unknown".to_owned(),
    };
    format!("{gpus} GPU{}, {driver}", if gpus == 1 { "" } else { "s" })
}
