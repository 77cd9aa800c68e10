//! Layers for tests, byte by byte, so that they can be wrong in any way.

use std::fmt::Write as _;
use std::io::Cursor;

use super::digest::Hasher;
use super::{Blob, Open};
use crate::collect::image::source::{Depth, Wish};

/// An archive that is being written.
#[derive(Debug, Clone, Default)]
pub(in crate::collect::image) struct Tar(pub(in crate::collect::image) Vec<u8>);

impl Tar {
    /// An entry with a plain header; a name of more than 100 bytes gets a header of GNU's before it.
    pub(in crate::collect::image) fn entry(mut self, kind: u8, name: &[u8], target: &[u8], bytes: &[u8]) -> Self {
        if name.len() > 100 {
            self = self.entry(b'L', b"././@LongLink", b"", &[name, b"\0"].concat());
        }
        if target.len() > 100 {
            self = self.entry(b'K', b"././@LongLink", b"", &[target, b"\0"].concat());
        }
        self.raw(kind, name, target, bytes.len() as u64, bytes)
    }

    /// An entry whose header tells any size.
    pub(in crate::collect::image) fn raw(
        mut self,
        kind: u8,
        name: &[u8],
        target: &[u8],
        size: u64,
        bytes: &[u8],
    ) -> Self {
        let mut header = [0_u8; 512];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &name[..name.len().min(100)]);
        put(100, b"0000755\0");
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, format!("{size:011o}\0").as_bytes());
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, &[kind]);
        put(157, &target[..target.len().min(100)]);
        put(257, b"ustar  \0");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(in crate::collect::image) fn file(self, name: &str, bytes: &[u8]) -> Self {
        self.entry(b'0', name.as_bytes(), b"", bytes)
    }

    pub(in crate::collect::image) fn directory(self, name: &str) -> Self {
        self.entry(b'5', name.as_bytes(), b"", b"")
    }

    pub(in crate::collect::image) fn link(self, name: &str, target: &str) -> Self {
        self.entry(b'2', name.as_bytes(), target.as_bytes(), b"")
    }

    pub(in crate::collect::image) fn hard(self, name: &str, target: &str) -> Self {
        self.entry(b'1', name.as_bytes(), target.as_bytes(), b"")
    }

    /// An extended header of the next entry.
    pub(in crate::collect::image) fn pax(self, records: &[(&str, &[u8])]) -> Self {
        let mut all = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            // its own length counts too
            let mut length = rest + 1;
            while length != rest + length.to_string().len() {
                length = rest + length.to_string().len();
            }
            let mut text = String::new();
            write!(text, "{length} {key}=").unwrap();
            all.extend_from_slice(text.as_bytes());
            all.extend_from_slice(value);
            all.push(b'\n');
        }
        self.entry(b'x', b"pax", b"", &all)
    }

    /// The archive with its end.
    pub(in crate::collect::image) fn done(mut self) -> Vec<u8> {
        self.0.extend_from_slice(&[0; 1024]);
        self.0
    }
}

/// The digest of bytes.
pub(in crate::collect::image) fn digest_of(bytes: &[u8]) -> String {
    let mut hasher = Hasher::sha256();
    hasher.update(bytes);
    hasher.finish()
}

/// A layer of these bytes, as its descriptor would say.
pub(in crate::collect::image) fn blob(bytes: impl Into<Vec<u8>>) -> Blob {
    let bytes: Vec<u8> = bytes.into();
    let open: Open = Box::new({
        let bytes = bytes.clone();
        move || Ok(Box::new(Cursor::new(bytes)))
    });
    Blob {
        label: "a layer".to_owned(),
        digest: Some(digest_of(&bytes)),
        diff_id: None,
        size: Some(bytes.len() as u64),
        open,
        parts: None,
    }
}

/// What a source is asked for.
pub(in crate::collect::image) fn wish() -> Wish {
    Wish { depth: Depth::Files, architecture: "amd64".to_owned(), progress: std::sync::Arc::default() }
}
