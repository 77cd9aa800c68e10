use std::io::Cursor;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::super::testing::{blob, digest_of, wish};
use super::testing::{Item, Made, chunked, stargz};
use super::*;
use crate::collect::files::Files as _;
use crate::collect::image::layer;
use crate::collect::image::view::View;

type Make = fn(&[Item<'_>], fn(&mut Value)) -> Made;

/// Bytes that cannot be packed.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Most of the layer tells nothing, and what tells something is apart.
fn with_items<T>(look: impl FnOnce(&[Item<'_>]) -> T) -> T {
    let (long, library) = (noise(150_000), noise(20_000));
    look(&[
        (b'5', "usr/", "", b""),
        (b'0', "usr/a/version.py", "", b"first"),
        (b'0', "usr/share/one", "", &long),
        (b'0', "usr/lib/x.so", "", &library),
        (b'0', "usr/lib/version.py", "", b"second"),
        (b'1', "usr/hard/version.py", "usr/lib/version.py", b""),
        (b'2', "lib", "usr/lib", b""),
        (b'0', "lib/y/version.py", "", b"behind a link"),
        (b'0', "empty/version.py", "", b""),
        (b'0', "usr/lib/empty.so", "", b""),
        (b'0', "gone/.wh.version.py", "", b""),
        (b'3', "dev/nvidia0", "", b""),
        (b'0', "start.sh", "", b"#!/bin/sh\nexec python3\n"),
        (b'0', "choose.sh", "", b"#!/bin/sh\nexport CUDA_VISIBLE_DEVICES=0\n"),
        (b'0', "usr/share/two", "", &long),
        (b'0', "etc/ld.so.cache", "", &library),
    ])
}

/// What was read of a blob: from where, and how much.
type Log = Arc<Mutex<Vec<(u64, u64)>>>;

/// The layer with its table, and what is read of it in parts.
fn with_table(made: &Made, request: u64) -> (Blob, Log) {
    let log = Log::default();
    let table = Table::of(|key| made.annotations.get(key).map(String::as_str)).expect("a table");
    let open = {
        let (log, bytes) = (log.clone(), made.blob.clone());
        move |at: u64, length: u64| {
            log.lock().unwrap().push((at, length));
            let part = &bytes[usize::try_from(at).unwrap()..][..usize::try_from(length).unwrap()];
            Ok(Box::new(Cursor::new(part.to_vec())) as Box<dyn Read + Send>)
        }
    };
    let parts = Parts { table, request, open: Box::new(open) };
    (Blob { parts: Some(parts), ..blob(made.blob.clone()) }, log)
}

/// Two layers below, so that it is seen what is hidden of them.
fn seen(top: Blob) -> (Vec<String>, View) {
    use super::super::testing::Tar;
    let lower = Tar::default().file("gone/version.py", b"1").file("usr/hard/version.py", b"2").done();
    let view = layer::read(vec![blob(lower), top], &wish()).unwrap();
    let all = view.entries().map(|(path, entry)| format!("{path} {entry:?}")).collect();
    (all, view)
}

const KINDS: [(&str, Make); 2] = [("zstd:chunked", |i, c| chunked(i, c)), ("eStargz", |i, c| stargz(i, c))];

#[test]
fn the_table_tells_what_the_stream_does_and_little_is_read() {
    for (kind, make) in KINDS {
        let made = with_items(|items| make(items, |_| ()));
        let (whole, view) = seen(blob(made.blob.clone()));
        assert_eq!((view.remark(), view.all_unread().len()), (None, 0), "{kind}");
        let (by_table, _) = with_table(&made, 100);
        read(&by_table, &Shared::new(), &Progress::default()).unwrap();
        let (by_table, log) = with_table(&made, 100);
        let (told, view) = seen(by_table);
        assert_eq!(told, whole, "{kind}");
        assert_eq!(view.read("/lib/y/version.py", 100).unwrap().unwrap(), b"behind a link");
        assert_eq!(view.all_unread(), []);
        assert!(view.remark().unwrap().starts_with("1 layer was read from the table"), "{kind}");
        let read: u64 = log.lock().unwrap().iter().map(|(_, length)| length).sum();
        assert!(read > 40_000 && read < 50_000, "{kind}: {read}");
        assert!(log.lock().unwrap().len() <= 8, "{kind}: {log:?}");
    }
}

#[test]
fn what_files_expand_to_is_of_what_all_layers_may() {
    let (long, zeros) = (noise(600_000), vec![0; 4 << 20]);
    let made = chunked(&[(b'0', "usr/share/one", "", &long), (b'0', "usr/lib/x.so", "", &zeros)], |_| ());
    let (by_table, _) = with_table(&made, 100);
    let shared = Shared::new();
    let read = || read(&by_table, &shared, &Progress::default());
    assert!(read().unwrap().by_table);
    // all that is left
    let mut step = 8 << 30;
    while step > 0 {
        if !shared.expand(step) {
            step /= 2;
        }
    }
    assert!(read().unwrap_err().to_string().contains("expands too far"));
}

#[test]
fn much_of_a_layer_is_read_in_one_go() {
    for (kind, make) in KINDS {
        let made = with_items(|items| make(items, |_| ()));
        let (whole, _) = seen(blob(made.blob.clone()));
        let (dear, log) = with_table(&made, 100_000);
        let (told, view) = seen(dear);
        assert_eq!((told, view.remark()), (whole, None), "{kind}");
        // its table alone was looked at
        assert!(log.lock().unwrap().len() <= 2, "{kind}");
    }
}

/// A layer with such a table is read whole, tells the same, and takes no more memory for it.
fn is_read_whole(what: &str, made: &Made) {
    let (whole, _) = seen(blob(made.blob.clone()));
    let (told, view) = seen(with_table(made, 100).0);
    assert_eq!((told, view.remark()), (whole, None), "{what}");
    let shared = Shared::new();
    let before = free(&shared);
    assert!(read(&with_table(made, 100).0, &shared, &Progress::default()).is_err(), "{what}");
    assert_eq!(free(&shared), before, "{what}");
}

fn free(shared: &Shared) -> usize {
    let (mut low, mut high) = (0, 1 << 30);
    while low < high {
        let middle = usize::midpoint(low, high + 1);
        if shared.budget.hold(middle).is_some() { low = middle } else { high = middle - 1 }
    }
    low
}

#[test]
fn a_table_that_is_odd_leads_to_the_whole_layer() {
    type Change = (&'static str, fn(&mut Value));
    const CHANGES: [Change; 14] = [
        ("version", |table| table["version"] = json!(2)),
        ("no entries", |table| table["entries"] = json!(null)),
        ("no table", |table| *table = json!([1])),
        ("digest", |table| table["entries"][1]["digest"] = json!(digest_of(b"another"))),
        ("no digest", |table| table["entries"][1]["digest"] = json!(null)),
        ("size", |table| table["entries"][1]["size"] = json!(3)),
        ("too large", |table| table["entries"][1]["size"] = json!(u64::MAX)),
        ("negative", |table| table["entries"][1]["offset"] = json!(-1)),
        ("far", |table| table["entries"][1]["offset"] = json!(u64::MAX)),
        ("before", |table| table["entries"][1]["offset"] = json!(50_000_000)),
        ("nowhere", |table| table["entries"][1]["offset"] = json!(0)),
        ("in the middle", |table| table["entries"][1]["innerOffset"] = json!(5)),
        ("kind", |table| table["entries"][3]["type"] = json!("door")),
        ("name", |table| table["entries"][1]["name"] = json!("\u{fffd}/version.py")),
    ];
    for (kind, make) in KINDS {
        for (what, change) in CHANGES {
            is_read_whole(&format!("{kind}, {what}"), &with_items(|items| make(items, change)));
        }
        // another table than the manifest's
        let mut made = with_items(|items| make(items, |_| ()));
        let other = with_items(|items| make(items, |table| table["more"] = json!(1)));
        for (key, value) in other.annotations.into_iter().filter(|(_, value)| value.starts_with("sha256:")) {
            made.annotations.insert(key, value);
        }
        is_read_whole(kind, &made);
    }
}

#[test]
fn a_place_that_is_none_leads_to_the_whole_layer() {
    const PREFIX: &str = "io.github.containers";
    const POSITION: &str = "io.github.containers.zstd-chunked.manifest-position";
    let made = with_items(|items| chunked(items, |_| ()));
    let told = made.annotations[POSITION].clone();
    let [at, length, unpacked, _] = told.split(':').collect::<Vec<_>>()[..] else { panic!("{told}") };
    for wrong in [
        format!("{}:{length}:{unpacked}:1", u64::MAX),
        format!("{at}:{}:{unpacked}:1", u64::MAX),
        format!("{at}:{length}:{}:1", u64::MAX),
        format!("{at}:{length}:{}:1", 17 << 20),
        format!("{at}:{length}:1:1"),
        format!("{at}:0:0:1"),
    ] {
        let mut made = made.clone();
        made.annotations.insert(POSITION.to_owned(), wrong.clone());
        is_read_whole(&wrong, &made);
    }
    for wrong in ["", "1:2:3", "1:2:3:2", "a:b:c:1", "-1:2:3:1"] {
        assert_eq!(
            Table::of(|key| Some(if key == POSITION { wrong } else { "sha256:0" }).filter(|_| key.starts_with(PREFIX))),
            None,
            "{wrong}"
        );
    }
    // the footer of eStargz is part of the blob
    let mut made = with_items(|items| stargz(items, |_| ()));
    let end = made.blob.len();
    for (from, text) in [(end - 35, "ffffffffffffffff"), (end - 35, "0000000000000000"), (end - 35, "+000000000000001")]
    {
        let mut wrong = made.clone();
        wrong.blob[from..from + 16].copy_from_slice(text.as_bytes());
        is_read_whole(text, &wrong);
    }
    made.blob[end - 19] = b'X';
    is_read_whole("no footer", &made);
}

#[test]
fn parts_that_cannot_be_had_lead_to_the_whole_layer() {
    for (kind, make) in KINDS {
        let made = with_items(|items| make(items, |_| ()));
        let (whole, _) = seen(blob(made.blob.clone()));
        for working in 0..6 {
            let (of, log) = with_table(&made, 100);
            let parts = of.parts.unwrap();
            let needed = log.clone();
            let open: OpenPart = Box::new(move |at, length| {
                let part = (parts.open)(at, length)?;
                // cut in the middle
                Ok(if needed.lock().unwrap().len() > working { Box::new(part.take(length / 2)) } else { part })
            });
            let of = Blob { parts: Some(Parts { table: parts.table, request: 100, open }), ..blob(made.blob.clone()) };
            let (told, _) = seen(of);
            assert_eq!(told, whole, "{kind}, {working}");
        }
    }
}
