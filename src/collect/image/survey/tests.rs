use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::super::walk::{MOST_DIRECTORIES, MOST_NAMES};
use super::*;
use crate::collect::tree::{Kind, Tree};

fn of(root: &Path) -> Observed<Option<String>> {
    survey(&Tree::open(root, Kind::Image).unwrap(), &Hints::default()).into_image().cuda
}

fn with(paths: &[&str]) -> Observed<Option<String>> {
    let dir = tempfile::tempdir().unwrap();
    for path in paths {
        fs::create_dir_all(dir.path().join(path)).unwrap();
    }
    of(dir.path())
}

fn sign(path: &str) -> Observed<Option<String>> {
    Observed::Known(Some(format!("/{path}")))
}

#[test]
fn toolkits_and_their_libraries_are_signs() {
    for path in [
        "usr/local/cuda-12.4/lib64",
        "usr/local/cuda/version.json",
        "usr/lib/x86_64-linux-gnu/libcudart.so.11.0",
        "usr/lib64/libcudart.so",
        "opt/conda/lib/libcudart-d0da41ae.so.11.0",
    ] {
        assert_eq!(with(&[path]), sign(path));
    }
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("usr/local/cuda-13.0/lib64")).unwrap();
    fs::create_dir_all(dir.path().join("etc/alternatives")).unwrap();
    symlink("/usr/local/cuda-13.0", dir.path().join("etc/alternatives/cuda")).unwrap();
    symlink("/etc/alternatives/cuda", dir.path().join("usr/local/cuda")).unwrap();
    assert_eq!(of(dir.path()), sign("usr/local/cuda/lib64"));
}

#[test]
fn frameworks_that_carry_cuda_are_signs_wherever_python_lies() {
    for path in [
        "usr/local/lib/python3.10/site-packages/torch-2.10.0+cu130.dist-info",
        "usr/local/lib/python3.12/dist-packages/vllm-0.17.0.dist-info",
        "usr/lib/python3/dist-packages/cupy_cuda12x-13.3.0.dist-info",
        "opt/conda/lib/python3.11/site-packages/nvidia_cuda_runtime_cu12-12.4.127.dist-info",
        "opt/venv/lib/python3.12/site-packages/onnxruntime_gpu-1.20.1.dist-info",
        "venv/lib/python3.9/site-packages/paddlepaddle_gpu-2.1.0.post101.dist-info",
        "app/.venv/lib/python3.13/site-packages/jax_cuda12_plugin-0.5.0.dist-info",
        "usr/local/lib/python3.8/site-packages/tensorflow_gpu-2.4.0.egg-info",
    ] {
        assert_eq!(with(&[path]), sign(path));
    }
    let packages = "usr/local/lib/python3.11/site-packages";
    let tensorflow = format!("{packages}/tensorflow-2.18.0.dist-info");
    let cudnn = format!("{packages}/nvidia_cudnn_cu12-9.3.0.75.dist-info");
    assert_eq!(with(&[&tensorflow]), Observed::Known(None));
    assert_eq!(with(&[&tensorflow, &cudnn]), sign(&tensorflow));
}

#[test]
fn monitors_and_work_on_the_cpu_show_none() {
    let packages = "usr/local/lib/python3.11/site-packages";
    let others = [
        "torch-2.6.0+cpu.dist-info",
        "torch-2.6.0.dist-info",
        "vllm-0.8.0+cpu.dist-info",
        "tensorflow-2.18.0.dist-info",
        "nvidia_ml_py-12.560.30.dist-info",
        "onnxruntime-1.20.1.dist-info",
        "jaxlib-0.5.0.dist-info",
        "torch",
    ];
    let mut paths: Vec<String> = others.map(|name| format!("{packages}/{name}")).to_vec();
    paths.extend(["usr/local/cuda-12.4".to_owned(), "usr/lib/x86_64-linux-gnu/libcuda.so.1".to_owned()]);
    assert_eq!(with(&paths.iter().map(String::as_str).collect::<Vec<_>>()), Observed::Known(None));
    assert_eq!(with(&[]), Observed::Known(None));
}

#[test]
fn what_could_not_be_looked_at_leaves_it_open_unless_there_is_a_sign() {
    let dir = tempfile::tempdir().unwrap();
    let packages = dir.path().join("usr/lib/python3/dist-packages");
    fs::create_dir_all(&packages).unwrap();
    for n in 0..=MOST_NAMES {
        fs::write(packages.join(format!("{n}.py")), "").unwrap();
    }
    assert_eq!(of(dir.path()).known().unwrap_err().fact, "image.cuda");
    fs::create_dir_all(dir.path().join("usr/local/cuda/lib64")).unwrap();
    assert_eq!(of(dir.path()), sign("usr/local/cuda/lib64"));

    let many: Vec<String> = (0..MOST_DIRECTORIES).map(|n| format!("usr/lib/python3.{n}")).collect();
    assert!(with(&many.iter().map(String::as_str).collect::<Vec<_>>()).known().is_err());
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("usr")).unwrap();
    symlink("lib64", dir.path().join("usr/lib64")).unwrap();
    assert!(of(dir.path()).known().is_err(), "a link to itself");
}

fn frameworks(root: &Path, hints: &Hints<'_>) -> (Vec<(String, Option<String>, bool)>, bool) {
    let found = survey(&Tree::open(root, Kind::Image).unwrap(), hints);
    let told = found.frameworks.into_iter().map(|f| (f.name, f.cuda.map(|cuda| cuda.to_string()), f.sure));
    (told.collect(), found.unread.is_none() && found.open.is_none())
}

fn package(root: &Path, prefix: &str, name: &str, file: Option<(&str, &str)>) {
    let packages = root.join(prefix).join("lib/python3.12/site-packages");
    fs::create_dir_all(packages.join(format!("{name}.dist-info"))).unwrap();
    if let Some((path, text)) = file {
        fs::create_dir_all(packages.join(path).parent().unwrap()).unwrap();
        fs::write(packages.join(path), text).unwrap();
    }
}

#[test]
fn environments_are_found_where_the_container_says() {
    let dir = tempfile::tempdir().unwrap();
    package(dir.path(), "srv/app/.venv", "torch-2.9.0+cu128", None);
    package(dir.path(), "opt/conda/envs/x", "torch-2.11.0", Some(("torch/version.py", "cuda = '13.0'\n")));
    let by_directory = Hints { working_directory: Some("/srv/app/"), ..Hints::default() };
    let (found, whole) = frameworks(dir.path(), &by_directory);
    let torch = |cuda: &str| ("torch".to_owned(), Some(cuda.to_owned()), true);
    assert_eq!((found, whole), (vec![torch("12.8"), torch("13.0")], true));
    let args = ["/srv/app/.venv/bin/python".to_owned()];
    let by_program = Hints { args: &args, ..Hints::default() };
    assert_eq!(frameworks(dir.path(), &by_program).0.len(), 2);
    assert_eq!(frameworks(dir.path(), &Hints::default()).0, [torch("13.0")]);
}

#[test]
fn a_script_that_chooses_an_environment_leaves_open_which_is_used() {
    let dir = tempfile::tempdir().unwrap();
    package(dir.path(), "usr", "torch-2.11.0+cu130", None);
    let args = ["/start.sh".to_owned()];
    let hints = Hints { args: &args, ..Hints::default() };
    let whole = |text: &str| {
        fs::write(dir.path().join("start.sh"), text).unwrap();
        frameworks(dir.path(), &hints).1
    };
    assert!(whole("#!/bin/sh\nexec python /app/main.py\n"));
    assert!(!whole("#!/bin/sh\n. /srv/venv/bin/activate\nexec python\n"));
    assert!(whole("\u{7f}ELF activate"), "no script");
}

#[test]
fn what_a_mount_covers_is_not_what_the_container_has() {
    let dir = tempfile::tempdir().unwrap();
    package(dir.path(), "opt/venv", "torch-2.11.0+cu130", None);
    let mount = |destination: &str| crate::model::container::Mount {
        destination: destination.to_owned(),
        ..crate::model::container::Mount::default()
    };
    for covering in ["/opt/venv", "/opt/", "/opt/venv/lib/python3.12/site-packages"] {
        let mounts = [mount(covering)];
        let hints = Hints { mounts: &mounts, ..Hints::default() };
        assert_eq!(frameworks(dir.path(), &hints), (Vec::new(), false), "{covering}");
    }
    // and so does one over where a link of the image's leads
    std::os::unix::fs::symlink("/opt/venv", dir.path().join("venv")).unwrap();
    let elsewhere = [mount("/opt/venv/lib")];
    let environment = [("VIRTUAL_ENV".to_owned(), "/venv".to_owned())].into();
    let hints = Hints { mounts: &elsewhere, environment: Some(&environment), ..Hints::default() };
    assert_eq!(frameworks(dir.path(), &hints).0.len(), 0);
    std::fs::remove_file(dir.path().join("venv")).unwrap();
    let mounts = [mount("/opt/venv/bin/tool"), mount("/etc/hosts")];
    assert_eq!(frameworks(dir.path(), &Hints { mounts: &mounts, ..Hints::default() }).0.len(), 1);
}

#[test]
fn programs_that_are_no_packages_are_known_by_their_libraries() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    };
    write("app/libggml-cuda.so");
    write("app/libcudart.so.12.8.90");
    for major in ["12", "13"] {
        write(&format!("usr/lib/ollama/cuda_v{major}/libggml-cuda.so"));
    }
    let mut found = frameworks(dir.path(), &Hints::default()).0;
    found.sort();
    let own = |name: &str, cuda: &str| (name.to_owned(), Some(cuda.to_owned()), true);
    assert_eq!(found, [own("llama.cpp", "12.8.90"), own("ollama", "12"), own("ollama", "13")]);
}
