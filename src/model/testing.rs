//! Machines written down by hand, for the tests of those who judge and of those who report.

use super::host::{
    CdiDevice, CdiNode, CdiSpec, DriverLibrary, DriverRoot, Engine, EngineKind, Gpu, KernelModule, Majors, ModuleFiles,
    Node, PciFunction,
};
use super::{Host, Observed};

pub(crate) fn known<T>(value: T) -> Observed<T> {
    Observed::Known(value)
}

/// Nodes of a machine with `gpus` GPUs, by path: number.
pub(crate) fn numbers(gpus: u32) -> Vec<(String, u32, u32)> {
    let mut all: Vec<_> = (0..gpus).map(|n| (format!("/dev/nvidia{n}"), 195, n)).collect();
    all.extend([
        ("/dev/nvidiactl".into(), 195, 255),
        ("/dev/nvidia-modeset".into(), 195, 254),
        ("/dev/nvidia-uvm".into(), 511, 0),
        ("/dev/nvidia-uvm-tools".into(), 511, 1),
    ]);
    all
}

/// A machine with `gpus` GPUs on which all is well: driver 550.163.01, docker with the toolkit.
pub(crate) fn host(gpus: u32) -> Host {
    let version: crate::model::DriverVersion = "550.163.01".parse().unwrap();
    let mut host = Host {
        kernel: known("6.1.0-30-amd64".into()),
        architecture: known("x86_64".into()),
        pci: known(
            (0..gpus)
                .map(|n| PciFunction {
                    address: format!("0000:{:02x}:00.0", n + 1),
                    device: 0x2330,
                    driver: Some("nvidia".into()),
                    virtual_function: false,
                })
                .collect(),
        ),
        gpus: known(
            (0..gpus)
                .map(|n| Gpu {
                    index: n,
                    pci: format!("0000:{:02x}:00.0", n + 1),
                    uuid: Some(format!("GPU-0000000{n}-0000-4000-8000-000000000001")),
                    minor: Some(n),
                    name: Some("NVIDIA H100".into()),
                    ..Gpu::default()
                })
                .collect(),
        ),
        majors: known(Majors(
            [("nvidia", 195), ("nvidiactl", 195), ("nvidia-modeset", 195), ("nvidia-uvm", 511), ("nvidia-caps", 510)]
                .map(|(n, m)| (n.to_owned(), m))
                .into(),
        )),
        device_nodes: known(
            numbers(gpus)
                .into_iter()
                .map(|(path, major, minor)| (path, Node { major, minor, mode: 0o666, ..Node::default() }))
                .collect(),
        ),
        engines: vec![Engine {
            runtimes: [("nvidia".to_owned(), "/usr/bin/nvidia-container-runtime".to_owned())].into(),
            ..Engine::new(EngineKind::Docker, "/usr/bin/dockerd")
        }],
        ..Host::default()
    };
    host.driver.version = known(Some(version.clone()));
    host.driver.open_kernel_modules = known(Some(true));
    host.driver.modules = known(
        ["nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm"]
            .map(|m| (m.to_owned(), KernelModule { version: Some("550.163.01".into()) }))
            .into(),
    );
    host.driver.module_files = known(ModuleFiles {
        running: ["nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm"].map(str::to_owned).into(),
        kernels: [("6.1.0-30-amd64".to_owned(), true)].into(),
        signed: Some(true),
        ..ModuleFiles::default()
    });
    host.driver.root = DriverRoot { path: "/".into(), source: "default".into() };
    host.driver.libraries = known(
        ["libcuda", "libnvidia-ml"]
            .map(|name| DriverLibrary {
                name: name.into(),
                path: format!("/usr/lib/x86_64-linux-gnu/{name}.so.550.163.01"),
                version: Some(version.clone()),
                current: true,
                size: 1 << 20,
            })
            .into(),
    );
    host.toolkit.version = known(Some("1.17.8".parse().unwrap()));
    host.toolkit.programs = known(
        [
            "nvidia-container-runtime",
            "nvidia-container-runtime-hook",
            "nvidia-container-cli",
            "nvidia-ctk",
            "nvidia-cdi-hook",
        ]
        .map(|p| (p.to_owned(), format!("/usr/bin/{p}")))
        .into(),
    );
    host
}

/// A machine that never heard of NVIDIA.
pub(crate) fn bare_host() -> Host {
    Host { kernel: known("6.1.0-30-amd64".into()), architecture: known("x86_64".into()), ..Host::default() }
}

/// A CDI specification with one GPU.
pub(crate) fn cdi_spec() -> CdiSpec {
    let node = CdiNode { path: "/dev/nvidia0".into(), ..CdiNode::default() };
    CdiSpec {
        path: "/etc/cdi/nvidia.yaml".into(),
        kind: "nvidia.com/gpu".into(),
        devices: vec![CdiDevice { name: "all".into(), nodes: vec![node] }],
        ..CdiSpec::default()
    }
}
