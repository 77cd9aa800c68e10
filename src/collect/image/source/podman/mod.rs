//! podman, buildah and CRI-O: what they keep in containers-storage is read from its files, without any of them.

use std::path::Path;

use super::held::{Held, Looked};
use super::machine::Machine;
use super::served::Served;
use super::{Depth, Failed, Found, Wish, manifest};
use crate::collect::engine_api::Api;
use crate::collect::image::{configuration, layer};
use crate::model::Unseen;
use names::Search;
use store::{Image, Store};

mod names;
mod settings;
mod store;
#[cfg(test)]
mod tests;

/// Where root's podman listens, if it does.
const SOCKET: &str = "/run/podman/podman.sock";

/// Looks for an image.
pub(super) fn locate<'a>(machine: &'a Machine<'a>, name: &str) -> Looked<'a> {
    let store = Store::read(machine, &settings::roots(machine));
    let chosen = names::choose(&store.images, name, &Search::of(machine));
    let chosen = chosen.map_err(|why| Failed::Unreadable(Unseen::new(manifest::short(name), why)))?.cloned();
    match chosen {
        Some(image) => {
            let id = format!("sha256:{}", image.id);
            Ok(Box::new(Kept { machine, id, image, store, name: name.to_owned() }))
        }
        None => match store.unread.into_iter().next() {
            Some(unseen) => match served(machine, name) {
                Some(served) => Ok(Box::new(Handed { id: whole_id(&served), served, why: unseen })),
                None => {
                    Err(Failed::Unreadable(Unseen::new(format!("podman's store {}", unseen.source), unseen.reason)))
                }
            },
            None => Err(Failed::Absent(Unseen::new("podman", "has no such image"))),
        },
    }
}

/// The image of a podman that listens on a socket.
fn served(machine: &Machine<'_>, name: &str) -> Option<Served> {
    let own = machine.variable("XDG_RUNTIME_DIR").map(|directory| format!("{directory}/podman/podman.sock"));
    let told = machine.variable("CONTAINER_HOST").and_then(|host| host.strip_prefix("unix://")).map(str::to_owned);
    let sockets = told.into_iter().chain(own).chain([SOCKET.to_owned()]);
    let mut sockets = sockets.filter(|_| !machine.is_laid_out());
    sockets.find_map(|socket| Served::ask(Api::socket(Path::new(&socket)), "podman", name).ok())
}

fn whole_id(served: &Served) -> String {
    let id = &served.image.id;
    if id.starts_with("sha256:") { id.clone() } else { format!("sha256:{id}") }
}

/// An image of a podman whose files cannot be read.
struct Handed {
    served: Served,
    id: String,
    why: Unseen,
}

impl Held for Handed {
    fn id(&self) -> Option<&str> {
        Some(&self.id)
    }

    fn read(self: Box<Self>, wish: &Wish) -> Result<Found, Failed> {
        self.served.read(Some(&self.id), wish, &self.why)
    }
}

/// An image in containers-storage.
struct Kept<'a> {
    machine: &'a Machine<'a>,
    id: String,
    image: Image,
    store: Store,
    name: String,
}

impl Held for Kept<'_> {
    fn id(&self) -> Option<&str> {
        Some(&self.id)
    }

    fn read(self: Box<Self>, wish: &Wish) -> Result<Found, Failed> {
        let unseen = match self.in_place(wish) {
            Ok(found) => return Ok(found),
            Err(unseen) => unseen,
        };
        let same = served(self.machine, &self.name).filter(|served| whole_id(served) == self.id);
        same.map_or_else(|| Err(unseen.clone().into()), |served| served.read(Some(&self.id), wish, &unseen))
    }
}

impl Kept<'_> {
    fn in_place(&self, wish: &Wish) -> Result<Found, Unseen> {
        let configuration = configuration::parse(&self.store.configuration(self.machine, &self.image)?)?;
        let mut remarks = Vec::new();
        let files = match wish.depth {
            Depth::Config => None,
            Depth::Files => {
                let unpacked = self.store.unpacked(self.machine, &self.image)?;
                if configuration.diff_ids.is_empty() && !unpacked.diff_ids.is_empty() {
                    remarks
                        .push("its configuration does not say which layers it has: podman's list is taken".to_owned());
                } else if configuration.diff_ids != unpacked.diff_ids {
                    let reason = "the layers that podman has for it are not those that its configuration names";
                    return Err(Unseen::new(self.store.root(&self.image), reason));
                }
                let real = unpacked.directories.iter().map(|directory| self.machine.real(directory));
                let marks = self.machine.marks(&unpacked.owned);
                Some(layer::in_place(&real.collect::<Result<Vec<_>, _>>()?, marks)?)
            }
        };
        let how = if files.is_some() { ", in place" } else { "" };
        let source = format!("podman ({}){how}", self.store.root(&self.image));
        Ok(Found { source, configuration, id: Some(self.id.clone()), files, remarks })
    }
}
