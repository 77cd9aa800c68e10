//! Layers with tables of contents, of which parts are asked for.

use super::super::super::testing::{LONG, with_tables};
use super::*;

fn made() -> Made {
    with_tables(VERSION)
}

fn sent(log: &Log, made: &Made) -> usize {
    let log = log.lock().unwrap();
    log.iter().map(|asked| ranged(made, asked).body.len()).sum()
}

#[test]
fn of_a_layer_with_a_table_only_parts_are_asked_for() {
    let made = made();
    let again = Made { blobs: made.blobs.clone(), manifest: made.manifest.clone(), ..image(&[]) };
    let (address, log) = serve(move |asked| ranged(&again, asked));
    let found = find(&format!("{address}/team/x:1"), Depth::Files).unwrap();
    assert_eq!(version(&found).as_deref(), Some("2"));
    let [remark] = &found.remarks[..] else { panic!("{:?}", found.remarks) };
    assert!(remark.starts_with("2 layers were read from the table of contents"), "{remark}");
    assert_eq!(found.files.as_ref().unwrap().all_unread(), []);
    assert!(sent(&log, &made) < LONG / 50, "{}", sent(&log, &made));
}

#[test]
fn a_registry_that_does_not_know_ranges_sends_whole_layers() {
    let made = made();
    let wrong = |asked: &Asked, made: &Made| {
        let mut reply = ranged(made, asked);
        for (name, value) in &mut reply.headers {
            if name == "Content-Range" {
                "bytes 5-6/7".clone_into(value);
            }
        }
        reply
    };
    for knows in [false, true] {
        let again = Made { blobs: made.blobs.clone(), manifest: made.manifest.clone(), ..image(&[]) };
        let (address, log) = serve(move |asked| if knows { wrong(asked, &again) } else { plain(&again, asked) });
        let found = find(&format!("{address}/team/x:1"), Depth::Files).unwrap();
        assert_eq!(version(&found).as_deref(), Some("2"));
        assert_eq!(found.remarks, [] as [&str; 0]);
        let whole = log.lock().unwrap().iter().filter(|asked| asked.header("range").is_empty()).count();
        assert_eq!((whole, log.lock().unwrap().len()), (4, 6), "{knows}");
    }
}
