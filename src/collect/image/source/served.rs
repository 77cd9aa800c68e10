//! What an engine says of an image on its socket, and the image as it hands it out there: what is left where its files
//! cannot be read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::manifest::short;
use super::{Depth, Failed, Found, Wish, passing};
use crate::collect::engine_api::{Api, Silent};
use crate::collect::image::configuration;
use crate::model::Unseen;

/// The driver of an image in containerd's store, as docker names it.
const SNAPSHOTTER: &str = "overlayfs";

/// An image that an engine has.
pub(super) struct Served {
    pub(super) api: Api,
    engine: &'static str,
    pub(super) name: String,
    pub(super) image: Inspected,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Inspected {
    pub(super) id: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    os: String,
    #[serde(default)]
    config: Value,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    graph_driver: Option<GraphDriver>,
    #[serde(default, rename = "RootFS")]
    root_fs: Option<RootFs>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GraphDriver {
    #[serde(default)]
    name: String,
    #[serde(default)]
    data: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct RootFs {
    #[serde(default)]
    layers: Option<Vec<String>>,
}

impl Served {
    /// Asks for an image.
    pub(super) fn ask(api: Api, engine: &'static str, name: &str) -> Result<Self, Silent> {
        let is_word =
            |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/' | b':' | b'@' | b'[' | b']');
        let is_clean = name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        if !is_clean || !name.bytes().all(is_word) {
            // no engine has an image of such a name, and in a request it would be something else
            return Err(Silent::Absent);
        }
        let image = api.json(&format!("/images/{name}/json"))?;
        Ok(Self { api, engine, name: name.to_owned(), image })
    }

    /// What is wished of it, without its files; `id` is its configuration's digest where that is known, `why` is what
    /// stood in the way of them.
    pub(super) fn read(&self, id: Option<&str>, wish: &Wish, why: &Unseen) -> Result<Found, Failed> {
        match wish.depth {
            Depth::Config => self.described(id),
            Depth::Files => self.streamed(id, wish, why),
        }
    }

    fn streamed(&self, id: Option<&str>, wish: &Wish, why: &Unseen) -> Result<Found, Failed> {
        let engine = self.engine;
        let path = format!("/images/{}/get", self.name);
        let stream = self.api.stream(&path, self.image.size).map_err(|silent| match silent {
            Silent::Failed(unseen) => Failed::Unreadable(unseen),
            Silent::Absent | Silent::Nobody => Failed::Absent(Unseen::new(engine, "no longer has this image")),
        })?;
        let mut found = passing::find(stream, None, None, wish)?;
        if let Some(id) = id.filter(|id| found.id.as_ref().is_some_and(|found| found != id)) {
            return Err(Unseen::new(engine, format!("handed out another image than {}", short(id))).into());
        }
        found.source = format!("{engine}, streamed");
        found.remarks.push(format!("{engine}'s layers were not read in place: {}: {}", why.source, why.reason));
        Ok(found)
    }

    /// By what the engine says alone.
    fn described(&self, id: Option<&str>) -> Result<Found, Failed> {
        let layers = self.image.root_fs.as_ref().and_then(|root_fs| root_fs.layers.clone()).unwrap_or_default();
        let Inspected { architecture, os, config, .. } = &self.image;
        let written = json!({"architecture": architecture, "os": os, "config": config, "rootfs": {"diff_ids": layers}});
        Ok(Found {
            source: self.engine.to_owned(),
            configuration: configuration::parse(written.to_string().as_bytes())?,
            id: id.map(str::to_owned),
            files: None,
            remarks: Vec::new(),
        })
    }
}

impl Inspected {
    pub(super) fn is_of_containerd(&self) -> bool {
        self.graph_driver.as_ref().is_none_or(|driver| {
            driver.name.is_empty() || driver.name == SNAPSHOTTER && driver.data.as_ref().is_none_or(BTreeMap::is_empty)
        })
    }

    /// docker's containerd store pulls whatever has a manifest.
    pub(super) fn is_artifact(&self) -> bool {
        self.architecture.is_empty()
            && self.is_of_containerd()
            && self.root_fs.as_ref().is_none_or(|it| it.layers.is_none())
    }

    /// The storage driver.
    pub(super) fn driver(&self) -> &str {
        self.graph_driver.as_ref().map_or("", |driver| &driver.name)
    }

    /// The layers' directories as the daemon names them, bottom to top.
    pub(super) fn directories(&self) -> Vec<String> {
        let data = self.graph_driver.as_ref().and_then(|driver| driver.data.as_ref());
        let text = |key: &str| data.and_then(|data| data.get(key)?.as_str());
        let lower = text("LowerDir").map(|lower| lower.split(':').rev()).into_iter().flatten();
        lower.chain(text("UpperDir")).map(str::to_owned).collect()
    }
}
