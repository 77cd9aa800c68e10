//! zstd, frame by frame: how much memory a frame wants is read in its header before it is given.

use std::io::{self, BufRead, Read};

use zstd::stream::raw::{DParameter, Decoder, Operation as _};

use super::budget::{Budget, Loan};

const MAGIC: u32 = 0xFD2F_B528;
/// Frames of data for programs, not for readers: `0x184D2A50` to `0x184D2A5F`.
const SKIPPABLE: u32 = 0x184D_2A50;
/// A window of 32 MB: what `zstd -20 --ultra` makes. `--long` makes larger ones.
const MOST_WINDOW: u64 = 32 << 20;
const WINDOW_LOG: u32 = 25;
/// A window that is kept from frame to frame.
const SMALL: u64 = 128 << 10;
/// What the decoder has besides its window: tables, and a block going in and out.
const BESIDES: usize = 512 << 10;
/// The longest header: magic, descriptor, window, dictionary, size of the content.
const HEADER: usize = 4 + 1 + 1 + 4 + 8;

/// Reads frames one after the other.
pub(super) struct Zstd<'a, R> {
    input: R,
    budget: &'a Budget,
    frame: Option<Frame<'a>>,
    /// A decoder that is small, for the next frame: to make one takes as long as to read some ten thousand bytes.
    spare: Option<Decoder<'static>>,
}

struct Frame<'a> {
    decoder: Decoder<'static>,
    /// What of its header was read to learn its window, not yet given to the decoder.
    header: [u8; HEADER],
    at: usize,
    length: usize,
    is_small: bool,
    _memory: Loan<'a>,
}

impl<'a, R: BufRead> Zstd<'a, R> {
    pub(super) fn new(input: R, budget: &'a Budget) -> Self {
        Self { input, budget, frame: None, spare: None }
    }

    pub(super) fn input(&self) -> &R {
        &self.input
    }

    /// The next frame with data; `None`: there is none.
    fn next(&mut self) -> io::Result<Option<Frame<'a>>> {
        loop {
            if self.input.fill_buf()?.is_empty() {
                return Ok(None);
            }
            let mut header = [0; HEADER];
            self.input.read_exact(&mut header[..4])?;
            let magic = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
            if magic & !0xF == SKIPPABLE {
                let mut length = [0; 4];
                self.input.read_exact(&mut length)?;
                let length = u64::from(u32::from_le_bytes(length));
                if io::copy(&mut self.input.by_ref().take(length), &mut io::sink())? < length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                continue;
            }
            if magic != MAGIC {
                return Err(invalid("something that is no zstd follows its zstd frames"));
            }
            let (window, length) = self.window(&mut header)?;
            if window > MOST_WINDOW {
                return Err(invalid(format!("its zstd window of {} MB is larger than 32 MB", window >> 20)));
            }
            let bytes = usize::try_from(window).unwrap_or(usize::MAX).saturating_add(BESIDES);
            let memory =
                self.budget.lend(bytes).ok_or_else(|| invalid("its zstd window does not fit beside what is kept"))?;
            let is_small = window <= SMALL;
            let spare = self.spare.take().filter(|_| is_small);
            let mut decoder = spare.map_or_else(Decoder::new, Ok)?;
            decoder.reinit()?;
            decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
            return Ok(Some(Frame { decoder, header, at: 0, length, is_small, _memory: memory }));
        }
    }

    /// The memory that a frame wants (RFC 8878, 3.1.1.1), and how long its header is.
    fn window(&mut self, header: &mut [u8; HEADER]) -> io::Result<(u64, usize)> {
        self.input.read_exact(&mut header[4..5])?;
        let descriptor = header[4];
        let single = descriptor & 0x20 != 0;
        let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let content = match (descriptor >> 6, single) {
            (0, false) => 0,
            (0, true) => 1,
            (1, _) => 2,
            (2, _) => 4,
            _ => 8,
        };
        let rest = usize::from(!single) + dictionary + content;
        self.input.read_exact(&mut header[5..5 + rest])?;
        let window = if single {
            let mut bytes = [0; 8];
            bytes[..content].copy_from_slice(&header[5 + dictionary..5 + rest]);
            u64::from_le_bytes(bytes).saturating_add(if content == 2 { 256 } else { 0 })
        } else {
            let base = 1_u64 << (10 + (header[5] >> 3));
            base + base / 8 * u64::from(header[5] & 7)
        };
        Ok((window, 5 + rest))
    }
}

impl<R: BufRead> Read for Zstd<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.frame.is_none() {
                self.frame = self.next()?;
            }
            let Some(frame) = &mut self.frame else { return Ok(0) };
            let from_header = frame.at < frame.length;
            let input = if from_header { &frame.header[frame.at..frame.length] } else { self.input.fill_buf()? };
            let ended = input.is_empty();
            let status = frame.decoder.run_on_buffers(input, buffer)?;
            if from_header {
                frame.at += status.bytes_read;
            } else {
                self.input.consume(status.bytes_read);
            }
            if status.remaining == 0 {
                self.spare = self.frame.take().filter(|frame| frame.is_small).map(|frame| frame.decoder);
            } else if ended && status.bytes_written == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if status.bytes_written > 0 {
                return Ok(status.bytes_written);
            }
        }
    }
}

fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zstd::stream::raw::CParameter;

    use super::*;

    fn frame(bytes: &[u8], window: Option<u32>) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        if let Some(log) = window {
            encoder.set_parameter(CParameter::WindowLog(log)).unwrap();
        }
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// By small and by large pieces: headers must not depend on where a buffer ends.
    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let of = |piece: usize| {
            let mut told = Vec::new();
            let budget = Budget::of(34 << 20);
            Zstd::new(io::BufReader::with_capacity(piece, bytes), &budget).read_to_end(&mut told).map(|_| told)
        };
        let one = of(1);
        let all = of(1 << 16);
        assert_eq!(one.as_ref().ok(), all.as_ref().ok());
        all
    }

    #[test]
    fn frames_follow_each_other_and_those_for_programs_are_skipped() {
        let text = "many words ".repeat(50_000).into_bytes();
        let skipped = [&[0x5A, 0x2A, 0x4D, 0x18, 3, 0, 0, 0][..], b"toc"].concat();
        let all = [&skipped[..], &frame(&text, None), &zstd::bulk::compress(b"single", 3).unwrap(), &skipped].concat();
        assert_eq!(read(&all).unwrap(), [&text[..], b"single"].concat());
        assert_eq!(read(&frame(b"", None)).unwrap(), b"");
        for cut in [all.len() - 1, all.len() - 10, all.len() - 12, 6, 3, 13, 50] {
            assert!(read(&all[..cut]).is_err(), "{cut}");
        }
        assert!(read(&[&all[..], b"more"].concat()).is_err());
    }

    #[test]
    fn a_window_of_32_mb_is_the_largest() {
        assert_eq!(read(&frame(b"x", Some(25))).unwrap(), b"x");
        let refused = read(&frame(b"x", Some(26))).unwrap_err();
        assert_eq!(refused.to_string(), "its zstd window of 64 MB is larger than 32 MB");
        let second = [frame(b"x", None), frame(b"y", Some(27))].concat();
        assert!(read(&second).unwrap_err().to_string().contains("128 MB"));
    }
}
