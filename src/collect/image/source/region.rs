//! A part of a file, read where it is wanted.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::collect::image::layer::tar::Input;
use crate::collect::image::layer::{Parts, Table};

/// What is read first after something was left out: a header, as a rule, and then the next is elsewhere.
const LITTLE: usize = 1 << 10;
const MUCH: usize = 128 << 10;

/// To ask for another place costs little more than reading on.
const REQUEST: u64 = 64 << 10;

/// Parts of a blob that begins somewhere in a file.
pub(super) fn parts(table: Table, file: Arc<File>, at: u64) -> Parts {
    let open = move |from: u64, length| {
        Ok(Box::new(Region::new(file.clone(), at.saturating_add(from), length)) as Box<dyn Read + Send>)
    };
    Parts { table, request: REQUEST, open: Box::new(open) }
}

/// Bytes of a file from one place on. Several may read one file.
pub(super) struct Region {
    file: Arc<File>,
    /// Behind what is in the buffer.
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    from: usize,
    next: usize,
}

impl Region {
    pub(super) fn new(file: Arc<File>, at: u64, length: u64) -> Self {
        Self { file, at, end: at.saturating_add(length), buffer: Vec::new(), from: 0, next: LITTLE }
    }

    /// Where in the file the next byte is.
    pub(super) fn position(&self) -> u64 {
        self.at - (self.buffer.len() - self.from) as u64
    }
}

impl BufRead for Region {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.from == self.buffer.len() {
            let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
            self.buffer.resize(self.next.min(left), 0);
            self.from = 0;
            let read = loop {
                match self.file.read_at(&mut self.buffer, self.at) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            self.buffer.truncate(*read.as_ref().unwrap_or(&0));
            self.at += read? as u64;
            self.next = (self.next * 4).min(MUCH);
        }
        Ok(&self.buffer[self.from..])
    }

    fn consume(&mut self, amount: usize) {
        self.from = self.buffer.len().min(self.from + amount);
    }
}

impl Read for Region {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let now = bytes.len().min(buffer.len());
        buffer[..now].copy_from_slice(&bytes[..now]);
        self.consume(now);
        Ok(now)
    }
}

impl Input for Region {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let there = self.buffer.len() - self.from;
        if let Some(beyond) = bytes.checked_sub(there as u64).filter(|beyond| *beyond > 0) {
            if beyond > self.end - self.at {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.at += beyond;
            self.from = self.buffer.len();
            self.next = LITTLE;
        } else {
            self.from += usize::try_from(bytes).unwrap_or(there);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn it_ends_where_it_is_said_to() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..=250).cycle().take(500_000).collect();
        file.write_all(&bytes).unwrap();
        let file = Arc::new(file);
        let mut region = Region::new(file.clone(), 10, 400_000);
        let mut one = [0; 3];
        region.read_exact(&mut one).unwrap();
        region.skip(5).unwrap();
        assert_eq!((one.as_slice(), region.position()), (&bytes[10..13], 18));
        region.skip(100_000).unwrap();
        assert_eq!(region.position(), 100_018);
        let mut rest = Vec::new();
        region.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, bytes[100_018..400_010]);
        assert!(region.skip(1).is_err() && region.skip(0).is_ok());
        let mut short = Vec::new();
        Region::new(file, 499_000, u64::MAX).read_to_end(&mut short).unwrap();
        assert_eq!(short.len(), 1000);
    }
}
