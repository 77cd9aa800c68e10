//! Machines with a driver and a GPU, and containers whose root file system has CUDA in it.

use serde_json::Value;

use crate::support::bundle::{Bundle, devices, libraries};
use crate::support::host::SimHost;
pub(super) use crate::support::layout::PACKAGES;
use crate::support::process::Ended;
use crate::support::programs::{self, gpu_preflight};
use crate::support::scene::Scene;
use crate::support::words::check;
use crate::support::{link, write};

/// The exit code of a refusal for what the image has.
const OF_IMAGE: i32 = 14;

/// A GPU: what the driver calls it, and its PCI device id.
pub(super) type Gpu = (&'static str, &'static str);

pub(super) const A100: Gpu = ("NVIDIA A100-SXM4-80GB", "0x20b2");
pub(super) const H100: Gpu = ("NVIDIA H100 80GB HBM3", "0x2330");
pub(super) const GEFORCE: Gpu = ("NVIDIA GeForce RTX 3090", "0x2204");

/// A machine with one GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine {
    pub(super) driver: &'static str,
    pub(super) gpu: Gpu,
    /// The release of NVIDIA's toolkit.
    pub(super) toolkit: &'static str,
}

/// How the container gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By docker: NVIDIA's hook has run when ours looks.
    Docker,
    /// NVIDIA's hook comes behind ours.
    HookBehind,
    Cdi,
    /// By a specification that has NVIDIA's hook for forward compatibility.
    CdiWithCompat,
}

/// What is in the image.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// A variable.
    Env(&'static str),
    /// `PyTorch`: its version, and the CUDA it was built for.
    Torch(&'static str, &'static str),
    /// The directory of a package's metadata, `NAME-VERSION`.
    Package(&'static str),
    /// A file with a text.
    File(&'static str, &'static str),
    /// A library, with the links by which loaders ask for it.
    Library(&'static str, &'static str),
    /// A toolkit, as `/usr/local/cuda`, and the driver's version of the libcuda that it brings.
    Compat(&'static str, &'static str),
}

/// A container on its machine.
#[derive(Debug)]
pub(super) struct Laid {
    pub(super) scene: Scene,
    pub(super) bundle: Bundle,
    way: Way,
}

impl Machine {
    /// Lays out the machine and a container on it. Needs root.
    pub(super) fn with(&self, way: Way, parts: &[Part]) -> Laid {
        let scene = Scene::on(&SimHost { driver: self.driver, gpu: self.gpu, ..SimHost::gpus(1) });
        let status = format!(
            "Package: nvidia-container-toolkit\nStatus: install ok installed\nArchitecture: amd64\nVersion: {}-1\n\n",
            self.toolkit
        );
        write(&scene.host().join("var/lib/dpkg/status"), status);
        for program in ["nvidia-container-runtime-hook", "nvidia-container-cli", "nvidia-ctk", "nvidia-cdi-hook"] {
            let at = scene.host().join("usr/bin").join(program);
            write(&at, "");
            std::fs::set_permissions(&at, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
        }
        // A hook at createRuntime looks into the container by its first process.
        link("/", &scene.host().join("proc/1/root"));
        let mut bundle = Bundle::asking(&scene.bundle());
        if let Way::Cdi | Way::CdiWithCompat = way {
            bundle.env("NVIDIA_VISIBLE_DEVICES=void");
        }
        for part in parts {
            lay(&mut bundle, *part);
        }
        self.give(&mut bundle, way);
        bundle.write();
        Laid { scene, bundle, way }
    }

    fn give(&self, bundle: &mut Bundle, way: Way) {
        let ours = programs::hook();
        let nvidia = std::path::Path::new("/usr/bin/nvidia-container-runtime-hook");
        match way {
            Way::Docker => bundle.hook("prestart", nvidia, &["prestart"]),
            Way::HookBehind => {
                bundle.hook("createRuntime", &ours, &["--stage", "createRuntime"]);
                bundle.hook("createRuntime", nvidia, &["prestart"]);
                return;
            }
            Way::Cdi | Way::CdiWithCompat => {
                for device in devices(1) {
                    bundle.give(&device);
                }
            }
        }
        if way == Way::CdiWithCompat {
            let version = format!("--host-driver-version={}", self.driver);
            let hook = std::path::Path::new("/usr/bin/nvidia-cdi-hook");
            bundle.hook("createContainer", hook, &["enable-cuda-compat", &version]);
        }
        // As a hook at createContainer sees it: what was given stands in the rootfs.
        for (path, major, minor) in devices(1) {
            bundle.make_node(&path, major, minor);
        }
        let name = format!("libcuda.so.{}", self.driver);
        let at = bundle.rootfs().join(libraries());
        std::fs::copy(self.library(bundle), at.join(&name)).expect("a library");
        link(&name, &at.join("libcuda.so.1"));
        if let Way::Cdi | Way::CdiWithCompat = way {
            let mounts = bundle.spec["mounts"].as_array_mut().expect("mounts");
            mounts.push(serde_json::json!({
                "destination": format!("/{}/{name}", libraries()),
                "source": format!("/{}/{name}", libraries()),
                "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"],
            }));
        }
    }

    /// The host's own.
    fn library(&self, bundle: &Bundle) -> std::path::PathBuf {
        let host = bundle.dir.parent().expect("the scene").join("host");
        host.join(libraries()).join(format!("libcuda.so.{}", self.driver))
    }
}

fn lay(bundle: &mut Bundle, part: Part) {
    let rootfs = bundle.rootfs();
    let info = |name: &str| write(&rootfs.join(format!("{PACKAGES}/{name}.dist-info/METADATA")), "");
    match part {
        Part::Env(variable) => bundle.env(variable),
        Part::Torch(version, cuda) => {
            info(&format!("torch-{version}"));
            let text = format!(
                "from typing import Optional\n\n__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = '{cuda}'\n"
            );
            write(&rootfs.join(format!("{PACKAGES}/torch/version.py")), text);
        }
        Part::Package(name) => info(name),
        Part::File(path, text) => write(&rootfs.join(path), text),
        Part::Library(directory, name) => {
            write(&rootfs.join(directory).join(name), "");
            let (stem, version) = name.split_once(".so.").expect("a library's name");
            let major = version.split('.').next().unwrap_or(version);
            link(name, &rootfs.join(directory).join(format!("{stem}.so.{major}")));
        }
        Part::Compat(cuda, driver) => {
            let compat = rootfs.join(format!("usr/local/cuda-{cuda}/compat"));
            write(&compat.join(format!("libcuda.so.{driver}")), "");
            link(format!("libcuda.so.{driver}"), &compat.join("libcuda.so.1"));
            write(&rootfs.join(format!("usr/local/cuda-{cuda}/lib64/libnvrtc.so")), "");
            link(format!("cuda-{cuda}"), &rootfs.join("usr/local/cuda"));
        }
    }
}

impl Laid {
    /// What the hook makes of it, where it stands.
    pub(super) fn judge(&self) -> Ended {
        let stage = if self.way == Way::HookBehind { "createRuntime" } else { "createContainer" };
        self.scene.hook().args(["--stage", stage]).stdin(self.bundle.state(1)).end()
    }

    /// What `container` says.
    pub(super) fn text(&self) -> Ended {
        self.text_with(&[])
    }

    /// The same with further arguments.
    pub(super) fn text_with(&self, args: &[&str]) -> Ended {
        let [host, bundle] = [self.scene.host(), self.bundle.dir.clone()].map(|path| path.display().to_string());
        gpu_preflight(&["container", &bundle, "--host-root", &host]).args(args).end()
    }

    /// The same as JSON.
    pub(super) fn json(&self) -> Value {
        let ended = self.text_with(&["--format", "json"]);
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }

    /// The hook's decision, and its findings by id and severity. A refusal is one for the image, in proper words.
    pub(super) fn decided(&self) -> (i32, Vec<(String, String)>) {
        let ended = self.judge();
        let code = ended.code();
        assert!(code == 0 || code == OF_IMAGE, "{ended:?}");
        check(&ended);
        let logged = self.scene.logged();
        (code, findings(logged.last().unwrap_or_else(|| panic!("nothing was logged: {ended:?}"))))
    }
}

/// Of a report or a line of the log.
pub(super) fn findings(document: &Value) -> Vec<(String, String)> {
    let of = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let all = document["findings"].as_array().cloned().unwrap_or_default();
    all.iter().map(|finding| (of(finding, "id"), of(finding, "severity"))).collect()
}

/// The one with this id.
pub(super) fn finding<'a>(document: &'a Value, id: &str) -> &'a Value {
    let all = document["findings"].as_array().expect("findings");
    all.iter().find(|finding| finding["id"] == id).unwrap_or_else(|| panic!("{id} is not among {all:#?}"))
}
