//! Layers at random, merged here and by a model that does what overlayfs does, one change after the other.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::testing::{Tar, blob, wish};
use super::*;
use crate::collect::image::view::Entry;
use crate::model::host::NodeKind;

/// `version.py` is kept, and is a directory's name as well as any.
const NAMES: [&str; 3] = ["a", "b", "version.py"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    File,
    Directory,
    Link,
    Whiteout,
    Opaque,
}

type Layer = Vec<(String, What)>;

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&NAMES[..]), 1..4).prop_map(|parts| parts.join("/"))
}

/// As engines accept one: each path once, and nothing below a file or link.
fn layer() -> impl Strategy<Value = Layer> {
    let what = prop::sample::select(vec![
        What::File,
        What::File,
        What::File,
        What::Directory,
        What::Link,
        What::Whiteout,
        What::Opaque,
    ]);
    prop::collection::vec((path(), what), 0..8).prop_map(|entries| {
        let mut kept: Layer = Vec::new();
        for (path, what) in entries {
            let below = |path: &str, above: &str| path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
            let is_file = |what: What| matches!(what, What::File | What::Link);
            let clashes = |(other, there): &(String, What)| {
                *other == path && (*there == what || matches!(what, What::File | What::Link | What::Directory) && !matches!(there, What::Whiteout))
                    || *other == path && is_file(*there) && matches!(what, What::Opaque | What::Whiteout)
                    // both would be marked by one name in the layer's directory
                    || *other == path && matches!((what, there), (_, What::Whiteout) | (What::Whiteout, _))
                    || below(&path, other) && (is_file(*there) || *there == What::Whiteout)
                    || below(other, &path) && (is_file(what) || what == What::Whiteout)
            };
            if !kept.iter().any(clashes) {
                kept.push((path, what));
            }
        }
        kept
    })
}

fn tar_of(layer: &Layer, number: usize) -> Tar {
    layer.iter().fold(Tar::default(), |tar, (path, what)| {
        let (parent, base) = path.rsplit_once('/').unwrap_or(("", path));
        let slash = if parent.is_empty() { "" } else { "/" };
        match what {
            What::File => tar.file(path, number.to_string().as_bytes()),
            What::Directory => tar.directory(path),
            What::Link => tar.link(path, &format!("to-{number}")),
            What::Whiteout => tar.file(&format!("{parent}{slash}.wh.{base}"), b""),
            What::Opaque => tar.file(&format!("{path}/.wh..wh..opq"), b""),
        }
    })
}

/// The same, as fuse-overlayfs keeps it.
fn unpack(layer: &Layer, number: usize, root: &Path) {
    for (path, what) in layer {
        let place = root.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        match what {
            What::File => fs::write(place, number.to_string()).unwrap(),
            What::Directory => fs::create_dir_all(place).unwrap(),
            What::Link => std::os::unix::fs::symlink(format!("to-{number}"), place).unwrap(),
            What::Whiteout => {
                fs::write(place.with_file_name(format!(".wh.{}", place.file_name().unwrap().to_str().unwrap())), "")
                    .unwrap();
            }
            What::Opaque => {
                fs::create_dir_all(&place).unwrap();
                fs::write(place.join(".wh..wh..opq"), "").unwrap();
            }
        }
    }
}

/// What stands at each path in the end, with the layer it is of.
fn model(layers: &[Layer]) -> BTreeMap<String, (What, usize)> {
    let mut all: BTreeMap<String, (What, usize)> = BTreeMap::new();
    for (number, layer) in layers.iter().enumerate() {
        let clear = |all: &mut BTreeMap<String, (What, usize)>, path: &str, itself: bool| {
            all.retain(|other, _| {
                !(itself && other == path || other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
            });
        };
        // first what it takes away of those below
        for (path, what) in layer {
            match what {
                What::Whiteout => clear(&mut all, path, true),
                What::Opaque => clear(&mut all, path, false),
                _ => {}
            }
        }
        for (path, what) in layer {
            let mut above = String::new();
            let parts: Vec<&str> = path.split('/').collect();
            let directories = if *what == What::Opaque { parts.len() } else { parts.len() - 1 };
            for part in &parts[..directories] {
                if !above.is_empty() {
                    above.push('/');
                }
                above.push_str(part);
                if all.get(&above).is_none_or(|(what, _)| *what != What::Directory) {
                    clear(&mut all, &above, true);
                    all.insert(above.clone(), (What::Directory, number));
                }
            }
            match what {
                What::Directory if all.get(path).is_some_and(|(there, _)| *there == What::Directory) => {}
                What::File | What::Link | What::Directory => {
                    clear(&mut all, path, true);
                    all.insert(path.clone(), (*what, number));
                }
                What::Whiteout | What::Opaque => {}
            }
        }
    }
    all
}

/// Of the view what the model has too: files that are kept, and links.
fn seen(view: &View) -> Vec<(String, usize)> {
    let counts = |entry: &Entry| entry.kind != Some(NodeKind::Directory);
    view.entries().filter(|(_, entry)| counts(entry)).map(|(path, entry)| (path.to_owned(), entry.layer)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn layers_at_random_are_merged_as_the_model_says(layers in prop::collection::vec(layer(), 1..6)) {
        let wanted: Vec<(String, usize)> = model(&layers)
            .into_iter()
            .filter(|(path, (what, _))| *what == What::Link || *what == What::File && path.ends_with("version.py"))
            .map(|(path, (_, layer))| (format!("/{path}"), layer))
            .collect();
        // no layer is the same as another, or the lower one would not be read
        let tars = layers.iter().enumerate().map(|(number, layer)| {
            blob(tar_of(layer, number).file("number", &vec![b'x'; number + 1]).done())
        });
        let view = read(tars.collect(), &wish()).unwrap();
        prop_assert_eq!(view.all_unread(), &[]);
        prop_assert_eq!(seen(&view), wanted.clone());
        let dir = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (number, layer) in layers.iter().enumerate() {
            let root = dir.path().join(number.to_string());
            fs::create_dir(&root).unwrap();
            unpack(layer, number, &root);
            paths.push(root);
        }
        let view = in_place(&paths, Marks::User).unwrap();
        prop_assert_eq!(view.all_unread(), &[]);
        prop_assert_eq!(seen(&view), wanted);
    }

    #[test]
    fn no_bytes_do_any_harm(bytes in prop::collection::vec(any::<u8>(), 0..3000), at in 0_usize..3000, byte in any::<u8>()) {
        let _ = read(vec![blob(bytes)], &wish()).unwrap();
        let mut tar = Tar::default().pax(&[("path", b"a/version.py")]).file("x", &[7; 900]).link("b", "a").hard("c", "b").done();
        if let Some(place) = tar.get_mut(at) {
            *place = byte;
        }
        let _ = read(vec![blob(tar)], &wish()).unwrap();
    }
}
