//! What is wrong is said, and nothing of it hangs.

use super::*;
use crate::collect::files::Files as _;

/// What is said of an image whose manifest or configuration is another's.
fn said(change: impl Fn(&Asked, Reply) -> Reply + Send + Sync + 'static) -> String {
    let made = made();
    let (address, _) = serve(move |asked| change(asked, plain(&made, asked)));
    failed(&format!("{address}/team/x:1"), Depth::Files)
}

fn of_manifest(change: impl Fn(Reply) -> Reply + Send + Sync + 'static) -> String {
    said(move |asked, reply| if asked.path.contains("/manifests/") { change(reply) } else { reply })
}

#[test]
fn an_absent_tag_is_absent() {
    let made = made();
    let (address, _) = serve(move |asked| plain(&made, asked));
    let failed = find(&format!("{address}/team/x:2"), Depth::Config).unwrap_err();
    assert!(matches!(failed, Failed::Absent(_)));
    assert!(failed.to_string().contains("has no manifests/2 (MANIFEST_UNKNOWN: manifest unknown)"), "{failed}");
}

#[test]
fn wrong_digests_are_found_out() {
    let wrong = |reply: Reply| Reply { body: [reply.body.as_slice(), b" "].concat(), ..reply };
    let manifest = of_manifest(wrong);
    assert!(manifest.contains("the manifest of") && manifest.contains("its digest is"), "{manifest}");
    let config = made().config;
    let said = said(move |asked, reply| if asked.path.contains(&config) { wrong(reply) } else { reply });
    assert!(said.contains("the configuration of") && said.contains("its digest is"), "{said}");
}

#[test]
fn what_is_no_image_is_said_to_be_none() {
    let other = |body: &'static str| of_manifest(move |_| Reply::of(200, body));
    assert!(other(r#"{"schemaVersion":1,"fsLayers":[]}"#).contains("schema 1"));
    assert!(other("<html>").contains("is no manifest of an image"));
    assert!(other(r#"{"schemaVersion":2,"manifests":[]}"#).contains("no image for linux/amd64"));
    let typed =
        of_manifest(|reply| reply.with("Content-Type", "application/vnd.docker.distribution.manifest.v1+prettyjws"));
    assert!(typed.contains("schema 1"), "{typed}");
}

#[test]
fn an_index_of_itself_comes_to_an_end() {
    let digest = made().manifest;
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[{{"digest":"{digest}","platform":{{"architecture":"amd64","os":"linux"}}}}]}}"#
    );
    assert!(of_manifest(move |_| Reply::of(200, index.clone())).contains("its digest is"));
}

#[test]
fn an_endless_answer_comes_to_an_end() {
    let said = of_manifest(|_| Reply::of(200, vec![b' '; MOST_JSON + 1]));
    assert!(said.contains("is longer than"), "{said}");
}

/// What could not be read of the layers of an image.
fn unread(change: impl Fn(&Asked, Reply) -> Reply + Send + Sync + 'static) -> String {
    let made = made();
    let (address, _) = serve(move |asked| change(asked, plain(&made, asked)));
    let found = find(&format!("{address}/team/x:1"), Depth::Files).unwrap();
    let unread = found.files.as_ref().unwrap().unread();
    unread.iter().map(|unseen| format!("{}: {}\n", unseen.source, unseen.reason)).collect::<Vec<_>>().concat()
}

#[test]
fn a_layer_that_is_cut_again_and_again_is_given_up() {
    let layer = made().layers[0].clone();
    let asked_for = std::sync::Arc::new(AtomicUsize::new(0));
    let (count, name) = (std::sync::Arc::clone(&asked_for), layer.clone());
    let unread = unread(move |asked, reply| {
        if asked.path.ends_with(&name) {
            count.fetch_add(1, Ordering::Relaxed);
            return Reply { cut: Some(0), ..reply };
        }
        reply
    });
    assert!(unread.contains(&layer), "{unread}");
    assert!(asked_for.load(Ordering::Relaxed) < 20, "{unread}");
}

#[test]
fn a_layer_that_is_another_or_refused_is_not_read() {
    let layer = made().layers[1].clone();
    for status in [200, 404, 403] {
        let other = gzip(&tar_of(&[("other", "x")]));
        let name = layer.clone();
        let unread = unread(
            move |asked, reply| if asked.path.ends_with(&name) { Reply::of(status, other.clone()) } else { reply },
        );
        assert!(unread.contains(&layer), "{status}: {unread}");
    }
}

#[test]
fn a_server_in_trouble_is_told_by_its_number() {
    assert!(of_manifest(|_| Reply::of(500, "")).contains("answers 500"));
    assert!(of_manifest(|_| Reply::of(429, "")).contains("too many requests"));
    assert!(of_manifest(|_| Reply::of(403, "")).contains("no access without credentials"));
    assert!(of_manifest(|_| Reply::of(302, "").with("Location", "/v2/team/x/manifests/1")).contains("redirect"));
}

#[test]
fn a_token_is_not_asked_for_where_it_could_be_read_on_its_way() {
    let made = made();
    let tree = Tree::open(Path::new("/"), Kind::Host).unwrap();
    let machine = Machine::new(&tree, false, BTreeMap::new());
    let mut name = Name::parse("q.io/team/x").unwrap();
    let client = Client::new(&machine, &name);
    let (address, log) = serve(move |asked| plain(&made, asked));
    let said = client.token(&format!("http://{address}/token"), None, None, None).unwrap_err();
    assert!(said.words().contains("not to be trusted"), "{said:?}");
    name.registry = "localhost".to_owned();
    let _ = Client::new(&machine, &name).token(&format!("http://{address}/token"), None, None, None);
    assert_eq!(log.lock().unwrap().len(), 1);
}

#[test]
fn nobody_there_is_said() {
    let said = failed("127.0.0.1:9/team/x:1", Depth::Config);
    assert!(said.contains("nobody listens there"), "{said}");
}
