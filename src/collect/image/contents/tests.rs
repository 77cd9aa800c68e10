use std::collections::BTreeMap;

use super::super::binary::testing::{Made, container, cubin};
use super::*;
use crate::collect::image::binary::Scanner;
use crate::collect::image::condense::Condenser;
use crate::model::image::{Libc, LibcKind, Manager};

/// An image of such files, kept as a stream keeps them.
#[derive(Default)]
struct Files(BTreeMap<String, Entry>);

impl Files {
    fn put(&mut self, path: &str, bytes: &[u8]) {
        let size = bytes.len() as u64;
        let content = match interest(path.trim_start_matches('/'), size, true) {
            Interest::Nothing => return,
            Interest::Name => Content::Nothing,
            Interest::Text(most) | Interest::Script(most) => Content::Bytes(bytes[..bytes.len().min(most)].to_vec()),
            Interest::Binary => {
                let mut scanner = Scanner::new(size);
                scanner.push(bytes);
                Content::Binary(Box::new(scanner.finish()))
            }
            Interest::Packages(database) => {
                let mut condenser = Condenser::new(database);
                condenser.push(bytes);
                Content::Bytes(condenser.finish().into_bytes())
            }
        };
        let kind = Some(NodeKind::File);
        let entry = Entry { kind, target: String::new(), size, mode: 0o755, layer: 0, content };
        self.0.insert(path.to_owned(), entry);
    }

    fn link(&mut self, path: &str, target: &str) {
        let target = target.to_owned();
        let entry = Entry { kind: None, target, size: 0, mode: 0o777, layer: 0, content: Content::Nothing };
        self.0.insert(path.to_owned(), entry);
    }

    fn image(&self) -> Image {
        look(&View::new(self.0.clone(), Vec::new(), Vec::new()), &Hints::default())
    }
}

const PACKAGES: &str = "/srv/env/lib/python3.12/site-packages";

fn library(number: u32) -> Vec<u8> {
    Made { name: "libcudart.so.12", ..Made::new() }.with_runtime(number).bytes()
}

fn runtimes_of(image: &Image) -> Vec<(String, String, bool)> {
    let items = &image.runtimes.seen().unwrap().items;
    items.iter().map(|r| (r.version.to_string(), r.source.clone(), r.linked_in)).collect()
}

#[test]
fn a_libcuda_for_forward_compatibility_is_found_wherever_it_lies() {
    let mut files = Files::default();
    files.put("/opt/conda/envs/app/cuda-compat/libcuda.so.580.65.06", &Made::new().bytes());
    files.link("/opt/conda/envs/app/cuda-compat/libcuda.so.1", "libcuda.so.580.65.06");
    files.put("/usr/local/cuda-13.0/lib64/stubs/libcuda.so.1", &Made::new().bytes());
    let image = files.image();
    let compat = &image.compat.seen().unwrap().items;
    let told: Vec<(&str, Option<String>)> =
        compat.iter().map(|c| (c.directory.as_str(), c.version.as_ref().map(ToString::to_string))).collect();
    assert_eq!(told, [("/opt/conda/envs/app/cuda-compat", Some("580.65.06".to_owned()))]);
}

#[test]
fn a_command_of_any_name_may_choose_an_environment() {
    let mut files = Files::default();
    files.put(&format!("{PACKAGES}/torch-2.9.0+cu128.dist-info/METADATA"), b"Name: torch\n");
    files.put("/app/serve", b"#!/bin/bash\nsource /opt/other/bin/activate\nexec serve\n");
    files.put("/app/plain", b"#!/bin/bash\nexec serve\n");
    let view = View::new(files.0.clone(), Vec::new(), Vec::new());
    let is_open = |word: &str| {
        let args = [word.to_owned()];
        let hints = Hints { args: &args, working_directory: Some("/app"), ..Hints::default() };
        !look(&view, &hints).frameworks.seen().unwrap().unread.is_empty()
    };
    assert!(is_open("/app/serve") && is_open("./serve") && is_open("serve"));
    assert!(!is_open("/app/plain"));
}

#[test]
fn frameworks_are_found_wherever_they_lie_and_not_in_caches() {
    let mut files = Files::default();
    for place in ["/srv/env/lib/python3.12/site-packages", "/root/.pyenv/versions/3.11/lib/python3.11/site-packages"] {
        files.put(&format!("{place}/torch-2.9.0+cu128.dist-info/METADATA"), b"Name: torch\n");
        files.put(&format!("{place}/torch/version.py"), b"cuda: Optional[str] = '12.8'\n");
    }
    for place in [
        "/root/.cache/pypoetry/virtualenvs/app-x-py3.12/lib/python3.12/site-packages",
        "/root/.cache/uv/environments-v2/app-1/lib/python3.12/site-packages",
    ] {
        files.put(&format!("{place}/jax_cuda13_plugin-0.7.0.dist-info/METADATA"), b"Name: jax-cuda13-plugin\n");
    }
    for cache in ["/root/.cache/uv/archive-v0/x", "/opt/conda/pkgs/pytorch-2.1/lib/python3.11/site-packages"] {
        files.put(&format!("{cache}/torch-2.0.0+cu118.dist-info/METADATA"), b"Name: torch\n");
    }
    files.put("/x/y/libggml-cuda.so", &Made::new().bytes());
    files.put("/x/y/libcudart.so.12.4.127", &library(12_040));
    files.put("/opt/o/lib/ollama/cuda_v13/libggml-cuda.so", &Made::new().bytes());
    let image = files.image();
    let frameworks = &image.frameworks.seen().unwrap().items;
    let told: Vec<String> = frameworks.iter().map(|f| format!("{} {}", f.name, f.cuda.as_ref().unwrap())).collect();
    let (jax, others): (Vec<_>, Vec<_>) = told.into_iter().partition(|told| told.starts_with("jax"));
    assert_eq!(jax, ["jax-cuda13-plugin 13", "jax-cuda13-plugin 13"]);
    assert_eq!(others, ["torch 12.8", "torch 12.8", "ollama 13", "llama.cpp 12.4.127"]);
    assert!(frameworks.iter().all(|framework| framework.sure));
}

#[test]
fn a_runtime_counts_once_and_as_exactly_as_anything_tells() {
    let mut files = Files::default();
    files.put(&format!("{PACKAGES}/nvidia_cuda_runtime_cu12-12.8.90.dist-info/METADATA"), b"");
    files.put(&format!("{PACKAGES}/nvidia/cuda_runtime/lib/libcudart.so.12"), &library(12_080));
    files.put("/usr/lib/x86_64-linux-gnu/libcudart.so.12.2.140", &library(12_020));
    files.link("/usr/lib/x86_64-linux-gnu/libcudart.so.12", "libcudart.so.12.2.140");
    files.put("/opt/tool/lib/libcudart-d0da41ae.so.11.0", &library(11_030));
    files.put("/opt/tool/lib/libcudart.so.12", b"");
    let code = container(&[cubin(90)]);
    files.put("/opt/tool/bin/miner.so", &Made { code: code.clone(), ..Made::new() }.with_runtime(12_060).bytes());
    files.put("/opt/tool/lib/libcublas.so.12", &Made { code, ..Made::new() }.with_runtime(12_060).bytes());
    let own = |text: &str| text.to_owned();
    assert_eq!(
        runtimes_of(&files.image()),
        [
            (own("12.2.140"), own("/usr/lib/x86_64-linux-gnu/libcudart.so.12"), false),
            (own("12.8.90"), format!("{PACKAGES}/nvidia_cuda_runtime_cu12-12.8.90.dist-info"), false),
            (own("11.3"), own("/opt/tool/lib/libcudart-d0da41ae.so.11.0"), false),
            (own("12.6"), own("/opt/tool/bin/miner.so"), true),
        ]
    );
}

#[test]
fn a_runtime_is_a_sign_of_cuda_and_so_is_a_toolkit_without_one() {
    let mut files = Files::default();
    assert_eq!(files.image().cuda, Observed::Known(None));
    files.put("/data/x/libcudart.so.12", &library(12_060));
    assert_eq!(files.image().cuda, Observed::Known(Some("/data/x/libcudart.so.12".into())));
    assert_eq!(runtimes_of(&files.image())[0].0, "12.6");
    files.put("/usr/local/cuda-11.8/version.json", br#"{"cuda": {"name": "CUDA SDK", "version": "11.8.20220929"}}"#);
    files.put("/usr/local/cuda-10.2/version.txt", b"CUDA Version 10.2.89\n");
    let versions: Vec<String> = runtimes_of(&files.image()).into_iter().map(|(version, ..)| version).collect();
    assert_eq!(versions, ["12.6", "10.2.89", "11.8.20220929"]);
}

#[test]
fn code_is_told_file_by_file() {
    let mut files = Files::default();
    let code = [container(&[cubin(75), cubin(90)]), container(&[cubin(90)])].concat();
    files.put(&format!("{PACKAGES}/x/_C.cpython-312-x86_64-linux-gnu.so"), &Made { code, ..Made::new() }.bytes());
    let image = files.image();
    let code = &image.device_code.seen().unwrap().items;
    assert_eq!(code.len(), 1);
    assert!(code[0].source.ends_with("/x/_C.cpython-312-x86_64-linux-gnu.so"));
    let containers: Vec<_> = code[0].groups.iter().map(|group| (group.machine.join(" "), group.containers)).collect();
    assert_eq!(containers, [("7.5 9.0".to_owned(), 1), ("9.0".to_owned(), 1)]);
}

#[test]
fn packages_of_all_managers() {
    let mut files = Files::default();
    files.put(&format!("{PACKAGES}/nvidia_cudnn_cu12-9.10.2.21.dist-info/METADATA"), b"");
    files.put(&format!("{PACKAGES}/numpy-2.3.dist-info/METADATA"), b"");
    files.put(&format!("{PACKAGES}/tensorrt.egg-info/PKG-INFO"), b"Name: tensorrt\nVersion: 10.9.0.34\n\nVersion: 1\n");
    files.put("/opt/conda/conda-meta/pytorch-2.1.0-py3.11_cuda12.1_cudnn8.9.2_0.json", b"{}");
    files.put("/opt/conda/conda-meta/history", b"");
    files.put(
        "/var/lib/dpkg/status",
        b"Package: libnccl2\nStatus: install ok installed\nVersion: 2.27.3-1+cuda12.9\n\n\
          Package: libcudnn9\nStatus: deinstall ok config-files\nVersion: 9\n\n\
          Package: libc6\nStatus: install ok installed\nVersion: 2.36-9+deb12u10\n",
    );
    files.put("/var/lib/dpkg/status.d/cuda-cudart-12-8", b"Package: cuda-cudart-12-8\nVersion: 12.8.90-1\n");
    let of_rpm: &[u8] = include_bytes!("../condense/fixtures/rpmdb.sqlite.gz");
    let mut database = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(of_rpm), &mut database).unwrap();
    files.put("/var/lib/rpm/rpmdb.sqlite", &database);
    files.put("/var/lib/rpm/rpmdb.sqlite-wal", b"");
    let image = files.image();
    let all = image.packages.seen().unwrap().all().unwrap();
    let by_rpm: Vec<&str> = all.iter().filter(|p| p.manager == Manager::Rpm).map(|p| &*p.version).collect();
    assert_eq!(by_rpm.len(), 4, "{by_rpm:?}");
    assert!(by_rpm.contains(&"9.10.2.21-1"));
    let mut other = Files::default();
    other.put("/var/lib/rpm/Packages", b"Berkeley DB");
    assert!(other.image().packages.seen().unwrap().all().is_err(), "a database that is not read");
    let told: Vec<_> =
        image.packages.seen().unwrap().items.iter().map(|p| (&*p.name, &*p.version, p.manager)).collect();
    assert_eq!(
        told[..5],
        [
            ("nvidia-cudnn-cu12", "9.10.2.21", Manager::Pip),
            ("tensorrt", "10.9.0.34", Manager::Pip),
            ("pytorch", "2.1.0", Manager::Conda),
            ("libnccl2", "2.27.3-1+cuda12.9", Manager::Dpkg),
            ("cuda-cudart-12-8", "12.8.90-1", Manager::Dpkg),
        ]
    );
    let build = image.packages.seen().unwrap().items.iter().find_map(|package| package.build.as_deref());
    assert_eq!(build, Some("py3.11_cuda12.1_cudnn8.9.2_0"));
}

#[test]
fn the_c_librarys_package_tells_its_release() {
    let mut files = Files::default();
    files.put("/var/lib/dpkg/status", b"Package: libc6\nStatus: install ok installed\nVersion: 2.36-9+deb12u10\n");
    let view = View::new(files.0, Vec::new(), Vec::new());
    let of = |version: Option<&str>| {
        let libc = Libc { kind: LibcKind::Glibc, version: version.map(str::to_owned), source: "/lib/x".to_owned() };
        let mut image = Image { libc: Observed::Known(Some(libc)), ..Image::default() };
        packages::complete_libc(&packages::of(&view, &[]).0, &mut image);
        image.libc.seen().unwrap().as_ref().unwrap().version.clone()
    };
    assert_eq!(of(None).as_deref(), Some("2.36"));
    assert_eq!(of(Some("2.35")).as_deref(), Some("2.35"), "what its file says counts");
}

fn missing_in(files: &Files) -> Vec<(String, String)> {
    let image = files.image();
    image.missing.seen().unwrap().items.iter().map(|m| (m.name.clone(), m.needed_by.clone())).collect()
}

#[test]
fn what_a_frameworks_library_needs_and_nothing_brings_is_missing() {
    let needing = |needed: &[&'static str]| Made { needed: needed.to_vec(), ..Made::new() }.bytes();
    let mut files = Files::default();
    let provider = needing(&["libcublas.so.12", "libcudart.so.12", "libcuda.so.1", "libc.so.6"]);
    files.put(&format!("{PACKAGES}/onnxruntime/capi/libonnxruntime_providers_cuda.so"), &provider);
    let optional = needing(&["libnvinfer.so.10"]);
    files.put(&format!("{PACKAGES}/onnxruntime/capi/libonnxruntime_providers_tensorrt.so"), &optional);
    let own = |name: &str| (name.to_owned(), "libonnxruntime_providers_cuda.so".to_owned());
    assert_eq!(missing_in(&files), [own("libcublas.so.12"), own("libcudart.so.12")]);
    // wherever it lies, something may lead the loader to it
    files.put("/opt/tool/lib/libcudart.so.12", &library(12_080));
    assert_eq!(missing_in(&files), [own("libcublas.so.12")]);
    files.link("/opt/tool/lib/libcublas.so.12", "libcublas.so.12.8.4.1");
    assert_eq!(missing_in(&files), []);
    files.0.remove("/opt/tool/lib/libcublas.so.12");
    files.put("/opt/tool/lib/libcublas.so.12", b"");
    assert_eq!(missing_in(&files), [own("libcublas.so.12")], "a file without a byte");
    files.put("/etc/nv_tegra_release", b"# R32");
    assert_eq!(missing_in(&files), [], "the host's are mounted");
}

#[test]
fn libraries_that_are_loaded_by_name_are_those_of_the_table() {
    let mut files = Files::default();
    files.put(&format!("{PACKAGES}/cupy_cuda12x-13.6.0.dist-info/METADATA"), b"");
    files.put(&format!("{PACKAGES}/cupy/.data/_wheel.json"), br#"{"cuda": "12.x"}"#);
    assert_eq!(missing_in(&files), [("libnvrtc.so.12".to_owned(), "cupy-cuda12x 13.6.0".to_owned())]);
    // where no survey of the usual places looks
    files.put("/data/x/libnvrtc.so.12", &Made::new().bytes());
    assert_eq!(missing_in(&files), []);
}

#[test]
fn nothing_is_missing_where_not_all_was_read() {
    let mut files = Files::default();
    let needing = Made { needed: vec!["libcudart.so.12"], ..Made::new() }.bytes();
    files.put(&format!("{PACKAGES}/torch/lib/libtorch_cuda.so"), &needing);
    assert_eq!(missing_in(&files).len(), 1);
    let view = View::new(files.0, Vec::new(), vec![Unseen::new("layer 2", "cut off")]);
    let missing = look(&view, &Hints::default()).missing;
    assert!(missing.seen().is_some_and(|missing| missing.items.is_empty() && missing.all().is_err()));
}
