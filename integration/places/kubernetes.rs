//! Kubernetes: the handlers' files say the same names and paths, and a pod as CRI-O 1.30 writes it is judged right.

use serde_json::{Value, json};

use crate::support::bundle::Bundle;
use crate::support::host::SimHost;
use crate::support::scene::Scene;
use crate::support::words::check_refusal;
use crate::support::{needs, repository};

fn file(name: &str) -> String {
    std::fs::read_to_string(repository().join("hooks").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn one_handler_and_one_program_in_every_file() {
    let toml = |name: &str| file(name).parse::<toml::Table>().unwrap_or_else(|error| panic!("{name}: {error}"));
    let crio = &toml("crio.conf")["crio"]["runtime"];
    let program = crio["runtimes"]["gpu-preflight"]["runtime_path"].as_str().expect("a path").to_owned();
    for (name, plugin) in
        [("containerd-1.toml", "io.containerd.grpc.v1.cri"), ("containerd-2.toml", "io.containerd.cri.v1.runtime")]
    {
        let handler = &toml(name)["plugins"][plugin]["containerd"]["runtimes"]["gpu-preflight"];
        assert_eq!(handler["options"]["BinaryName"].as_str(), Some(program.as_str()), "{name}");
    }
    assert!(file("kubernetes-runtimeclass.yaml").lines().any(|line| line == "handler: gpu-preflight"));
    let hook: Value = serde_json::from_str(&file("zz-gpu-preflight.json")).expect("JSON");
    let directory = |path: &str| path.rsplit_once('/').map(|(directory, _)| directory.to_owned());
    assert_eq!(directory(hook["hook"]["path"].as_str().expect("a path")), directory(&program));
    let searched = crio["hooks_dir"].as_array().expect("directories");
    assert!(searched.iter().any(|path| path.as_str() == Some("/usr/share/containers/oci/hooks.d")));
}

/// The annotations that CRI-O gives every container (`server/container_create_linux.go`), without ids.
fn pod(mut bundle: Bundle) -> Bundle {
    bundle.spec["annotations"] = json!({
        "io.kubernetes.cri-o.ContainerType": "container",
        "io.kubernetes.cri-o.ImageName": "registry.example/torch:1",
        "io.kubernetes.cri-o.Name": "k8s_main_trainer_default_0",
        "io.kubernetes.cri-o.SandboxName": "k8s_trainer_default_0",
        "io.kubernetes.cri-o.RuntimeHandler": "gpu-preflight",
        "io.kubernetes.container.name": "main",
        "io.kubernetes.pod.name": "trainer",
        "io.kubernetes.pod.namespace": "default",
    });
    bundle.spec["linux"]["cgroupsPath"] = json!("kubepods-besteffort-pod0.slice:crio:0");
    bundle
}

#[test]
fn a_pod_of_cri_o_with_a_stale_node_is_refused_and_one_without_gpu_starts() {
    if !needs::root() {
        return;
    }
    let scene = Scene::on(&SimHost::default());
    let mut stale = Bundle::cdi_laid_out(&scene.bundle(), 2);
    stale.renumber_uvm(507);
    std::fs::remove_file(stale.rootfs().join("dev/nvidia-uvm")).expect("a node");
    stale.make_node("/dev/nvidia-uvm", 507, 0);
    check_refusal(&scene.judge(&pod(stale)), 11, "uvm-major-mismatch");
    let ended = scene.judge(&pod(Bundle::asking(&scene.bundle())));
    assert_eq!(ended.code(), 0, "a CUDA image without a GPU resource is an ordinary pod: {ended:?}");
    assert!(scene.logged().iter().all(|line| line["engine"] == "crio"), "{:?}", scene.logged());
}
