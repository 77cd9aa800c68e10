//! Where docker is: what its own client would talk to (`DOCKER_HOST`, `DOCKER_CONTEXT`, the current context, its socket).

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::collect::tree::Tree;
use crate::model::Unseen;

const SOCKET: &str = "/var/run/docker.sock";
const MOST_JSON: usize = 1 << 20;

/// Where an engine listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::collect) enum Endpoint {
    /// A socket of this machine.
    Socket(String),
    /// A port, of whatever machine.
    Tcp {
        /// Host and port.
        address: String,
        /// How it proves who it is; `None`: not at all.
        tls: Option<Tls>,
    },
}

/// TLS as docker's client speaks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::collect) struct Tls {
    /// Where `ca.pem`, `cert.pem` and `key.pem` are.
    pub(super) directory: String,
    /// The server must prove who it is.
    pub(super) verify: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    current_context: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Context {
    endpoints: Endpoints,
}

#[derive(Deserialize)]
struct Endpoints {
    docker: Described,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Described {
    host: String,
    #[serde(default, rename = "SkipTLSVerify")]
    skip_tls_verify: bool,
}

/// docker's endpoint by the caller's variables and files.
pub(in crate::collect) fn endpoint<'v>(
    files: &Tree,
    variable: &dyn Fn(&str) -> Option<&'v str>,
) -> Result<Endpoint, Unseen> {
    let own = variable("DOCKER_CONFIG").map(str::to_owned);
    let own = own.or_else(|| variable("HOME").map(|home| format!("{home}/.docker")));
    if let Some(host) = variable("DOCKER_HOST") {
        let verify = variable("DOCKER_TLS_VERIFY").is_some();
        let directory = variable("DOCKER_CERT_PATH").map(str::to_owned).or(own).unwrap_or_default();
        let speaks = verify || variable("DOCKER_TLS").is_some();
        return parse(host, "DOCKER_HOST", speaks.then_some(Tls { directory, verify }));
    }
    let context = variable("DOCKER_CONTEXT").map(str::to_owned).or_else(|| {
        let path = format!("{}/config.json", own.as_deref()?);
        // whoever has no readable configuration has docker's own
        json::<Configuration>(files, &path).ok()??.current_context
    });
    match (context.filter(|name| !name.is_empty() && name != "default"), own) {
        (Some(name), Some(own)) => of_context(files, &own, &name),
        _ => Ok(Endpoint::Socket(default(files, variable))),
    }
}

fn of_context(files: &Tree, own: &str, name: &str) -> Result<Endpoint, Unseen> {
    let id = format!("{:x}", Sha256::digest(name));
    let path = format!("{own}/contexts/meta/{id}/meta.json");
    let context: Context = json(files, &path)?
        .ok_or_else(|| Unseen::new(path, format!("is absent, and docker's context is {}", super::quoted(name))))?;
    let docker = context.endpoints.docker;
    let directory = format!("{own}/contexts/tls/{id}/docker");
    let has_tls = docker.skip_tls_verify || files.stat(&directory)?.is_some();
    let tls = has_tls.then_some(Tls { directory, verify: !docker.skip_tls_verify });
    parse(&docker.host, "docker's context", tls)
}

fn default<'v>(files: &Tree, variable: &dyn Fn(&str) -> Option<&'v str>) -> String {
    let is_there = |path: &str| files.stat(path).is_ok_and(|found| found.is_some());
    let rootless = variable("XDG_RUNTIME_DIR").map(|directory| format!("{directory}/docker.sock"));
    rootless.filter(|own| !is_there(SOCKET) && is_there(own)).unwrap_or_else(|| SOCKET.to_owned())
}

fn parse(host: &str, source: &str, tls: Option<Tls>) -> Result<Endpoint, Unseen> {
    let no = |why: &str| Unseen::new(format!("{source}={}", super::quoted(host)), why);
    match host.split_once("://") {
        Some(("unix", path)) if path.starts_with('/') => Ok(Endpoint::Socket(path.to_owned())),
        Some((scheme @ ("tcp" | "http" | "https"), rest)) => {
            let address = rest.trim_end_matches('/');
            let is_host = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']');
            if address.is_empty() || !address.bytes().all(is_host) {
                return Err(no("is no host and port"));
            }
            let tls = if scheme == "http" { None } else { tls };
            let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            let port = if tls.is_some() { 2376 } else { 2375 };
            let address = if has_port { address.to_owned() } else { format!("{address}:{port}") };
            Ok(Endpoint::Tcp { address, tls })
        }
        Some(("ssh", _)) => Err(no(
            "is reached by ssh, which this program does not speak: run it there, or name a registry or an archive",
        )),
        _ => Err(no("is no address that this program can talk to")),
    }
}

fn json<T: DeserializeOwned>(files: &Tree, path: &str) -> Result<Option<T>, Unseen> {
    let Some(bytes) = files.read(path, MOST_JSON)? else { return Ok(None) };
    let wrong = |error| Unseen::new(path, format!("is no such JSON ({error})"));
    serde_json::from_slice(&bytes).map(Some).map_err(wrong)
}
