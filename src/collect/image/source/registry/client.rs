//! Requests to one repository of a registry, with what convinces it.

use std::io::Read;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use serde::Deserialize;
use ureq::http::{Response, StatusCode, header};
use ureq::{Agent, Body, Error};

use super::challenge::{Challenge, parse};
use super::credentials::{BASE64, Credentials, Proof};
use super::name::Name;
use super::trust;
use crate::collect::http::{self, words};
use crate::collect::image::source::machine::Machine;
use crate::collect::image::source::manifest::short;

/// A token, or an answer that tells why there is none.
const MOST_ANSWER: usize = 1 << 20;

/// One repository.
pub(super) struct Client {
    agent: Agent,
    /// `https`, or `http`.
    scheme: Mutex<&'static str>,
    may_be_plain: bool,
    host: String,
    repository: String,
    credentials: Credentials,
    /// The header that convinced it last.
    authorization: Mutex<Option<String>>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It knows no such thing.
    Absent(String),
    /// Anything else.
    Failed(String),
}

impl Refusal {
    pub(super) fn words(&self) -> &str {
        let (Self::Absent(words) | Self::Failed(words)) = self;
        words
    }
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct Errors {
    errors: Vec<OneError>,
}

#[derive(Deserialize)]
struct OneError {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: Option<String>,
}

impl Client {
    pub(super) fn new(machine: &Machine<'_>, name: &Name) -> Self {
        let insecure = trust::is_insecure(machine, name);
        let mut config = http::config().tls_config(trust::tls(machine, name, insecure));
        if name.is_loopback() {
            config = config.proxy(None);
        }
        Self {
            agent: config.build().new_agent(),
            scheme: Mutex::new(if name.is_loopback() { "http" } else { "https" }),
            may_be_plain: insecure,
            host: name.host().to_owned(),
            repository: name.repository.clone(),
            credentials: super::credentials::find(machine, name),
            authorization: Mutex::new(None),
        }
    }

    /// What lies below the repository: `manifests/latest`. A blob is read for as long as `size` bytes may take.
    pub(super) fn get(
        &self,
        path: &str,
        accept: &str,
        range: Option<&str>,
        size: Option<u64>,
    ) -> Result<Response<Body>, Refusal> {
        let mut answer = self.send(path, accept, range, size)?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            // a token may have grown too old as well
            self.convince(&answer)?;
            answer = self.send(path, accept, range, size)?;
        }
        self.judged(answer, path)
    }

    fn send(
        &self,
        path: &str,
        accept: &str,
        range: Option<&str>,
        size: Option<u64>,
    ) -> Result<Response<Body>, Refusal> {
        let scheme = *lock(&self.scheme);
        let answer = self.send_by(scheme, path, accept, range, size);
        if !self.may_be_plain || !speaks_the_other(scheme, &answer) {
            return answer.map_err(|error| Refusal::Failed(words(&error)));
        }
        let other = if scheme == "http" { "https" } else { "http" };
        match self.send_by(other, path, accept, range, size) {
            Ok(answer) => {
                *lock(&self.scheme) = other;
                Ok(answer)
            }
            Err(second) => Err(Refusal::Failed(words(&answer.err().unwrap_or(second)))),
        }
    }

    fn send_by(
        &self,
        scheme: &str,
        path: &str,
        accept: &str,
        range: Option<&str>,
        size: Option<u64>,
    ) -> Result<Response<Body>, Error> {
        let url = format!("{scheme}://{}/v2/{}/{path}", self.host, self.repository);
        let mut request = self.agent.get(url).header(header::ACCEPT, accept);
        // Content that is packed once more on its way has another digest.
        request = request.header(header::ACCEPT_ENCODING, "identity");
        if let Some(authorization) = lock(&self.authorization).as_deref() {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        if let Some(range) = range {
            request = request.header(header::RANGE, range);
        }
        let config = request.config().timeout_recv_response(Some(http::SHORT));
        config.timeout_recv_body(Some(size.map_or(http::SHORT, http::patience))).build().call()
    }

    fn convince(&self, refused: &Response<Body>) -> Result<(), Refusal> {
        let headers = refused.headers().get_all(header::WWW_AUTHENTICATE);
        let challenge = headers.iter().find_map(|value| parse(value.to_str().ok()?));
        let authorization = match (challenge, &self.credentials.proof) {
            (Some(Challenge::Bearer { .. }), Some(Proof::Token(token))) => format!("Bearer {token}"),
            (Some(Challenge::Bearer { realm, service, scope }), proof) => {
                format!("Bearer {}", self.token(&realm, service.as_deref(), scope.as_deref(), proof.as_ref())?)
            }
            (Some(Challenge::Basic), Some(Proof::Password { name, password })) => basic(name, password),
            (Some(Challenge::Basic), _) => return Err(self.denied("asks for a password")),
            (None, _) => return Err(self.denied("asks for what this program cannot give")),
        };
        *lock(&self.authorization) = Some(authorization);
        Ok(())
    }

    pub(super) fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        scope: Option<&str>,
        proof: Option<&Proof>,
    ) -> Result<String, Refusal> {
        let own = format!("repository:{}:pull", self.repository);
        let scope = scope.unwrap_or(&own);
        let failed = |error: &Error| Refusal::Failed(format!("{}: {}", short(realm), words(error)));
        let may_be_asked = realm.starts_with("https://") || self.may_be_plain && realm.starts_with("http://");
        if !may_be_asked {
            return Err(Refusal::Failed(format!("asks for a token of {}, which is not to be trusted", short(realm))));
        }
        let answer = if let Some(Proof::Identity(token)) = proof {
            let mut form = vec![("grant_type", "refresh_token"), ("client_id", "gpu-preflight"), ("scope", scope)];
            form.push(("refresh_token", token));
            form.extend(service.map(|service| ("service", service)));
            let request = self.agent.post(realm).config().timeout_global(Some(http::SHORT)).build();
            request.send_form(form).map_err(|error| failed(&error))?
        } else {
            let mut request = self.agent.get(realm);
            if let Some(service) = service {
                request = request.query("service", service);
            }
            request = request.query("scope", scope);
            if let Some(Proof::Password { name, password }) = proof {
                request = request.header(header::AUTHORIZATION, basic(name, password));
            }
            let request = request.config().timeout_global(Some(http::SHORT)).build();
            request.call().map_err(|error| failed(&error))?
        };
        let status = answer.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST) {
            return Err(self.denied("gives no token"));
        }
        let no = |why: String| Refusal::Failed(format!("{} gives no token: {why}", short(realm)));
        if !status.is_success() {
            return Err(no(format!("it answers {}", status.as_u16())));
        }
        let bytes =
            http::short_body(answer.into_body().into_reader(), MOST_ANSWER).map_err(|e| no(http::io_words(&e)))?;
        let token: Token = serde_json::from_slice(&bytes).map_err(|_| no("its answer is no such JSON".to_owned()))?;
        let given = token.token.filter(|token| !token.is_empty()).or(token.access_token);
        let given = given.filter(|token| token.bytes().all(|b| b.is_ascii_graphic()));
        given.ok_or_else(|| no("its answer holds none".to_owned()))
    }

    fn judged(&self, answer: Response<Body>, path: &str) -> Result<Response<Body>, Refusal> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(self.denied("refuses"));
        }
        let told = told(answer.into_body().into_reader());
        let told = if told.is_empty() { String::new() } else { format!(" ({told})") };
        Err(match status {
            StatusCode::NOT_FOUND => Refusal::Absent(format!("has no {path}{told}")),
            StatusCode::TOO_MANY_REQUESTS => Refusal::Failed(format!("has had too many requests from here{told}")),
            _ => Refusal::Failed(format!("answers {}{told}", status.as_u16())),
        })
    }

    fn denied(&self, what: &str) -> Refusal {
        let whose = match &self.credentials.proof {
            Some(_) => format!("with the credentials of {}", self.credentials.source),
            None => format!("without credentials; {}", self.credentials.source),
        };
        Refusal::Failed(format!("{what}: no access {whose}"))
    }
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{name}:{password}")))
}

/// The first of the registry's own words.
fn told(body: impl Read) -> String {
    let Ok(bytes) = http::short_body(body, MOST_ANSWER) else { return String::new() };
    let Ok(errors) = serde_json::from_slice::<Errors>(&bytes) else { return String::new() };
    let first = errors.errors.into_iter().next();
    first.map_or_else(String::new, |error| {
        let words = error.message.filter(|words| !words.is_empty()).map(|words| format!(": {}", short(&words)));
        format!("{}{}", short(&error.code), words.unwrap_or_default())
    })
}

/// The other end may understand the other scheme: it has not said anything of use in this one.
fn speaks_the_other(scheme: &str, answer: &Result<Response<Body>, Error>) -> bool {
    match answer {
        Err(Error::Timeout(_) | Error::HostNotFound) => false,
        Err(_) => true,
        // what Go's servers and nginx answer to plain words on a port for TLS
        Ok(answer) => scheme == "http" && answer.status() == StatusCode::BAD_REQUEST,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // nothing that is kept behind one can be half written
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
