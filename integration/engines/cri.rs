//! A kubelet's calls to containerd: gRPC and its messages, by hand, as much of them as a pod needs.
//!
//! Numbers of fields: kubernetes/cri-api `pkg/apis/runtime/v1/api.proto`, 2024-04.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A pod that runs.
#[derive(Debug)]
pub(super) struct Pod<'a> {
    socket: &'a Path,
    id: Vec<u8>,
    config: Vec<u8>,
}

impl<'a> Pod<'a> {
    /// Starts a pod on the host's network, whose containers log below a directory.
    pub(super) fn start(socket: &'a Path, logs: &str) -> io::Result<Self> {
        let metadata = [text(1, "pod"), text(2, "uid"), text(3, "default")].concat();
        let on_the_host = bytes(1, &[1 << 3, 2]);
        let config = [bytes(1, &metadata), text(3, logs), bytes(8, &bytes(2, &on_the_host))].concat();
        let answer = call(socket, "RunPodSandbox", &bytes(1, &config))?;
        Ok(Self { socket, id: only_field(&answer).to_vec(), config })
    }

    /// Starts a container with CDI devices; it logs into a file of its name.
    pub(super) fn run(&self, name: &str, image: &str, command: &[&str], devices: &[&str]) -> io::Result<()> {
        let mut config = [bytes(1, &text(1, name)), bytes(2, &text(1, image)), text(11, name)].concat();
        config.extend(command.iter().flat_map(|word| text(3, word)));
        config.extend(devices.iter().flat_map(|device| bytes(17, &text(1, device))));
        let request = [bytes(1, &self.id), bytes(2, &config), bytes(3, &self.config)].concat();
        let answer = call(self.socket, "CreateContainer", &request)?;
        call(self.socket, "StartContainer", &bytes(1, only_field(&answer))).map(drop)
    }
}

impl Drop for Pod<'_> {
    fn drop(&mut self) {
        let _ = call(self.socket, "StopPodSandbox", &bytes(1, &self.id));
        let _ = call(self.socket, "RemovePodSandbox", &bytes(1, &self.id));
    }
}

/// A field of a message, with its length.
fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    for mut number in [usize::from(field) << 3 | 2, content.len()] {
        while number > 0x7f {
            all.push(u8::try_from(number & 0x7f).expect("7 bits") | 0x80);
            number >>= 7;
        }
        all.push(u8::try_from(number).expect("7 bits"));
    }
    all.extend(content);
    all
}

fn text(field: u8, content: &str) -> Vec<u8> {
    bytes(field, content.as_bytes())
}

/// What an answer holds that has one field, shorter than 128 bytes.
fn only_field(answer: &[u8]) -> &[u8] {
    answer.get(2..).expect("a field")
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;

/// Calls a method. What an error is about stands in containerd's own log: a kubelet gets the same words.
fn call(socket: &Path, method: &str, message: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")?;
    frame(&mut stream, SETTINGS, 0, 0, &[])?;
    let path = format!("/runtime.v1.RuntimeService/{method}");
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", &path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let headers: Vec<u8> = headers.iter().flat_map(|(name, value)| header(name, value)).collect();
    frame(&mut stream, HEADERS, 4, 1, &headers)?;
    let length = u32::try_from(message.len()).expect("a short message").to_be_bytes();
    frame(&mut stream, DATA, 1, 1, &[&[0][..], &length, message].concat())?;
    let mut answer = Vec::new();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let [a, b, c, kind, flags, ..] = head;
        let mut content = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        stream.read_exact(&mut content)?;
        match kind {
            SETTINGS if flags & 1 == 0 => frame(&mut stream, SETTINGS, 1, 0, &[])?,
            DATA => answer.extend(content),
            HEADERS if flags & 1 == 1 => break,
            _ => {}
        }
    }
    // an error has trailers and no message
    if answer.is_empty() { Err(io::Error::other(format!("{method} failed"))) } else { Ok(answer.split_off(5)) }
}

/// A header as a literal that nobody keeps.
fn header(name: &str, value: &str) -> Vec<u8> {
    let short = |text: &str| u8::try_from(text.len()).expect("a short header");
    [&[0, short(name)], name.as_bytes(), &[short(value)], value.as_bytes()].concat()
}

fn frame(stream: &mut UnixStream, kind: u8, flags: u8, id: u32, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).expect("a short frame").to_be_bytes();
    stream.write_all(&[&length[1..], &[kind, flags], &id.to_be_bytes(), content].concat())
}
