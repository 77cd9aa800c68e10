//! docker's classic store on disk: names, configurations, and which directory holds which layer.

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::collect::image::configuration;
use crate::collect::image::source::machine::Machine;
use crate::collect::image::source::manifest::{self, MOST_JSON, hex};
use crate::collect::image::source::registry::name::{Name, Version};
use crate::model::Unseen;
use crate::model::host::EngineKind;
use crate::model::image::Configuration;

const DAEMON: &str = EngineKind::Docker.configuration();
const DEFAULT: &str = "/var/lib/docker";
/// docker as a snap.
const SNAP: &str = "/var/snap/docker/common/var-lib-docker";
/// Images of one machine.
const MOST_IMAGES: usize = 65_536;
const MOST_DRIVERS: usize = 64;
/// More layers than any engine stacks.
const MOST_LAYERS: usize = 500;
/// A digest, or a directory's name.
const SHORT: usize = 1024;
/// As few digits of an id as are looked for.
const FEWEST_DIGITS: usize = 4;

/// A data root with one storage driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Store {
    pub(super) root: String,
    pub(super) driver: String,
}

/// An image and the directories of its layers.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub(super) configuration: Configuration,
    /// Bottom to top; one that holds all, if the driver keeps it so.
    pub(super) directories: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Repositories {
    repositories: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Daemon {
    data_root: Option<String>,
    graph: Option<String>,
}

/// Where docker may have its data on a machine.
pub(in crate::collect::image::source) fn roots(machine: &Machine<'_>) -> Vec<String> {
    let told = machine.json::<Daemon>(DAEMON).ok().flatten().and_then(|daemon| daemon.data_root.or(daemon.graph));
    let data = machine.variable("XDG_DATA_HOME").map(str::to_owned);
    let data = data.or_else(|| machine.home().map(|home| format!("{home}/.local/share")));
    let rootless = data.filter(|_| !machine.is_root()).map(|data| format!("{data}/docker"));
    told.into_iter().chain(rootless).chain([DEFAULT.to_owned(), SNAP.to_owned()]).collect()
}

/// The stores below a data root.
pub(super) fn stores(machine: &Machine<'_>, root: &str) -> Result<Vec<Store>, Unseen> {
    let names = machine.files().list(&format!("{root}/image"), MOST_DRIVERS)?.unwrap_or_default();
    let names = names.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.map(|driver| Store { root: root.to_owned(), driver }).collect())
}

impl Store {
    fn at(&self, rest: &str) -> String {
        format!("{}/image/{}/{rest}", self.root, self.driver)
    }

    /// The id of the image that a name stands for.
    pub(super) fn id(&self, machine: &Machine<'_>, text: &str) -> Result<Option<String>, Unseen> {
        if hex(text).is_some() {
            let path = self.at(&format!("imagedb/content/sha256/{}", &text["sha256:".len()..]));
            return Ok(machine.files().stat(&path)?.map(|_| text.to_owned()));
        }
        let Some(all) = machine.json::<Repositories>(&self.at("repositories.json"))? else { return Ok(None) };
        if let Ok(name) = Name::parse(text) {
            let repository = familiar(&name);
            let key = match &name.version {
                Version::Tag(tag) => format!("{repository}:{tag}"),
                Version::Digest(digest) => format!("{repository}@{digest}"),
            };
            let id = all.repositories.get(&repository).and_then(|names| names.get(&key));
            if let Some(id) = id.filter(|id| hex(id).is_some()) {
                return Ok(Some(id.clone()));
            }
        }
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        if digits.len() < FEWEST_DIGITS || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let names = machine.files().list(&self.at("imagedb/content/sha256"), MOST_IMAGES)?.unwrap_or_default();
        let mut fitting = names.iter().filter_map(|name| name.to_str()).filter(|name| name.starts_with(digits));
        let first = fitting.next().map(|hex| format!("sha256:{hex}"));
        if fitting.next().is_some() {
            return Err(Unseen::new(manifest::short(text), "may mean several images: name one in full"));
        }
        Ok(first)
    }

    /// What an image is made of. Directories are found by the digests of the layers and of those below them, which proves
    /// that they were unpacked for this very image.
    pub(super) fn unpacked(&self, machine: &Machine<'_>, id: &str) -> Result<Unpacked, Unseen> {
        let digits = hex(id).ok_or_else(|| Unseen::new(manifest::short(id), "is no id of an image"))?;
        let path = self.at(&format!("imagedb/content/sha256/{digits}"));
        let bytes = machine.files().read(&path, MOST_JSON)?.ok_or_else(|| Unseen::new(&path, "is absent"))?;
        manifest::check(&path, &bytes, id)?;
        let configuration = configuration::parse(&bytes)?;
        if configuration.diff_ids.len() > MOST_LAYERS {
            return Err(Unseen::new(path, format!("names more than {MOST_LAYERS} layers")));
        }
        let mut directories = Vec::new();
        for (chain, diff) in chain_ids(&configuration.diff_ids).iter().zip(&configuration.diff_ids) {
            let layer = self.at(&format!("layerdb/{}", chain.replacen(':', "/", 1)));
            let unpacked = short(machine, &format!("{layer}/diff"))?;
            if unpacked != *diff {
                return Err(Unseen::new(layer, format!("is of {}, not of {diff}", manifest::short(&unpacked))));
            }
            directories.push(self.directory(&short(machine, &format!("{layer}/cache-id"))?)?);
        }
        if !self.is_stacked() {
            directories = directories.pop().into_iter().collect();
        }
        Ok(Unpacked { configuration, directories })
    }

    /// A directory for each layer, not one for all.
    pub(super) fn is_stacked(&self) -> bool {
        !matches!(self.driver.as_str(), "vfs" | "btrfs")
    }

    fn directory(&self, cache_id: &str) -> Result<String, Unseen> {
        let Self { root, driver } = self;
        let no = |why: &str| Unseen::new(format!("{root}/image/{driver}"), why);
        if cache_id.is_empty() || !cache_id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return Err(no("names a layer's directory by no such name"));
        }
        match driver.as_str() {
            "overlay2" | "fuse-overlayfs" => Ok(format!("{root}/{driver}/{cache_id}/diff")),
            "vfs" => Ok(format!("{root}/vfs/dir/{cache_id}")),
            "btrfs" => Ok(format!("{root}/btrfs/subvolumes/{cache_id}")),
            _ => Err(no("keeps layers in a way that this program does not read")),
        }
    }
}

/// A file of a few words.
fn short(machine: &Machine<'_>, path: &str) -> Result<String, Unseen> {
    let text = machine.files().read_text(path, SHORT)?.ok_or_else(|| Unseen::new(path, "is absent"))?;
    Ok(text.trim().to_owned())
}

/// A repository as docker keeps it: without what goes without saying.
fn familiar(name: &Name) -> String {
    if name.registry != "docker.io" {
        return format!("{}/{}", name.registry, name.repository);
    }
    name.repository.strip_prefix("library/").unwrap_or(&name.repository).to_owned()
}

/// What stacks of layers are called, by the digests of their tars: docker and containerd do it alike.
pub(in crate::collect::image::source) fn chain_ids(diff_ids: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for diff in diff_ids {
        let next = match all.last() {
            Some(below) => format!("sha256:{:x}", Sha256::digest(format!("{below} {diff}"))),
            None => diff.clone(),
        };
        all.push(next);
    }
    all
}
