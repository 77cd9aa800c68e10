//! From the container's own view of itself to an answer.

use std::path::Path;
use std::time::Instant;

use super::driver::{self, Driver};
use super::{Answer, Wish};
use crate::checks;
use crate::checks::nodes::expect::subject;
use crate::checks::nodes::role::{CONTROL, Role, UVM, role};
use crate::collect::container::{Reading, other_users, own_environment, read_inside, try_nodes};
use crate::collect::host::{self, Options, Scope};
use crate::collect::image::{self, Hints};
use crate::collect::knowledge;
use crate::collect::remembered::{Memory, Remembered};
use crate::collect::tree::{Kind, Tree};
use crate::commands::hook::configuration;
use crate::model::container::{Access, FromInside, Refusal};
use crate::model::{Container, Facts, Host, Image, Knowledge, Observed, Place, Unseen, Verdict};
use crate::policy::{self, Mode};
use crate::report::health;

/// What is to be remembered when the answer is given.
pub(super) type Afterwards = Option<(Memory, Remembered)>;

/// Judges; `deadline`: that of whatever asks the driver.
pub(super) fn judge(wish: &Wish, driver: Option<&Driver<'_>>, deadline: Instant) -> (Answer, Afterwards) {
    match look(wish, driver, deadline) {
        Ok((answer, afterwards)) => (answer, afterwards),
        Err(unseen) => (super::unjudged(wish, &format!("{}: {}", unseen.source, unseen.reason)), None),
    }
}

fn look(wish: &Wish, driver: Option<&Driver<'_>>, deadline: Instant) -> Result<(Answer, Afterwards), Unseen> {
    let root = wish.host_root.as_deref().unwrap_or(Path::new("/"));
    let files = open(root, Kind::Host)?;
    let own = open(Path::new("/"), Kind::Host)?;
    let environment = own_environment();
    let value =
        |wanted: &str| environment.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    let memory = Memory::of(value("XDG_RUNTIME_DIR").as_deref(), &own);
    let before = memory.recall();
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
    container.inside = Some(FromInside {
        had: before.nodes.clone(),
        nvml_worked: before.nvml_worked,
        min_free_memory: wish.min_free_memory,
        wants_cuda: wish.cuda,
        ..FromInside::default()
    });
    let (policy, mut notes) = configuration::read(wish.config.as_deref(), &files);
    let (knowledge, odd) = knowledge::read(&files, nix::unistd::geteuid().as_raw());
    notes.extend(odd);
    let mode = policy.mode_for(&container);
    if mode == Mode::Off {
        return Ok((Answer { healthy: true, text: health::switched_off(wish.json) }, None));
    }
    let mut image = Image::default();
    if mentions_gpus(&container)
        && let Some(rootfs) = &rootfs
    {
        image = image::look(rootfs, &Hints::of(&container));
    }
    // A privileged container that wants no GPU has the nodes of all, and they are no affair of its.
    let has_own_gpus = matches!(subject(&facts(&host, &image, &container, &knowledge)), Ok(Some(_)));
    if has_own_gpus {
        try_the_nodes(wish, root, &own, &host, &mut container, deadline);
    }
    let stuck = match driver.filter(|_| has_own_gpus) {
        Some(driver) => driver::ask(wish, driver, &own, &before, &mut host, &mut container, deadline),
        None => before.stuck,
    };

    let report = policy::report(
        &policy,
        Some(&container),
        &wish.ignore,
        checks::judge(&facts(&host, &image, &container, &knowledge)),
    );
    let spared = mode == Mode::Warn && report.first_error().is_some();
    if driver.is_none() && report.verdict != Verdict::Skip {
        notes.push("NVML was not asked: this program is static, gpu-preflight asks it and libcuda".to_owned());
    }
    if spared {
        notes.push("its mode is warn: what makes it unhealthy is only said".to_owned());
    }
    let usable = state(&host, &container);
    let text =
        if wish.json { health::json(&report) } else { health::text(&report, &usable, &notes, wish.verbose, spared) };
    let now = after(&before, &host, &container, stuck);
    let afterwards = (has_own_gpus && now != before).then_some((memory, now));
    Ok((Answer { healthy: spared || report.first_error().is_none(), text }, afterwards))
}

fn facts<'a>(host: &'a Host, image: &'a Image, container: &'a Container, knowledge: &'a Knowledge) -> Facts<'a> {
    Facts { host, image, container, knowledge, place: Place::Healthcheck }
}

fn open(path: &Path, kind: Kind) -> Result<Tree, Unseen> {
    Tree::open(path, kind).map_err(|error| Unseen::new(path.display().to_string(), format!("{:?}", error.kind())))
}

/// One is wanted, given or was given, or nobody knows.
fn mentions_gpus(container: &Container) -> bool {
    container.wants_gpu.wanted || container.has_gpu() != Ok(false) || container.had(|_| true)
}

/// What every CUDA program opens is opened; GPUs, which may sleep, only where that is asked for.
fn try_the_nodes(wish: &Wish, root: &Path, own: &Tree, host: &Host, container: &mut Container, deadline: Instant) {
    let Observed::Known(nodes) = &mut container.devices else { return };
    let opens = |path: &str| path == CONTROL || path == UVM || (wish.open && role(path) == Role::Gpu);
    try_nodes(root, nodes, host.majors.seen(), opens, deadline);
    let is_refused = nodes.iter().any(|node| node.access == Access::Refused(Refusal::Mode));
    if let Some(inside) = &mut container.inside {
        inside.has_other_users = is_refused && other_users(own);
    }
}

/// What is known from now on: what it could use before, and what it can use now.
fn after(before: &Remembered, host: &Host, container: &Container, stuck: Option<(i32, u64)>) -> Remembered {
    let (Some(inside), Some(devices)) = (&container.inside, container.devices.seen()) else { return before.clone() };
    let answered = host.nvml.as_ref().is_some_and(|nvml| nvml.driver.is_some());
    Remembered {
        nodes: inside.with(devices),
        nvml_worked: before.nvml_worked || answered || (host.nvml.is_none() && libraries_fit(host)),
        stuck,
    }
}

/// Every libnvidia-ml that a loader may take is of the kernel module's version.
fn libraries_fit(host: &Host) -> bool {
    let (Some(libraries), Some(Some(module))) = (host.driver.libraries.seen(), host.driver.version.seen()) else {
        return false;
    };
    let mut taken = libraries.iter().filter(|library| library.name == "libnvidia-ml" && library.current).peekable();
    taken.peek().is_some() && taken.all(|library| library.version.as_ref() == Some(module))
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
