//! Images and servers of tests.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Depth, Wish};
use crate::collect::files::Files as _;
use crate::collect::image::layer::testing::digest_of as digest;
use crate::collect::image::layer::toc::testing::{chunked, stargz};
use crate::collect::image::view::View;

/// The interpreter's packages, where the tests put what they look for.
pub(super) const PACKAGES: &str = "usr/lib/python3/dist-packages";

/// What is read of a file that a layer of [`layer`] has.
pub(super) fn text(view: &View, path: &str) -> Option<String> {
    view.read_text(path, 4096).expect("a file that was kept")
}

pub(super) fn wish(depth: Depth) -> Wish {
    Wish { depth, architecture: "amd64".into(), progress: Arc::default() }
}

/// A tar of files.
pub(super) fn tar_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, content.as_bytes()).expect("a tar in memory");
    }
    tar.into_inner().expect("a tar in memory")
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).expect("memory");
    gzip.finish().expect("memory")
}

/// An image of layers, bottom to top: all of its blobs by their digests, and its manifest's and configuration's.
pub(super) struct Made {
    pub(super) blobs: BTreeMap<String, Vec<u8>>,
    pub(super) manifest: String,
    pub(super) config: String,
    pub(super) layers: Vec<String>,
    pub(super) diff_ids: Vec<String>,
}

pub(super) fn image(layers: &[&[(&str, &str)]]) -> Made {
    let tars = layers.iter().map(|files| tar_of(files));
    of_blobs(tars.map(|tar| (digest(&tar), gzip(&tar), BTreeMap::new())).collect())
}

/// Larger than what asking for a few parts counts.
pub(super) const LONG: usize = 4 << 20;

/// An image of two layers with tables of contents, a zstd:chunked one with `1` in a file and one of eStargz with `2`.
pub(super) fn with_tables(file: &str) -> Made {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    let long: Vec<u8> = std::iter::repeat_with(next).take(LONG).collect();
    let items = |text: &'static str| [(b'0', file, "", text.as_bytes()), (b'0', "data.bin", "", &long[..])];
    let layers = [chunked(&items("1"), |_| ()), stargz(&items("2"), |_| ())];
    // what nobody unpacks needs no digest
    of_blobs(layers.map(|layer| (digest(b""), layer.blob, layer.annotations)).to_vec())
}

/// Of layers by the digests of their archives, their blobs, and what is said of them.
fn of_blobs(layers: Vec<(String, Vec<u8>, BTreeMap<String, String>)>) -> Made {
    let mut made = Made {
        blobs: BTreeMap::new(),
        manifest: String::new(),
        config: String::new(),
        layers: Vec::new(),
        diff_ids: Vec::new(),
    };
    let mut named = Vec::new();
    for (diff_id, blob, annotations) in layers {
        made.diff_ids.push(diff_id);
        let (digest, size) = made.add(blob);
        named.push(serde_json::json!({"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
            "digest": digest, "size": size, "annotations": annotations}));
        made.layers.push(digest);
    }
    let config = serde_json::json!({
        "architecture": "amd64", "os": "linux", "config": {"Env": ["A=b"]},
        "rootfs": {"type": "layers", "diff_ids": made.diff_ids}});
    let (config, size) = made.add(config.to_string().into_bytes());
    let manifest = serde_json::json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": config, "size": size},
        "layers": named});
    let (manifest, _) = made.add(manifest.to_string().into_bytes());
    Made { manifest, config, ..made }
}

impl Made {
    pub(super) fn add(&mut self, bytes: Vec<u8>) -> (String, usize) {
        let (digest, size) = (digest(&bytes), bytes.len());
        self.blobs.insert(digest.clone(), bytes);
        (digest, size)
    }
}

/// A request as a server sees it.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What a server answers.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// The connection is closed behind so many bytes of the body.
    pub(super) cut: Option<usize>,
}

impl Reply {
    pub(super) fn of(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), cut: None }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

/// What was asked, in order.
pub(super) type Log = Arc<Mutex<Vec<Asked>>>;

/// A server on loopback, with its address; it ends with the tests.
pub(super) fn serve(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (String, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let accept = move || listener.accept().map(|(stream, _)| (stream.try_clone().expect("a descriptor"), stream));
    (address, accepting(accept, answer))
}

/// A server on a socket.
pub(super) fn serve_on(socket: &Path, answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Log {
    let listener = UnixListener::bind(socket).expect("a socket");
    let accept = move || listener.accept().map(|(stream, _)| (stream.try_clone().expect("a descriptor"), stream));
    accepting(accept, answer)
}

/// Answers each caller in a thread of its own. `accept` waits for one, and gives what to read and what to write.
fn accepting<S: Read + Write + Send + 'static>(
    accept: impl Fn() -> std::io::Result<(S, S)> + Send + 'static,
    answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> Log {
    let log = Log::default();
    let (seen, answer) = (Arc::clone(&log), Arc::new(answer));
    thread::spawn(move || {
        loop {
            let Ok((read, write)) = accept() else { continue };
            let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
            thread::spawn(move || talk(read, write, &seen, &*answer));
        }
    });
    log
}

fn talk(read: impl Read, mut write: impl Write, seen: &Log, answer: &dyn Fn(&Asked) -> Reply) {
    let mut read = BufReader::new(read);
    while let Some(asked) = request(&mut read) {
        seen.lock().expect("a log").push(asked.clone());
        let reply = answer(&asked);
        let length = if reply.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding")) {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", reply.body.len())
        };
        let headers = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let headers = headers.collect::<Vec<_>>().concat();
        let head = format!("HTTP/1.1 {} X\r\n{length}{headers}\r\n", reply.status);
        let end = reply.cut.unwrap_or(reply.body.len()).min(reply.body.len());
        if write.write_all(head.as_bytes()).and_then(|()| write.write_all(&reply.body[..end])).is_err() {
            return;
        }
        if reply.cut.is_some() {
            return;
        }
    }
}

fn request(read: &mut impl std::io::BufRead) -> Option<Asked> {
    let mut line = String::new();
    read.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        read.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length: &String| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    read.read_exact(&mut body).ok()?;
    Some(Asked { method, path, headers, body: String::from_utf8_lossy(&body).into_owned() })
}
