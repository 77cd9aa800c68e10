//! What leads an image's loader to a directory. Its configuration is read when it is first asked for.

use std::cell::OnceCell;

use super::places::Hints;
use super::walk::Walk;
use crate::collect::loader::{self, Directory};
use crate::knowledge::driver_files::DIRECTORIES;
use crate::model::image::Reach;

/// More directories than come before a loader's.
const BEFORE: usize = 32;

/// The loader's directories in its order, as far as they were asked for.
#[derive(Debug, Default)]
pub(super) struct Loader {
    told: Option<Vec<Directory>>,
    cache: OnceCell<Option<Vec<u8>>>,
}

impl Loader {
    /// Those of the environment; with those of the configuration where that was read before, or where nothing is lost
    /// by reading it.
    pub(super) fn directories(&mut self, walk: &mut Walk<'_>, hints: &Hints<'_>) -> Vec<Directory> {
        if self.told.is_some() || walk.knows_all() {
            return self.order(walk, hints).to_vec();
        }
        hints.environment.map(loader::of_environment).unwrap_or_default()
    }

    /// All, in its order.
    pub(super) fn order(&mut self, walk: &mut Walk<'_>, hints: &Hints<'_>) -> &[Directory] {
        self.told.get_or_insert_with(|| {
            let mut told = hints.environment.map(loader::of_environment).unwrap_or_default();
            let (configured, unseen) = loader::configured(walk.rootfs);
            told.extend(configured);
            if let Some(unseen) = unseen {
                walk.skip(unseen);
            }
            told
        })
    }

    /// The image's own cache, if it has one.
    pub(super) fn cache(&mut self, walk: &mut Walk<'_>) -> Option<&[u8]> {
        self.cache.get_or_init(|| walk.cache()).as_deref()
    }

    /// What leads to a directory; the loader's own come last.
    pub(super) fn reach(&mut self, walk: &mut Walk<'_>, hints: &Hints<'_>, directory: &str) -> Option<Reach> {
        if let Some((reach, _)) = self.leads(walk, hints, |path| path == directory) {
            return Some(reach);
        }
        if !DIRECTORIES.contains(&directory) {
            return None;
        }
        let before = before(self.order(walk, hints), BEFORE);
        Some(Reach { source: "the loader's own directories".to_owned(), before, cached: None })
    }

    /// What leads to the first directory that is the one, and how it is written there.
    pub(super) fn leads(
        &mut self,
        walk: &mut Walk<'_>,
        hints: &Hints<'_>,
        is_it: impl Fn(&str) -> bool,
    ) -> Option<(Reach, String)> {
        let told = self.order(walk, hints);
        let (place, found) = told.iter().enumerate().find(|(_, told)| is_it(&told.path))?;
        let reach = Reach { source: found.source.clone(), before: before(told, place), cached: None };
        Some((reach, found.path.clone()))
    }
}

/// The directories before a place, as many as are kept.
fn before(told: &[Directory], place: usize) -> Vec<String> {
    told.iter().take(place.min(BEFORE)).map(|told| told.path.clone()).collect()
}
