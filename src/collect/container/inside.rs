//! A container seen by one of its own processes.

use super::Reading;
use super::assemble::{Call, Draft, shm_size};
use super::procfs::{self, Process, open};
use super::running::by_process;
use super::spec::variable;
use crate::collect::tree::Tree;
use crate::model::container::{Container, FromInside, Moment, Scheduler};
use crate::model::{Host, Observed, Parts, Unseen};

/// Arguments of a program.
const MOST_ARGUMENTS: usize = 64 << 10;

/// Reads the container that this process is in. `environment`: this process's, which is the container's;
/// `rootfs`: where its nodes and libraries lie, `own`: this machine's files, with `/proc`.
///
/// Who started it, with what specification, does not show from here. Its command is that of process 1, which may be
/// another's where several share their processes.
pub fn read_inside(
    environment: Vec<(String, String)>,
    rootfs: Tree,
    host: &Host,
    own: &Tree,
) -> Result<Reading, Unseen> {
    // its number would be another's where /proc is that of another process namespace
    let process = Process { files: own, pid: None };
    let user = process.identity(&[], &[])?;
    let mounts = process.mounts();
    let mut spec = by_process(&process, Some(&rootfs), user.capabilities);
    let scheduler = scheduler(&environment);
    spec.process.environment = Observed::Known(environment);
    let call = Call { moment: Moment::Running, ..Call::default() };
    let mut draft = Draft::new(&spec, call, Some(host));
    draft.look_at_nodes(host, &rootfs);
    draft.look_for_libcuda(host, own, Some(&rootfs), true);
    let container = Container {
        user: Observed::Known(user),
        scheduler: draft.container.scheduler.or(scheduler),
        args: Observed::from(open("container.args", arguments(own))),
        annotations: Observed::default(),
        cdi_annotations: Observed::default(),
        volume_mount_devices: Observed::default(),
        spec_devices: Observed::Known(Parts::default()),
        mounts: Observed::from(open(
            "container.mounts",
            mounts.as_ref().map_err(Clone::clone).map(|mounts| Parts::whole(procfs::driver_mounts(mounts.clone()))),
        )),
        shm_size: Observed::from(open("container.shm_size", mounts.map(|mounts| shm_size(&mounts)))),
        inside: Some(FromInside::default()),
        ..draft.container
    };
    Ok(Reading { container, rootfs: Some(rootfs), root_path: None, bundle: None })
}

/// The environment of this process, in its order.
#[expect(
    clippy::disallowed_methods,
    reason = "the health check is asked by the container's own engine, in its environment"
)]
pub fn own_environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| variable(&format!("{}={}", name.to_string_lossy(), value.to_string_lossy())))
        .collect()
}

/// What schedulers put into every container.
fn scheduler(environment: &[(String, String)]) -> Option<Scheduler> {
    let is_set = |wanted: &str| environment.iter().any(|(name, _)| name == wanted);
    [
        ("KUBERNETES_SERVICE_HOST", Scheduler::Kubernetes),
        ("NOMAD_ALLOC_ID", Scheduler::Nomad),
        ("ECS_CONTAINER_METADATA_URI_V4", Scheduler::Ecs),
        ("SLURM_JOB_ID", Scheduler::Slurm),
    ]
    .into_iter()
    .find_map(|(name, scheduler)| is_set(name).then_some(scheduler))
}

fn arguments(own: &Tree) -> Result<Vec<String>, Unseen> {
    let path = "/proc/1/cmdline";
    let bytes = own.read(path, MOST_ARGUMENTS)?.ok_or_else(|| Unseen::new(path, "absent"))?;
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    Ok(words.map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}
