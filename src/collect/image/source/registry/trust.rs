//! Whom a registry must prove itself to be: the machine's authorities, those that its engines are told to trust with it,
//! and the registries that are said to need no proof.

use std::net::IpAddr;

use serde_json::Value;
use toml::Table;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use super::name::Name;
use crate::collect::image::source::machine::Machine;
use crate::collect::tree::Tree;
use crate::model::host::EngineKind;

const DAEMON: &str = EngineKind::Docker.configuration();
/// docker's and containers' directories of certificates, a directory in it for each registry.
const CERTIFICATES: [&str; 2] = ["/etc/docker/certs.d", "/etc/containers/certs.d"];
/// Where distributions keep all authorities in one file.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
const MOST_BYTES: usize = 4 << 20;
const MOST_FILES: usize = 256;

/// The registry need not prove who it is, and may speak without TLS: somebody said so on this machine.
pub(super) fn is_insecure(machine: &Machine<'_>, name: &Name) -> bool {
    name.is_loopback() || daemon_says(machine, name) || containers_say(machine, name)
}

fn daemon_says(machine: &Machine<'_>, name: &Name) -> bool {
    let Ok(Some(daemon)) = machine.json::<Value>(DAEMON) else { return false };
    let listed = daemon.get("insecure-registries").and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(Value::as_str).any(|entry| is_meant(entry, &name.registry))
}

/// docker's entries are hosts with their ports, or networks.
fn is_meant(entry: &str, registry: &str) -> bool {
    let Some((network, bits)) = entry.split_once('/') else { return entry == registry };
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host).trim_matches(['[', ']']);
    let (Ok(network), Ok(bits), Ok(host)) = (network.parse(), bits.parse::<u32>(), host.parse()) else { return false };
    match (network, host) {
        (IpAddr::V4(network), IpAddr::V4(host)) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            network.to_bits() & mask == host.to_bits() & mask
        }
        (IpAddr::V6(network), IpAddr::V6(host)) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            network.to_bits() & mask == host.to_bits() & mask
        }
        _ => false,
    }
}

/// The entry of containers' registries with the longest name that fits decides.
fn containers_say(machine: &Machine<'_>, name: &Name) -> bool {
    let wanted = format!("{}/{}", name.registry, name.repository);
    let fits = |entry: &str| wanted.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let mut best: Option<(usize, bool)> = None;
    for table in registries(machine) {
        for entry in table.get("registry").and_then(toml::Value::as_array).into_iter().flatten() {
            let text = |key: &str| entry.get(key).and_then(toml::Value::as_str);
            let Some(prefix) = text("prefix").or_else(|| text("location")) else { continue };
            let insecure = entry.get("insecure").and_then(toml::Value::as_bool).unwrap_or(false);
            if fits(prefix) && best.is_none_or(|(length, _)| prefix.len() >= length) {
                best = Some((prefix.len(), insecure));
            }
        }
        // its first version
        let old = table.get("registries").and_then(|all| all.get("insecure")?.get("registries")?.as_array());
        if old.into_iter().flatten().filter_map(toml::Value::as_str).any(fits) && best.is_none() {
            best = Some((0, true));
        }
    }
    best.is_some_and(|(_, insecure)| insecure)
}

/// containers' `registries.conf`, the later files over the earlier.
pub(in crate::collect::image::source) fn registries(machine: &Machine<'_>) -> Vec<Table> {
    let own = machine.home().map(|home| format!("{home}/.config/containers/registries.conf"));
    let own = own.filter(|path| machine.files().stat(path).is_ok_and(|found| found.is_some()));
    let main = own.unwrap_or_else(|| "/etc/containers/registries.conf".to_owned());
    let drop_ins = "/etc/containers/registries.conf.d";
    let names = names(machine.files(), drop_ins).into_iter().filter(|name| name.strip_suffix(".conf").is_some());
    let all = [main].into_iter().chain(names.map(|name| format!("{drop_ins}/{name}")));
    all.filter_map(|path| machine.toml(&path)).collect()
}

fn names(files: &Tree, directory: &str) -> Vec<String> {
    let names = files.list(directory, MOST_FILES).ok().flatten().unwrap_or_default();
    names.into_iter().filter_map(|name| name.into_string().ok()).collect()
}

/// What TLS is to be spoken with a registry with.
pub(super) fn tls(machine: &Machine<'_>, name: &Name, insecure: bool) -> TlsConfig {
    let files = machine.files();
    let mut authorities = Vec::new();
    let mut client = None;
    for directory in CERTIFICATES.map(|directory| format!("{directory}/{}", name.registry)) {
        for file in names(files, &directory) {
            let path = format!("{directory}/{file}");
            if file.strip_suffix(".crt").is_some() {
                authorities.extend(certificates(files, &path));
            } else if let Some(stem) = file.strip_suffix(".cert") {
                let key = key(files, &format!("{directory}/{stem}.key"));
                client = client.or_else(|| Some(ClientCert::new_with_certs(&certificates(files, &path), key?)));
            }
        }
    }
    let roots = if authorities.is_empty() {
        RootCerts::PlatformVerifier
    } else {
        // besides those of the machine, not in their place
        authorities.extend(
            BUNDLES.iter().map(|path| certificates(files, path)).find(|all| !all.is_empty()).into_iter().flatten(),
        );
        RootCerts::new_with_certs(&authorities)
    };
    TlsConfig::builder().root_certs(roots).client_cert(client).disable_verification(insecure).build()
}

/// The certificates in a file.
pub(in crate::collect) fn certificates(files: &Tree, path: &str) -> Vec<Certificate<'static>> {
    let Ok(Some(bytes)) = files.read(path, MOST_BYTES) else { return Vec::new() };
    let items = parse_pem(&bytes).filter_map(Result::ok);
    items.filter_map(|item| if let PemItem::Certificate(found) = item { Some(found) } else { None }).collect()
}

/// The private key in a file.
pub(in crate::collect) fn key(files: &Tree, path: &str) -> Option<PrivateKey<'static>> {
    PrivateKey::from_pem(&files.read(path, MOST_BYTES).ok()??).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::collect::tree::Kind;

    fn insecure(path: &str, content: &str, name: &str) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, content).unwrap();
        let tree = Tree::open(dir.path(), Kind::Host).unwrap();
        is_insecure(&Machine::new(&tree, true, BTreeMap::new()), &Name::parse(name).unwrap())
    }

    #[test]
    fn only_who_is_named_needs_no_proof() {
        let daemon = r#"{"insecure-registries":["reg.corp:5000","10.1.0.0/16"]}"#;
        let docker = |name: &str| insecure("etc/docker/daemon.json", daemon, name);
        assert!(docker("reg.corp:5000/x") && docker("10.1.2.3:80/x") && docker("localhost/x"));
        assert!(!docker("reg.corp/x") && !docker("10.2.0.1/x") && !docker("debian"));
        let conf = "[[registry]]\nlocation = \"reg.corp\"\ninsecure = true\n[[registry]]\nprefix = \"reg.corp/safe\"\nlocation = \"o.io\"\n";
        let containers = |name: &str| insecure("etc/containers/registries.conf", conf, name);
        assert!(containers("reg.corp/x"));
        assert!(!containers("reg.corp/safe/x") && !containers("reg.corporation/x"));
        let old = "[registries.insecure]\nregistries = [\"reg.corp\"]\n";
        assert!(insecure("etc/containers/registries.conf", old, "reg.corp/x"));
        assert!(insecure("etc/containers/registries.conf.d/a.conf", conf, "reg.corp/x"));
        assert!(!insecure("etc/docker/daemon.json", "{", "reg.corp/x"));
        assert!(!insecure("etc/docker/daemon.json", r#"{"insecure-registries":["10.0.0.0/99"]}"#, "10.0.0.1/x"));
    }
}
