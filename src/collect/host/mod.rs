//! Facts of the machine, from files alone. Nothing is executed, no device is opened, nothing is loaded.
//!
//! Every fact says for itself whether it could be seen: "absent" needs a place that was looked at, so a
//! directory that somebody laid out for `--host-root` with half of `/sys` in it yields unknowns, and a
//! machine that never heard of NVIDIA yields empty lists.

use std::time::{Duration, Instant};

use crate::collect::tree::Tree;
use crate::model::observed::LEFT_OUT;
use crate::model::{Host, Observed};

#[cfg(feature = "cli")]
mod caller;
mod cdi;
#[cfg(feature = "cli")]
pub mod cuda;
mod devices;
mod dkms;
mod driver;
mod engines;
mod gpus;
#[cfg(feature = "cli")]
mod holders;
#[cfg(feature = "cli")]
mod installed;
mod kernel_log;
mod kubelet;
mod libraries;
mod look;
mod machine;
mod mig;
mod modprobe;
mod module_files;
#[cfg(feature = "cli")]
pub mod nvml;
mod pci;
mod platform;
#[cfg(feature = "cli")]
mod profile;
#[cfg(feature = "cli")]
mod registration;
mod services;
mod sockets;
#[cfg(feature = "cli")]
mod stuck;
#[cfg(test)]
mod tests;
mod toolkit;
mod uvm;

#[cfg(feature = "cli")]
pub use caller::add_caller;
pub use cdi::cdi;
pub use devices::dev_char;
pub use driver::banner;
pub use engines::engines;
pub use gpus::gpu_identities;
#[cfg(feature = "cli")]
pub use holders::{holders, sees_all_processes};
pub use kernel_log::kernel_log;
pub use kubelet::kubelet_static_cpu;
pub use libraries::{driver_root, libraries};
pub use machine::{os, secure_boot};
pub use mig::mig_capabilities;
pub use modprobe::module_options;
pub use module_files::module_files;
pub use pci::pci;
#[cfg(feature = "cli")]
pub use profile::{LIMIT as MOST_PROFILE, carried, profile};
#[cfg(feature = "cli")]
pub use registration::{docker_keeps, docker_root, registration};
pub use services::{cdi_refresh, device_list_strategy, docker_desktop};
#[cfg(feature = "cli")]
pub use stuck::{Suspects, suspects};
pub use toolkit::toolkit;

/// How long the driver's own files may take, all of them together: it answers at once for a GPU that is awake, and may
/// wake the others first. `host`, which asks NVML besides, is to end within 5 s.
const IDENTITIES: Duration = Duration::from_secs(3);

/// The reason of what a container does not show.
const NOT_INSIDE: &str = "it does not show inside a container";

/// How a machine is to be looked at.
#[derive(Debug, Clone)]
pub struct Options {
    /// The tree is a directory (`--host-root`), not this machine: then nothing of the caller's own
    /// process or of the running kernel counts.
    pub laid_out: bool,
    /// Where the driver's user-space files lie (`--driver-root`), if the caller says so.
    pub driver_root: Option<String>,
    /// How much is looked at.
    pub scope: Scope,
}

/// How much of a machine is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// What the judgement of one container needs, in well under a millisecond. All else is unknown,
    /// and can be added by the public functions of this module.
    Hook,
    /// Everything, the GPUs' identities included.
    Full,
}

/// Looks at the machine whose root directory the tree is.
pub fn read(tree: &Tree, options: &Options) -> Host {
    let mut host = at_a_glance(tree, options);
    match options.scope {
        Scope::Hook => leave_out(&mut host, LEFT_OUT),
        Scope::Full => look_closely(tree, &mut host),
    }
    host
}

/// Looks at the machine from inside a container: what the kernel and the container's own files show. The stack that
/// started it does not show there. `libraries_first`: directories of `LD_LIBRARY_PATH`.
pub fn inside(tree: &Tree, options: &Options, libraries_first: &[String], deadline: Instant) -> Host {
    let mut host = at_a_glance(tree, options);
    leave_out(&mut host, NOT_INSIDE);
    if host.driver.version.known().is_err() && !host.laid_out {
        banner(tree, &mut host.driver, deadline);
    }
    let architecture = host.architecture.seen().map(String::as_str);
    host.driver.libraries = libraries(tree, &host.driver.root, architecture, libraries_first);
    host.uvm = uvm::signs(tree);
    host
}

fn at_a_glance(tree: &Tree, options: &Options) -> Host {
    let brief = !options.laid_out;
    let majors = devices::majors(tree);
    let nodes = devices::nodes(tree);
    let driver = driver::driver(tree, options.laid_out, brief, &majors);
    let (kernel, architecture) = machine::kernel_and_architecture(tree, options.laid_out, driver.built_for);
    let (platform, l4t) = platform::platform(tree, &nodes, kernel.seen(), architecture.seen());
    let gpus = gpus::names(tree, platform, &driver.facts);
    let mut host = Host {
        laid_out: options.laid_out,
        platform,
        l4t,
        kernel,
        architecture,
        driver: driver.facts,
        gpus,
        majors,
        device_nodes: nodes,
        cgroup_v2: machine::cgroup_v2(tree),
        selinux: machine::selinux(tree),
        inside: machine::inside(tree),
        in_user_namespace: machine::in_user_namespace(tree),
        kubelet_static_cpu: kubelet::by_its_files(tree),
        sockets: sockets::sockets(tree),
        ..Host::default()
    };
    host.toolkit.config = toolkit::config(tree);
    host.driver.root = driver_root(tree, options.driver_root.as_deref(), host.toolkit.config.seen());
    host.pci = if options.scope == Scope::Hook && host.gpus.seen().is_some_and(|g| !g.is_empty()) {
        Observed::unknown("host.pci", "/sys/bus/pci/devices", LEFT_OUT)
    } else {
        pci(tree)
    };
    host
}

fn look_closely(tree: &Tree, host: &mut Host) {
    let by = Instant::now() + IDENTITIES;
    if !host.laid_out {
        banner(tree, &mut host.driver, by);
    }
    driver::add_versions(tree, &mut host.driver.modules);
    host.gpus = gpu_identities(tree, host, by);
    host.dev_char = dev_char(tree, &host.majors);
    host.mig_capabilities = mig_capabilities(tree, &host.driver);
    host.driver.module_options = module_options(tree);
    host.driver.module_files = module_files(tree, &host.kernel);
    host.driver.libraries = libraries(tree, &host.driver.root, host.architecture.seen().map(String::as_str), &[]);
    #[cfg(feature = "cli")]
    installed::add(tree, host);
    host.toolkit = toolkit(tree);
    host.engines = engines(tree);
    host.cdi = cdi(tree, &host.engines);
    host.secure_boot = secure_boot(tree);
    host.kernel_log = kernel_log(tree);
    host.os = os(tree);
    host.kubelet_static_cpu = kubelet_static_cpu(tree);
    host.docker_desktop = docker_desktop(tree);
    host.cdi_refresh = cdi_refresh(tree);
    host.device_list_strategy = device_list_strategy(tree);
    host.uvm = uvm::signs(tree);
}

fn leave_out(host: &mut Host, reason: &str) {
    host.dev_char = Observed::unknown("host.dev_char", "/dev/char", reason);
    host.mig_capabilities = Observed::unknown("host.mig_capabilities", "/proc/driver/nvidia/capabilities", reason);
    host.driver.module_options = Observed::unknown("host.driver.module_options", "/etc/modprobe.d", reason);
    host.driver.module_files = Observed::unknown("host.driver.module_files", "/lib/modules", reason);
    host.driver.libraries = Observed::unknown("host.driver.libraries", &host.driver.root.path, reason);
    host.toolkit.version = Observed::unknown("host.toolkit.version", "package database", reason);
    host.toolkit.programs = Observed::unknown("host.toolkit.programs", "/usr/bin", reason);
    host.cdi = Observed::unknown("host.cdi", "/etc/cdi", reason);
    host.secure_boot = Observed::unknown("host.secure_boot", "/sys/firmware/efi/efivars", reason);
    host.kernel_log = Observed::unknown("host.kernel_log", "/var/log", reason);
    host.os = Observed::unknown("host.os", "/etc/os-release", reason);
}
