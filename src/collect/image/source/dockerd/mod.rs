//! docker: what its daemon says of an image, read where the layers lie if they are this machine's and readable, else as
//! the daemon hands it out; without a daemon, from its files alone.

use serde::Deserialize;

use super::containerd::{self, Wanted};
use super::held::{Held, Looked};
use super::machine::Machine;
use super::manifest::{hex, short};
use super::served::{Inspected, Served};
use super::{Depth, Failed, Found, Wish, podman};
use crate::collect::engine_api::{Api, Endpoint, Silent, endpoint};
use crate::collect::image::layer;
use crate::model::Unseen;
use store::{Store, Unpacked};

pub(super) mod store;
#[cfg(test)]
mod tests;

/// Namespace of docker's images in containerd.
const NAMESPACE: &str = "moby";
/// podman's driver: it may serve docker's socket, as the package podman-docker has it.
const OF_PODMAN: &str = "overlay";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Info {
    docker_root_dir: String,
}

/// Looks for an image.
pub(super) fn locate<'a>(machine: &'a Machine<'a>, name: &str, wish: &Wish) -> Looked<'a> {
    if machine.is_laid_out() {
        return on_disk(machine, name, wish);
    }
    let endpoint = endpoint(machine.files(), &|name| machine.variable(name))?;
    let api = Api::new(&endpoint, machine.files())?;
    let label = api.label().to_owned();
    match Served::ask(api, "docker", name) {
        Ok(served) => Ok(Box::new(Told::new(machine, served, &endpoint, wish))),
        Err(Silent::Absent) => Err(Failed::Absent(Unseen::new("docker", "has no such image"))),
        // nobody answers: what lies on the disk counts
        Err(silent) => {
            let is_here = matches!(endpoint, Endpoint::Socket(_));
            let found = is_here.then(|| on_disk(machine, name, wish));
            match (found, silent) {
                (Some(Ok(held)), _) => Ok(held),
                (_, Silent::Failed(unseen)) => {
                    Err(Failed::Unreadable(Unseen::new(format!("docker at {}", unseen.source), unseen.reason)))
                }
                (Some(Err(Failed::Unreadable(unseen))), _) => Err(Failed::Unreadable(unseen)),
                _ => Err(Failed::Absent(Unseen::new("docker", format!("is not here (no {label})")))),
            }
        }
    }
}

/// Looks for an image in docker's own files.
fn on_disk<'a>(machine: &'a Machine<'a>, name: &str, wish: &Wish) -> Looked<'a> {
    let roots = store::roots(machine);
    let mut unread = None;
    for root in &roots {
        let found = store::stores(machine, root).and_then(|stores| {
            for store in stores {
                if let Some(id) = store.id(machine, name)? {
                    return Ok(Some((store, id)));
                }
            }
            Ok(None)
        });
        match found {
            Ok(Some((store, id))) => return Ok(Box::new(Lying { machine, store, id })),
            Ok(None) => {}
            Err(unseen) => unread = unread.or(Some(unseen)),
        }
    }
    let roots: Vec<String> = roots.iter().map(|root| format!("{root}/containerd/daemon")).collect();
    match containerd::held(machine, roots, Some(NAMESPACE), Wanted::Name(name), "docker", wish) {
        Err(Failed::Absent(absent)) => match unread {
            Some(unseen) => Err(Failed::Unreadable(Unseen::new(format!("docker's {}", unseen.source), unseen.reason))),
            None => Err(Failed::Absent(absent)),
        },
        found => found,
    }
}

/// An image in docker's files.
struct Lying<'a> {
    machine: &'a Machine<'a>,
    store: Store,
    id: String,
}

impl Held for Lying<'_> {
    fn id(&self) -> Option<&str> {
        Some(&self.id)
    }

    fn read(self: Box<Self>, wish: &Wish) -> Result<Found, Failed> {
        let unpacked = self.store.unpacked(self.machine, &self.id)?;
        Ok(in_place(self.machine, &self.store, &self.id, unpacked, wish)?)
    }
}

fn in_place(machine: &Machine<'_>, store: &Store, id: &str, unpacked: Unpacked, wish: &Wish) -> Result<Found, Unseen> {
    let files = match wish.depth {
        Depth::Config => None,
        Depth::Files => {
            let real = unpacked.directories.iter().map(|directory| machine.real(directory));
            let marks = machine.marks(&format!("{}/{}", store.root, store.driver));
            Some(layer::in_place(&real.collect::<Result<Vec<_>, _>>()?, marks)?)
        }
    };
    let how = match files {
        Some(_) => format!(", in place ({})", store.driver),
        None => String::new(),
    };
    Ok(Found {
        source: format!("docker{how}"),
        configuration: unpacked.configuration,
        id: Some(id.to_owned()),
        files,
        remarks: Vec::new(),
    })
}

/// An image that the daemon knows.
struct Told<'a> {
    machine: &'a Machine<'a>,
    served: Served,
    kept: Kept<'a>,
    id: Option<String>,
}

/// Where the daemon's image lies for this process.
enum Kept<'a> {
    /// In a store of directories.
    Store(Store),
    /// In the store of containerd or podman.
    Other(Box<dyn Held + 'a>),
    /// Not where this process can read it; why.
    Elsewhere(Unseen),
}

impl<'a> Told<'a> {
    fn new(machine: &'a Machine<'a>, served: Served, endpoint: &Endpoint, wish: &Wish) -> Self {
        let (api, image) = (&served.api, &served.image);
        let kept = match endpoint {
            Endpoint::Socket(_) => kept(machine, api, image, wish),
            Endpoint::Tcp { .. } => Kept::Elsewhere(Unseen::new(api.label(), "its files are not this machine's")),
        };
        let id = match &kept {
            Kept::Other(held) => held.id().map(str::to_owned),
            Kept::Store(_) => Some(image.id.clone()),
            // of containerd's store it is the digest of a manifest
            Kept::Elsewhere(_) => Some(image.id.clone()).filter(|_| !image.is_of_containerd()),
        };
        Self { machine, served, kept, id }
    }
}

impl Held for Told<'_> {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn read(mut self: Box<Self>, wish: &Wish) -> Result<Found, Failed> {
        if self.served.image.is_artifact() {
            return Err(Unseen::new(short(&self.served.name), "is no container image, but an artifact").into());
        }
        let nowhere = Kept::Elsewhere(Unseen::new("docker", "it was read already"));
        let why = match std::mem::replace(&mut self.kept, nowhere) {
            Kept::Other(held) => match held.read(wish) {
                Err(Failed::Absent(unseen) | Failed::Unreadable(unseen)) => unseen,
                found => return found,
            },
            Kept::Store(store) => {
                let found = store.unpacked(self.machine, &self.served.image.id);
                match found.and_then(|unpacked| in_place(self.machine, &store, &self.served.image.id, unpacked, wish)) {
                    Ok(found) => return Ok(found),
                    Err(unseen) => unseen,
                }
            }
            Kept::Elsewhere(why) => why,
        };
        self.served.read(self.id.as_deref(), wish, &why)
    }
}

fn kept<'a>(machine: &'a Machine<'a>, api: &Api, image: &Inspected, wish: &Wish) -> Kept<'a> {
    if image.is_of_containerd() {
        let mut roots = vec![containerd::DEFAULT.to_owned()];
        roots.extend(api.json::<Info>("/info").ok().map(|info| format!("{}/containerd/daemon", info.docker_root_dir)));
        return match containerd::held(machine, roots, Some(NAMESPACE), Wanted::Target(&image.id), "docker", wish) {
            Ok(held) => Kept::Other(held),
            Err(Failed::Absent(unseen) | Failed::Unreadable(unseen)) => Kept::Elsewhere(unseen),
        };
    }
    if image.driver() == OF_PODMAN {
        return match podman::locate(machine, &image.id) {
            Ok(held) => Kept::Other(held),
            Err(Failed::Absent(unseen) | Failed::Unreadable(unseen)) => Kept::Elsewhere(unseen),
        };
    }
    let found = by_directories(image).or_else(|| {
        let root = api.json::<Info>("/info").ok()?.docker_root_dir;
        Some(Store { root, driver: image.driver().to_owned() })
    });
    let Some(store) = found.filter(|_| hex(&image.id).is_some()) else {
        return Kept::Elsewhere(Unseen::new("docker", "does not say where its files are"));
    };
    match store.unpacked(machine, &image.id) {
        // the daemon may have its files elsewhere than this process sees them: in a virtual machine, in another mount namespace
        Ok(unpacked) if store.is_stacked() && unpacked.directories != image.directories() => {
            Kept::Elsewhere(Unseen::new(&store.root, "its layers are not those that docker names"))
        }
        Ok(_) => Kept::Store(store),
        Err(unseen) => Kept::Elsewhere(unseen),
    }
}

/// The store that the daemon's directories are of.
fn by_directories(image: &Inspected) -> Option<Store> {
    let driver = image.driver().to_owned();
    let top = image.directories().pop()?;
    let (rest, _) = top.strip_suffix("/diff")?.rsplit_once('/')?;
    let root = rest.strip_suffix(&driver)?.strip_suffix('/')?.to_owned();
    Some(Store { root, driver })
}
