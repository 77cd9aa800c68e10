use std::io::Write as _;

use super::testing::{Tar, blob, wish};
use super::*;
use crate::collect::files::Files as _;
use crate::collect::image::view::{Content, Entry};

fn view_of(layers: Vec<Tar>) -> View {
    read(layers.into_iter().map(|tar| blob(tar.done())).collect(), &wish()).unwrap()
}

/// Paths of files and links, and what they hold.
fn told(layers: Vec<Tar>) -> Vec<String> {
    let view = view_of(layers);
    assert_eq!(view.all_unread(), []);
    files(&view)
}

fn files(view: &View) -> Vec<String> {
    let text = |(path, entry): (&str, &Entry)| match &entry.content {
        _ if entry.kind.is_none() => Some(format!("{path} -> {}", entry.target)),
        Content::Bytes(bytes) => Some(format!("{path} = {}", String::from_utf8_lossy(bytes))),
        _ if entry.kind == Some(crate::model::host::NodeKind::Directory) => None,
        _ => Some(path.to_owned()),
    };
    view.entries().filter_map(text).collect()
}

fn tar() -> Tar {
    Tar::default()
}

#[test]
fn of_duplicates_the_last_counts_and_hard_links_bind_when_they_are_made() {
    let layer = tar().file("a/version.py", b"1").hard("b/version.py", "a/version.py").file("a/version.py", b"22");
    assert_eq!(told(vec![layer]), ["/a/version.py = 22", "/b/version.py = 1"]);
    // what takes the place of a kept file is not that file
    assert_eq!(told(vec![tar().file("a/version.py", b"1").link("a/version.py", "x")]), ["/a/version.py -> x"]);
    assert_eq!(told(vec![tar().file("x.so", b"1").entry(b'5', b"x.so", b"", b"")]), [] as [&str; 0]);
}

#[test]
fn of_scripts_those_are_kept_that_set_up_an_environment() {
    let script = b"#!/bin/sh\nsource /opt/env/bin/activate\n";
    let layer = tar().file("app/run.sh", script).file("app/other.sh", b"#!/bin/sh\nexec app\n").file("app/x.sh", b"x");
    assert_eq!(told(vec![layer]), [format!("/app/run.sh = {}", String::from_utf8_lossy(script))]);
}

#[test]
fn hard_links_lead_to_their_own_layer_alone() {
    let view = view_of(vec![tar().file("version.py", b"1"), tar().hard("b/version.py", "version.py")]);
    let [unseen] = view.all_unread() else { panic!("{:?}", view.all_unread()) };
    assert_eq!(unseen.source, "/b/version.py");
    assert!(unseen.reason.contains("second name of nothing"));
    // what is there and was not kept is not nothing
    let view = view_of(vec![tar().file("cache/1234", b"torch").hard("b/version.py", "cache/1234")]);
    assert_eq!(view.all_unread(), []);
    assert!(view.read("/b/version.py", 100).unwrap_err().reason.contains("second name of cache/1234"));
}

#[test]
fn whiteouts_take_away_what_lower_layers_have_and_nothing_of_their_own() {
    let lower = || tar().file("d/version.py", b"1").file("d/e/version.py", b"2").file("k/version.py", b"3");
    let of = |upper: Tar| told(vec![lower(), upper]);
    assert_eq!(of(tar().file("d/.wh.version.py", b"")), ["/d/e/version.py = 2", "/k/version.py = 3"]);
    assert_eq!(of(tar().file("d/version.py", b"new").file("d/.wh.version.py", b""))[0], "/d/e/version.py = 2");
    assert_eq!(of(tar().file(".wh.d", b"")), ["/k/version.py = 3"]);
    let opaque = ["/d/version.py = new", "/k/version.py = 3"];
    assert_eq!(of(tar().file("d/version.py", b"new").file("d/.wh..wh..opq", b"")), opaque);
    assert_eq!(of(tar().file("d/.wh..wh..opq", b"").file("d/version.py", b"new")), opaque);
    assert_eq!(of(tar().file(".wh..wh..opq", b"")), [] as [&str; 0]);
    let all = told(vec![lower()]);
    for ignored in [".wh.nothing", "no/.wh.x", ".wh..wh.aufs", ".wh..wh.plnk/x", ".wh.", "d/.wh..", "d/.wh..."] {
        assert_eq!(of(tar().file(ignored, b"")), all, "{ignored}");
    }
    // a device is what it is
    assert_eq!(of(tar().entry(b'3', b"d/e/version.pyc", b"", b"")), all);
    let third = tar().file("d/new/version.py", b"4");
    assert_eq!(told(vec![lower(), tar().file(".wh.d", b""), third])[0], "/d/new/version.py = 4");
}

#[test]
fn of_a_file_and_a_directory_the_upper_counts() {
    let file = || tar().file("x/version.py", b"1");
    let instead = |upper: Tar| told(vec![file(), upper]);
    assert_eq!(instead(tar().file("x", b"")), [] as [&str; 0]);
    assert_eq!(instead(tar().link("x", "y")), ["/x -> y"]);
    assert_eq!(instead(tar().file("x/version.py/version.py", b"2")), ["/x/version.py/version.py = 2"]);
    assert_eq!(instead(tar().directory("x/version.py")), [] as [&str; 0]);
    assert_eq!(instead(tar().directory("x")), ["/x/version.py = 1"]);
    assert_eq!(instead(tar().entry(b'3', b"x", b"", b"")), [] as [&str; 0]);
}

#[test]
fn layers_are_merged_by_path_and_never_through_links() {
    for target in ["usr/lib", "/usr/lib"] {
        let lower = || tar().file("usr/lib/a.so", b"a").file("usr/lib/version.py", b"1").link("lib", target);
        for upper in [tar().file("lib/version.py", b"2"), tar().directory("lib").file("lib/version.py", b"2")] {
            let found = told(vec![lower(), upper]);
            assert_eq!(found, ["/lib/version.py = 2", "/usr/lib/a.so", "/usr/lib/version.py = 1"]);
        }
        assert_eq!(told(vec![lower(), tar().file("lib/.wh.a.so", b"")])[0], "/usr/lib/a.so");
    }
    // within one layer engines put it where the link points
    let same = told(vec![tar().link("lib", "usr/lib").file("lib/version.py", b"1").hard("lib/b.so", "lib/version.py")]);
    assert_eq!(same, ["/lib -> usr/lib", "/usr/lib/b.so = 1", "/usr/lib/version.py = 1"]);
    let later = told(vec![tar().file("lib/version.py", b"1").link("lib64", "lib").file("lib64/version.py", b"2")]);
    assert_eq!(later, ["/lib/version.py = 2", "/lib64 -> lib"]);
}

#[test]
fn names_stay_below_the_root_in_all_their_forms() {
    let long = format!("{}/version.py", "d".repeat(300));
    let layer = tar()
        .file("./a/version.py", b"1")
        .file("/b/version.py", b"2")
        .file("usr/lib/../../../c/version.py", b"3")
        .file(&long, b"4")
        .pax(&[("path", b"p/version.py")])
        .file("short", b"5")
        .pax(&[("linkpath", b"../x")])
        .link("link", "short");
    let found = told(vec![layer]);
    let long = format!("/{long} = 4");
    let mut all = vec!["/a/version.py = 1", "/b/version.py = 2", "/c/version.py = 3", &long, "/p/version.py = 5"];
    all.push("/link -> ../x");
    all.sort_unstable();
    assert_eq!(found, all);
    let odd = told(vec![tar().entry(b'0', b"\xff\xfe/version.py", b"", b"6")]);
    assert_eq!(odd, ["/\u{fffd}\u{fffd}/version.py = 6"]);
    let view = view_of(vec![tar().file(&format!("{}/version.py", "d/".repeat(2100)), b"").file("version.py", b"1")]);
    assert_eq!((view.all_unread().len(), files(&view).len()), (1, 1));
}

#[test]
fn links_in_circles_end() {
    let view = view_of(vec![tar().link("a", "b").link("b", "a").file("a/version.py", b"1").link("c", "c/c")]);
    assert!(view.all_unread()[0].reason.contains("circles"), "{:?}", view.all_unread());
    assert!(view.read("/a", 10).unwrap().is_none() && view.read("/c/x", 10).unwrap().is_none());
}

#[test]
fn links_that_lead_far_are_not_followed_for_every_name() {
    let chain = |n: usize| format!("m{}/../", n + 1).repeat(400);
    let layer = (0..45).fold(tar(), |tar, n| tar.link(&format!("m{n}"), &chain(n)));
    let layer = (0..3000).fold(layer, |tar, n| tar.file(&format!("m0/{}/version.py", n % 2), b"1"));
    let begun = std::time::Instant::now();
    let view = view_of(vec![layer]);
    assert!(!view.all_unread().is_empty() && begun.elapsed() < std::time::Duration::from_secs(4));
}

#[test]
fn what_was_paid_for_something_that_is_not_kept_is_given_back() {
    let shared = told::Shared::new();
    let mut teller = teller::Teller::new(&shared);
    let content = || Content::Bytes(vec![0; 1 << 20]);
    for _ in 0..100 {
        let place = teller.place(b"version.py", true).unwrap().unwrap();
        teller.file(place, 1 << 20, 0o644, content()).unwrap();
        let place = teller.place(b"version.py", true).unwrap().unwrap();
        teller.passed(&place).unwrap();
    }
}

#[test]
fn zeros_count_for_all_layers_together() {
    let shared = told::Shared::new();
    assert!(shared.expand(5 << 30) && !shared.expand(5 << 30) && shared.expand(3 << 30));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn layers_are_told_by_their_first_bytes_and_read_to_their_end() {
    let plain = tar().file("version.py", &[b'x'; 3000]).file("a.so", &vec![7; 300_000]).done();
    let (one, two) = plain.split_at(2000);
    let zstd = |bytes: &[u8]| ::zstd::bulk::compress(bytes, 3).unwrap();
    let empty: Vec<u8> = Vec::new();
    for packed in
        [plain.clone(), gzip(&plain), [gzip(one), gzip(two)].concat(), zstd(&plain), [zstd(one), zstd(two)].concat()]
    {
        let view = read(vec![blob(packed)], &wish()).unwrap();
        assert_eq!(view.all_unread(), []);
        assert_eq!(view.read("/version.py", 4000).unwrap().unwrap().len(), 3000);
    }
    for nothing in [empty, vec![0; 1024], gzip(&[0; 10_240]), gzip(b"")] {
        assert_eq!(files(&read(vec![blob(nothing)], &wish()).unwrap()), [] as [&str; 0]);
    }
}

#[test]
fn a_layer_that_cannot_be_believed_tells_nothing_and_hides_what_is_below_it() {
    let good = |text: &[u8]| blob(gzip(&tar().file("a/version.py", text).file("b/version.py", text).done()));
    let bytes = gzip(&tar().file("b/version.py", b"2").done());
    let of = |broken: Blob| {
        let view = read(vec![good(b"1"), broken, blob(tar().file("a/version.py", b"3").done())], &wish()).unwrap();
        assert_eq!(files(&view), ["/a/version.py = 3"]);
        assert!(view.unread().is_some());
        let [unseen] = view.all_unread() else { panic!("{:?}", view.all_unread()) };
        unseen.reason.clone()
    };
    let open = |bytes: Vec<u8>| -> Open { Box::new(move || Ok(Box::new(io::Cursor::new(bytes)))) };
    let zero = format!("sha256:{}", "0".repeat(64));
    assert!(of(Blob { digest: Some(zero.clone()), ..blob(bytes.clone()) }).starts_with("its digest is sha256:"));
    let wrong = Blob { digest: None, diff_id: Some(zero), ..blob(bytes.clone()) };
    assert!(of(wrong).starts_with("the digest of its archive is sha256:"));
    assert!(of(Blob { digest: Some("md5:00".into()), ..blob(bytes.clone()) }).contains("not known"));
    let cut = bytes[..bytes.len() - 9].to_vec();
    assert!(of(Blob { open: open(cut.clone()), ..blob(bytes.clone()) }).contains("cut off"));
    assert!(!of(Blob { size: None, digest: None, open: open(cut), ..blob(bytes.clone()) }).is_empty());
    let longer = [&bytes[..], b"more"].concat();
    assert!(of(Blob { open: open(longer), ..blob(bytes.clone()) }).contains("longer"));
    let short = tar().file("b/version.py", b"2").raw(b'0', b"x.so", b"", 5000, &[0; 512]);
    assert_eq!(of(blob(gzip(&short.0))), "it is cut off in x.so");
    assert!(of(blob(b"no archive at all".repeat(100))).contains("no tar archive"));
    assert!(of(blob(b"\xFD7zXZ\0 and so on".to_vec())).contains("xz"));
    let absent: Open = Box::new(|| Err(io::Error::other("it is not there")));
    assert_eq!(of(Blob { open: absent, ..blob(bytes) }), "it is not there");
}
