//! From a spec to the facts of a container.

use std::collections::BTreeSet;

use super::environment::Environment;
use super::foretell;
use super::given;
use super::intent::{self, Signals};
use super::libcuda;
use super::nodes;
use super::origin::Origin;
use super::paths::{below, clean};
use super::request::Request;
use super::signs::Signs;
use super::{Spec, entrypoint, names};
use crate::collect::tree::{Stat, Tree};
use crate::model::container::{Container, ContainerNode, Given, LegacyState, Moment, Mount, Stage, Strength};
use crate::model::{Host, Observed, Unknown};

/// What of a container does not stand in its spec.
#[derive(Debug, Clone, Copy, Default)]
pub struct Call<'a> {
    /// The engine's id for it; empty if there is none.
    pub id: &'a str,
    /// Path of its bundle; empty if it is not known.
    pub bundle: &'a str,
    /// How far its start has come.
    pub moment: Moment,
    /// The path under which we are registered as a hook, to find our place among the others.
    pub own_program: Option<&'a str>,
}

/// What a spec alone says, on a host as far as one is given. Nodes and libcuda need a look at files:
/// they are unknown here.
pub fn from_spec(spec: &Spec, call: Call<'_>, host: Option<&Host>) -> Container {
    Draft::new(spec, call, host).container
}

/// A container in the making, with what the further readers need of its spec.
pub(super) struct Draft<'a> {
    pub(super) container: Container,
    spec: &'a Spec,
    environment: Result<Environment, Unknown>,
    signs: Signs<'a>,
    /// Whether the legacy hook has run does not follow from the lists of hooks.
    order_is_open: bool,
    /// What the kernel told of the container's nodes.
    pub(super) found: Vec<(String, Stat)>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(spec: &'a Spec, call: Call<'_>, host: Option<&Host>) -> Self {
        let signs = Signs::of(spec, host);
        let entries = spec.process.environment.known();
        let environment = entries.map(|entries| Environment::new(entries, signs.injected()));
        let volume_mounts = spec.mounts.seen().map(|mounts| intent::volume_mount_devices(&mounts.items));
        let by_mounts = volume_mounts.as_ref().is_some_and(|devices| !devices.is_empty());
        let acts = signs
            .legacy
            .map_or(Ok(false), |hook| given::acts(hook, environment.as_ref().map_err(Clone::clone), by_mounts, host));
        let gpu_given = given::given(&signs, &acts, environment.as_ref().ok());
        let hooks = spec.hooks.seen().map_or(&[][..], |hooks| &hooks.items);
        // one that has nothing to do is none
        let legacy = signs.legacy.filter(|_| acts != Ok(false));
        let cdi_annotations = spec.annotations.known().map(intent::cdi_annotations);
        let wants_gpu = intent::wants(&Signals {
            annotations: spec.annotations.seen(),
            environment: environment.as_ref().ok(),
            cdi_annotations: cdi_annotations.as_deref().unwrap_or_default(),
            volume_mount_devices: volume_mounts.as_deref().unwrap_or_default(),
            given: gpu_given.seen().copied(),
        });
        let origin = Origin::of(spec, call.bundle);
        let container = Container {
            id: call.id.to_owned(),
            moment: call.moment,
            engine: origin.engine,
            scheduler: origin.scheduler,
            builder: origin.builder,
            sandbox: origin.sandbox,
            rootless: origin.rootless,
            wants_gpu,
            gpu_given,
            legacy_hook: legacy.map(|hook| given::legacy_hook(hook, hooks, call.moment, call.own_program)),
            environment: Observed::from(environment.clone().map(|e| e.variables)),
            visible_devices: Observed::from(environment.clone().map(|e| e.visible)),
            cdi_marked: environment.as_ref().is_ok_and(|e| e.cdi_marked),
            annotations: spec.annotations.clone(),
            volume_mount_devices: if spec.no_mounts_key {
                // the device plugin's would stand there
                Observed::Known(Vec::new())
            } else {
                of_mounts(spec, intent::volume_mount_devices)
            },
            cdi_annotations: Observed::from(cdi_annotations),
            spec_devices: spec.linux.devices.clone(),
            rules: spec.linux.rules.clone(),
            devices: Observed::unknown("container.devices", "the container", "nobody looked"),
            libcuda: Observed::unknown("container.libcuda", "the container", "nobody looked"),
            args: spec.process.args.clone(),
            working_directory: spec.process.cwd.clone(),
            user: spec.process.user.clone(),
            uid_mappings: spec.linux.uid_mappings.clone(),
            gid_mappings: spec.linux.gid_mappings.clone(),
            cgroups_path: spec.linux.cgroups_path.clone(),
            selinux_label: spec.process.selinux_label.clone(),
            shm_size: of_mounts(spec, shm_size),
            mounts: spec.mounts.clone(),
            hooks: spec.hooks.clone(),
            privileged_entrypoint: None,
            inside: None,
        };
        let order_is_open = legacy.is_some_and(|hook| given::order_is_open(hook, hooks, call.moment, call.own_program));
        Self { container, spec, environment, signs, order_is_open, found: Vec::new() }
    }

    /// Nobody asks for a GPU and none is given: there is nothing to look for.
    pub(super) fn is_idle(&self) -> bool {
        self.container.wants_gpu.strength == Strength::None && self.container.gpu_given == Observed::Known(Given::None)
    }

    /// The nodes as they will be.
    pub(super) fn foretell_nodes(&mut self, host: &Host, rootfs: Option<&Tree>) {
        let request = self.request(host);
        self.container.devices = match request {
            Ok(request) => foretell::foretell(self.spec, request.as_ref(), host, rootfs, self.container.rootless),
            Err(unknown) => Observed::Unknown(unknown),
        };
    }

    /// The nodes as they are, and as a legacy hook that is still to run will leave them. Where the lists
    /// do not say which of us comes first, nodes that the spec does not give say that it has run.
    pub(super) fn look_at_nodes(&mut self, host: &Host, rootfs: &Tree) {
        let found = nodes::found(rootfs);
        let mut seen = found.as_ref().map(|found| nodes::as_nodes(found));
        self.found = found.seen().cloned().unwrap_or_default();
        // from outside a user namespace owners show as they are there
        if let (Observed::Known(nodes), false) =
            (&mut seen, self.container.moment == Moment::Hook(Stage::CreateContainer))
        {
            let (uids, gids) = (
                self.container.uid_mappings.seen().map(Vec::as_slice),
                self.container.gid_mappings.seen().map(Vec::as_slice),
            );
            for node in nodes {
                node.uid = nodes::inside(uids, node.uid);
                node.gid = nodes::inside(gids, node.gid);
            }
        }
        if self.order_is_open
            && seen.seen().is_some_and(|nodes| self.has_nodes_of_a_hook(nodes))
            && let Some(hook) = self.container.legacy_hook.as_mut()
        {
            hook.state = LegacyState::HasRun;
        }
        let request = self.request(host);
        self.container.devices = match (seen, request) {
            (Observed::Known(nodes), Ok(Some(request))) => foretell::with_legacy(&nodes, &request, host),
            (Observed::Known(_), Err(unknown)) => Observed::Unknown(unknown),
            (seen, _) => seen,
        };
    }

    /// libcuda; `mounted`: the spec's mounts are done in `rootfs`.
    pub(super) fn look_for_libcuda(&mut self, host: &Host, files: &Tree, rootfs: Option<&Tree>, mounted: bool) {
        let environment = self.environment.as_ref().map(|e| &e.variables).map_err(Clone::clone);
        // The hook's time is the container's.
        let brief = mounted && matches!(self.container.moment, Moment::Hook(_));
        let place = libcuda::Where { spec: self.spec, environment, rootfs, mounted, brief, host: files };
        let found = libcuda::find(&place);
        self.container.libcuda = if self.container.legacy_still_to_run() { injected(found, host) } else { found };
    }

    /// Whether the program may raise its privileges; root has them anyway.
    pub(super) fn look_at_entrypoint(&mut self, rootfs: &Tree) {
        let process = &self.spec.process;
        let program = process.args.seen().and_then(|args| args.first());
        let variables = self.environment.as_ref().map(|e| &e.variables);
        if let (Some(program), Ok(variables), Some(user)) = (program, variables, process.user.seen())
            && user.uid != 0
        {
            let cwd = process.cwd.as_deref().unwrap_or("/");
            self.container.privileged_entrypoint = entrypoint::may_raise_privileges(program, variables, cwd, rootfs);
        }
    }

    /// What a legacy hook that is still to run is asked for; `None`: there is no such hook.
    fn request(&self, host: &Host) -> Result<Option<Request>, Unknown> {
        let Some(hook) = self.signs.legacy.filter(|_| self.container.legacy_still_to_run()) else { return Ok(None) };
        let environment = self.environment.as_ref().map_err(Clone::clone)?;
        let volume_mounts = self.container.volume_mount_devices.seen().map_or(&[][..], Vec::as_slice);
        Ok(Some(Request::of(hook, environment, volume_mounts, host)))
    }

    /// A node that neither a device nor a mount of the spec accounts for: a hook has made it.
    fn has_nodes_of_a_hook(&self, nodes: &[ContainerNode]) -> bool {
        let devices = self.spec.linux.devices.seen().map_or(&[][..], |devices| &devices.items);
        let mounts = self.spec.mounts.seen().map_or(&[][..], |mounts| &mounts.items);
        let devices: BTreeSet<String> = devices.iter().map(|device| clean(&device.path)).collect();
        let bound = mounts.iter().filter(|mount| mount.source.starts_with('/'));
        let bound: Vec<String> = bound.map(|mount| clean(&mount.destination)).collect();
        nodes.iter().any(|n| !devices.contains(&n.path) && !bound.iter().any(|path| below(&n.path, path).is_some()))
    }
}

/// The legacy hook brings the host's libcuda.
fn injected(found: Observed<Vec<String>>, host: &Host) -> Observed<Vec<String>> {
    let libraries = match host.driver.libraries.known() {
        Ok(libraries) => libraries,
        Err(unknown) if found.seen().is_none_or(Vec::is_empty) => return Observed::Unknown(unknown),
        Err(_) => return found,
    };
    let mut paths: Vec<String> =
        libraries.iter().map(|library| &library.path).filter(|path| names::is_libcuda(path)).cloned().collect();
    match found {
        Observed::Known(found) => paths.extend(found),
        Observed::Unknown(unknown) if paths.is_empty() => return Observed::Unknown(unknown),
        Observed::Unknown(_) => {}
    }
    paths.sort_unstable();
    paths.dedup();
    Observed::Known(paths)
}

fn of_mounts<T>(spec: &Spec, read: impl Fn(&[Mount]) -> T) -> Observed<T> {
    Observed::from(spec.mounts.known().and_then(|mounts| mounts.all().map(read)))
}

/// The size that the last mount on `/dev/shm` sets; a bind mount or one without a size sets none.
pub(super) fn shm_size(mounts: &[Mount]) -> Option<u64> {
    let mount = mounts.iter().rev().find(|mount| clean(&mount.destination) == "/dev/shm")?;
    let size = mount.options.iter().rev().find_map(|option| option.strip_prefix("size="))?;
    bytes(size)
}

/// As the kernel takes it (`memparse`): a number with a unit. A share of the memory is no fixed size.
fn bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match size.get(digits.len()..)? {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}
