//! Archives that go by once: standard input, and files that are packed as a whole.
//!
//! What lists an image's layers comes last, so each layer is read when it passes, whichever image it is of, and what
//! it tells is kept until it is known whether it is wanted. Nothing is written anywhere.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead as _, Read};
use std::sync::atomic::Ordering;
use std::thread::{self, ScopedJoinHandle};

use super::manifest::MOST_JSON;
use super::members::{Member, Room, resolve, resolve_name};
use super::store::{Layer, Store, found};
use super::{Depth, Failed, Found, Wish, archive, docker};
use crate::collect::image::layer::digest::Hasher;
use crate::collect::image::layer::pipe::{Drain, pipe};
use crate::collect::image::layer::stream::{Packing, feed, packing, unpack, unpack_into};
use crate::collect::image::layer::tar::{Archive, Kind};
use crate::collect::image::layer::{self, Shared, Told};
use crate::collect::image::view::View;
use crate::model::Unseen;

/// Of all small files together.
const MOST_SMALL: usize = 12 << 20;
/// What fills an archive's last block, some kilobytes: whoever writes it is read to the end, but not without one.
const MOST_BEHIND: usize = 64 << 20;
/// The shortest archive, but for an empty file.
const TAR: u64 = 20;

/// Finds an image in what goes by.
pub(super) fn find(
    mut from: Box<dyn Read + Send>,
    length: Option<u64>,
    tag: Option<&str>,
    wish: &Wish,
) -> Result<Found, Failed> {
    let progress = &*wish.progress;
    progress.total.fetch_add(length.unwrap_or(0), Ordering::Relaxed);
    let shared = Shared::new();
    let passed = thread::scope(|scope| {
        let (filler, drain) = pipe();
        scope.spawn(move || feed(&mut *from, filler, None, None, progress));
        whole(drain, &shared, wish.depth)
    });
    let passed = passed.map_err(|e| Unseen::new("the archive", e.to_string()))?;
    let store = Passed { shared, members: passed };
    let (picked, kind) = archive::pick(&store, tag, wish)?;
    found(Box::new(store), picked, &format!("{kind} archive, as it went by"), wish)
}

/// A file that went by.
enum Went {
    /// A small one.
    Small(Vec<u8>),
    /// A layer, or what may be one.
    Large(Box<Large>),
    /// One that nobody asked for.
    Unread,
}

struct Large {
    /// The digest of its file.
    digest: String,
    packed: bool,
    size: u64,
    /// Taken when it is known to be wanted.
    told: Option<Result<Told, String>>,
}

type Members = HashMap<String, Member<Went>>;

/// The archive, unpacked as it comes if it is packed as a whole.
fn whole(mut drain: Drain, shared: &Shared, depth: Depth) -> io::Result<Members> {
    let kind = packing(drain.fill_buf()?);
    if kind == Packing::None {
        return members(drain, shared, depth);
    }
    let (filler, inner) = pipe();
    thread::scope(|scope| {
        scope.spawn(move || unpack_into(kind, drain, filler, shared));
        members(inner, shared, depth)
    })
}

/// Reads all that goes by.
fn members(drain: Drain, shared: &Shared, depth: Depth) -> io::Result<Members> {
    let mut archive = Archive::new(drain);
    let mut room = Room::new();
    let mut members = Members::new();
    let mut small = 0;
    thread::scope(|scope| {
        let mut running: VecDeque<(String, ScopedJoinHandle<'_, Result<Told, String>>)> = VecDeque::new();
        while let Some(header) = archive.next()? {
            let (kind, size) = (header.kind, header.size);
            let Some(name) = room.name_of(header)? else { continue };
            match kind {
                Kind::Symlink | Kind::HardLink => {
                    let link = Member::link(&name, &header.target, kind == Kind::HardLink);
                    members.insert(name, link);
                    continue;
                }
                Kind::File => {}
                _ => continue,
            }
            let first = archive.part(usize::MAX)?.unwrap_or_default();
            if matches!(first.trim_ascii_start().first(), Some(b'{' | b'[')) && size <= MOST_JSON as u64 {
                let mut bytes = first.to_vec();
                while let Some(part) = archive.part(usize::MAX)? {
                    bytes.extend_from_slice(part);
                }
                small += bytes.len();
                if small > MOST_SMALL {
                    return Err(io::Error::other(format!("its lists are longer than {MOST_SMALL} bytes")));
                }
                members.insert(name, Member::File(Went::Small(bytes)));
                continue;
            }
            if depth == Depth::Config || size > 0 && size < TAR {
                members.insert(name, Member::File(Went::Unread));
                continue;
            }
            if running.len() == layer::at_once()
                && let Some(first) = running.pop_front()
            {
                settle(&mut members, first);
            }
            let packed = packing(first) != Packing::None;
            let mut hasher = docker::in_blobs(&name).and_then(|told| Hasher::of(&told)).unwrap_or_else(Hasher::sha256);
            let (filler, bytes) = pipe();
            let reader = scope.spawn(move || unpack(bytes, shared, None).map_err(|e| e.to_string()));
            hasher.update(first);
            // a layer that cannot be read must pass all the same
            let mut goes_on = filler.copy(first);
            while let Some(part) = archive.part(usize::MAX)? {
                hasher.update(part);
                goes_on = goes_on && filler.copy(part);
            }
            filler.end();
            let large = Large { digest: hasher.finish(), packed, size, told: None };
            members.insert(name.clone(), Member::File(Went::Large(Box::new(large))));
            running.push_back((name, reader));
        }
        for reader in running {
            settle(&mut members, reader);
        }
        let rest = archive.input();
        let mut behind = 0;
        loop {
            let there = rest.fill_buf()?.len();
            if there == 0 {
                return Ok(members);
            }
            behind += there;
            if behind > MOST_BEHIND {
                return Err(io::Error::other("something without an end follows the archive"));
            }
            rest.consume(there);
        }
    })
}

/// Waits for a layer that has gone by to be read.
fn settle(members: &mut Members, (name, reader): (String, ScopedJoinHandle<'_, Result<Told, String>>)) {
    let told = reader.join().unwrap_or_else(|_| Err("nobody read it".to_owned()));
    if let Some(Member::File(Went::Large(large))) = members.get_mut(&name) {
        large.told = Some(told);
    }
}

struct Passed {
    shared: Shared,
    members: Members,
}

impl Store for Passed {
    fn small(&self, name: &str) -> Result<Option<Vec<u8>>, Unseen> {
        match resolve(&self.members, name) {
            Some(Went::Small(bytes)) => Ok(Some(bytes.clone())),
            Some(_) => Err(Unseen::new(name, "is no such JSON")),
            None => Ok(None),
        }
    }

    fn layers(mut self: Box<Self>, layers: Vec<Layer>, wish: &Wish) -> Result<View, Unseen> {
        let places: Vec<Option<String>> = layers.iter().map(|layer| resolve_name(&self.members, &layer.name)).collect();
        let again: Vec<bool> = layer::again(&places);
        let told = layers.into_iter().zip(places).zip(again).map(|((layer, place), again)| {
            let Layer { label, digest, diff_id, .. } = layer;
            let unseen = |reason: String| Unseen::new(&label, reason);
            if again {
                return Ok(Told::default());
            }
            let large = match place.and_then(|place| self.members.get_mut(&place)) {
                Some(Member::File(Went::Large(large))) => large,
                Some(_) => return Err(unseen("is no layer".to_owned())),
                None => return Err(unseen("is not in the archive".to_owned())),
            };
            // the digest of an archive that is not packed is the layer's own
            let wanted = digest.or_else(|| diff_id.filter(|_| !large.packed && large.size > 0));
            if wanted.is_some_and(|wanted| wanted != large.digest) {
                return Err(unseen(format!("its digest is {}", large.digest)));
            }
            large.told.take().unwrap_or_else(|| Err("nobody read it".to_owned())).map_err(unseen)
        });
        let told: Vec<Result<Told, Unseen>> = told.collect();
        layer::view(told, &self.shared, wish)
    }
}
