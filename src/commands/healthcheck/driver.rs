//! Asks the driver's libraries, where that is safe, and notes what of it cannot be ended.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Wish;
use crate::checks::nodes::role::CONTROL;
use crate::collect::container::has_all_gpus_open;
use crate::collect::remembered::{Remembered, began};
use crate::collect::tree::Tree;
use crate::model::container::{Access, Refusal};
use crate::model::host::{CudaStart, Nvml, NvmlTrouble};
use crate::model::{Container, Host};

/// How the driver's libraries are asked: each by its file, until the deadline.
pub(crate) struct Driver<'a> {
    pub(crate) nvml: &'a dyn Fn(&Path, Instant) -> Nvml,
    pub(crate) cuda: &'a dyn Fn(&Path, Instant) -> CudaStart,
}

/// Asks NVML, and libcuda where that is wished. Returns the process that asked and could not be ended, if any is left.
pub(super) fn ask(
    wish: &Wish,
    driver: &Driver<'_>,
    own: &Tree,
    before: &Remembered,
    host: &mut Host,
    container: &mut Container,
    deadline: Instant,
) -> Option<(i32, u64)> {
    if let Some((pid, start)) = before.stuck
        && began(own, pid) == Some(start)
    {
        // One more would only join it: a container has room for so many processes, and they are its own.
        let trouble = Some(NvmlTrouble::Late("an earlier call".to_owned()));
        host.nvml = Some(Nvml { trouble, ..Nvml::default() });
        if let Some(inside) = &mut container.inside {
            inside.still_stuck = true;
        }
        return before.stuck;
    }
    if hangs(container) {
        look_who_uses_it(own, container);
        return None;
    }
    let begun = Instant::now();
    host.nvml = library(wish, host, container, "libnvidia-ml").map(|file| (driver.nvml)(&file, deadline));
    let took = begun.elapsed();
    let is_late = |host: &Host| {
        matches!(host.nvml.as_ref().and_then(|nvml| nvml.trouble.as_ref()), Some(NvmlTrouble::Late(_)))
            || host.cuda_start == Some(CudaStart::Late)
    };
    if let Some(file) = library(wish, host, container, "libcuda").filter(|_| wish.cuda && !is_late(host)) {
        // CUDA starts the GPUs that sleep once more, and then itself.
        let has_time = deadline.saturating_duration_since(Instant::now()) > took * 2;
        host.cuda_start = Some(if has_time {
            (driver.cuda)(&file, deadline)
        } else {
            CudaStart::NotAsked("NVML took most of the time; --timeout gives more".to_owned())
        });
    }
    if !is_late(host) {
        return None;
    }
    look_who_uses_it(own, container);
    let left = own.read_text("/proc/thread-self/children", 4096).ok().flatten()?;
    let pid = left.split_whitespace().next()?.parse().ok()?;
    Some((pid, began(own, pid)?))
}

/// Whoever opens one of its nodes does not come back.
fn hangs(container: &Container) -> bool {
    let nodes = container.devices.seen().map(Vec::as_slice).unwrap_or_default();
    nodes.iter().any(|node| node.access == Access::Refused(Refusal::Hangs))
}

/// Whether the GPUs are awake, so that whoever asks has not to wait for them.
fn look_who_uses_it(own: &Tree, container: &mut Container) {
    let in_use = container.devices.seen().is_some_and(|nodes| has_all_gpus_open(own, nodes));
    if let Some(inside) = &mut container.inside {
        inside.in_use = in_use;
    }
}

/// Which library tells; `None`: none is to be asked. It is not where its driver is not loaded or its node cannot be
/// used: it would have the driver's own helper load modules and make nodes.
fn library(wish: &Wish, host: &Host, container: &Container, name: &str) -> Option<PathBuf> {
    host.driver.version.seen()?.as_ref()?;
    let nodes = container.devices.seen()?;
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
