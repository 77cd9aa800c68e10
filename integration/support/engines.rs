//! Real engines, each with a data root of its own in a test's directory, and a registry on loopback.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Scratch;

/// An engine takes a second or two.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that ends with the value.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    fn start(scratch: &Scratch, name: &str, command: &mut Command, is_up: impl Fn() -> bool) -> Self {
        let log = scratch.at(&format!("{name}.log"));
        let file = File::create(&log).expect("a log");
        let again = file.try_clone().expect("a descriptor");
        command.stdin(Stdio::null()).stdout(file).stderr(again);
        let child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut server = Self { child, log };
        let until = Instant::now() + PATIENCE;
        while !is_up() {
            let ended = server.child.try_wait().expect("a child");
            assert!(ended.is_none() && Instant::now() < until, "{name} does not come up: {}", server.said());
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn said(&self) -> String {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        said.lines().rev().take(10).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().try_into().expect("a pid"));
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All engines, in one directory that looks like a machine's root to what takes one.
#[derive(Debug)]
pub(crate) struct Engines {
    servers: Vec<Server>,
    /// The registry's host and port.
    pub(crate) registry: String,
    scratch: Scratch,
}

impl Drop for Engines {
    fn drop(&mut self) {
        self.servers.clear();
        // what docker and podman mount of their own roots
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
        let own = self.scratch.path().display().to_string();
        for place in mounts.lines().rev().filter_map(|line| line.split(' ').nth(1)).filter(|at| at.starts_with(&own)) {
            let _ = nix::mount::umount2(place, nix::mount::MntFlags::MNT_DETACH);
        }
    }
}

impl Engines {
    /// Starts a registry, docker and containerd; podman needs no start.
    pub(crate) fn start() -> Self {
        let scratch = super::scratch();
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let mut engines = Self { servers: Vec::new(), registry: format!("127.0.0.1:{port}"), scratch };
        engines.start_registry();
        engines.start_docker();
        engines.start_containerd();
        engines
    }

    /// Starts docker alone.
    pub(crate) fn docker() -> Self {
        let mut engines = Self { servers: Vec::new(), registry: String::new(), scratch: super::scratch() };
        engines.start_docker();
        engines
    }

    /// A path below the root that they share.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.scratch.at(path)
    }

    /// Where docker listens.
    pub(crate) fn docker_host(&self) -> String {
        format!("unix://{}", self.at("run/docker.sock").display())
    }

    fn start_registry(&mut self) {
        let settings = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: {}}}\n",
            self.at("registry").display(),
            self.registry
        );
        super::write(&self.at("registry.yml"), settings);
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(self.at("registry.yml"));
        let address = self.registry.clone();
        let is_up = || TcpStream::connect(&address).is_ok();
        self.servers.push(Server::start(&self.scratch, "registry", &mut command, is_up));
    }

    fn start_docker(&mut self) {
        let (data, run, socket) = (self.at("var/lib/docker"), self.at("run/docker"), self.at("run/docker.sock"));
        std::fs::create_dir_all(&data).expect("a directory");
        std::fs::create_dir_all(&run).expect("a directory");
        let mut command = Command::new("dockerd");
        command.args(["--iptables=false", "--bridge=none", "--config-file"]).arg(self.at("daemon.json"));
        command.arg("--data-root").arg(data).arg("--exec-root").arg(&run).arg("--pidfile").arg(run.join("pid"));
        command.arg("--host").arg(self.docker_host());
        super::write(&self.at("daemon.json"), "{}");
        self.servers
            .push(Server::start(&self.scratch, "docker", &mut command, || UnixStream::connect(&socket).is_ok()));
        // for tests as another user, who need not be in docker's group
        std::fs::set_permissions(self.at("run/docker.sock"), std::fs::Permissions::from_mode(0o666)).expect("a socket");
    }

    fn start_containerd(&mut self) {
        let (root, state, socket) =
            (self.at("var/lib/containerd"), self.at("run/containerd"), self.at("run/containerd.sock"));
        let settings = format!(
            "version = 2\nroot = {root:?}\nstate = {state:?}\n[grpc]\n  address = {socket:?}\n",
            root = root.display().to_string(),
            state = state.display().to_string(),
            socket = socket.display().to_string()
        );
        super::write(&self.at("containerd.toml"), settings);
        let mut command = Command::new("containerd");
        command.arg("--config").arg(self.at("containerd.toml"));
        self.servers
            .push(Server::start(&self.scratch, "containerd", &mut command, || UnixStream::connect(&socket).is_ok()));
    }

    /// Has docker pull from the registry.
    pub(crate) fn docker_pull(&self, name: &str) {
        done(Command::new("docker").arg("--host").arg(self.docker_host()).args(["pull", "--quiet"]).arg(name));
    }

    /// Has containerd pull from the registry.
    pub(crate) fn containerd_pull(&self, namespace: &str, name: &str) {
        let mut command = Command::new("ctr");
        command.arg("--address").arg(self.at("run/containerd.sock")).args(["--namespace", namespace]);
        done(command.args(["images", "pull", "--plain-http"]).arg(name));
    }

    /// Has podman pull from the registry, into `store`.
    pub(crate) fn podman_pull(&self, store: &str, driver: &str, name: &str) {
        let mut command = Command::new("podman");
        command.arg("--root").arg(self.at(store)).arg("--runroot").arg(self.at(&format!("{store}.run")));
        command.args([
            "--cgroup-manager=cgroupfs",
            "--storage-driver",
            driver,
            "pull",
            "--quiet",
            "--tls-verify=false",
        ]);
        done(command.arg(name));
    }
}

fn done(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Pushes an OCI layout's blobs and its one image into a registry.
pub(crate) fn push(registry: &str, layout: &Path, repository: &str, tag: &str) {
    let agent = ureq::Agent::config_builder().proxy(None).build().new_agent();
    let blobs = layout.join("blobs/sha256");
    for blob in std::fs::read_dir(&blobs).expect("blobs") {
        let blob = blob.expect("a blob");
        let digest = format!("sha256:{}", blob.file_name().to_string_lossy());
        let begun =
            agent.post(format!("http://{registry}/v2/{repository}/blobs/uploads/")).send_empty().expect("an upload");
        let place = begun.headers()["location"].to_str().expect("a location").to_owned();
        let content = std::fs::read(blob.path()).expect("a blob");
        agent.put(format!("{place}&digest={digest}")).send(&content[..]).expect("a blob to be taken");
    }
    let index = std::fs::read(layout.join("index.json")).expect("an index");
    let index: serde_json::Value = serde_json::from_slice(&index).expect("JSON");
    let digest = index["manifests"][0]["digest"].as_str().expect("a digest").trim_start_matches("sha256:").to_owned();
    let manifest = std::fs::read(blobs.join(digest)).expect("a manifest");
    let request = agent.put(format!("http://{registry}/v2/{repository}/manifests/{tag}"));
    let kind = "application/vnd.oci.image.manifest.v1+json";
    request.header("Content-Type", kind).send(&manifest[..]).expect("a manifest to be taken");
}
