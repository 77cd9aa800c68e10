//! containers-storage on disk: the images and layers of one or several roots.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::collect::image::source::machine::Machine;
use crate::collect::image::source::manifest::{self, MOST_JSON};
use crate::model::Unseen;

/// Drivers whose layers are directories, and where these are below the root.
const DRIVERS: [&str; 3] = ["overlay", "vfs", "btrfs"];
/// More layers than any engine stacks.
const MOST_LAYERS: usize = 500;

/// An image, as `images.json` names it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Image {
    pub(super) id: String,
    digest: Option<String>,
    names: Option<Vec<String>>,
    layer: Option<String>,
    #[serde(rename = "big-data-names")]
    big_data_names: Option<Vec<String>>,
    /// Which root and driver it is of.
    #[serde(skip)]
    place: usize,
}

impl Image {
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().flatten().map(String::as_str)
    }

    /// One of its manifests has this digest.
    pub(super) fn is_of_manifest(&self, digest: &str) -> bool {
        let kept = |name: &String| name.strip_prefix("manifest-").is_some_and(|kept| kept == digest);
        self.digest.as_deref() == Some(digest) || self.big_data_names.iter().flatten().any(kept)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Layer {
    id: String,
    parent: Option<String>,
    diff_digest: Option<String>,
    #[serde(default)]
    flags: Option<BTreeMap<String, serde_json::Value>>,
    #[serde(skip)]
    place: usize,
}

/// A root with one driver.
#[derive(Debug)]
struct Place {
    root: String,
    driver: &'static str,
}

/// All that roots hold.
#[derive(Debug, Default)]
pub(super) struct Store {
    places: Vec<Place>,
    /// The first root's first.
    pub(super) images: Vec<Image>,
    /// Roots that could not be looked into.
    pub(super) unread: Vec<Unseen>,
}

/// What an image is made of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unpacked {
    /// Directories, bottom to top; one that holds all, if the driver keeps it so.
    pub(super) directories: Vec<String>,
    /// The digests of the layers' tars as the store knows them, bottom to top.
    pub(super) diff_ids: Vec<String>,
    /// The directory whose owner tells whose store it is.
    pub(super) owned: String,
}

impl Store {
    /// Reads the lists of images.
    pub(super) fn read(machine: &Machine<'_>, roots: &[String]) -> Self {
        let mut store = Self::default();
        for root in roots {
            for driver in DRIVERS {
                let path = format!("{root}/{driver}-images/images.json");
                match machine.json::<Vec<Image>>(&path) {
                    Ok(None) => {}
                    Ok(Some(images)) => {
                        let place = store.places.len();
                        store.places.push(Place { root: root.clone(), driver });
                        store.images.extend(images.into_iter().map(|image| Image { place, ..image }));
                    }
                    Err(unseen) => {
                        store.unread.push(unseen);
                        // the others are as unreadable
                        break;
                    }
                }
            }
        }
        store
    }

    /// The root that an image is in.
    pub(super) fn root(&self, image: &Image) -> &str {
        &self.places[image.place].root
    }

    pub(super) fn configuration(&self, machine: &Machine<'_>, image: &Image) -> Result<Vec<u8>, Unseen> {
        let Place { root, driver } = &self.places[image.place];
        let wanted = format!("sha256:{}", image.id);
        let name = STANDARD.encode(&wanted);
        let path = format!("{root}/{driver}-images/{}/={name}", image.id);
        let bytes = machine.files().read(&path, MOST_JSON)?.ok_or_else(|| Unseen::new(&path, "is absent"))?;
        manifest::check(&path, &bytes, &wanted)?;
        Ok(bytes)
    }

    /// The directories of an image's layers.
    pub(super) fn unpacked(&self, machine: &Machine<'_>, image: &Image) -> Result<Unpacked, Unseen> {
        match self.chain(machine, image) {
            // podman may have written the list of images before that of layers
            Err(_) => self.chain(machine, image),
            found => found,
        }
    }

    fn chain(&self, machine: &Machine<'_>, image: &Image) -> Result<Unpacked, Unseen> {
        let own = &self.places[image.place];
        let layers = self.layers(machine, own.driver)?;
        let list = format!("{}/{}-layers/layers.json", own.root, own.driver);
        let mut directories = Vec::new();
        let mut diff_ids = Vec::new();
        let mut next = image.layer.clone().filter(|id| !id.is_empty());
        while let Some(id) = next {
            let layer =
                layers.get(&id).ok_or_else(|| Unseen::new(&list, format!("has no layer {}", manifest::short(&id))))?;
            if directories.len() == MOST_LAYERS {
                return Err(Unseen::new(&list, format!("an image of more than {MOST_LAYERS} layers")));
            }
            if layer.flags.as_ref().is_some_and(|flags| flags.contains_key("incomplete")) {
                return Err(Unseen::new(&list, "one of the image's layers is not unpacked as a whole"));
            }
            directories.push(self.places[layer.place].directory(machine, &id)?);
            diff_ids.push(layer.diff_digest.clone().unwrap_or_default());
            next = layer.parent.clone().filter(|id| !id.is_empty());
        }
        directories.reverse();
        diff_ids.reverse();
        if own.driver != "overlay" {
            // the topmost directory holds all that is below it
            directories = directories.pop().into_iter().collect();
        }
        Ok(Unpacked { directories, diff_ids, owned: format!("{}/{}", own.root, own.driver) })
    }

    /// All layers of all roots with a driver, by id: the layers below an image's own may be in a further store.
    fn layers(&self, machine: &Machine<'_>, driver: &str) -> Result<BTreeMap<String, Layer>, Unseen> {
        let mut all = BTreeMap::new();
        for (number, place) in self.places.iter().enumerate().filter(|(_, place)| place.driver == driver) {
            for name in ["layers", "volatile-layers"] {
                let path = format!("{}/{driver}-layers/{name}.json", place.root);
                let layers = machine.json::<Vec<Layer>>(&path)?.unwrap_or_default();
                for layer in layers {
                    all.entry(layer.id.clone()).or_insert(Layer { place: number, ..layer });
                }
            }
        }
        Ok(all)
    }
}

impl Place {
    fn directory(&self, machine: &Machine<'_>, id: &str) -> Result<String, Unseen> {
        let root = &self.root;
        // an id is of hexadecimal digits; anything else would be a path
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(Unseen::new(format!("{root}/{}-layers", self.driver), "names a layer by no id"));
        }
        match self.driver {
            "vfs" => Ok(format!("{root}/vfs/dir/{id}")),
            "btrfs" => Ok(format!("{root}/btrfs/subvolumes/{id}")),
            _ => {
                let own = format!("{root}/overlay/{id}");
                if machine.files().stat(&format!("{own}/composefs-data"))?.is_some() {
                    return Err(Unseen::new(own, "is kept with composefs, whose files lie by their digests"));
                }
                Ok(format!("{own}/diff"))
            }
        }
    }
}
