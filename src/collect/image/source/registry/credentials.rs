//! Credentials as podman and docker keep them: in their files, or with a helper that the files name.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use nix::unistd::geteuid;
use serde::Deserialize;

use super::helper;
use super::name::Name;
use crate::collect::image::source::machine::{Machine, here, json};

/// docker's own key for its hub.
const HUB: &str = "https://index.docker.io/v1/";

/// base64, its padding left out or not.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What proves to a registry who asks.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Proof {
    /// Name and password.
    Password { name: String, password: String },
    /// A token that is exchanged for others.
    Identity(String),
    /// A token as the registry itself takes it.
    Token(String),
}

/// What was found, and where.
pub(super) struct Credentials {
    pub(super) proof: Option<Proof>,
    /// The file; or what stood in the way.
    pub(super) source: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    auths: Option<BTreeMap<String, Entry>>,
    #[serde(default)]
    cred_helpers: Option<BTreeMap<String, String>>,
    creds_store: Option<String>,
}

#[derive(Deserialize, Default)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

/// Looks for what the caller has for an image's registry: the first file that has something, in podman's order.
pub(super) fn find(machine: &Machine<'_>, name: &Name) -> Credentials {
    let mut troubles = Vec::new();
    let files = files(machine);
    let here = match here() {
        Ok(here) => here,
        Err(unseen) => return Credentials { proof: None, source: unseen.reason },
    };
    for path in &files {
        let file: File = match json(&here, path) {
            Ok(Some(file)) => file,
            Ok(None) => continue,
            Err(unseen) => {
                troubles.push(format!("{path}: {}", unseen.reason));
                continue;
            }
        };
        match file.proof(machine, name) {
            Ok(Some(proof)) => return Credentials { proof: Some(proof), source: path.clone() },
            Ok(None) => {}
            Err(trouble) => troubles.push(format!("{path}: {trouble}")),
        }
    }
    let source = if troubles.is_empty() { "none are kept for this user".to_owned() } else { troubles.join("; ") };
    Credentials { proof: None, source }
}

fn files(machine: &Machine<'_>) -> Vec<String> {
    let variable = |name| machine.callers(name).map(str::to_owned);
    let home = variable("HOME");
    let below_home = |rest: &str| home.as_ref().map(|home| format!("{home}/{rest}"));
    let runtime = variable("XDG_RUNTIME_DIR").map_or_else(
        || format!("/run/containers/{}/auth.json", geteuid()),
        |directory| format!("{directory}/containers/auth.json"),
    );
    let docker = variable("DOCKER_CONFIG").or_else(|| below_home(".docker"));
    [
        variable("REGISTRY_AUTH_FILE"),
        Some(runtime),
        below_home(".config/containers/auth.json"),
        docker.map(|directory| format!("{directory}/config.json")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl File {
    fn proof(&self, machine: &Machine<'_>, name: &Name) -> Result<Option<Proof>, String> {
        let is_hub = name.registry == "docker.io";
        let server = if is_hub { HUB } else { name.registry.as_str() };
        let of_host = |helpers: &BTreeMap<String, String>| {
            helpers.get(server).or_else(|| helpers.get(&name.registry)).filter(|helper| !helper.is_empty()).cloned()
        };
        let helper = self.cred_helpers.as_ref().and_then(of_host).or_else(|| self.creds_store.clone());
        if let Some(helper) = helper.filter(|helper| !helper.is_empty())
            && let Some(proof) = helper::ask(machine, &helper, server)?
        {
            return Ok(Some(proof));
        }
        let wanted = format!("{}/{}", name.registry, name.repository);
        let length = |key: &str| {
            let plain = plain(key);
            let rest = wanted.strip_prefix(&plain)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(plain.len())
        };
        let auths = self.auths.iter().flatten().filter_map(|(key, entry)| Some((length(key)?, entry)));
        // an entry without anything says that a helper keeps it
        let known = auths.filter_map(|(length, entry)| Some((length, entry.proof()?)));
        Ok(known.max_by_key(|(length, _)| *length).map(|(_, proof)| proof))
    }
}

/// A key without what docker's old clients put around a host.
fn plain(key: &str) -> String {
    let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let key = key.trim_end_matches('/');
    let key = key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key);
    match key {
        "index.docker.io" | "registry-1.docker.io" => "docker.io".to_owned(),
        other => other.to_owned(),
    }
}

impl Entry {
    fn proof(&self) -> Option<Proof> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if let Some(token) = given(&self.identitytoken) {
            return Some(Proof::Identity(token));
        }
        if let Some(token) = given(&self.registrytoken) {
            return Some(Proof::Token(token));
        }
        if let (Some(name), Some(password)) = (given(&self.username), given(&self.password)) {
            return Some(Proof::Password { name, password });
        }
        let bytes = BASE64.decode(given(&self.auth)?.trim()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (name, password) = text.split_once(':')?;
        // docker pads some passwords
        let password = password.trim_end_matches('\0').to_owned();
        Some(Proof::Password { name: name.to_owned(), password })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::tree::{Kind, Tree};

    fn found(files: &[(&str, &str)], variables: &[(&str, &str)], name: &str) -> (Option<String>, String) {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| format!("{}/{path}", dir.path().display());
        for (path, content) in files {
            std::fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(path), content).unwrap();
        }
        let mut environment: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), at(value))).collect();
        environment.insert("HOME".into(), at("home"));
        environment.entry("XDG_RUNTIME_DIR".into()).or_insert_with(|| at("run"));
        let tree = Tree::open(dir.path(), Kind::Host).unwrap();
        let machine = Machine::new(&tree, false, environment);
        let credentials = find(&machine, &Name::parse(name).unwrap());
        let words = credentials.proof.map(|proof| match proof {
            Proof::Password { name, password } => format!("{name}/{password}"),
            Proof::Identity(token) => format!("identity {token}"),
            Proof::Token(token) => format!("token {token}"),
        });
        (words, credentials.source.replace(&at(""), ""))
    }

    fn auth(text: &str) -> String {
        BASE64.encode(text)
    }

    #[test]
    fn the_longest_key_that_fits_is_meant() {
        let file = format!(
            r#"{{"auths":{{"q.io":{{"auth":"{}"}},"q.io/team":{{"auth":"{}"}},"q.io/te":{{"auth":"{}"}}}}}}"#,
            auth("host:1"),
            auth("team:a:b"),
            auth("no:no")
        );
        let files = [("run/containers/auth.json", file.as_str())];
        assert_eq!(found(&files, &[], "q.io/team/x").0.as_deref(), Some("team/a:b"));
        assert_eq!(found(&files, &[], "q.io/other").0.as_deref(), Some("host/1"));
        assert_eq!(found(&files, &[], "other.io/team/x").0, None);
    }

    #[test]
    fn each_file_in_its_turn_and_each_form_of_an_entry() {
        let docker = format!(
            r#"{{"auths":{{"https://index.docker.io/v1/":{{"auth":"{}"}},"i.io":{{"identitytoken":"t","auth":"{}"}},
               "u.io":{{"username":"n","password":"p"}},"r.io":{{"registrytoken":"r"}},"e.io":{{}}}},"HttpHeaders":{{}}}}"#,
            auth("hub:secret"),
            auth("<token>:")
        );
        let files = [("home/.docker/config.json", docker.as_str())];
        let of = |name: &str| found(&files, &[], name).0;
        assert_eq!(of("debian").as_deref(), Some("hub/secret"));
        assert_eq!(of("i.io/x").as_deref(), Some("identity t"));
        assert_eq!(of("u.io/x").as_deref(), Some("n/p"));
        assert_eq!(of("r.io/x").as_deref(), Some("token r"));
        assert_eq!(of("e.io/x"), None);
        let own = r#"{"auths":{"u.io":{"username":"own","password":"o"}}}"#;
        let both = [files[0], ("own.json", own)];
        assert_eq!(found(&both, &[("REGISTRY_AUTH_FILE", "own.json")], "u.io/x").0.as_deref(), Some("own/o"));
        assert_eq!(found(&both, &[("REGISTRY_AUTH_FILE", "own.json")], "debian").0.as_deref(), Some("hub/secret"));
    }

    #[test]
    fn a_file_that_is_none_and_a_helper_that_is_absent_are_said_and_nothing_more() {
        let (proof, source) = found(&[("home/.docker/config.json", "{")], &[], "q.io/x");
        assert_eq!(proof, None);
        assert!(source.contains("no such JSON"), "{source}");
        let absent = r#"{"credsStore":"gone-with-the-wind","auths":{"q.io":{}}}"#;
        let (proof, source) = found(&[("home/.docker/config.json", absent)], &[], "q.io/x");
        assert_eq!(proof, None);
        assert!(source.contains("docker-credential-gone-with-the-wind"), "{source}");
    }
}
