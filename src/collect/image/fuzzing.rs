//! The readers of what an image's author wrote, for the fuzzers: each takes any bytes, and must come to an end without a
//! panic. Built with the feature `fuzzing` alone (`integration/fuzz`) and in the tests, which try again what was found.

use std::io::{self, Cursor};

use super::binary::{self, Scanner};
use super::layer::{self, Blob};
use super::source::{Found, Wish};
use super::{configuration, examine, source};
use crate::model::image::Configuration;

/// Longer files tell nothing more about the readers.
const MOST_BYTES: usize = 1 << 20;

/// A whole archive as it comes on standard input: an OCI archive, docker's, or a packed one.
pub fn archive(bytes: &[u8]) {
    if let Ok(found) = source::in_passing(Box::new(Cursor::new(bytes.to_vec())), &Wish::default()) {
        examine(&found);
    }
}

/// A layer: an archive of files, packed or not.
pub fn layer(bytes: &[u8]) {
    look(bytes.to_vec());
}

/// A program or library, in pieces as a stream has them and by its headers: both ways tell the same of what they could
/// read whole.
///
/// # Panics
///
/// Where they do not.
pub fn program(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let mut scanner = Scanner::new(bytes.len() as u64);
    for piece in bytes.chunks(usize::from(*first) + 1) {
        scanner.push(piece);
    }
    let passed = scanner.finish();
    let read = binary::read(&mut |at, buffer| Ok(read_at(bytes, at, buffer)), bytes.len() as u64);
    assert_eq!(passed.architecture, read.architecture);
}

/// A file by which frameworks, packages and the loader's configuration are told: the first byte says which.
pub fn metadata(bytes: &[u8]) {
    const FILES: [&str; 14] = [
        "usr/lib/python3/dist-packages/torch/version.py",
        "usr/lib/python3/dist-packages/tensorflow/python/platform/build_info.py",
        "usr/lib/python3/dist-packages/paddle/version/__init__.py",
        "usr/lib/python3/dist-packages/onnxruntime/capi/build_and_package_info.py",
        "usr/lib/python3/dist-packages/cupy/.data/_wheel.json",
        "usr/lib/python3/dist-packages/torch-2.9.0.dist-info/METADATA",
        "opt/conda/conda-meta/pytorch-2.5.1-py3.12_cuda12.4.json",
        "var/lib/dpkg/status",
        "var/lib/rpm/rpmdb.sqlite",
        "etc/ld.so.conf",
        "etc/ld.so.cache",
        "usr/local/cuda-12.4/version.json",
        "etc/nv_tegra_release",
        "entrypoint.sh",
    ];
    let Some((first, bytes)) = bytes.split_first() else { return };
    // every framework is there, so that its file is asked for
    let names = ["torch-2.9.0", "tensorflow-2.18.0", "paddlepaddle_gpu-3.0", "onnxruntime_gpu-1.20", "cupy_cuda12x-13"];
    let mut files: Vec<(String, &[u8])> =
        names.map(|name| (format!("usr/lib/python3/dist-packages/{name}.dist-info/METADATA"), &b""[..])).to_vec();
    files.push((FILES[usize::from(*first) % FILES.len()].to_owned(), &bytes[..bytes.len().min(MOST_BYTES)]));
    look(archive_of(&files));
}

/// An image's configuration.
pub fn configuration(bytes: &[u8]) {
    if let Ok(configuration) = configuration::parse(bytes) {
        examine(&found(configuration, None));
    }
}

fn look(archive: Vec<u8>) {
    let size = Some(archive.len() as u64);
    let open = Box::new(|| Ok(Box::new(Cursor::new(archive)) as Box<dyn io::Read + Send>));
    let blob = Blob { label: "layer".to_owned(), digest: None, diff_id: None, size, open, parts: None };
    if let Ok(view) = layer::read(vec![blob], &Wish::default()) {
        let configuration = Configuration { entrypoint: vec!["/entrypoint.sh".to_owned()], ..Configuration::default() };
        examine(&found(configuration, Some(view)));
    }
}

fn found(configuration: Configuration, files: Option<super::view::View>) -> Found {
    Found { source: String::new(), configuration, id: None, files, remarks: Vec::new() }
}

fn read_at(bytes: &[u8], at: u64, buffer: &mut [u8]) -> usize {
    let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
    let count = rest.len().min(buffer.len());
    buffer[..count].copy_from_slice(&rest[..count]);
    count
}

/// A tar archive of such files, as plain as there is (POSIX ustar).
fn archive_of(files: &[(String, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, bytes) in files {
        let mut header = [0u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000755");
        header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        header[148..156].copy_from_slice(b"        ");
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        archive.extend(header);
        archive.extend(*bytes);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.extend([0; 1024]);
    archive
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::tree::{Kind, Tree};

    type Target = fn(&[u8]);

    /// What the fuzzers found, each in a file of its target's folder.
    #[test]
    fn what_was_found_is_read_without_a_panic() {
        let finds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("integration/fuzz/finds");
        let targets: [(&str, Target); 5] = [
            ("archive", archive),
            ("layer", layer),
            ("program", program),
            ("metadata", metadata),
            ("configuration", configuration),
        ];
        let finds = Tree::open(&finds, Kind::Host).unwrap();
        for (name, target) in targets {
            for file in finds.list(name, 4096).unwrap().expect(name) {
                let path = format!("{name}/{}", file.to_str().unwrap());
                target(&finds.read(&path, MOST_BYTES).unwrap().unwrap());
            }
        }
    }

    #[test]
    fn the_files_reach_their_readers() {
        let torch = b"__version__ = '2.9.0+cu128'\ncuda: Optional[str] = '12.8'\n";
        let files = [
            ("usr/lib/python3/dist-packages/torch-2.9.0.dist-info/METADATA".to_owned(), &b""[..]),
            ("usr/lib/python3/dist-packages/torch/version.py".to_owned(), &torch[..]),
        ];
        let archive = archive_of(&files);
        let size = Some(archive.len() as u64);
        let open = Box::new(|| Ok(Box::new(Cursor::new(archive)) as Box<dyn io::Read + Send>));
        let blob = Blob { label: String::new(), digest: None, diff_id: None, size, open, parts: None };
        let view = layer::read(vec![blob], &Wish::default()).unwrap();
        let image = examine(&found(Configuration::default(), Some(view)));
        let frameworks = &image.frameworks.seen().unwrap().items;
        assert_eq!(frameworks[0].cuda.as_ref().map(ToString::to_string).as_deref(), Some("12.8"));
    }
}
