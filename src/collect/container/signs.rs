//! What in a spec speaks of a GPU: nodes, rules, mounts and hooks, never a name such as `nvidia.com/gpu`.

use super::Spec;
use super::names::{self, NodeFamily};
use super::paths::{below, clean};
use crate::model::container::{DeviceRule, Mount, SpecHook};
use crate::model::{Host, Unknown};

/// The signs. Where a list could not be read, what it would have shown is in `unread`.
#[derive(Debug, Clone, Default)]
pub(super) struct Signs<'a> {
    /// `/dev/nvidia…`, by the spec's devices or a mount of a host's node.
    pub(super) nvidia: bool,
    /// `/dev/dxg`
    pub(super) wsl: bool,
    /// Jetson's nodes.
    pub(super) tegra: bool,
    /// `/dev/vfio/GROUP`
    pub(super) vfio: bool,
    /// Other nodes of the host: engines list them for privileged containers only.
    others: usize,
    /// The host's whole `/dev`, with rules that let its GPU be used.
    whole_dev: bool,
    /// The last rule about everything allows it.
    allow_all: bool,
    /// No rule could be read, or there is none, as without root.
    no_rules: bool,
    /// A library of the driver is mounted, or a hook of CDI's is in the spec.
    pub(super) driver_mounts: bool,
    /// See `driver_mounts`.
    pub(super) cdi_hooks: bool,
    /// NVIDIA's injecting hook.
    pub(super) legacy: Option<&'a SpecHook>,
    /// Why more nodes or mounts there may be than these.
    pub(super) unread: Option<Unknown>,
    /// Why there may be a legacy hook.
    pub(super) hooks_unread: Option<Unknown>,
}

impl<'a> Signs<'a> {
    pub(super) fn of(spec: &'a Spec, host: Option<&Host>) -> Self {
        let mut signs = Self::default();
        signs.read_rules(spec);
        signs.read_devices(spec);
        signs.read_mounts(spec, host);
        signs.read_hooks(spec);
        signs
    }

    /// A node of a GPU is given.
    pub(super) fn gpu_nodes(&self) -> bool {
        self.nvidia || self.wsl || self.tegra
    }

    /// All of the host's nodes: the rule that allows all, the whole `/dev`, or, where there are no rules,
    /// nodes that nobody asks for one by one.
    pub(super) fn privileged(&self) -> bool {
        self.allow_all || self.whole_dev || (self.no_rules && self.many_others())
    }

    /// More of the host's nodes than a user names: docker and podman list at least full, null, random,
    /// tty, urandom and zero (measured).
    pub(super) fn many_others(&self) -> bool {
        self.others >= 3
    }

    /// Something of the driver came with the nodes, as CDI brings it.
    pub(super) fn driver_files(&self) -> bool {
        self.driver_mounts || self.cdi_hooks
    }

    /// So that a last `NVIDIA_VISIBLE_DEVICES=void` is CDI's: with `--privileged` alone it is the user's.
    pub(super) fn injected(&self) -> bool {
        self.driver_files() || (self.gpu_nodes() && !self.privileged())
    }

    fn read_rules(&mut self, spec: &Spec) {
        let Some(rules) = spec.linux.rules.seen() else {
            self.no_rules = true;
            return;
        };
        self.no_rules = rules.items.is_empty();
        let last = rules.items.iter().rev().find(|r| r.kind == 'a' && r.major.is_none() && r.minor.is_none());
        self.allow_all = last.is_some_and(|r| r.allow && r.access.contains('r') && r.access.contains('w'));
    }

    fn read_devices(&mut self, spec: &Spec) {
        match spec.linux.devices.known() {
            Ok(devices) => {
                devices.items.iter().for_each(|device| self.node(&clean(&device.path)));
                self.unread = self.unread.take().or_else(|| devices.unread.first().cloned());
            }
            Err(unknown) => self.unread = Some(unknown),
        }
    }

    fn read_mounts(&mut self, spec: &Spec, host: Option<&Host>) {
        match spec.mounts.known() {
            Ok(mounts) => {
                mounts.items.iter().for_each(|mount| self.mount(mount, spec, host));
                self.unread = self.unread.take().or_else(|| mounts.unread.first().cloned());
            }
            // nobody's engine: what mounts such a file would have, it has not
            Err(_) if spec.no_mounts_key => {}
            Err(unknown) => self.unread = Some(unknown),
        }
    }

    fn mount(&mut self, mount: &Mount, spec: &Spec, host: Option<&Host>) {
        let (destination, source) = (clean(&mount.destination), clean(&mount.source));
        if names::is_driver_library(&destination) {
            self.driver_mounts = true;
        } else if !mount.source.starts_with('/') || below(&source, "/dev").is_none() {
            // a file system, or something that is no node
        } else if below(&source, "/dev").is_some_and(str::is_empty) {
            self.whole_dev(&destination, spec, host);
        } else if source != "/dev/null" {
            self.node(&destination);
        }
    }

    /// The host's whole `/dev` is mounted. That gives a GPU only if the rules let its nodes be used: many
    /// a container has `/dev` for other reasons.
    fn whole_dev(&mut self, destination: &str, spec: &Spec, host: Option<&Host>) {
        if destination != "/dev" {
            return;
        }
        let Some(host) = host else {
            self.unread =
                Some(Unknown::new("container.gpu_given", "a mount of /dev", "the host's nodes were not looked at"));
            return;
        };
        match host.device_nodes.known() {
            Ok(nodes) => {
                let rules = spec.linux.rules.seen().map_or(&[][..], |rules| &rules.items);
                let usable =
                    nodes.iter().filter(|(_, node)| DeviceRule::allow_read_write(rules, node.major, node.minor));
                usable.for_each(|(path, _)| self.node(path));
                self.whole_dev = self.gpu_nodes();
                self.others = usize::MAX;
            }
            Err(unknown) => self.unread = Some(unknown),
        }
    }

    fn node(&mut self, path: &str) {
        match names::node_family(path) {
            Some(NodeFamily::Nvidia) => self.nvidia = true,
            Some(NodeFamily::Wsl) => self.wsl = true,
            Some(NodeFamily::Tegra) => self.tegra = true,
            Some(NodeFamily::Vfio) => self.vfio = true,
            None => self.others = self.others.saturating_add(1),
        }
    }

    fn read_hooks(&mut self, spec: &'a Spec) {
        match spec.hooks.known() {
            Ok(_) => {
                let hooks = spec.hooks.seen().map_or(&[][..], |hooks| &hooks.items);
                self.cdi_hooks = hooks.iter().any(|hook| names::is_cdi_hook(&hook.path));
                self.legacy = hooks.iter().find(|hook| is_legacy(hook));
                self.hooks_unread = spec.hooks.seen().and_then(|hooks| hooks.unread.first().cloned());
            }
            Err(unknown) => self.hooks_unread = Some(unknown),
        }
    }
}

/// NVIDIA's hook in a stage in which it injects. `ctr --gpus` and nerdctl have containerd run
/// `nvidia-container-cli` (containerd `contrib/nvidia`), so the arguments are looked at too.
fn is_legacy(hook: &SpecHook) -> bool {
    matches!(hook.stage.as_str(), "prestart" | "createRuntime") && legacy_program(hook).is_some()
}

/// The program of NVIDIA's that a hook runs.
pub(super) fn legacy_program(hook: &SpecHook) -> Option<&str> {
    let words = std::iter::once(&hook.path).chain(&hook.args);
    words.map(String::as_str).find(|word| names::is_legacy_hook(word))
}
