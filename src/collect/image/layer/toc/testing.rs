//! Layers with tables of contents for tests, as their builders write them.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::super::testing::{Tar, digest_of};

/// What a layer is made of: kind in the words of tar, name, target, bytes.
pub(in crate::collect::image) type Item<'a> = (u8, &'a str, &'a str, &'a [u8]);

/// A layer, and what its descriptor says of it.
#[derive(Debug, Clone)]
pub(in crate::collect::image) struct Made {
    pub(in crate::collect::image) blob: Vec<u8>,
    pub(in crate::collect::image) annotations: BTreeMap<String, String>,
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).unwrap()
}

/// The layer in parts, each packed on its own, and its entries. Both formats name them by the same words.
fn parts(items: &[Item<'_>], chunk: usize, pack: fn(&[u8]) -> Vec<u8>, ends: bool) -> (Vec<u8>, Vec<Value>) {
    let mut blob = Vec::new();
    let mut entries = Vec::new();
    for (kind, name, target, bytes) in items {
        let entry = Tar::default().entry(*kind, name.as_bytes(), target.as_bytes(), bytes).0;
        let (header, rest) = entry.split_at(entry.len() - bytes.len().next_multiple_of(512));
        blob.extend(pack(header));
        let word = match kind {
            b'1' => "hardlink",
            b'2' => "symlink",
            b'3' => "char",
            b'5' => "dir",
            _ => "reg",
        };
        let mut told = json!({"type": word, "name": name, "linkName": target, "mode": 0o755, "size": bytes.len()});
        let first = entries.len();
        if !bytes.is_empty() {
            told["digest"] = digest_of(bytes).into();
            told["offset"] = blob.len().into();
        }
        entries.push(told);
        for (number, part) in bytes.chunks(chunk).enumerate() {
            if number > 0 {
                entries.push(json!({"type": "chunk", "name": name, "offset": blob.len(), "chunkSize": part.len(),
                    "chunkOffset": number * chunk, "chunkDigest": digest_of(part)}));
            }
            blob.extend(pack(part));
        }
        if ends && !bytes.is_empty() {
            entries[first]["endOffset"] = blob.len().into();
        }
        blob.extend(pack(&rest[bytes.len()..]));
    }
    blob.extend(pack(&[0; 1024]));
    (blob, entries)
}

fn skippable(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    [&[0x50, 0x2A, 0x4D, 0x18][..], &length, bytes].concat()
}

fn annotations(all: &[(&str, String)]) -> BTreeMap<String, String> {
    all.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
}

/// zstd:chunked, with a change to its table.
pub(in crate::collect::image) fn chunked(items: &[Item<'_>], change: impl FnOnce(&mut Value)) -> Made {
    let (mut blob, entries) = parts(items, 8_000, zstd, true);
    let mut table = json!({"version": 1, "entries": entries});
    change(&mut table);
    let table = table.to_string().into_bytes();
    let packed = zstd(&table);
    let position = format!("{}:{}:{}:1", blob.len() + 8, packed.len(), table.len());
    blob.extend(skippable(&packed));
    blob.extend(skippable(&[0; 64]));
    let prefix = "io.github.containers.zstd-chunked.manifest";
    let all = [(&*format!("{prefix}-position"), position), (&*format!("{prefix}-checksum"), digest_of(&packed))];
    Made { blob, annotations: annotations(&all) }
}

/// eStargz, with a change to its table.
pub(in crate::collect::image) fn stargz(items: &[Item<'_>], change: impl FnOnce(&mut Value)) -> Made {
    let (mut blob, entries) = parts(items, 8_000, gzip, false);
    let mut table = json!({"version": 1, "entries": entries});
    change(&mut table);
    let table = table.to_string().into_bytes();
    let at = blob.len();
    blob.extend(gzip(&Tar::default().file("stargz.index.json", &table).done()));
    let mut footer = vec![0x1F, 0x8B, 8, 4, 0, 0, 0, 0, 0, 255, 26, 0, b'S', b'G', 22, 0];
    footer.extend(format!("{at:016x}STARGZ").as_bytes());
    footer.extend([1, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(footer.len(), 51);
    blob.extend(footer);
    Made { blob, annotations: annotations(&[("containerd.io/snapshot/stargz/toc.digest", digest_of(&table))]) }
}
