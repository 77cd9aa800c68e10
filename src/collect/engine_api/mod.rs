//! Clients of engines that answer HTTP on a socket: docker, and podman, which speaks docker's words.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::StatusCode;
use ureq::tls::{ClientCert, RootCerts, TlsConfig};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::{Agent, Body, Error};

use super::http::{self, short_body};
use super::tree::Tree;
use crate::collect::image::source::registry::trust::{certificates, key};
use crate::model::Unseen;
pub(super) use endpoint::{Endpoint, Tls, endpoint};
use socket::SocketConnector;

mod endpoint;
mod socket;
#[cfg(test)]
mod tests;

/// A description of one image is some kilobytes.
const MOST_ANSWER: usize = 8 << 20;
/// docker's classic store writes the whole image to its own disk before the first byte of it comes.
const PACKING: Duration = Duration::from_secs(900);

/// An engine that can be asked.
#[derive(Debug)]
pub(super) struct Api {
    agent: Agent,
    base: String,
    label: String,
}

/// Why an engine gave no answer.
#[derive(Debug)]
pub(super) enum Silent {
    /// Nobody listens: there is no such socket.
    Nobody,
    /// It knows no such thing.
    Absent,
    /// Anything else.
    Failed(Unseen),
}

#[derive(Deserialize)]
struct Trouble {
    message: String,
}

impl Api {
    /// Of an endpoint; its certificates are read below `files`.
    pub(super) fn new(endpoint: &Endpoint, files: &Tree) -> Result<Self, Unseen> {
        match endpoint {
            Endpoint::Socket(path) => Ok(Self::socket(Path::new(path))),
            Endpoint::Tcp { address, tls } => {
                let scheme = if tls.is_some() { "https" } else { "http" };
                let config = match tls {
                    Some(tls) => http::config().tls_config(trusted(tls, files)?),
                    None => http::config(),
                };
                Ok(Self {
                    agent: config.max_redirects(0).build().new_agent(),
                    base: format!("{scheme}://{address}"),
                    label: format!("tcp://{address}"),
                })
            }
        }
    }

    /// Of a socket.
    pub(super) fn socket(path: &Path) -> Self {
        let config = http::config().proxy(None).max_redirects(0).build();
        let agent = Agent::with_parts(config, SocketConnector(Arc::from(path)), DefaultResolver::default());
        // the name is looked up before the connector is asked, so it must be an address
        Self { agent, base: "http://127.0.0.1".to_owned(), label: path.display().to_string() }
    }

    /// What it is called in messages.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// A short answer.
    pub(super) fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, Silent> {
        self.json_within(path, http::SHORT)
    }

    /// The same of an engine that is given so long and no longer.
    pub(super) fn json_within<T: DeserializeOwned>(&self, path: &str, patience: Duration) -> Result<T, Silent> {
        let answer = self.get(path, patience, Some(patience))?;
        let bytes = short_body(answer.into_reader(), MOST_ANSWER);
        let bytes = bytes.map_err(|error| Silent::Failed(self.unseen(http::io_words(&error))))?;
        let wrong = |error| Silent::Failed(self.unseen(format!("answers no such JSON ({error})")));
        serde_json::from_slice(&bytes).map_err(wrong)
    }

    /// An answer of about so many bytes.
    pub(super) fn stream(&self, path: &str, size: u64) -> Result<Box<dyn Read + Send>, Silent> {
        let answer = self.get(path, PACKING, Some(http::patience(size)))?;
        Ok(Box::new(answer.into_with_config().limit(u64::MAX).reader()))
    }

    fn get(&self, path: &str, first: Duration, all: Option<Duration>) -> Result<Body, Silent> {
        let request = self.agent.get(format!("{}{path}", self.base)).config();
        let request = request.timeout_recv_response(Some(first)).timeout_per_read(Some(first)).timeout_recv_body(all);
        let answer = request.build().call().map_err(|error| match error {
            Error::Io(error) if error.kind() == std::io::ErrorKind::NotFound => Silent::Nobody,
            error => Silent::Failed(self.unseen(http::words(&error))),
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer.into_body());
        }
        if status == StatusCode::NOT_FOUND {
            return Err(Silent::Absent);
        }
        let told = short_body(answer.into_body().into_reader(), MOST_ANSWER).ok();
        let told = told.and_then(|bytes| serde_json::from_slice::<Trouble>(&bytes).ok());
        let told = told.map_or_else(|| format!("answers {}", status.as_u16()), |trouble| quoted(&trouble.message));
        Err(Silent::Failed(self.unseen(told)))
    }

    fn unseen(&self, reason: String) -> Unseen {
        Unseen::new(&self.label, reason)
    }
}

/// The other end's words, cut for a message.
fn quoted(text: &str) -> String {
    text.chars().take(200).flat_map(char::escape_default).collect()
}

fn trusted(tls: &Tls, files: &Tree) -> Result<TlsConfig, Unseen> {
    let directory = &tls.directory;
    let own = certificates(files, &format!("{directory}/cert.pem"));
    let client = match key(files, &format!("{directory}/key.pem")) {
        Some(key) if !own.is_empty() => Some(ClientCert::new_with_certs(&own, key)),
        _ => None,
    };
    let authorities = certificates(files, &format!("{directory}/ca.pem"));
    let roots = match (authorities.is_empty(), tls.verify) {
        (false, _) => RootCerts::new_with_certs(&authorities),
        (true, false) => RootCerts::PlatformVerifier,
        (true, true) => {
            return Err(Unseen::new(format!("{directory}/ca.pem"), "holds no certificate to know docker by"));
        }
    };
    Ok(TlsConfig::builder().root_certs(roots).client_cert(client).disable_verification(!tls.verify).build())
}
