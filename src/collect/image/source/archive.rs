//! Archives in regular files: what they hold is found by their headers, and then read where it lies.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::manifest::MOST_JSON;
use super::members::{Member, Room, resolve};
use super::region::{self, Region};
use super::store::{Layer, Picked, Store, found};
use super::{Failed, Found, Source, Wish, docker, given, manifest, oci, passing};
use crate::collect::image::layer::stream::{Packing, packing, walk};
use crate::collect::image::layer::tar::{Archive, Kind};
use crate::collect::image::layer::{self, Blob, Job, Shared};
use crate::collect::image::view::View;
use crate::model::Unseen;

/// Enough to tell by what it is packed.
const MAGIC: usize = 8;

pub(super) struct InFile<'a> {
    pub(super) file: &'a Path,
    pub(super) tag: Option<&'a str>,
}

impl Source for InFile<'_> {
    fn find(&self, wish: &Wish) -> Result<Found, Failed> {
        let label = self.file.to_string_lossy();
        let unseen = |e: io::Error| Unseen::new(&*label, e.to_string());
        let file = given::file(self.file)?;
        let about = file.metadata().map_err(unseen)?;
        let mut start = [0; MAGIC];
        let there = file.read_at(&mut start, 0).map_err(unseen)?;
        if packing(&start[..there]) != Packing::None {
            return passing::find(Box::new(file), Some(about.len()), self.tag, wish);
        }
        let file = Arc::new(file);
        let members = members(&file, about.len()).map_err(unseen)?;
        let store = Members { file, members };
        let (picked, kind) = pick(&store, self.tag, wish)?;
        found(Box::new(store), picked, &format!("{kind} archive"), wish)
    }
}

/// Picks an image by whichever list the archive has. docker's newer archives have both: its own names all that the
/// archive really holds, the index may name more.
pub(super) fn pick(store: &dyn Store, tag: Option<&str>, wish: &Wish) -> Result<(Picked, &'static str), Failed> {
    let of_index = || oci::pick(store, manifest::place, "index.json", tag, wish).map(|picked| (picked, "OCI"));
    if store.small("manifest.json")?.is_none() {
        return match of_index() {
            Err(Failed::Absent(unseen)) if unseen.reason == "is absent" => {
                let reason = "is no image's archive: it has neither manifest.json nor index.json";
                Err(Unseen::new("the archive", reason).into())
            }
            other => other,
        };
    }
    match docker::pick(store, tag) {
        Ok(picked) => Ok((picked, "docker")),
        Err(failed) => of_index().map_err(|other| match other {
            Failed::Absent(unseen) if unseen.reason == "is absent" => failed,
            other => other,
        }),
    }
}

/// Where everything lies.
fn members(file: &Arc<File>, length: u64) -> io::Result<HashMap<String, Member<(u64, u64)>>> {
    let mut archive = Archive::new(Region::new(file.clone(), 0, length));
    let mut room = Room::new();
    let mut members = HashMap::new();
    while let Some(header) = archive.next()? {
        let (kind, size) = (header.kind, header.size);
        let Some(name) = room.name_of(header)? else { continue };
        let member = match kind {
            Kind::File => Member::File((0, size)),
            Kind::Symlink | Kind::HardLink => Member::link(&name, &header.target, kind == Kind::HardLink),
            _ => continue,
        };
        let at = archive.input().position();
        members.insert(
            name,
            match member {
                Member::File((_, size)) => Member::File((at, size)),
                link @ Member::Link(_) => link,
            },
        );
    }
    Ok(members)
}

struct Members {
    file: Arc<File>,
    members: HashMap<String, Member<(u64, u64)>>,
}

impl Store for Members {
    fn small(&self, name: &str) -> Result<Option<Vec<u8>>, Unseen> {
        let Some((at, size)) = resolve(&self.members, name) else { return Ok(None) };
        let length = usize::try_from(*size).ok().filter(|size| *size <= MOST_JSON);
        let length = length.ok_or_else(|| Unseen::new(name, format!("larger than {MOST_JSON} bytes")))?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, *at).map_err(|e| Unseen::new(name, e.to_string()))?;
        Ok(Some(bytes))
    }

    fn layers(self: Box<Self>, layers: Vec<Layer>, wish: &Wish) -> Result<View, Unseen> {
        let shared = Shared::new();
        let places: Vec<_> = layers.iter().map(|layer| resolve(&self.members, &layer.name).copied()).collect();
        let again = layer::again(&places);
        let jobs = layers.into_iter().zip(places).zip(again).map(|((layer, place), again)| {
            let size = place.map_or(0, |(_, size)| size);
            wish.progress.total.fetch_add(size, Ordering::Relaxed);
            let (shared, progress, file) = (&shared, &*wish.progress, &self.file);
            let job: Job<'_> = Box::new(move || {
                if again {
                    return Ok(layer::Told::default());
                }
                let Layer { label, digest, diff_id, sought, table, .. } = layer;
                let unseen = |reason: String| Unseen::new(&label, reason);
                let (at, size) = place.ok_or_else(|| unseen("is not in the archive".to_owned()))?;
                let mut start = [0; MAGIC];
                let there = file.read_at(&mut start, at).map_err(|e| unseen(e.to_string()))?;
                let region = Region::new(file.clone(), at, size);
                if sought && packing(&start[..there.min(usize::try_from(size).unwrap_or(MAGIC))]) == Packing::None {
                    let told = walk(region, shared, None).map_err(|e| unseen(e.to_string()));
                    progress.done.fetch_add(size, Ordering::Relaxed);
                    return told;
                }
                let parts = table.map(|table| region::parts(table, file.clone(), at));
                let open = move || Ok(Box::new(region) as Box<dyn Read + Send>);
                let blob = Blob { label, digest, diff_id, size: Some(size), open: Box::new(open), parts };
                layer::one(blob, shared, progress)
            });
            (size, job)
        });
        let told = layer::all(jobs.collect())?;
        layer::view(told, &shared, wish)
    }
}
