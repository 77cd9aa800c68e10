//! Programs that look after GPUs without computing on them: they go through NVML, which needs neither
//! libcuda nor `/dev/nvidia-uvm`, and work where CUDA does not.

use super::toolkit::base_name;

/// By the names of their programs, as of 2026-08: NVIDIA's own (driver, DCGM, GPU operator), and those of
/// their own projects (nvtop, nvitop, gpustat, exporters for Prometheus, general monitors).
const NAMES: [&str; 29] = [
    "nvidia-smi",
    "nv-hostengine",
    "dcgmi",
    "dcgm-exporter",
    "dcgm-exporter-entrypoint.sh",
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

/// What scripts put around them.
const AROUND: [&str; 16] = [
    "sleep", "echo", "true", "cat", "grep", "tail", "head", "tee", "awk", "sed", "date", "while", "do", "done", "exit",
    "exec",
];

/// One of the words is such a program, alone in its command: in `sh -c "nvidia-smi && train"` it is not.
pub fn is_monitor(args: &[String]) -> bool {
    let name = |word| base_name(word).to_owned();
    args.iter().take(WORDS).any(|arg| {
        let parts = arg.split([';', '&', '|', '\n']).map(str::trim).filter(|part| !part.is_empty());
        // `while true; do nvidia-smi; sleep 5; done`
        let programs = parts.map(|part| {
            let mut words =
                part.split_whitespace().map(name).skip_while(|word| matches!(word.as_str(), "do" | "while" | "exec"));
            words.next().unwrap_or_default()
        });
        let programs: Vec<String> = programs.filter(|program| !AROUND.contains(&program.as_str())).collect();
        let only = programs.iter().all(|program| program.is_empty() || NAMES.contains(&program.as_str()));
        only && programs.iter().any(|program| NAMES.contains(&program.as_str()))
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
        assert!(!of(&["sh", "-c", "nvidia-smi && python train.py"]) && !of(&["sh", "-c", "sleep 1; echo"]));
        assert!(
            of(&["sh", "-c", "nvidia-smi; sleep 1"]) && of(&["bash", "-c", "while true; do nvidia-smi; sleep 5; done"])
        );
        assert!(!of(&[]) && !of(&["python", "-m", "vllm"]) && !of(&["/app/run"]));
    }
}
