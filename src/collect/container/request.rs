//! Which nodes the legacy hook will make, when it has still to run.

use super::environment::{Environment, VISIBLE_DEVICES, is_volume_mounts};
use super::given::is_legacy_image;
use super::names::CONTAINER_CLI;
use crate::knowledge::toolkit::{COMPUTE_BY_DEFAULT, hook_is_older};
use crate::model::container::SpecHook;
use crate::model::host::{Gpu, Majors, Platform};
use crate::model::{Host, Unknown};

/// What NVIDIA's hook is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Request {
    devices: Vec<String>,
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
        let variable = |name: &str| environment.variables.get(name).map(String::as_str);
        let accepted = host.toolkit.config.seen().and_then(Option::as_ref).and_then(|c| c.accept_volume_mounts);
        let devices = match variable(VISIBLE_DEVICES) {
            _ if accepted == Some(true) && !volume_mounts.is_empty() => volume_mounts.to_vec(),
            Some(value) if is_volume_mounts(value) => volume_mounts.to_vec(),
            Some(value) => words(value),
            None if is_legacy_image(environment) => vec!["all".to_owned()],
            None => Vec::new(),
        };
        let has = |wanted: &str| match variable("NVIDIA_DRIVER_CAPABILITIES").filter(|value| !value.is_empty()) {
            Some(value) => value.split(',').map(str::trim).any(|word| word == wanted || word == "all"),
            None => is_legacy_image(environment) || (wanted == "compute" && !unset_means_utility(host)),
        };
        Self {
            devices,
            compute: has("compute"),
            display: has("display"),
            imex: variable("NVIDIA_IMEX_CHANNELS").map(words).unwrap_or_default(),
        }
    }

    /// `nvidia-container-cli … configure --device=0,1 --compute --utility …` (containerd `contrib/nvidia`).
    fn by_arguments(args: &[String]) -> Self {
        let value = |name: &str| args.iter().filter_map(|arg| arg.strip_prefix(name)).flat_map(words).collect();
        let has = |flag: &str| args.iter().any(|arg| arg == flag);
        Self {
            devices: value("--device="),
            compute: has("--compute"),
            display: has("--display"),
            imex: value("--imex-channel="),
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
        let all = self.devices.iter().any(|word| word == "all");
        let mut mig = false;
        match host.gpus.known() {
            Ok(gpus) if !all || known_by_number(gpus) => {
                for gpu in gpus.iter().filter(|gpu| !gpu.excluded) {
                    let words: Vec<_> =
                        self.devices.iter().filter(|word| *word == "all" || names(word, gpu, gpus)).collect();
                    if words.is_empty() {
                        continue;
                    }
                    let unread = || Unknown::new("host.gpus", gpu.pci.clone(), "the number of its node was not read");
                    nodes.push(format!("/dev/nvidia{}", gpu.minor.ok_or_else(unread)?));
                    mig |= gpu.mig == Some(true) || words.iter().any(|word| is_mig(word)) || has_instances(host, gpu);
                }
            }
            Err(unknown) if !all && self.devices.iter().any(|word| word != "none") => return Err(unknown),
            _ if all => nodes.extend(present.keys().filter(|path| Majors::gpu_minor(path).is_some()).cloned()),
            _ => {}
        }
        if mig {
            nodes.extend(present.keys().filter(|path| path.starts_with("/dev/nvidia-caps/")).cloned());
        }
        Ok(nodes)
    }
}

/// Before toolkit 1.4 an unset `NVIDIA_DRIVER_CAPABILITIES` meant `utility` alone.
fn unset_means_utility(host: &Host) -> bool {
    hook_is_older(&host.toolkit, COMPUTE_BY_DEFAULT) == Ok(Some(true))
}

fn words(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn known_by_number(gpus: &[Gpu]) -> bool {
    !gpus.is_empty() && gpus.iter().all(|gpu| gpu.minor.is_some())
}

/// The word means this GPU or a part of it: an index, a UUID, a PCI address, `i:j`, a MIG device, or the
/// name of a CDI device of these.
fn names(word: &str, gpu: &Gpu, all: &[Gpu]) -> bool {
    let word = word.rsplit_once('=').map_or(word, |(_, device)| device);
    if let Some(instance) = strip_prefix(word, "MIG-") {
        let parent = instance.split('/').next().unwrap_or_default();
        // which GPU the new form belongs to only NVML says
        return has_uuid(gpu, parent)
            || (strip_prefix(parent, "GPU-").is_none() && (all.len() == 1 || gpu.mig == Some(true)));
    }
    let number = word.split_once(':').map_or(word, |(gpu, _)| gpu);
    if has_uuid(gpu, word) || (is_pci(word) && has_address(gpu, word)) {
        return true;
    }
    !is_pci(word) && number.parse() == Ok(gpu.index)
}

fn is_mig(word: &str) -> bool {
    strip_prefix(word, "MIG-").is_some() || (word.contains(':') && !is_pci(word))
}

fn is_pci(word: &str) -> bool {
    word.contains(':') && word.contains('.')
}

fn has_uuid(gpu: &Gpu, word: &str) -> bool {
    gpu.uuid.as_deref().is_some_and(|uuid| uuid.eq_ignore_ascii_case(word))
}

/// `65:00.0`, `0000:65:00.0` and NVML's `00000000:65:00.0` are the same.
fn has_address(gpu: &Gpu, word: &str) -> bool {
    let short = |address: &str| {
        let (domain, rest) = match address.matches(':').count() {
            1 => ("0", address),
            _ => address.split_once(':').unwrap_or(("0", address)),
        };
        (u32::from_str_radix(domain, 16).ok(), rest.to_ascii_lowercase())
    };
    short(word) == short(&gpu.pci)
}

fn has_instances(host: &Host, gpu: &Gpu) -> bool {
    let (Some(capabilities), Some(minor)) = (host.mig_capabilities.seen(), gpu.minor) else { return false };
    let start = format!("gpu{minor}/mig/gi");
    capabilities.keys().any(|path| path.starts_with(&start))
}

fn strip_prefix<'a>(word: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = word.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
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
        assert_eq!(gpus("02:00.0,00000000:03:00.0"), ["/dev/nvidia1", "/dev/nvidia0"]);
        assert_eq!(gpus("nvidia.com/gpu=1"), ["/dev/nvidia2"]);
        assert_eq!(gpus("all").len(), 4);
        assert!(gpus("none").is_empty() && gpus("7").is_empty() && gpus("nonsense").is_empty());
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
        assert_eq!((legacy.compute, legacy.display, legacy.devices), (true, true, vec!["all".to_owned()]));
    }

    #[test]
    fn arguments_and_mounts_come_before_the_environment() {
        let host_without = host(2);
        let args =
            ["containerd", "oci-hook", "--", "/bin/nvidia-container-cli", "configure", "--device=1", "--compute"];
        let hook = SpecHook { args: args.map(str::to_owned).into(), ..SpecHook::default() };
        let entries = [(VISIBLE_DEVICES.to_owned(), "all".to_owned())];
        let by_arguments = Request::of(&hook, &Environment::new(&entries, false), &[], &host_without);
        assert_eq!((by_arguments.devices, by_arguments.compute), (vec!["1".to_owned()], true));
        let mut accepting = host(2);
        accepting.toolkit.config =
            Observed::Known(Some(ToolkitConfig { accept_volume_mounts: Some(true), ..ToolkitConfig::default() }));
        assert_eq!(request(&[(VISIBLE_DEVICES, "all")], &accepting).devices, ["GPU-00000000-aaaa"]);
        assert_eq!(request(&[(VISIBLE_DEVICES, "all")], &host_without).devices, ["all"]);
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
