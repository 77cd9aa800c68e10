//! Which nodes the legacy hook will make, when it has still to run.

use super::environment::{Environment, VISIBLE_DEVICES};
use super::names::CONTAINER_CLI;
use crate::knowledge::driver_capabilities::{Capabilities, is_old_image};
use crate::knowledge::toolkit::{COMPUTE_BY_DEFAULT, hook_is_older};
use crate::knowledge::visible_devices::{self, Item, select};
use crate::model::container::SpecHook;
use crate::model::host::{Gpu, Majors, Platform};
use crate::model::{Host, Unknown};

/// What NVIDIA's hook is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    devices: visible_devices::Request,
    compute: bool,
    display: bool,
    imex: Vec<String>,
}

impl Request {
    /// By the hook's own arguments (`ctr --gpus`), by mounts where the toolkit takes them, else by the
    /// environment.
    pub(super) fn of(hook: &SpecHook, environment: &Environment, volume_mounts: &[String], host: &Host) -> Self {
        let by_arguments = hook.args.iter().any(|arg| super::paths::file_name(arg) == CONTAINER_CLI);
        if by_arguments {
            return Self::by_arguments(&hook.args);
        }
        let variables = &environment.variables;
        let accepted = host.toolkit.config.seen().and_then(Option::as_ref).and_then(|c| c.accept_volume_mounts);
        let mounted = || visible_devices::Request::List(volume_mounts.iter().map(|name| device(name)).collect());
        let devices = match variables.get(VISIBLE_DEVICES).map(|value| parse(value)) {
            _ if accepted == Some(true) && !volume_mounts.is_empty() => mounted(),
            Some(visible_devices::Request::VolumeMounts) => mounted(),
            Some(request) => request,
            None if is_old_image(variables) => visible_devices::Request::All,
            None => visible_devices::Request::Unset,
        };
        let capabilities = Capabilities::of(variables);
        Self {
            devices,
            compute: match capabilities {
                Capabilities::Default => hook_is_older(&host.toolkit, COMPUTE_BY_DEFAULT) != Ok(Some(true)),
                _ => capabilities.names("compute"),
            },
            display: capabilities.names("display"),
            imex: variables.get("NVIDIA_IMEX_CHANNELS").map(|value| words(value)).unwrap_or_default(),
        }
    }

    /// `nvidia-container-cli … configure --device=0,1 --compute --utility …` (containerd `contrib/nvidia`).
    fn by_arguments(args: &[String]) -> Self {
        let values = |name: &str| -> Vec<String> {
            args.iter().filter_map(|arg| arg.strip_prefix(name)).flat_map(words).collect()
        };
        let has = |flag: &str| args.iter().any(|arg| arg == flag);
        Self {
            devices: parse(&values("--device=").join(",")),
            compute: has("--compute"),
            display: has("--display"),
            imex: values("--imex-channel="),
        }
    }

    /// The nodes, by their paths on the host; it may lack some of them. A MIG device brings the nodes of
    /// all MIG capabilities: which are its own only NVML says.
    pub(super) fn nodes(&self, host: &Host) -> Result<Vec<String>, Unknown> {
        if host.platform == Platform::Wsl {
            return Ok(vec!["/dev/dxg".to_owned()]);
        }
        let present = host.device_nodes.known()?;
        let mut nodes = vec!["/dev/nvidiactl".to_owned()];
        if self.compute {
            nodes.extend(["/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"].map(str::to_owned));
        }
        if self.display {
            nodes.push("/dev/nvidia-modeset".to_owned());
        }
        nodes.extend(self.imex.iter().map(|n| format!("/dev/nvidia-caps-imex-channels/channel{n}")));
        let items = match &self.devices {
            visible_devices::Request::All if !host.gpus.seen().is_some_and(|gpus| known_by_number(gpus)) => {
                nodes.extend(present.keys().filter(|path| Majors::gpu_minor(path).is_some()).cloned());
                return Ok(nodes);
            }
            visible_devices::Request::All => &[][..],
            visible_devices::Request::List(items) => items,
            _ => return Ok(nodes),
        };
        let gpus = host.gpus.known()?;
        let whole = select(&self.devices, gpus).gpus;
        let mut mig = false;
        for gpu in gpus.iter().filter(|gpu| !gpu.excluded) {
            let in_part = items.iter().any(|item| is_part_of(item, gpu, gpus));
            if !in_part && !whole.contains(&gpu.index) {
                continue;
            }
            let unread = || Unknown::new("host.gpus", gpu.pci.clone(), "the number of its node was not read");
            nodes.push(format!("/dev/nvidia{}", gpu.minor.ok_or_else(unread)?));
            mig |= in_part || has_instances(host, gpu);
        }
        if mig {
            nodes.extend(present.keys().filter(|path| path.starts_with("/dev/nvidia-caps/")).cloned());
        }
        Ok(nodes)
    }
}

/// The list of a variable or an argument; a CDI name in it means the device that it names.
fn parse(list: &str) -> visible_devices::Request {
    match visible_devices::parse(list) {
        visible_devices::Request::List(items) => {
            visible_devices::Request::List(items.iter().map(|item| device(&item.to_string())).collect())
        }
        other => other,
    }
}

fn device(word: &str) -> Item {
    match visible_devices::item(word) {
        Item::Cdi(name) => visible_devices::item(name.rsplit_once('=').map_or(name.as_str(), |(_, device)| device)),
        item => item,
    }
}

fn words(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn known_by_number(gpus: &[Gpu]) -> bool {
    !gpus.is_empty() && gpus.iter().all(|gpu| gpu.minor.is_some())
}

/// The item means a MIG device on this GPU. Which GPU a name of the new form belongs to only NVML says.
fn is_part_of(item: &Item, gpu: &Gpu, all: &[Gpu]) -> bool {
    match item {
        Item::Mig { gpu: place, .. } => {
            select(&visible_devices::Request::List(vec![Item::Index(*place)]), all).gpus.contains(&gpu.index)
        }
        Item::MigOldName(name) => {
            let parent = name.get("MIG-".len()..).and_then(|rest| rest.split('/').next()).unwrap_or_default();
            gpu.uuid.as_deref().is_some_and(|uuid| uuid.eq_ignore_ascii_case(parent))
        }
        Item::MigUuid(_) => all.len() == 1,
        _ => false,
    }
}

fn has_instances(host: &Host, gpu: &Gpu) -> bool {
    let (Some(capabilities), Some(minor)) = (host.mig_capabilities.seen(), gpu.minor) else { return false };
    let start = format!("gpu{minor}/mig/gi");
    capabilities.keys().any(|path| path.starts_with(&start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Observed;
    use crate::model::host::{Node, ToolkitConfig};

    fn host(gpus: u32) -> Host {
        let mut host = Host::default();
        let gpu = |n: u32| Gpu {
            index: n,
            pci: format!("0000:0{n}:00.0"),
            uuid: Some(format!("GPU-0000000{n}-aaaa")),
            minor: Some(gpus - 1 - n),
            ..Gpu::default()
        };
        host.gpus = Observed::Known((0..gpus).map(gpu).collect());
        let fixed = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-caps/nvidia-cap30"];
        let paths = fixed.map(str::to_owned).into_iter().chain((0..gpus).map(|n| format!("nvidia{n}")));
        host.device_nodes = Observed::Known(paths.map(|name| (format!("/dev/{name}"), Node::default())).collect());
        host
    }

    fn request(variables: &[(&str, &str)], host: &Host) -> Request {
        let entries: Vec<_> = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Request::of(&SpecHook::default(), &Environment::new(&entries, false), &["GPU-00000000-aaaa".to_owned()], host)
    }

    fn gpus(value: &str) -> Vec<String> {
        let host = host(4);
        let mut nodes = request(&[(VISIBLE_DEVICES, value)], &host).nodes(&host).unwrap();
        nodes.retain(|path| Majors::gpu_minor(path).is_some() || path.contains("-caps/"));
        nodes
    }

    #[test]
    fn words_name_gpus_whose_minors_are_in_another_order() {
        assert_eq!(gpus("0"), ["/dev/nvidia3"]);
        assert_eq!(gpus(" 0, 3,"), ["/dev/nvidia3", "/dev/nvidia0"]);
        assert_eq!(gpus("gpu-00000001-AAAA"), ["/dev/nvidia2"]);
        assert_eq!(gpus("0000:02:00.0,00000000:03:00.0"), ["/dev/nvidia1", "/dev/nvidia0"]);
        assert_eq!(gpus("nvidia.com/gpu=1"), ["/dev/nvidia2"]);
        assert_eq!(gpus("all").len(), 4);
        assert!(gpus("none").is_empty() && gpus("7").is_empty() && gpus("nonsense").is_empty());
    }

    #[test]
    fn indices_count_the_gpus_that_the_driver_uses() {
        let mut host = host(3);
        let Observed::Known(gpus) = &mut host.gpus else { panic!() };
        gpus[0].excluded = true;
        let nodes = request(&[(VISIBLE_DEVICES, "0")], &host).nodes(&host).unwrap();
        assert!(nodes.contains(&"/dev/nvidia1".to_owned()) && !nodes.contains(&"/dev/nvidia2".to_owned()), "{nodes:?}");
    }

    #[test]
    fn a_mig_device_brings_its_gpu_and_the_capabilities() {
        let cap = "/dev/nvidia-caps/nvidia-cap30";
        assert_eq!(gpus("1:0"), ["/dev/nvidia2", cap]);
        assert_eq!(gpus("MIG-GPU-00000000-aaaa/1/0"), ["/dev/nvidia3", cap]);
        let mut one = host(1);
        let nodes = request(&[(VISIBLE_DEVICES, "MIG-1234")], &one).nodes(&one).unwrap();
        assert!(nodes.contains(&"/dev/nvidia0".to_owned()) && nodes.contains(&cap.to_owned()));
        one.mig_capabilities = Observed::Known([("gpu0/mig/gi1".to_owned(), 30)].into());
        assert!(request(&[(VISIBLE_DEVICES, "all")], &one).nodes(&one).unwrap().contains(&cap.to_owned()));
    }

    #[test]
    fn capabilities_decide_on_uvm_and_modeset() {
        let mut host = host(1);
        let has = |caps: Option<&str>, host: &Host| {
            let mut variables = vec![(VISIBLE_DEVICES, "all")];
            variables.extend(caps.map(|value| ("NVIDIA_DRIVER_CAPABILITIES", value)));
            let request = request(&variables, host);
            (request.compute, request.display)
        };
        assert_eq!(has(None, &host), (true, false));
        assert_eq!(has(Some(""), &host), (true, false));
        assert_eq!(has(Some("utility"), &host), (false, false));
        assert_eq!(has(Some("all"), &host), (true, true));
        assert_eq!(has(Some("compute, display"), &host), (true, true));
        host.toolkit.version = Observed::Known(Some("1.3.0".parse().unwrap()));
        assert_eq!(has(None, &host), (false, false));
        let legacy = request(&[("CUDA_VERSION", "8.0")], &host);
        assert_eq!((legacy.compute, legacy.display, legacy.devices), (true, true, visible_devices::Request::All));
    }

    #[test]
    fn arguments_and_mounts_come_before_the_environment() {
        let host_without = host(2);
        let args =
            ["containerd", "oci-hook", "--", "/bin/nvidia-container-cli", "configure", "--device=1", "--compute"];
        let hook = SpecHook { args: args.map(str::to_owned).into(), ..SpecHook::default() };
        let entries = [(VISIBLE_DEVICES.to_owned(), "all".to_owned())];
        let by_arguments = Request::of(&hook, &Environment::new(&entries, false), &[], &host_without);
        assert_eq!((by_arguments.devices, by_arguments.compute), (parse("1"), true));
        let mut accepting = host(2);
        accepting.toolkit.config =
            Observed::Known(Some(ToolkitConfig { accept_volume_mounts: Some(true), ..ToolkitConfig::default() }));
        assert_eq!(request(&[(VISIBLE_DEVICES, "all")], &accepting).devices, parse("GPU-00000000-aaaa"));
        assert_eq!(request(&[(VISIBLE_DEVICES, "all")], &host_without).devices, visible_devices::Request::All);
    }

    #[test]
    fn gpus_that_nobody_read_are_unknown_unless_all_are_meant() {
        let mut host = host(2);
        host.gpus = Observed::unknown("host.gpus", "/proc", "not there");
        assert!(request(&[(VISIBLE_DEVICES, "0")], &host).nodes(&host).is_err());
        assert_eq!(request(&[(VISIBLE_DEVICES, "all")], &host).nodes(&host).unwrap().len(), 5);
        assert_eq!(request(&[(VISIBLE_DEVICES, "none")], &host).nodes(&host).unwrap().len(), 3);
    }
}
