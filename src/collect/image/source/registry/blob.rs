//! A blob of a registry, read from its beginning to its end over as many connections as that takes.

use std::io::{self, Read};
use std::sync::Arc;

use ureq::http::{Response, StatusCode, header};
use ureq::{Body, BodyReader};

use super::client::{Client, Refusal};

/// Cuts in one blob before it is given up.
const MOST_CUTS: u32 = 8;
/// A blob whose manifest does not say how long it is.
const UNTOLD: u64 = 1 << 40;

/// Reads one.
pub(super) struct Blob {
    client: Arc<Client>,
    path: String,
    size: Option<u64>,
    offset: u64,
    body: Option<BodyReader<'static>>,
    cuts: u32,
}

impl Blob {
    /// Asks for it.
    pub(super) fn open(client: Arc<Client>, digest: &str, size: Option<u64>) -> Result<Self, Refusal> {
        let path = format!("blobs/{digest}");
        let answer = client.get(&path, "*/*", None, Some(size.unwrap_or(UNTOLD)))?;
        let told = size.or_else(|| answer.body().content_length());
        let body = Some(reader(answer));
        Ok(Self { client, path, size: told, offset: 0, body, cuts: 0 })
    }

    /// Goes on where the connection was cut.
    fn resume(&mut self) -> io::Result<BodyReader<'static>> {
        let range = format!("bytes={}-", self.offset);
        let left = self.size.unwrap_or(UNTOLD).saturating_sub(self.offset);
        let answer = self.client.get(&self.path, "*/*", Some(&range), Some(left));
        let answer = answer.map_err(|refusal| io::Error::other(refusal.words().to_owned()))?;
        if answer.status() == StatusCode::PARTIAL_CONTENT {
            return begins_at(answer, self.offset);
        }
        // HTTP allows a server not to know ranges
        let mut body = reader(answer);
        let skipped = io::copy(&mut body.by_ref().take(self.offset), &mut io::sink())?;
        if skipped == self.offset { Ok(body) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn piece(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut body = match self.body.take() {
            Some(body) => body,
            None => self.resume()?,
        };
        let read = body.read(buffer)?;
        // the end of a body without a length may be a cut
        if read == 0 && self.size.is_some() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.body = Some(body);
        Ok(read)
    }
}

impl Read for Blob {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size.unwrap_or(UNTOLD) - self.offset;
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        loop {
            match self.piece(&mut buffer[..most]) {
                Ok(read) => {
                    self.offset += read as u64;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(error) => {
                    self.cuts += 1;
                    if self.cuts > MOST_CUTS {
                        return Err(error);
                    }
                }
            }
        }
    }
}

/// So many bytes of a blob from a place on; an error where its server does not know ranges.
pub(super) fn part(client: &Client, digest: &str, at: u64, length: u64) -> io::Result<BodyReader<'static>> {
    let last = length.checked_sub(1).and_then(|more| at.checked_add(more));
    let range = format!("bytes={at}-{}", last.ok_or(io::ErrorKind::InvalidInput)?);
    let answer = client.get(&format!("blobs/{digest}"), "*/*", Some(&range), Some(length));
    let answer = answer.map_err(|refusal| io::Error::other(refusal.words().to_owned()))?;
    if answer.status() == StatusCode::PARTIAL_CONTENT {
        return begins_at(answer, at);
    }
    Err(io::Error::other("does not know ranges"))
}

fn begins_at(answer: Response<Body>, offset: u64) -> io::Result<BodyReader<'static>> {
    let range = answer.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
    if range.and_then(begin) == Some(offset) {
        Ok(reader(answer))
    } else {
        Err(io::Error::other("goes on with another part than it was asked for"))
    }
}

fn reader(answer: Response<Body>) -> BodyReader<'static> {
    answer.into_body().into_with_config().limit(u64::MAX).reader()
}

/// `bytes 100-199/1234` begins at 100.
fn begin(range: &str) -> Option<u64> {
    range.strip_prefix("bytes ")?.split_once('-')?.0.trim().parse().ok()
}
