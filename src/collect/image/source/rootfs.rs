//! An unpacked root file system. It has no configuration: what an engine would set is not known.

use std::path::Path;

use super::{Depth, Failed, Found, Source, Wish};
use crate::collect::image::layer;
use crate::model::image::Configuration;

pub(super) struct Rootfs<'a>(pub(super) &'a Path);

impl Source for Rootfs<'_> {
    fn find(&self, wish: &Wish) -> Result<Found, Failed> {
        let files = match wish.depth {
            Depth::Config => None,
            Depth::Files => Some(layer::unpacked(self.0).map_err(Failed::Absent)?),
        };
        Ok(Found {
            source: "root file system, in place".to_owned(),
            configuration: Configuration::default(),
            id: None,
            files,
            remarks: Vec::new(),
        })
    }
}
