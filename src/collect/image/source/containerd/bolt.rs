//! Reads a bbolt database, which containerd keeps its records in, without its lock and without its writer.
//!
//! A file is pages. Pages 0 and 1 are headers, of which the one with the higher transaction is current; what a transaction
//! frees is used again by a later one than the next. So whatever was read between two looks at the headers that show the
//! same transaction was of one state (go.etcd.io/bbolt, `db.go` and `page.go`, 1.3 to 1.4).

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::knowledge::little_endian::{u32_at, u64_at};
use crate::model::Unseen;

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// What bbolt's page sizes can be: those of processors.
const PAGE_SIZES: [u64; 5] = [4096, 8192, 16_384, 32_768, 65_536];
const PAGE_HEADER: usize = 16;
const META: usize = 64;
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
/// Of an element: its value is a bucket.
const BUCKET: u32 = 1;

/// A tree of more levels holds more than any disk.
const MOST_LEVELS: usize = 24;
/// Of one state: the images of a busy node are some megabytes.
const MOST_BYTES: u64 = 128 << 20;
const MOST_PAGE: u64 = 16 << 20;
/// Reads of one state, while the writer writes.
const MOST_TRIES: usize = 50;

/// A state of a database.
pub(super) struct Snapshot<'a> {
    file: &'a File,
    meta: Meta,
    /// Bytes that may still be read.
    left: Cell<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Meta {
    page_size: u64,
    root: u64,
    transaction: u64,
}

/// A bucket: a page, or one that lies in its parent.
pub(super) enum Bucket {
    Page(u64),
    Inline(Vec<u8>),
}

/// What a key holds.
pub(super) enum Value {
    Bucket(Bucket),
    Bytes(Vec<u8>),
}

/// The file is no database, or a damaged one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damaged(&'static str);

type Result<T> = std::result::Result<T, Damaged>;

/// Reads one state of a database: what `read` finds is of one transaction.
pub(super) fn read<T>(
    path: &str,
    file: &File,
    read: impl Fn(&Snapshot<'_>) -> Result<T>,
) -> std::result::Result<T, Unseen> {
    for _ in 0..MOST_TRIES {
        let meta = Meta::current(file).map_err(|damaged| Unseen::new(path, damaged.0))?;
        let found = read(&Snapshot { file, meta, left: Cell::new(MOST_BYTES) });
        // damage too may be but the work of a writer
        if Meta::current(file) == Ok(meta) {
            return found.map_err(|damaged| Unseen::new(path, damaged.0));
        }
    }
    Err(Unseen::new(path, "is written to so often that it could not be read"))
}

impl Meta {
    fn current(file: &File) -> Result<Self> {
        let first = Self::at(file, 0);
        let sizes = first.iter().map(|meta| meta.page_size).chain(PAGE_SIZES);
        let second = sizes.into_iter().find_map(|size| Self::at(file, size).filter(|meta| meta.page_size == size));
        first
            .into_iter()
            .chain(second)
            .max_by_key(|meta| meta.transaction)
            .ok_or(Damaged("is no database of containerd's"))
    }

    fn at(file: &File, offset: u64) -> Option<Self> {
        let mut page = [0; PAGE_HEADER + META];
        file.read_exact_at(&mut page, offset).ok()?;
        let meta = page.get(PAGE_HEADER..)?;
        let checksum = u64_at(meta, META - 8)?;
        let page_size = u64::from(u32_at(meta, 8)?);
        let is_one = u32_at(meta, 0)? == MAGIC && u32_at(meta, 4)? == VERSION && checksum == fnv(meta.get(..META - 8)?);
        (is_one && PAGE_SIZES.contains(&page_size)).then_some(())?;
        Some(Self { page_size, root: u64_at(meta, 16)?, transaction: u64_at(meta, 48)? })
    }
}

impl Snapshot<'_> {
    pub(super) fn root(&self) -> Bucket {
        Bucket::Page(self.meta.root)
    }

    /// A bucket by the keys that lead to it; `None`: one of them is absent, or no bucket.
    pub(super) fn bucket(&self, from: &Bucket, keys: &[&[u8]]) -> Result<Option<Bucket>> {
        let mut at: Option<Bucket> = None;
        for key in keys {
            match self.get(at.as_ref().unwrap_or(from), key)? {
                Some(Value::Bucket(next)) => at = Some(next),
                _ => return Ok(None),
            }
        }
        Ok(at)
    }

    /// The bytes behind a key.
    pub(super) fn bytes(&self, bucket: &Bucket, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(match self.get(bucket, key)? {
            Some(Value::Bytes(bytes)) => Some(bytes),
            _ => None,
        })
    }

    fn get(&self, bucket: &Bucket, key: &[u8]) -> Result<Option<Value>> {
        let mut page = self.first(bucket)?;
        for _ in 0..MOST_LEVELS {
            if page.is_leaf()? {
                for number in 0..page.count()? {
                    let element = page.leaf(number)?;
                    if element.key == key {
                        return element.value().map(Some);
                    }
                }
                return Ok(None);
            }
            // the last child that begins at or before the key
            let mut child = None;
            for number in 0..page.count()? {
                let (first, id) = page.branch(number)?;
                if first > key && child.is_some() {
                    break;
                }
                child = Some(id);
            }
            page = self.page(child.ok_or(Damaged("has a branch without leaves"))?)?;
        }
        Err(Damaged("has too many levels"))
    }

    /// Hands over all keys of a bucket, in their order.
    pub(super) fn each(&self, bucket: &Bucket, mut take: impl FnMut(&[u8], Value) -> Result<()>) -> Result<()> {
        let mut open = vec![(self.first(bucket)?, 0)];
        while let Some((page, number)) = open.pop() {
            if page.is_leaf()? {
                for number in 0..page.count()? {
                    let element = page.leaf(number)?;
                    take(element.key, element.value()?)?;
                }
            } else if number < page.count()? {
                let (_, child) = page.branch(number)?;
                open.push((page, number + 1));
                if open.len() > MOST_LEVELS {
                    return Err(Damaged("has too many levels"));
                }
                open.push((self.page(child)?, 0));
            }
        }
        Ok(())
    }

    fn first(&self, bucket: &Bucket) -> Result<Page> {
        match bucket {
            Bucket::Page(id) => self.page(*id),
            Bucket::Inline(bytes) => Ok(Page(bytes.clone())),
        }
    }

    fn page(&self, id: u64) -> Result<Page> {
        let size = self.meta.page_size;
        let offset = id.checked_mul(size).ok_or(Damaged("names a page beyond its end"))?;
        let mut header = [0; PAGE_HEADER];
        let read = |bytes: &mut [u8]| {
            self.file.read_exact_at(bytes, offset).map_err(|_| Damaged("names a page beyond its end"))
        };
        read(&mut header)?;
        let overflow = u64::from(u32_at(&header, 12).unwrap_or(0));
        let length = (overflow + 1) * size;
        let left = self.left.get().checked_sub(length).filter(|_| length <= MOST_PAGE);
        self.left.set(left.ok_or(Damaged("is larger than is read of it"))?);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        read(&mut bytes)?;
        Ok(Page(bytes))
    }
}

struct Page(Vec<u8>);

struct Element<'a> {
    key: &'a [u8],
    value: &'a [u8],
    is_bucket: bool,
}

const CUT: Damaged = Damaged("has a page with an element beyond its end");

impl Page {
    fn is_leaf(&self) -> Result<bool> {
        match self.0.get(8..10).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]])) {
            Some(flags) if flags & LEAF != 0 => Ok(true),
            Some(flags) if flags & BRANCH != 0 => Ok(false),
            _ => Err(Damaged("has a page of an unknown kind")),
        }
    }

    fn count(&self) -> Result<usize> {
        self.0.get(10..12).map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]]))).ok_or(CUT)
    }

    /// Places are counted from the element's own.
    fn part(&self, element: usize, position: u32, length: u32) -> Result<&[u8]> {
        let whole = |number: u32| usize::try_from(number).map_err(|_| CUT);
        let begin = element.checked_add(whole(position)?).ok_or(CUT)?;
        let end = begin.checked_add(whole(length)?).ok_or(CUT)?;
        self.0.get(begin..end).ok_or(CUT)
    }

    fn leaf(&self, number: usize) -> Result<Element<'_>> {
        let at = PAGE_HEADER + number * 16;
        let word = |offset| u32_at(&self.0, at + offset).ok_or(CUT);
        let (flags, position, key, value) = (word(0)?, word(4)?, word(8)?, word(12)?);
        Ok(Element {
            key: self.part(at, position, key)?,
            value: self.part(at, position.checked_add(key).ok_or(CUT)?, value)?,
            is_bucket: flags & BUCKET != 0,
        })
    }

    fn branch(&self, number: usize) -> Result<(&[u8], u64)> {
        let at = PAGE_HEADER + number * 16;
        let word = |offset| u32_at(&self.0, at + offset).ok_or(CUT);
        Ok((self.part(at, word(0)?, word(4)?)?, u64_at(&self.0, at + 8).ok_or(CUT)?))
    }
}

impl Element<'_> {
    fn value(&self) -> Result<Value> {
        if !self.is_bucket {
            return Ok(Value::Bytes(self.value.to_vec()));
        }
        Ok(Value::Bucket(match u64_at(self.value, 0).ok_or(CUT)? {
            0 => Bucket::Inline(self.value.get(16..).ok_or(CUT)?.to_vec()),
            page => Bucket::Page(page),
        }))
    }
}

/// FNV-1a of 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
