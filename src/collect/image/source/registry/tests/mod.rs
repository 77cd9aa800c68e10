//! Against a server on loopback that does what registries do, the right and the wrong.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;

use super::super::testing::{Asked, Log, Made, PACKAGES, Reply, gzip, image, serve, tar_of, text, wish};
use super::credentials::BASE64;
use super::*;
use crate::collect::tree::{Kind, Tree};

mod refusals;
mod tables;

const VERSION: &str = "usr/lib/python3/dist-packages/torch/version.py";

fn made() -> Made {
    let long = "#".repeat(300_000);
    image(&[&[(VERSION, "1"), ("long", &long)], &[(VERSION, "2")]])
}

/// What a registry that knows ranges answers.
fn ranged(made: &Made, asked: &Asked) -> Reply {
    let reply = plain(made, asked);
    let Some((begin, end)) = asked.header("range").strip_prefix("bytes=").and_then(|range| range.split_once('-'))
    else {
        return reply;
    };
    let whole = reply.body.len();
    let (begin, end): (usize, usize) = (begin.parse().unwrap(), end.parse().unwrap_or(whole - 1));
    let part = Reply { status: 206, body: reply.body[begin..=end].to_vec(), ..reply };
    part.with("Content-Range", format!("bytes {begin}-{end}/{whole}"))
}

/// What a registry without any wishes answers.
fn plain(made: &Made, asked: &Asked) -> Reply {
    let Some(rest) = asked.path.strip_prefix("/v2/team/x/") else { return Reply::of(404, "") };
    let (kind, name) = rest.split_once('/').unwrap();
    let name = if name == "1" { &made.manifest } else { name };
    let Some(bytes) = made.blobs.get(name) else {
        return Reply::of(404, r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#);
    };
    if kind == "manifests" && !asked.header("accept").contains("vnd.oci.image.manifest") {
        return Reply::of(404, r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"accept header"}]}"#);
    }
    let reply = Reply::of(200, bytes.clone());
    if kind == "manifests" { reply.with("Docker-Content-Digest", name.to_owned()) } else { reply }
}

fn find_in(home: &Path, name: &str, depth: Depth) -> Result<Found, Failed> {
    let home = home.display().to_string();
    let environment = BTreeMap::from([("HOME".to_owned(), home.clone()), ("XDG_RUNTIME_DIR".to_owned(), home)]);
    let tree = Tree::open(Path::new("/"), Kind::Host).unwrap();
    Registry { machine: &Machine::new(&tree, false, environment), name }.find(&wish(depth))
}

fn find(name: &str, depth: Depth) -> Result<Found, Failed> {
    find_in(tempfile::tempdir().unwrap().path(), name, depth)
}

fn failed(name: &str, depth: Depth) -> String {
    match find(name, depth) {
        Ok(found) => panic!("{found:?}"),
        Err(failed) => failed.to_string(),
    }
}

fn paths(log: &Log) -> Vec<String> {
    log.lock().unwrap().iter().map(|asked| asked.path.clone()).collect()
}

fn version(found: &Found) -> Option<String> {
    text(found.files.as_ref().unwrap(), &format!("/{VERSION}"))
}

#[test]
fn the_configuration_costs_two_requests() {
    let made = made();
    let (config, manifest) = (made.config.clone(), made.manifest.clone());
    let (address, log) = serve(move |asked| plain(&made, asked));
    let found = find(&format!("{address}/team/x:1"), Depth::Config).unwrap();
    assert_eq!(found.id, Some(config.clone()));
    assert_eq!(found.configuration.environment["A"], "b");
    assert!(found.files.is_none());
    assert_eq!(found.source, format!("registry {address}"));
    assert_eq!(paths(&log), ["/v2/team/x/manifests/1".to_owned(), format!("/v2/team/x/blobs/{config}")]);
    let found = find(&format!("{address}/team/x@{manifest}"), Depth::Config).unwrap();
    assert_eq!(found.id, Some(config));
}

#[test]
fn the_layers_are_streamed() {
    assert!(VERSION.starts_with(PACKAGES));
    let made = made();
    let (address, log) = serve(move |asked| plain(&made, asked));
    let found = find(&format!("{address}/team/x:1"), Depth::Files).unwrap();
    assert_eq!(version(&found).as_deref(), Some("2"));
    assert_eq!(found.source, format!("registry {address}, streamed"));
    assert_eq!(paths(&log).len(), 4);
}

#[test]
fn of_an_index_the_wished_image_is_taken_with_three_requests() {
    let mut made = made();
    let index = serde_json::json!({"schemaVersion": 2, "manifests": [
        {"digest": made.layers[0], "size": 1, "platform": {"architecture": "arm64", "os": "linux"}},
        {"digest": made.manifest, "size": 1, "platform": {"architecture": "amd64", "os": "linux"}}]});
    let config = made.config.clone();
    let manifest = made.manifest.clone();
    let (index, _) = made.add(index.to_string().into_bytes());
    let (address, log) = serve(move |asked| {
        let path = asked.path.replace("manifests/1", &format!("manifests/{index}"));
        plain(&made, &Asked { path, ..asked.clone() })
    });
    assert_eq!(find(&format!("{address}/team/x:1"), Depth::Config).unwrap().id, Some(config));
    assert_eq!(paths(&log).len(), 3);
    assert_eq!(paths(&log)[1], format!("/v2/team/x/manifests/{manifest}"));
}

#[test]
fn a_token_is_fetched_once_and_not_shown_to_the_storage() {
    let made = made();
    let blobs = made.blobs.clone();
    let (storage, stored) = serve(move |asked| match asked.header("authorization") {
        "" => Reply::of(200, blobs[&format!("sha256:{}", asked.path.trim_start_matches('/'))].clone()),
        _ => Reply::of(400, "only one way of authorization, please"),
    });
    let (address, log) = serve(move |asked| {
        if asked.path.starts_with("/token") {
            let is_who = asked.header("authorization") == format!("Basic {}", BASE64.encode("me:se:cret"));
            let is_what = asked.path == "/token?service=spike%2Creg&scope=repository%3Ateam%2Fx%3Apull";
            return if is_who && is_what { Reply::of(200, r#"{"token":"t0k"}"#) } else { Reply::of(401, "") };
        }
        if asked.header("authorization") != "Bearer t0k" {
            let realm = format!("http://{}/token", asked.header("host"));
            let header = format!(r#"Bearer realm="{realm}",service="spike,reg",scope="repository:team/x:pull""#);
            return Reply::of(401, "").with("WWW-Authenticate", header);
        }
        match asked.path.strip_prefix("/v2/team/x/blobs/sha256:") {
            Some(hex) => Reply::of(307, "").with("Location", format!("http://{storage}/{hex}")),
            None => plain(&made, asked),
        }
    });
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join(".docker")).unwrap();
    let auth = BASE64.encode("me:se:cret");
    let file = format!(r#"{{"auths":{{"{address}":{{"auth":"{auth}"}}}}}}"#);
    std::fs::write(home.path().join(".docker/config.json"), file).unwrap();
    let found = find_in(home.path(), &format!("{address}/team/x:1"), Depth::Files).unwrap();
    assert_eq!(version(&found).as_deref(), Some("2"));
    assert_eq!(paths(&log).iter().filter(|path| path.starts_with("/token")).count(), 1);
    assert_eq!(stored.lock().unwrap().len(), 3);

    let denied = failed(&format!("{address}/team/x:1"), Depth::Config);
    assert!(denied.contains("no access without credentials"), "{denied}");
}

#[test]
fn an_identity_token_is_exchanged() {
    let made = made();
    let (address, _) = serve(move |asked| {
        if asked.path == "/token" {
            let is_it = asked.method == "POST"
                && asked.body.contains("grant_type=refresh_token")
                && asked.body.contains("refresh_token=identity");
            return if is_it { Reply::of(200, r#"{"access_token":"t0k"}"#) } else { Reply::of(401, "") };
        }
        if asked.header("authorization") == "Bearer t0k" {
            return plain(&made, asked);
        }
        Reply::of(401, "").with("WWW-Authenticate", format!("Bearer realm=\"http://{}/token\"", asked.header("host")))
    });
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("containers")).unwrap();
    let file = format!(r#"{{"auths":{{"{address}/team":{{"identitytoken":"identity"}}}}}}"#);
    std::fs::write(home.path().join("containers/auth.json"), file).unwrap();
    assert!(find_in(home.path(), &format!("{address}/team/x:1"), Depth::Config).is_ok());
}

#[test]
fn a_cut_connection_goes_on_where_it_was_cut() {
    let made = made();
    for ranges in [true, false] {
        let made = Made {
            blobs: made.blobs.clone(),
            layers: made.layers.clone(),
            manifest: made.manifest.clone(),
            ..image(&[])
        };
        let cut = AtomicUsize::new(0);
        let (address, log) = serve(move |asked| {
            let mut reply = plain(&made, asked);
            if !asked.path.ends_with(made.layers[0].as_str()) {
                return reply;
            }
            if let Some(range) = asked.header("range").strip_prefix("bytes=").filter(|_| ranges) {
                let begin: usize = range.trim_end_matches('-').parse().unwrap();
                let (end, whole) = (reply.body.len() - 1, reply.body.len());
                reply = Reply { status: 206, body: reply.body[begin..].to_vec(), ..reply };
                reply = reply.with("Content-Range", format!("bytes {begin}-{end}/{whole}"));
            }
            if cut.fetch_add(1, Ordering::Relaxed) < 2 {
                reply.cut = Some(reply.body.len() / 3);
            }
            reply
        });
        let found = find(&format!("{address}/team/x:1"), Depth::Files).unwrap();
        assert_eq!(version(&found).as_deref(), Some("2"));
        let asked = log.lock().unwrap().clone();
        let begins: Vec<&str> =
            asked.iter().map(|asked| asked.header("range")).filter(|range| !range.is_empty()).collect();
        assert_eq!(begins.len(), 2, "{begins:?}");
    }
}
