//! Tar archives as they go by: headers, and of each entry's bytes only what is asked for.
//!
//! The crate `tar` allocates for each entry and gives the holes of a sparse file as zeros without end; engines read
//! archives with Go's `archive/tar`, and where the formats leave a choice it is made here as there (Go 1.25).

use std::io::{self, BufRead};

const BLOCK: usize = 512;
/// Longer names are refused by Go, and none of use comes near.
const MOST_SPECIAL: u64 = 1 << 20;
/// Bytes of a name in a message.
const MOST_TOLD: usize = 256;

/// Where an archive's bytes come from.
pub(in crate::collect::image) trait Input: BufRead {
    /// Leaves bytes out.
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        pass(self, bytes)
    }
}

/// Leaves bytes out by reading them.
pub(super) fn pass(input: &mut (impl BufRead + ?Sized), mut bytes: u64) -> io::Result<()> {
    while bytes > 0 {
        let there = input.fill_buf()?.len();
        if there == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let now = usize::try_from(bytes).unwrap_or(usize::MAX).min(there);
        input.consume(now);
        bytes -= now as u64;
    }
    Ok(())
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::collect::image) enum Kind {
    File,
    /// A file with holes: what follows its header is not what it holds.
    Sparse,
    HardLink,
    Symlink,
    Directory,
    CharDevice,
    BlockDevice,
    Fifo,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::collect::image) struct Header {
    /// As it is written.
    pub(in crate::collect::image) name: Vec<u8>,
    /// Where a link points.
    pub(in crate::collect::image) target: Vec<u8>,
    pub(in crate::collect::image) kind: Kind,
    /// Bytes of the file once it is unpacked.
    pub(in crate::collect::image) size: u64,
    pub(in crate::collect::image) mode: u32,
}

/// Goes through an archive.
pub(in crate::collect::image) struct Archive<I> {
    input: I,
    /// Bytes of the entry that were not asked for, and those that fill its last block.
    left: u64,
    padding: u64,
    /// Bytes of the input that were given out, and may be looked at until the next call.
    lent: usize,
    header: Header,
    /// What headers before an entry's own say of it.
    extended: Extended,
}

#[derive(Default)]
struct Extended {
    name: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
    sparse: bool,
    sparse_name: Option<Vec<u8>>,
    sparse_size: Option<u64>,
}

impl<I: Input> Archive<I> {
    pub(in crate::collect::image) fn new(input: I) -> Self {
        let header = Header { name: Vec::new(), target: Vec::new(), kind: Kind::File, size: 0, mode: 0 };
        Self { input, left: 0, padding: 0, lent: 0, header, extended: Extended::default() }
    }

    /// The input, behind what was read of it.
    pub(in crate::collect::image) fn input(&mut self) -> &mut I {
        self.settle();
        &mut self.input
    }

    /// The next entry; what was not asked for of the last is left out. `None`: the archive ends.
    pub(in crate::collect::image) fn next(&mut self) -> io::Result<Option<&Header>> {
        self.extended = Extended::default();
        loop {
            self.settle();
            self.input.skip(self.left + self.padding).map_err(|e| cut(e, &self.header.name))?;
            (self.left, self.padding) = (0, 0);
            let Some(block) = self.block()? else { return Ok(None) };
            let size = number(&block[124..136])?;
            let kind = block[156];
            match kind {
                b'x' | b'L' | b'K' => {
                    if size > MOST_SPECIAL {
                        return Err(invalid("a name or header of an entry is too long"));
                    }
                    self.set_size(size);
                    let mut bytes = Vec::new();
                    while let Some(part) = self.part(usize::MAX)? {
                        bytes.extend_from_slice(part);
                    }
                    match kind {
                        b'x' => self.records(&bytes)?,
                        b'L' => self.extended.name = Some(until_zero(&bytes).to_vec()),
                        _ => self.extended.target = Some(until_zero(&bytes).to_vec()),
                    }
                    continue;
                }
                // of the whole archive, which engines ignore, and of kinds that none knows
                b'0' | 0 | b'1'..=b'7' | b'S' => {}
                _ => {
                    self.set_size(self.extended.size.unwrap_or(size));
                    if kind != b'g' {
                        self.extended = Extended::default();
                    }
                    continue;
                }
            }
            self.entry(&block, size)?;
            return Ok(Some(&self.header));
        }
    }

    /// The next bytes of the entry, so many at most; `None`: there are no more.
    pub(in crate::collect::image) fn part(&mut self, most: usize) -> io::Result<Option<&[u8]>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.settle();
        let there = self.input.fill_buf().map_err(|e| cut(e, &self.header.name))?;
        if there.is_empty() {
            return Err(cut(io::ErrorKind::UnexpectedEof.into(), &self.header.name));
        }
        let now = usize::try_from(self.left).unwrap_or(usize::MAX).min(there.len()).min(most);
        self.left -= now as u64;
        self.lent = now;
        Ok(Some(&there[..now]))
    }

    /// Bytes that were given out are done with.
    fn settle(&mut self) {
        self.input.consume(std::mem::take(&mut self.lent));
    }

    /// The next header; `None`: the archive ends, by two blocks of zeros or without.
    fn block(&mut self) -> io::Result<Option<[u8; BLOCK]>> {
        let mut block = [0; BLOCK];
        if !self.whole(&mut block)? {
            return Ok(None);
        }
        if block.iter().all(|byte| *byte == 0) {
            if self.whole(&mut block)? && block.iter().any(|byte| *byte != 0) {
                return Err(invalid("an entry follows the archive's end"));
            }
            return Ok(None);
        }
        let none = || invalid("it is no tar archive, or a damaged one");
        let told = number(&block[148..156]).map_err(|_| none())?;
        let sum = |of: fn(u8) -> i64| {
            let all: i64 = block.iter().map(|byte| of(*byte)).sum();
            let own: i64 = block[148..156].iter().map(|byte| of(*byte)).sum();
            all - own + 8 * i64::from(b' ')
        };
        // old archives added signed bytes
        if [sum(i64::from), sum(|byte| i64::from(byte.cast_signed()))].iter().all(|sum| *sum != told.cast_signed()) {
            return Err(none());
        }
        Ok(Some(block))
    }

    /// A whole block; `false`: there are no more bytes.
    fn whole(&mut self, block: &mut [u8; BLOCK]) -> io::Result<bool> {
        let mut filled = 0;
        while filled < BLOCK {
            let there = self.input.fill_buf()?;
            if there.is_empty() {
                return if filled == 0 { Ok(false) } else { Err(cut(io::ErrorKind::UnexpectedEof.into(), b"")) };
            }
            let now = there.len().min(BLOCK - filled);
            block[filled..filled + now].copy_from_slice(&there[..now]);
            self.input.consume(now);
            filled += now;
        }
        Ok(true)
    }

    fn entry(&mut self, block: &[u8; BLOCK], size: u64) -> io::Result<()> {
        let extended = std::mem::take(&mut self.extended);
        let stored = extended.size.unwrap_or(size);
        let header = &mut self.header;
        header.name.clear();
        if let Some(name) = extended.name {
            header.name = name;
        } else {
            // star's archives have less room for it, GNU's none
            let prefix = match (&block[257..263], &block[508..512]) {
                (b"ustar\0", b"tar\0") => until_zero(&block[345..476]),
                (b"ustar\0", _) => until_zero(&block[345..500]),
                _ => &[],
            };
            if !prefix.is_empty() {
                header.name.extend_from_slice(prefix);
                header.name.push(b'/');
            }
            header.name.extend_from_slice(until_zero(&block[..100]));
        }
        header.target.clear();
        match extended.target {
            Some(target) => header.target = target,
            None => header.target.extend_from_slice(until_zero(&block[157..257])),
        }
        header.mode = u32::try_from(number(&block[100..108]).unwrap_or(0) & 0o7777).unwrap_or(0);
        header.kind = match block[156] {
            b'1' => Kind::HardLink,
            b'2' => Kind::Symlink,
            b'3' => Kind::CharDevice,
            b'4' => Kind::BlockDevice,
            b'5' => Kind::Directory,
            b'6' => Kind::Fifo,
            b'S' => Kind::Sparse,
            0 if header.name.ends_with(b"/") => Kind::Directory,
            _ if extended.sparse => Kind::Sparse,
            _ => Kind::File,
        };
        header.size = stored;
        if header.kind == Kind::Sparse {
            if let Some(name) = extended.sparse_name {
                header.name = name;
            }
            header.size = match extended.sparse_size {
                Some(size) => size,
                None if block[156] == b'S' => number(&block[483..495])?,
                None => stored,
            };
        }
        // links, directories and devices have no bytes, whatever their headers say
        let has_bytes = matches!(header.kind, Kind::File | Kind::Sparse);
        if !has_bytes {
            header.size = 0;
        }
        self.set_size(if has_bytes { stored } else { 0 });
        let mut more = block[156] == b'S' && block[482] != 0;
        while more {
            let mut map = [0; BLOCK];
            if !self.whole(&mut map)? {
                return Err(cut(io::ErrorKind::UnexpectedEof.into(), &self.header.name));
            }
            more = map[504] != 0;
        }
        Ok(())
    }

    fn set_size(&mut self, size: u64) {
        self.left = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    }

    /// A PAX header: `LENGTH KEY=VALUE\n`, over and over.
    fn records(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let wrong = || invalid("an extended header is damaged");
        while !bytes.is_empty() {
            let space = bytes.iter().position(|byte| *byte == b' ').ok_or_else(wrong)?;
            let length: usize =
                std::str::from_utf8(&bytes[..space]).ok().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
            let record =
                bytes.get(space + 1..length).and_then(|record| record.strip_suffix(b"\n")).ok_or_else(wrong)?;
            bytes = &bytes[length..];
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(wrong)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            let number = || std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok()).ok_or_else(wrong);
            // an empty value takes back what was said
            let some = |value: &[u8]| (!value.is_empty()).then(|| value.to_vec());
            match key {
                b"path" | b"linkpath" | b"GNU.sparse.name" if value.contains(&0) => return Err(wrong()),
                b"path" => self.extended.name = some(value),
                b"linkpath" => self.extended.target = some(value),
                b"size" => self.extended.size = Some(number()?),
                b"GNU.sparse.name" => self.extended.sparse_name = some(value),
                b"GNU.sparse.realsize" | b"GNU.sparse.size" => {
                    self.extended.sparse = true;
                    self.extended.sparse_size = Some(number()?);
                }
                key if key.starts_with(b"GNU.sparse.") => self.extended.sparse = true,
                _ => {}
            }
        }
        Ok(())
    }
}

/// A number in octal digits, or from its first bit on in binary.
fn number(field: &[u8]) -> io::Result<u64> {
    if let [first, rest @ ..] = field
        && first & 0x80 != 0
    {
        // a negative number, or one that no file is as long as
        let mut value = u64::from(first & 0x7F);
        for byte in rest {
            if value >> 55 != 0 {
                return Err(invalid("a number in a header is too large"));
            }
            value = value << 8 | u64::from(*byte);
        }
        return Ok(value);
    }
    let digits = until_zero(field).trim_ascii();
    let digit = |value: u64, byte: &u8| match byte {
        b'0'..=b'7' => Some(value << 3 | u64::from(byte - b'0')),
        _ => None,
    };
    digits.iter().try_fold(0, digit).ok_or_else(|| invalid("a number in a header is none"))
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Says of an early end in which entry it is.
fn cut(error: io::Error, name: &[u8]) -> io::Error {
    if error.kind() != io::ErrorKind::UnexpectedEof {
        return error;
    }
    let place = if name.is_empty() {
        String::new()
    } else {
        format!(" in {}", String::from_utf8_lossy(&name[..name.len().min(MOST_TOLD)]))
    };
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("it is cut off{place}"))
}
