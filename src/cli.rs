//! The command line: types only. Man page and completions come from here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands::healthcheck;
use crate::knowledge::architecture::oci_name;
use crate::model::DriverVersion;

/// Finds out before a container starts whether its GPU will work.
#[derive(Debug, Parser)]
#[command(
    name = "gpu-preflight",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = "\
Exit codes: 0 nothing at or above --fail-on, 1 something at or above it, 2 could not judge at all.
Every long option has a twin in the environment: --host-root is GPU_PREFLIGHT_HOST_ROOT."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub common: Common,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Judge this machine: driver, modules, device nodes, container stack.
    Host(Host),
    /// Judge one container: a bundle directory, a config.json, a running container's id, or a pid.
    Container {
        /// A directory or file needs a `/` in its name (`./bundle`); digits are a pid; else it is an id or a name.
        target: PathBuf,
    },
    /// Say whether the GPUs of the container that this runs in can be used now: for a Dockerfile's HEALTHCHECK.
    Healthcheck(Healthcheck),
    /// Judge an image before it is deployed: does it suit this machine, or stated ones?
    Image(Image),
    /// Say what an error text means: its causes, how to verify them, what to do.
    Explain(Explain),
    /// List the checks, or show one on its own page.
    Checks {
        /// The check's name.
        id: Option<String>,
    },
    /// Register the hook with engines, so that every GPU container they start is checked.
    Install(Install),
    /// Take it out of engines again; their files become what they were.
    Uninstall(Uninstall),
    /// Say of each engine whether a GPU container that it starts now is checked, and how it would get its GPU.
    Status(Status),
    /// Act as the OCI hook, for trying: the container's state on standard input, the hook's exit codes.
    ///
    /// The state is what an OCI runtime hands to hooks: {"ociVersion": "1.0.2", "id": "c1", "status": "creating", "pid": 1,
    /// "bundle": "/path/of/the/bundle"}. Exit codes: 0 it starts, 10 to 15 it is refused. Options of other commands do not
    /// count here.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Hook {
        /// As for gpu-preflight-hook: --stage NAME (createRuntime), --config FILE, --log FILE, --host-root DIR,
        /// --driver-root DIR, --timeout DURATION.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// What else to do with this machine's facts.
#[derive(Debug, Args)]
pub struct Host {
    /// Also write them to FILE as a host profile, for `image --host-profile`: what an image is judged by, without times,
    /// pids or host names, fit for version control.
    #[arg(long, value_name = "FILE", env = "GPU_PREFLIGHT_SAVE")]
    pub save: Option<PathBuf>,
    /// Also start CUDA (cuInit: no context, no memory), in a process of its own.
    #[arg(long, env = "GPU_PREFLIGHT_CUDA", value_parser = clap::builder::FalseyValueParser::new())]
    pub cuda: bool,
    /// Do not ask the driver's management library (NVML), which wakes GPUs that sleep.
    #[arg(long, env = "GPU_PREFLIGHT_NO_NVML", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_nvml: bool,
    /// Also write what NVML said to FILE, for a report of a defect: whoever has it judges with `--nvml FILE` what was judged
    /// here. It has the GPUs' UUIDs, and no names of hosts, users or processes.
    #[arg(long, value_name = "FILE", env = "GPU_PREFLIGHT_SAVE_NVML", conflicts_with_all = ["no_nvml", "nvml"])]
    pub save_nvml: Option<PathBuf>,
    /// Judge what NVML said by FILE, which `--save-nvml` wrote, and ask nobody: with `--host-root` for the machine whose
    /// files lie there, else alone, and nothing of this machine counts.
    #[arg(long, value_name = "FILE", env = "GPU_PREFLIGHT_NVML", conflicts_with = "no_nvml")]
    pub nvml: Option<PathBuf>,
    /// Also say what differs from the host profile in FILE, saved when it worked. The exit code stays what it is.
    #[arg(long, value_name = "FILE", env = "GPU_PREFLIGHT_COMPARE")]
    pub compare: Option<PathBuf>,
    /// Write the report to FILE instead, whole at once and anew each time: for Prometheus' textfile collector, or NFD's
    /// features.d.
    #[arg(long, value_name = "FILE", env = "GPU_PREFLIGHT_OUTPUT")]
    pub output: Option<PathBuf>,
}

/// What else to look at inside a container.
#[derive(Debug, Args)]
#[command(after_help = "\
Exits 0 or 1 only: whatever --fail-on says, errors alone make a container unhealthy. The verdict comes first, and there
are at most 4096 bytes, as many as docker keeps. Where the container can write, a small file remembers which nodes it
had, so that a GPU that was lost is told from one that was never there.")]
pub struct Healthcheck {
    /// Also open the nodes of the GPUs, as NVML does anyway where it answers: that wakes those that sleep. What all GPUs
    /// share is always opened.
    #[arg(long, env = "GPU_PREFLIGHT_OPEN", value_parser = clap::builder::FalseyValueParser::new())]
    pub open: bool,
    /// Also start CUDA (cuInit), which shows what nothing else does. It wakes GPUs, and takes no memory of theirs.
    #[arg(long, env = "GPU_PREFLIGHT_CUDA", value_parser = clap::builder::FalseyValueParser::new())]
    pub cuda: bool,
    /// So much memory must be free on a GPU, by NVML: `2GiB`, `512MiB`.
    #[arg(long, value_name = "AMOUNT", env = "GPU_PREFLIGHT_MIN_FREE_MEMORY", value_parser = amount)]
    pub min_free_memory: Option<u64>,
    /// How long all of it may take, whatever hangs.
    #[arg(long, value_name = "DURATION", default_value = "5s", env = "GPU_PREFLIGHT_TIMEOUT", value_parser = timeout)]
    pub timeout: Duration,
}

fn amount(text: &str) -> Result<u64, String> {
    healthcheck::bytes(text).ok_or_else(|| "name it as in 2GiB".to_owned())
}

fn timeout(text: &str) -> Result<Duration, String> {
    healthcheck::duration(text).ok_or_else(|| "name it as in 5s, between 200ms and 10m".to_owned())
}

/// Which image, and for what.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --driver, --gpu and --host-profile the image is judged for this machine. With them this machine does not count:
what nobody stated is not asked, so that --driver alone judges whether CUDA starts, and --gpu alone whether there is code
for the GPU. Several kinds of GPU, or several profiles, make a matrix: the verdict is the worst, and the exit code 1 if
any host is at or above --fail-on.")]
pub struct Image {
    /// A tag or digest, looked for in docker, podman and containerd; `docker:`, `podman:`, `containerd:[NS/]`,
    /// `registry:`, `oci:DIR[:TAG]`, `oci-archive:FILE`, `docker-archive:FILE`, `rootfs:DIR` name the place; `-` is an
    /// archive on standard input, and a path begins with `/`, `./` or `../`.
    #[arg(value_name = "REF")]
    pub reference: String,
    /// How deep to look.
    #[arg(long, value_enum, default_value_t, env = "GPU_PREFLIGHT_DEPTH")]
    pub depth: Depth,
    /// For machines with this driver, in full as nvidia-smi shows it: 535.183.01.
    #[arg(long, value_name = "VERSION", env = "GPU_PREFLIGHT_DRIVER", conflicts_with = "host_profile", value_parser = driver)]
    pub driver: Option<DriverVersion>,
    /// For machines with this GPU: `H100`, `RTX 4090`, `A100-SXM4-80GB`, `sm_90` or `9.0`. Repeat it for further kinds of
    /// machines, each judged for itself; a machine with several kinds at once is stated by a profile.
    #[arg(long, value_name = "GPU", value_delimiter = ',', env = "GPU_PREFLIGHT_GPU", conflicts_with = "host_profile")]
    pub gpu: Vec<String>,
    /// For the machine that `gpu-preflight host --save FILE` described. May be repeated.
    #[arg(long, value_name = "FILE", env = "GPU_PREFLIGHT_HOST_PROFILE")]
    pub host_profile: Vec<PathBuf>,
    /// Which image where a name stands for several: `linux/arm64` or `arm64`; else the one for the machines that it is
    /// judged for, or for this one.
    #[arg(long, value_name = "PLATFORM", env = "GPU_PREFLIGHT_PLATFORM", value_parser = platform)]
    pub platform: Option<String>,
}

/// A branch alone names no driver: whether its first release or its last is meant decides.
fn driver(text: &str) -> Result<DriverVersion, String> {
    let version: DriverVersion = text.parse().map_err(|_| "it is no version".to_owned())?;
    if text.contains('.') { Ok(version) } else { Err("name it in full, as in 535.183.01".to_owned()) }
}

/// `linux/arm64/v8`, `arm64` or `aarch64`: the processor in the words of the image specification.
fn platform(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let processor = match parts.as_slice() {
        ["linux", processor] | ["linux", processor, _] | [processor] => oci_name(processor),
        [os, ..] => return Err(format!("images for {os} have no GPU of NVIDIA's; name it as in linux/arm64")),
        [] => "",
    };
    let is_name = !processor.is_empty() && processor.bytes().all(|b| b.is_ascii_alphanumeric());
    if is_name && processor != "linux" { Ok(processor.to_owned()) } else { Err("name it as in linux/arm64".to_owned()) }
}

/// With whom to register.
#[derive(Debug, Args)]
#[command(after_help = "\
Files are edited in their own format; each is kept as it was below /var/lib/gpu-preflight/registered, and uninstall puts
it back. No daemon is restarted: what is to be reloaded is said. The static program is expected in
/usr/libexec/gpu-preflight, or beside this one, from where it is put there.")]
pub struct Install {
    /// docker, podman, crio, containerd, nvidia (NVIDIA's container runtime, whoever calls it), cdi; none: all that are
    /// here.
    #[arg(value_enum, value_name = "ENGINE")]
    pub engines: Vec<EngineName>,
    /// Show the exact change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// docker and containerd: only beside the other runtimes, for containers that name it; not as the default.
    #[arg(long)]
    pub no_default: bool,
    /// This machine builds by `docker run`, as CI jobs do that compile in a CUDA image: a GPU that nobody asked for is a
    /// warning. Steps of `BuildKit`, buildah and docker's classic builder are known without it.
    #[arg(long)]
    pub build_host: bool,
}

/// Out of which.
#[derive(Debug, Args)]
pub struct Uninstall {
    /// As for install; none: all that it is registered with.
    #[arg(value_enum, value_name = "ENGINE")]
    pub engines: Vec<EngineName>,
    /// Show the exact change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// docker: take the runtime's name away though containers remember it, which then do not start.
    #[arg(long)]
    pub force: bool,
}

/// What about it.
#[derive(Debug, Args)]
pub struct Status {
    /// The last refusals instead, by the hook's log: so many (10).
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10", value_parser = clap::value_parser!(u16).range(1..))]
    pub last: Option<u16>,
}

/// Who starts containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[expect(missing_docs, reason = "the names are the words of the command line")]
pub enum EngineName {
    Docker,
    Podman,
    Crio,
    Containerd,
    Nvidia,
    Cdi,
}

/// How deep to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Depth {
    /// At the configuration alone.
    Config,
    /// Inside.
    #[default]
    Files,
}

/// What to explain.
#[derive(Debug, Args)]
pub struct Explain {
    /// An error text or the name of a check; without it, or as `-`, a text or a whole log from standard input.
    pub text: Vec<OsString>,
    /// Run the checks that decide between the causes, on this machine.
    #[arg(long)]
    pub verify: bool,
    /// With --verify: also those of this container, named as for `container`.
    #[arg(long, value_name = "TARGET", requires = "verify")]
    pub container: Option<PathBuf>,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub struct Common {
    /// How to say it.
    #[arg(long, global = true, value_enum, default_value_t, env = "GPU_PREFLIGHT_FORMAT")]
    pub format: Format,
    /// From when on the exit code is 1.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "LEVEL", env = "GPU_PREFLIGHT_FAIL_ON")]
    pub fail_on: FailOn,
    /// Checks that shall not count; they stay in the report.
    #[arg(long, global = true, value_name = "ID[,ID]", value_delimiter = ',', env = "GPU_PREFLIGHT_IGNORE")]
    pub ignore: Vec<String>,
    /// This configuration instead of /etc/gpu-preflight.
    #[arg(long, global = true, value_name = "FILE", env = "GPU_PREFLIGHT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Judge the machine whose /proc, /sys, /dev, /etc, /usr … lie below DIR.
    #[arg(long, global = true, value_name = "DIR", env = "GPU_PREFLIGHT_HOST_ROOT")]
    pub host_root: Option<PathBuf>,
    /// Where the driver's user-space files lie, if not where the toolkit says or in /.
    #[arg(long, global = true, value_name = "DIR", env = "GPU_PREFLIGHT_DRIVER_ROOT")]
    pub driver_root: Option<String>,
    /// Only the verdict and errors.
    #[arg(long, short, global = true, conflicts_with = "verbose", env = "GPU_PREFLIGHT_QUIET", value_parser = clap::builder::FalseyValueParser::new())]
    pub quiet: bool,
    /// Also what could not be judged, and where facts came from.
    #[arg(long, short, global = true, env = "GPU_PREFLIGHT_VERBOSE", value_parser = clap::builder::FalseyValueParser::new())]
    pub verbose: bool,
    /// When to use colour; `NO_COLOR` is honoured.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", env = "GPU_PREFLIGHT_COLOR")]
    pub color: Color,
}

/// How to say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[expect(missing_docs, reason = "the names are the words of the command line")]
pub enum Format {
    #[default]
    Text,
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// XML in the form of `JUnit`, for test reports.
    Junit,
    /// `host` only: a plugin's output, and its exit codes 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN whatever --fail-on says.
    Nagios,
    /// `host` only: metrics in the text format, for node exporter's textfile collector.
    Prometheus,
    /// `host` only: a feature file for Kubernetes' node-feature-discovery.
    Nfd,
}

/// From when on the exit code is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[expect(missing_docs, reason = "the names are the words of the command line")]
pub enum FailOn {
    #[default]
    Error,
    Warning,
    Unknown,
    Never,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[expect(missing_docs, reason = "the names are the words of the command line")]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_driver_is_named_in_full() {
        assert!(driver("535.183.01").is_ok() && driver("550.54").is_ok());
        assert!(driver("535").is_err() && driver("").is_err() && driver("535.x").is_err() && driver(".").is_err());
    }

    #[test]
    fn a_platform_is_named_in_several_ways() {
        for text in ["linux/arm64", "arm64", "aarch64", "linux/arm64/v8"] {
            assert_eq!(platform(text), Ok("arm64".to_owned()), "{text}");
        }
        assert_eq!(platform("x86_64"), Ok("amd64".to_owned()));
        for text in ["", "linux", "linux/", "windows/amd64", "a/b/c/d", "linux/a b"] {
            assert!(platform(text).is_err(), "{text}");
        }
    }
}
