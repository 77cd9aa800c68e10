//! Small images in the form of an OCI layout, made by the tests themselves.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::write;

/// Where the packages of Python lie.
pub(crate) const PACKAGES: &str = "usr/local/lib/python3.11/site-packages";

/// An image to be laid out.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Path and text.
    pub(crate) files: Vec<(String, String)>,
    pub(crate) env: Vec<String>,
    pub(crate) architecture: &'static str,
}

impl Layout {
    /// An image with nothing in it but a file.
    pub(crate) fn plain() -> Self {
        let files = vec![("etc/os-release".to_owned(), "ID=debian\n".to_owned())];
        Self { files, env: Vec::new(), architecture: "amd64" }
    }

    /// An image with `PyTorch`.
    pub(crate) fn torch(version: &str, cuda: &str) -> Self {
        let mut layout = Self::plain();
        layout.file(&format!("{PACKAGES}/torch-{version}.dist-info/METADATA"), "");
        let text = format!("__version__ = '{version}'\ncuda: Optional[str] = '{cuda}'\n");
        layout.file(&format!("{PACKAGES}/torch/version.py"), &text);
        layout
    }

    fn file(&mut self, path: &str, text: &str) {
        self.files.push((path.to_owned(), text.to_owned()));
    }

    /// Lays it out, with one layer.
    pub(crate) fn lay(&self, dir: &Path) {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (path, text) in &self.files {
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, path, text.as_bytes()).expect("an entry");
        }
        let layer = archive.into_inner().and_then(GzEncoder::finish).expect("a layer");
        self.lay_with(dir, &layer);
    }

    /// Lays it out with this layer, whatever it is.
    pub(crate) fn lay_with(&self, dir: &Path, layer: &[u8]) {
        let config = json!({
            "architecture": self.architecture,
            "os": "linux",
            "config": {"Env": self.env},
            "rootfs": {"type": "layers", "diff_ids": []},
        });
        let layer = descriptor(&blob(dir, layer), "layer.v1.tar+gzip");
        lay_out(dir, config.to_string().as_bytes(), &[layer]);
    }
}

/// Lays out an image of this configuration and these layers, by their descriptors; the manifest's own is returned.
pub(crate) fn lay_out(dir: &Path, config: &[u8], layers: &[Value]) -> Value {
    let config = descriptor(&blob(dir, config), "config.v1+json");
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers});
    let manifest = descriptor(&blob(dir, manifest.to_string().as_bytes()), "manifest.v1+json");
    write(&dir.join("index.json"), json!({"schemaVersion": 2, "manifests": [manifest]}).to_string());
    write(&dir.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string());
    manifest
}

/// Puts it into a layout: its digest and size.
pub(crate) fn blob(dir: &Path, bytes: &[u8]) -> (String, usize) {
    let digest = Sha256::digest(bytes).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    write(&dir.join("blobs/sha256").join(&digest), bytes);
    (format!("sha256:{digest}"), bytes.len())
}

pub(crate) fn descriptor((digest, size): &(String, usize), kind: &str) -> Value {
    json!({"mediaType": format!("application/vnd.oci.image.{kind}"), "digest": digest, "size": size})
}

/// A layer that takes seconds to read: one file of so many times 16 MiB of zeros.
pub(crate) fn endless(times: u64) -> Vec<u8> {
    let member = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("a member")
    };
    let piece = vec![0; 16 << 20];
    let mut header = tar::Header::new_gnu();
    header.set_path("large").expect("a path");
    header.set_size(times * piece.len() as u64);
    header.set_cksum();
    let mut layer = member(header.as_bytes());
    let zeros = member(&piece);
    for _ in 0..times {
        layer.extend_from_slice(&zeros);
    }
    layer.extend(member(&[0; 1024]));
    layer
}

/// A reference to the layout at a path.
pub(crate) fn reference(dir: &Path) -> String {
    format!("oci:{}", dir.display())
}
