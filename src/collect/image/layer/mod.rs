//! Layers: one pass over each, or a walk where they lie unpacked, then merged as overlayfs does.
//!
//! Whatever an image holds, reading it takes little memory and ends: entries, names, kept bytes and expansion are
//! bounded, and what goes beyond is unknown, and said. Nothing is written, and no device is opened.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::source::{Progress, Wish};
use super::view::View;
use crate::model::Unseen;

mod attribute;
mod budget;
pub(super) mod digest;
mod directory;
mod merge;
mod name;
pub(super) mod pipe;
pub(super) mod stream;
pub(super) mod tar;
mod teller;
pub(super) mod toc;
mod told;
mod zstd;

pub(in crate::collect::image) use toc::{Parts, Table};
pub(in crate::collect::image) use told::{Shared, Told};

/// As many as engines make, four times over; the number fits into nine bits.
pub(super) const MOST_LAYERS: usize = 500;
const MOST_ENTRIES: usize = 5_000_000;
/// As the kernel's (`PATH_MAX`).
const MOST_PATH: usize = 4096;
/// Each layer that is read has buffers of its own.
const MOST_AT_ONCE: usize = 8;

/// A layer as it is stored or sent.
pub(in crate::collect::image) struct Blob {
    /// What it is called in messages.
    pub(in crate::collect::image) label: String,
    /// The digest that its bytes are to have.
    pub(in crate::collect::image) digest: Option<String>,
    /// The digest that its unpacked archive is to have: asked for where there is no other.
    pub(in crate::collect::image) diff_id: Option<String>,
    /// How many bytes it is to have.
    pub(in crate::collect::image) size: Option<u64>,
    /// Opens it.
    pub(in crate::collect::image) open: Open,
    /// Reads parts of it, where it has a table of contents.
    pub(in crate::collect::image) parts: Option<Parts>,
}

/// Opens a blob.
pub(in crate::collect::image) type Open = Box<dyn FnOnce() -> io::Result<Box<dyn Read + Send>> + Send>;

/// How a store of unpacked layers marks what a layer takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::collect::image) enum Marks {
    /// By attributes that only root may see: `trusted.overlay.opaque`.
    Trusted,
    /// By the user's own: `user.overlay.opaque`.
    User,
}

/// Reads layers, bottom to top.
pub(in crate::collect::image) fn read(blobs: Vec<Blob>, wish: &Wish) -> Result<View, Unseen> {
    let total = blobs.iter().filter_map(|blob| blob.size).sum();
    wish.progress.total.fetch_add(total, Ordering::Relaxed);
    let shared = Shared::new();
    let again = again(&blobs.iter().map(|blob| blob.digest.clone()).collect::<Vec<_>>());
    let jobs = blobs.into_iter().zip(again).map(|(blob, again)| {
        let (shared, progress) = (&shared, &*wish.progress);
        let size = blob.size.unwrap_or(u64::MAX);
        let job: Job<'_> =
            if again { Box::new(|| Ok(Told::default())) } else { Box::new(move || one(blob, shared, progress)) };
        (size, job)
    });
    let told = all(jobs.collect())?;
    view(told, &shared, wish)
}

/// Reads one layer: by its table of contents, or else whole.
pub(in crate::collect::image) fn one(blob: Blob, shared: &Shared, progress: &Progress) -> Result<Told, Unseen> {
    toc::read(&blob, shared, progress).or_else(|_| stream::read(blob, shared, progress))
}

/// Walks layers that lie unpacked in directories, bottom to top.
pub(in crate::collect::image) fn in_place(layers: &[PathBuf], marks: Marks) -> Result<View, Unseen> {
    directory::layers(layers, marks)
}

/// Walks a root file system, which hides nothing.
pub(in crate::collect::image) fn unpacked(root: &Path) -> Result<View, Unseen> {
    directory::rootfs(root)
}

/// Reads one layer.
pub(in crate::collect::image) type Job<'a> = Box<dyn FnOnce() -> Result<Told, Unseen> + Send + 'a>;

/// Does all jobs, as many at once as there are processors, those of most bytes first.
pub(in crate::collect::image) fn all(jobs: Vec<(u64, Job<'_>)>) -> Result<Vec<Result<Told, Unseen>>, Unseen> {
    let many = jobs.len();
    if many > MOST_LAYERS {
        return Err(Unseen::new("the manifest", format!("{many} layers are more than {MOST_LAYERS}")));
    }
    let mut order: Vec<usize> = (0..many).collect();
    order.sort_by_key(|number| std::cmp::Reverse(jobs[*number].0));
    let jobs: Vec<Mutex<Option<Job<'_>>>> = jobs.into_iter().map(|(_, job)| Mutex::new(Some(job))).collect();
    let results: Vec<Mutex<Option<Result<Told, Unseen>>>> = (0..many).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(number) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let job = jobs[*number].lock().unwrap_or_else(PoisonError::into_inner).take();
            let result = job.map(|job| job());
            *results[*number].lock().unwrap_or_else(PoisonError::into_inner) = result;
        }
    };
    thread::scope(|scope| {
        for _ in 1..at_once().min(many) {
            scope.spawn(work);
        }
        work();
    });
    let lost = || Err(Unseen::new("a layer", "nobody read it"));
    let taken = results.into_iter().map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(taken.map(|result| result.unwrap_or_else(lost)).collect())
}

/// Which layers come again further up. Of those the uppermost counts: it has and hides what those below it do.
pub(in crate::collect::image) fn again<T: PartialEq>(layers: &[Option<T>]) -> Vec<bool> {
    let later = |number: usize| layers[number].is_some() && layers[number + 1..].contains(&layers[number]);
    (0..layers.len()).map(later).collect()
}

/// How many layers are read at once.
pub(in crate::collect::image) fn at_once() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MOST_AT_ONCE)
}

/// What layers tell, bottom to top, as one.
pub(in crate::collect::image) fn view(
    told: Vec<Result<Told, Unseen>>,
    shared: &Shared,
    wish: &Wish,
) -> Result<View, Unseen> {
    if wish.progress.cancelled.load(Ordering::Relaxed) {
        return Err(Unseen::new("the image's layers", "interrupted"));
    }
    let tables = told.iter().flatten().filter(|told| told.by_table).count();
    let (entries, unread) = merge::merge(told, shared);
    Ok(View::new(entries, Vec::new(), unread).told_by_tables(tables))
}

#[cfg(test)]
mod property;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
