//! Layers: one pass over each, then merged as overlayfs does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use super::binary::Scanner;
use super::condense::Condenser;
use super::telling::{Interest, interest};
use super::view::{Content, Entry, View};
use crate::collect::paths::clean;
use crate::model::Unseen;
use crate::model::host::NodeKind;

/// Reads layers, bottom to top.
pub(super) fn read(layers: Vec<File>) -> Result<View, Unseen> {
    let mut all: BTreeMap<String, Entry> = BTreeMap::new();
    for (number, blob) in layers.into_iter().enumerate() {
        let failed = |e: std::io::Error| Unseen::new(format!("layer {}", number + 1), e.to_string());
        let mut archive = tar::Archive::new(flate2::read::MultiGzDecoder::new(blob));
        let mut entries = Vec::new();
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let path = clean(&format!("/{}", String::from_utf8_lossy(&entry.path_bytes())));
            let size = entry.size();
            let mode = entry.header().mode().unwrap_or(0);
            let target = entry.link_name_bytes().map(|t| String::from_utf8_lossy(&t).into_owned()).unwrap_or_default();
            let kind = match entry.header().entry_type() {
                tar::EntryType::Directory => Some(NodeKind::Directory),
                tar::EntryType::Symlink => None,
                tar::EntryType::Regular => Some(NodeKind::File),
                _ => continue,
            };
            let mut content = Content::Nothing;
            if kind == Some(NodeKind::File) {
                match interest(path.trim_start_matches('/'), size, mode & 0o111 != 0) {
                    Interest::Nothing => continue,
                    Interest::Name => {}
                    Interest::Text(most) => {
                        let mut bytes = Vec::new();
                        entry.by_ref().take(most as u64).read_to_end(&mut bytes).map_err(failed)?;
                        content = Content::Bytes(bytes);
                    }
                    Interest::Packages(database) => {
                        let mut condenser = Condenser::new(database);
                        let mut buffer = vec![0; 128 << 10];
                        loop {
                            let count = entry.read(&mut buffer).map_err(failed)?;
                            if count == 0 {
                                break;
                            }
                            condenser.push(&buffer[..count]);
                        }
                        content = Content::Bytes(condenser.finish().into_bytes());
                    }
                    Interest::Binary => {
                        let mut scanner = Scanner::new(size);
                        let mut buffer = vec![0; 128 << 10];
                        loop {
                            let count = entry.read(&mut buffer).map_err(failed)?;
                            if count == 0 {
                                break;
                            }
                            scanner.push(&buffer[..count]);
                        }
                        content = Content::Binary(Box::new(scanner.finish()));
                    }
                }
            }
            entries.push((path, Entry { kind, target, size, mode, layer: number, content }));
        }
        for (path, entry) in entries {
            all.insert(path, entry);
        }
    }
    Ok(View::new(all, Vec::new(), Vec::new()))
}
