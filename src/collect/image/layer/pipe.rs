//! Bytes from one thread to the next: a few buffers that go round, so that nothing grows however large a layer is.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};

/// Of a size at which neither system calls nor the passing on cost anything.
pub(super) const CHUNK: usize = 128 << 10;
/// Filled and not yet taken. With those in work there are two more.
const WAITING: usize = 3;

enum Message {
    Bytes(Vec<u8>),
    End,
    Failed(io::Error),
}

/// The end that fills.
pub(in crate::collect::image) struct Filler {
    full: SyncSender<Message>,
    empty: Receiver<Vec<u8>>,
}

/// The end that reads.
pub(in crate::collect::image) struct Drain {
    full: Receiver<Message>,
    empty: Sender<Vec<u8>>,
    current: Vec<u8>,
    at: usize,
    ended: bool,
    taken: u64,
}

/// Both ends.
pub(in crate::collect::image) fn pipe() -> (Filler, Drain) {
    let (full, taken) = mpsc::sync_channel(WAITING);
    let (back, empty) = mpsc::channel();
    (Filler { full, empty }, Drain { full: taken, empty: back, current: Vec::new(), at: 0, ended: false, taken: 0 })
}

impl Filler {
    /// A buffer to fill, of the size of a chunk.
    pub(super) fn buffer(&self) -> Vec<u8> {
        let mut buffer = self.empty.try_recv().unwrap_or_default();
        buffer.resize(CHUNK, 0);
        buffer
    }

    /// Hands a buffer on; `false`: nobody reads any more.
    pub(super) fn send(&self, bytes: Vec<u8>) -> bool {
        self.full.send(Message::Bytes(bytes)).is_ok()
    }

    /// Hands a copy of bytes on; `false`: nobody reads any more.
    pub(in crate::collect::image) fn copy(&self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(CHUNK));
            let mut buffer = self.empty.try_recv().unwrap_or_default();
            buffer.clear();
            buffer.extend_from_slice(now);
            if !self.send(buffer) {
                return false;
            }
            bytes = rest;
        }
        true
    }

    /// There is no more, and all that there was has been sent.
    pub(in crate::collect::image) fn end(self) {
        // whoever reads no more need not be told
        let _ = self.full.send(Message::End);
    }

    /// There is more, and it cannot be had.
    pub(in crate::collect::image) fn fail(self, error: io::Error) {
        let _ = self.full.send(Message::Failed(error));
    }
}

/// Reads until a buffer is full or the end is reached.
pub(super) fn fill(from: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

impl Drain {
    /// How many bytes were read.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }
}

impl BufRead for Drain {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.at == self.current.len() && !self.ended {
            // the other thread may be gone
            let _ = self.empty.send(std::mem::take(&mut self.current));
            self.at = 0;
            match self.full.recv() {
                Ok(Message::Bytes(bytes)) => self.current = bytes,
                Ok(Message::End) => self.ended = true,
                Ok(Message::Failed(error)) => {
                    self.ended = true;
                    return Err(error);
                }
                Err(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        Ok(&self.current[self.at..])
    }

    fn consume(&mut self, amount: usize) {
        let amount = amount.min(self.current.len() - self.at);
        self.at += amount;
        self.taken += amount as u64;
    }
}

impl Read for Drain {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let n = bytes.len().min(buffer.len());
        buffer[..n].copy_from_slice(&bytes[..n]);
        self.consume(n);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(ending: impl FnOnce(Filler) + Send) -> (Vec<u8>, io::Result<usize>) {
        let (filler, mut drain) = pipe();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let sent: Vec<u8> = (0..=250).cycle().take(CHUNK * 9 + 5).collect();
                assert!(filler.copy(&sent));
                ending(filler);
            });
            let mut bytes = Vec::new();
            let read = drain.read_to_end(&mut bytes);
            (bytes, read)
        })
    }

    #[test]
    fn all_arrives_in_order_and_only_a_said_end_is_one() {
        let (bytes, read) = through(Filler::end);
        assert_eq!(read.unwrap(), CHUNK * 9 + 5);
        assert!(bytes.iter().copied().eq((0..=250).cycle().take(CHUNK * 9 + 5)));
        assert_eq!(through(drop).1.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let failed = through(|filler| filler.fail(io::Error::other("broken")));
        assert_eq!(failed.1.unwrap_err().to_string(), "broken");
    }

    #[test]
    fn whoever_reads_no_more_is_not_waited_for() {
        let (filler, drain) = pipe();
        drop(drain);
        assert!(!filler.copy(&[0; 10]));
    }
}
