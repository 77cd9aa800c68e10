//! Programs that look after GPUs without computing on them: they go through NVML, which needs neither
//! libcuda nor `/dev/nvidia-uvm`, and work where CUDA does not.

/// By the names of their programs, as of 2026-08: NVIDIA's own (driver, DCGM, GPU operator), and those of
/// their own projects (nvtop, nvitop, gpustat, exporters for Prometheus, general monitors).
const NAMES: [&str; 28] = [
    "nvidia-smi",
    "nv-hostengine",
    "dcgmi",
    "dcgm-exporter",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-device-plugin",
    "gpu-feature-discovery",
    "config-manager",
    "nvidia-mig-manager",
    "nvidia-mig-parted",
    "mig-parted",
    "nvidia-dra-plugin",
    "nvidia_gpu_exporter",
    "nvidia_gpu_prometheus_exporter",
    "nvidia-gpu-exporter",
    "nvidia_smi_exporter",
    "node_exporter",
    "nvtop",
    "nvitop",
    "gpustat",
    "gpud",
    "all-smi",
    "btop",
    "glances",
    "netdata",
    "telegraf",
    "zabbix_agent2",
];
/// What is looked at of a command line: an entrypoint, and its program behind it.
const WORDS: usize = 8;

/// One of the words is such a program, alone in its command: in `sh -c "nvidia-smi && train"` it is not.
pub fn is_monitor(args: &[String]) -> bool {
    args.iter().take(WORDS).any(|arg| {
        let program = arg.split_whitespace().next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default();
        !arg.contains([';', '&', '|', '\n']) && NAMES.contains(&program)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_monitor_is_told_behind_its_entrypoint_and_not_before_other_work() {
        let of = |args: &[&str]| is_monitor(&args.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>());
        assert!(of(&["nvidia-smi"]) && of(&["/opt/nvidia/nvidia_entrypoint.sh", "/usr/bin/nvidia-smi", "-L"]));
        assert!(of(&["sh", "-c", "nvtop -d 5"]) && of(&["/usr/bin/dcgm-exporter"]));
        assert!(!of(&["sh", "-c", "nvidia-smi && python train.py"]) && !of(&["sh", "-c", "nvidia-smi; sleep 1"]));
        assert!(!of(&[]) && !of(&["python", "-m", "vllm"]) && !of(&["/app/run"]));
    }
}
