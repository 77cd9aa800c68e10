//! Writes small databases as bbolt lays them out.

use std::collections::BTreeMap;

pub(super) const PAGE: usize = 4096;
/// Keys in a leaf before there are several below a branch.
const KEYS: usize = 6;

#[derive(Clone)]
pub(super) enum Node {
    Bucket(BTreeMap<Vec<u8>, Node>),
    Bytes(Vec<u8>),
}

pub(super) fn bytes(text: &str) -> Node {
    Node::Bytes(text.as_bytes().to_vec())
}

pub(super) fn bucket<const N: usize>(items: [(&str, Node); N]) -> Node {
    Node::Bucket(items.into_iter().map(|(key, node)| (key.as_bytes().to_vec(), node)).collect())
}

/// A database with this as its root bucket.
pub(super) fn database(root: &Node) -> Vec<u8> {
    let Node::Bucket(items) = root else { panic!("a bucket") };
    // two headers and a page of the free
    let mut pages = vec![0; 3 * PAGE];
    let root = add(&mut pages, items);
    for (number, transaction) in [(0, 7), (1, 6)] {
        meta(&mut pages[number * PAGE..], number as u64, root, transaction);
    }
    pages
}

pub(super) fn meta(page: &mut [u8], number: u64, root: u64, transaction: u64) {
    let mut meta = Vec::new();
    meta.extend(0xED0C_DAED_u32.to_le_bytes());
    meta.extend(2_u32.to_le_bytes());
    meta.extend(u32::try_from(PAGE).unwrap().to_le_bytes());
    meta.extend(0_u32.to_le_bytes());
    for word in [root, 0, 2, 99, transaction] {
        meta.extend(word.to_le_bytes());
    }
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let checksum = meta.iter().fold(0xcbf2_9ce4_8422_2325, fnv);
    meta.extend(checksum.to_le_bytes());
    page[..8].copy_from_slice(&number.to_le_bytes());
    page[8..10].copy_from_slice(&4_u16.to_le_bytes());
    page[16..16 + meta.len()].copy_from_slice(&meta);
}

/// Adds a bucket's pages; its first one's number.
fn add(pages: &mut Vec<u8>, items: &BTreeMap<Vec<u8>, Node>) -> u64 {
    let values: Vec<(Vec<u8>, u32, Vec<u8>)> = items.iter().map(|(key, node)| value(pages, key, node)).collect();
    if values.len() <= KEYS {
        return append(pages, leaf(&values));
    }
    let mut children = Vec::new();
    for part in values.chunks(KEYS) {
        let page = append(pages, leaf(part));
        children.push((part[0].0.clone(), page));
    }
    append(pages, branch(&children))
}

fn value(pages: &mut Vec<u8>, key: &[u8], node: &Node) -> (Vec<u8>, u32, Vec<u8>) {
    match node {
        Node::Bytes(bytes) => (key.to_vec(), 0, bytes.clone()),
        Node::Bucket(items) => {
            let is_plain = items.values().all(|node| matches!(node, Node::Bytes(_)));
            let mut value = vec![0; 16];
            if is_plain && items.len() <= KEYS {
                let inside: Vec<_> = items.iter().map(|(key, node)| self::value(pages, key, node)).collect();
                value.extend(leaf(&inside));
            } else {
                value[..8].copy_from_slice(&add(pages, items).to_le_bytes());
            }
            (key.to_vec(), 1, value)
        }
    }
}

fn header(flags: u16, count: usize) -> Vec<u8> {
    let mut page = vec![0; 16];
    page[8..10].copy_from_slice(&flags.to_le_bytes());
    page[10..12].copy_from_slice(&u16::try_from(count).unwrap().to_le_bytes());
    page
}

pub(super) fn leaf(items: &[(Vec<u8>, u32, Vec<u8>)]) -> Vec<u8> {
    let mut page = header(2, items.len());
    let mut data: Vec<u8> = Vec::new();
    for (number, (key, flags, value)) in items.iter().enumerate() {
        let position = (items.len() - number) * 16 + data.len();
        for word in [*flags as usize, position, key.len(), value.len()] {
            page.extend(u32::try_from(word).unwrap().to_le_bytes());
        }
        data.extend(key);
        data.extend(value);
    }
    page.extend(data);
    page
}

pub(super) fn branch(children: &[(Vec<u8>, u64)]) -> Vec<u8> {
    let mut page = header(1, children.len());
    let mut data: Vec<u8> = Vec::new();
    for (number, (key, child)) in children.iter().enumerate() {
        let position = (children.len() - number) * 16 + data.len();
        for word in [position, key.len()] {
            page.extend(u32::try_from(word).unwrap().to_le_bytes());
        }
        page.extend(child.to_le_bytes());
        data.extend(key);
    }
    page.extend(data);
    page
}

/// Puts a page behind all others; its number.
pub(super) fn append(pages: &mut Vec<u8>, mut page: Vec<u8>) -> u64 {
    let number = pages.len() / PAGE;
    let whole = page.len().div_ceil(PAGE);
    page[..8].copy_from_slice(&(number as u64).to_le_bytes());
    page[12..16].copy_from_slice(&u32::try_from(whole - 1).unwrap().to_le_bytes());
    page.resize(whole * PAGE, 0);
    pages.extend(page);
    number as u64
}
