//! Real docker: a container with our HEALTHCHECK becomes healthy, and unhealthy within one interval of a fault.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::faults::{Inside, faults};
use super::{KEPT, NODES, lay};
use crate::support::engines::Engines;
use crate::support::process::{Run, compile_c};
use crate::support::{needs, programs, repository, write};

const INTERVAL: Duration = Duration::from_secs(2);
/// A check whose NVML hangs takes nearly five seconds, and docker and a busy machine take theirs.
const PATIENCE: Duration = Duration::from_secs(12);

/// The README's lines, with an interval for tests, behind what stands for a driver.
pub(super) fn dockerfile() -> String {
    let readme = std::fs::read_to_string(repository().join("README.md")).expect("README.md");
    let lines = readme.split_once("```Dockerfile\n").and_then(|(_, rest)| rest.split_once("```")).expect("a block").0;
    let (for_people, for_tests) =
        ("--interval=30s --timeout=10s --start-period=60s --retries=3", "--interval=2s --timeout=10s --retries=1");
    assert!(lines.contains(for_people), "{lines}");
    format!(
        "FROM scratch\nCOPY root /\nENV GPU_PREFLIGHT_HOST_ROOT=/sim NVIDIA_VISIBLE_DEVICES=all \
         NVIDIA_DRIVER_CAPABILITIES=compute,utility\n{}CMD [\"/sleep\", \"/sim/dev/nvidia0\"]\n",
        lines.replace(for_people, for_tests)
    )
}

/// What an image is built of: the programs and what they need below `root`, the README's beside it.
pub(super) fn context(at: &Path) {
    lay(&at.join("root/sim"));
    without_a_shell(&at.join("root"));
    write(&at.join("gpu-preflight"), std::fs::read(programs::cli()).expect("a program"));
    executable(&at.join("gpu-preflight"));
    write(&at.join("Dockerfile"), dockerfile());
}

struct Docker {
    engines: Engines,
}

struct Container<'a> {
    docker: &'a Docker,
    id: String,
    inside: Inside,
}

impl Docker {
    /// `None`: said and skipped.
    fn start() -> Option<Self> {
        let able = needs::root() && needs::released() && needs::tools(&["dockerd", "docker", "cc", "ldd"]);
        let docker = able.then(|| Self { engines: Engines::docker() })?;
        context(&docker.engines.at("context"));
        let context = docker.engines.at("context").to_string_lossy().into_owned();
        docker.run(&["build", "--quiet", "--tag", "checked", &context]);
        Some(docker)
    }

    fn run(&self, arguments: &[&str]) -> String {
        let run = Run::new("docker").env("DOCKER_BUILDKIT", "0").env("DOCKER_HOST", self.engines.docker_host());
        let ended = run.args(arguments.iter().copied()).limit(Duration::from_secs(60)).end();
        assert!(ended.status.success(), "docker {arguments:?}: {ended:?}");
        ended.stdout.trim().to_owned()
    }

    /// A container as any user, with nothing that it does not need.
    fn container(&self) -> Container<'_> {
        let devices: Vec<String> =
            NODES.iter().map(|(name, like)| format!("--device={like}:/sim/dev/{name}")).collect();
        let mut arguments = vec!["run", "--detach", "--network=none", "--user=1000:1000", "--cap-drop=ALL"];
        arguments.push("--security-opt=no-new-privileges");
        arguments.extend(devices.iter().map(String::as_str));
        arguments.push("checked");
        let id = self.run(&arguments);
        let pid = self.run(&["inspect", "--format={{.State.Pid}}", &id]);
        Container { docker: self, inside: Inside::of(&pid), id }
    }
}

impl Container<'_> {
    fn health(&self) -> Value {
        let text = self.docker.run(&["inspect", "--format={{json .State.Health}}", &self.id]);
        serde_json::from_str(&text).expect("JSON")
    }

    /// Waits for it; returns the last answer.
    fn becomes(&self, status: &str, within: Duration) -> String {
        let until = Instant::now() + within;
        loop {
            let health = self.health();
            let last = health["Log"].as_array().and_then(|log| log.last()).cloned().unwrap_or_default();
            let output = last["Output"].as_str().unwrap_or_default().to_owned();
            if health["Status"] == status {
                assert!(output.len() <= KEPT, "{output}");
                return output;
            }
            assert!(Instant::now() < until, "not {status}: {health:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Spoilt while it runs, it becomes unhealthy.
    fn loses(&self, id: &str, spoil: fn(&Inside)) {
        let first = self.becomes("healthy", PATIENCE);
        assert!(first.starts_with("healthy: 1 GPU, driver 550.163.01"), "{first}");
        spoil(&self.inside);
        let said = self.becomes("unhealthy", INTERVAL + PATIENCE);
        assert!(said.starts_with(&format!("unhealthy [{id}]: ")), "{id}: {said}");
        let failed = self.health()["FailingStreak"].as_u64();
        assert!(failed >= Some(1), "{failed:?}");
        let processes = self.docker.run(&["top", &self.id]);
        assert!(processes.lines().count() <= 3, "no more than its own and a check under way: {processes}");
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        self.docker.run(&["rm", "--force", &self.id]);
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        // The engine leaves its own, empty; where another engine works it is not.
        for hierarchy in std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
            let _ = std::fs::remove_dir(hierarchy.path().join("docker"));
        }
    }
}

/// A root file system with the programs, the loader and what they load; no shell.
pub(super) fn without_a_shell(root: &Path) {
    let program = programs::cli();
    let loaded = Run::new("ldd").args([&program]).end().stdout;
    let paths = loaded.split_whitespace().filter(|word| word.starts_with('/')).map(Path::new);
    for path in paths {
        let to = root.join(path.strip_prefix("/").expect("an absolute path"));
        write(&to, std::fs::read(path).expect("a library"));
        executable(&to);
    }
    for (from, name) in [(program, "gpu-preflight"), (sleeper(), "sleep")] {
        write(&root.join(name), std::fs::read(from).expect("a program"));
        executable(&root.join(name));
    }
    std::fs::create_dir_all(root.join("tmp")).expect("a directory");
}

pub(super) fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
}

fn sleeper() -> PathBuf {
    compile_c(&repository().join("integration/healthcheck/sleep.c"), "sleep-of-a-container", &["-static"])
}

#[test]
fn a_fault_shows_within_one_interval() {
    let Some(docker) = Docker::start() else { return };
    for (id, spoil) in faults() {
        docker.container().loses(id, spoil);
    }
}
