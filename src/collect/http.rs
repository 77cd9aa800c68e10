//! What is the same in every talk over HTTP: how long to wait, how much to take, and how to say what went wrong.

use std::io::{self, Read};
use std::time::Duration;

use ureq::Timeout;
use ureq::config::{Config, ConfigBuilder};
use ureq::typestate::AgentScope;

/// To be connected.
const CONNECT: Duration = Duration::from_secs(10);
/// Between two pieces of anything.
const SILENCE: Duration = Duration::from_secs(60);
/// An answer that is short.
pub(super) const SHORT: Duration = Duration::from_secs(60);
/// No link of use is slower, so that a server that sends a byte now and then comes to an end.
const SLOWEST: u64 = 16 << 10;
/// Programs of servers tell their visitors apart by it.
const NAME: &str = concat!("gpu-preflight/", env!("CARGO_PKG_VERSION"));

/// Every wait has an end.
pub(super) fn config() -> ConfigBuilder<AgentScope> {
    Config::builder()
        .http_status_as_error(false)
        .user_agent(NAME)
        .timeout_connect(Some(CONNECT))
        .timeout_per_read(Some(SILENCE))
        .timeout_per_write(Some(SILENCE))
}

/// How long so many bytes may take.
pub(super) fn patience(bytes: u64) -> Duration {
    SILENCE + Duration::from_secs(bytes / SLOWEST)
}

/// All of a short answer; longer than `limit` is an error.
pub(super) fn short_body(body: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    body.take(most).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(io::Error::other(format!("the answer is longer than {limit} bytes")));
    }
    Ok(bytes)
}

/// What went wrong, in words.
pub(super) fn words(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => "cannot be reached in time".to_owned(),
        ureq::Error::Timeout(_) => "does not answer in time".to_owned(),
        ureq::Error::HostNotFound => "no address is known for this name".to_owned(),
        ureq::Error::Io(error) => io_words(error),
        ureq::Error::Rustls(error) => format!("no trusted connection ({error})"),
        other => other.to_string(),
    }
}

/// What went wrong with a connection, in words.
pub(super) fn io_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
        io::ErrorKind::PermissionDenied => "this user may not talk to it".to_owned(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "does not answer in time".to_owned(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => "the connection was cut".to_owned(),
        _ => error.to_string(),
    }
}
