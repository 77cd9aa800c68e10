//! Damaged databases: an error or what is still right, never a panic or an endless walk.

use std::fs::File;
use std::io::Write as _;

use proptest::prelude::*;

use super::super::bolt::{self, Bucket, Snapshot, Value};
use super::writer::{PAGE, append, branch, leaf, meta};
use super::{Node, bucket, bytes, real, writer};

fn file(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

/// Walks through all buckets, as deep as a database of containerd's is.
fn walk(snapshot: &Snapshot<'_>, at: &Bucket, depth: usize, seen: &mut usize) -> Result<(), bolt::Damaged> {
    snapshot.each(at, |_, value| {
        *seen += 1;
        match value {
            Value::Bucket(inside) if depth < 8 => walk(snapshot, &inside, depth + 1, seen),
            _ => Ok(()),
        }
    })
}

fn walked(content: &[u8]) -> Result<usize, String> {
    let file = file(content);
    let read = bolt::read("x", &file, |snapshot| {
        let mut seen = 0;
        walk(snapshot, &snapshot.root(), 0, &mut seen)?;
        snapshot.bucket(&snapshot.root(), &[b"v1", b"default", b"images"])?;
        Ok(seen)
    });
    read.map_err(|unseen| unseen.reason)
}

#[test]
fn whole_databases_are_walked_through() {
    assert!(walked(&real(0)).unwrap() > 200);
    assert!(walked(&real(1)).unwrap() > 10);
    let many: Vec<(String, Node)> = (0..20).map(|number| (format!("k{number:02}"), bytes("v"))).collect();
    let many = Node::Bucket(many.into_iter().map(|(key, node)| (key.into_bytes(), node)).collect());
    let long = bytes(&"x".repeat(3 * PAGE));
    let database = writer::database(&bucket([("many", many), ("long", long)]));
    assert_eq!(walked(&database), Ok(22));
    let file = file(&database);
    let found = bolt::read("x", &file, |snapshot| {
        let many = snapshot.bucket(&snapshot.root(), &[b"many"])?.unwrap();
        let keys = [b"k00", b"k05", b"k06", b"k19", b"j99", b"k20"];
        keys.iter().map(|key| snapshot.bytes(&many, *key)).collect::<Result<Vec<_>, _>>()
    });
    let found: Vec<bool> = found.unwrap().iter().map(Option::is_some).collect();
    assert_eq!(found, [true, true, true, true, false, false]);
}

#[test]
fn the_newer_header_counts_and_a_torn_one_does_not() {
    let mut database = writer::database(&bucket([("a", bytes("1"))]));
    let other = append(&mut database, leaf(&[]));
    meta(&mut database[PAGE..], 1, other, 8);
    assert_eq!(walked(&database), Ok(0), "the second is newer");
    database[PAGE + 20] ^= 1;
    assert_eq!(walked(&database), Ok(1), "the second is torn");
    database[20] ^= 1;
    assert!(walked(&database).unwrap_err().contains("no database"));
    let mut first_torn = writer::database(&bucket([("a", bytes("1"))]));
    first_torn[20] ^= 1;
    assert_eq!(walked(&first_torn), Ok(1), "the second alone");
}

#[test]
fn circles_and_pages_beyond_the_end_are_found_out() {
    let with = |children: &dyn Fn(u64) -> Vec<(Vec<u8>, u64)>| {
        let mut database = writer::database(&bucket([]));
        let next = (database.len() / PAGE) as u64;
        let root = append(&mut database, branch(&children(next)));
        meta(&mut database, 0, root, 9);
        walked(&database).unwrap_err()
    };
    assert!(with(&|own| vec![(b"a".to_vec(), own), (b"b".to_vec(), own)]).contains("too many levels"));
    assert!(with(&|_| vec![(b"a".to_vec(), 1 << 40)]).contains("beyond its end"));
    assert!(with(&|_| vec![(b"a".to_vec(), u64::MAX)]).contains("beyond its end"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_that_changed_are_no_harm(
        which in 0..2_usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        length in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut database = real(which);
        for (at, byte) in changes {
            // what is in use lies in front, and the headers are found out by their sums
            let at = 2 * PAGE + at.index(database.len() - 2 * PAGE);
            database[at] = byte;
        }
        if cut {
            let length = length.index(database.len());
            database.truncate(length);
        }
        let _ = walked(&database);
    }

    #[test]
    fn pages_of_any_content_are_no_harm(page in proptest::collection::vec(any::<u8>(), PAGE), kind in 0..4_u16, count in 0..300_u16) {
        let mut database = writer::database(&bucket([]));
        let mut page = page;
        page[8..10].copy_from_slice(&kind.to_le_bytes());
        page[10..12].copy_from_slice(&count.to_le_bytes());
        let root = append(&mut database, page);
        meta(&mut database, 0, root, 9);
        let _ = walked(&database);
    }
}
