//! Layers that lie unpacked, as overlayfs keeps them: walked by names, and nothing of them opened but directories.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use caps::{CapSet, Capability};
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};

use super::teller::Teller;
use super::told::{Full, Place, Shared, Told};
use super::{MOST_LAYERS, Marks, attribute, merge};
use crate::collect::image::telling::Interest;
use crate::collect::image::view::{Content, View};
use crate::collect::tree::{Kind, Tree};
use crate::model::Unseen;
use crate::model::host::NodeKind;

/// Each level holds a descriptor.
const MOST_LEVELS: usize = 128;
/// The machine's own user namespace has one line.
const MOST_MAP: usize = 4096;
/// Of what is no part of a root file system, though it may be mounted there.
const PSEUDO: [&[u8]; 3] = [b"proc", b"sys", b"dev"];

const ENTER: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// Walks layers, bottom to top.
pub(super) fn layers(paths: &[PathBuf], marks: Marks) -> Result<View, Unseen> {
    if marks == Marks::Trusted {
        may_see_trusted()?;
    }
    if paths.len() > MOST_LAYERS {
        return Err(Unseen::new("the image's layers", format!("more than {MOST_LAYERS}")));
    }
    walked(paths, Some(marks))
}

/// Walks a root file system.
pub(super) fn rootfs(path: &Path) -> Result<View, Unseen> {
    walked(&[path.to_owned()], None)
}

fn walked(paths: &[PathBuf], marks: Option<Marks>) -> Result<View, Unseen> {
    let shared = Shared::new();
    let mut told = Vec::new();
    let mut trees = Vec::new();
    for path in paths {
        let unseen = |errno: Errno| Unseen::new(path.to_string_lossy(), errno.desc());
        let root = open(path, ENTER, Mode::empty()).map_err(unseen)?;
        let tree = Tree::of(
            root.try_clone().map_err(|e| Unseen::new(path.to_string_lossy(), e.to_string()))?,
            Kind::Image,
            path,
        );
        trees.push(Some(tree));
        told.push(Ok(layer(root, path, marks, &shared)?));
    }
    let (entries, unread) = merge::merge(told, &shared);
    Ok(View::new(entries, trees, unread))
}

/// Without `CAP_SYS_ADMIN` of the machine itself the kernel says of a directory that hides what is below it that it
/// hides nothing, and the view is wrong.
fn may_see_trusted() -> Result<(), Unseen> {
    let has = caps::has_cap(None, CapSet::Effective, Capability::CAP_SYS_ADMIN).unwrap_or(false);
    let own = Tree::open(Path::new("/proc/self"), Kind::Host).ok();
    let map = own.and_then(|own| own.read_text("uid_map", MOST_MAP).ok()?).unwrap_or_default();
    let whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    if has && whole {
        Ok(())
    } else {
        Err(Unseen::new("trusted.overlay.opaque", "only CAP_SYS_ADMIN lets see what unpacked layers hide"))
    }
}

struct Level {
    directory: Dir,
    path: Vec<u8>,
    /// Directories in it that were not entered yet.
    rest: Vec<CString>,
    /// What their names were paid with.
    paid: usize,
}

struct Walker<'a> {
    teller: Teller<'a>,
    shared: &'a Shared,
    label: &'a Path,
    marks: Option<Marks>,
    /// The file system of the root: none other is entered.
    device: u64,
}

/// Walks one layer.
fn layer(root: OwnedFd, label: &Path, marks: Option<Marks>, shared: &Shared) -> Result<Told, Unseen> {
    let device = fstat(&root).map_err(|e| Unseen::new(label.to_string_lossy(), e.desc()))?.st_dev;
    let mut walker = Walker { teller: Teller::of_tree(shared), shared, label, marks, device };
    let mut levels = Vec::new();
    let first = Dir::from_fd(root).map_err(|e| walker.unseen(b"", e.desc()))?;
    levels.push(walker.enter(first, Vec::new())?);
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.rest.pop() else {
            shared.budget.put(level.paid);
            levels.pop();
            continue;
        };
        let path = join(&level.path, name.to_bytes());
        let opened = openat(level.directory.as_fd(), name.as_c_str(), ENTER | OFlag::O_NOFOLLOW, Mode::empty());
        if let Some((directory, path)) = walker.opened(opened, path, levels.len())? {
            let level = walker.enter(directory, path)?;
            levels.push(level);
        }
    }
    Ok(walker.teller.done())
}

impl Walker<'_> {
    /// A directory that is to be entered; `None`: it is not.
    fn opened(
        &mut self,
        opened: nix::Result<OwnedFd>,
        path: Vec<u8>,
        levels: usize,
    ) -> Result<Option<(Dir, Vec<u8>)>, Unseen> {
        let found = opened.and_then(|fd| fstat(&fd).map(|found| (fd, found)));
        let (fd, found) = match found {
            Ok(found) => found,
            Err(errno) => {
                self.teller.note(&path, format!("cannot be entered ({})", errno.desc()));
                return Ok(None);
            }
        };
        if let Some(place) = self.place(&path)? {
            self.teller.directory(place, found.st_mode & 0o7777).map_err(|full| self.full(full))?;
        }
        if found.st_dev != self.device {
            if !PSEUDO.contains(&path.as_slice()) {
                self.teller.note(&path, "another file system is mounted there");
            }
            return Ok(None);
        }
        if levels >= MOST_LEVELS {
            self.teller.note(&path, format!("more than {MOST_LEVELS} directories deep"));
            return Ok(None);
        }
        if let Some(marks) = self.marks {
            self.hides(&fd, &path, marks)?;
        }
        let directory = Dir::from_fd(fd).map_err(|e| self.unseen(&path, e.desc()))?;
        Ok(Some((directory, path)))
    }

    /// What the store marks at a directory.
    fn hides(&mut self, fd: &OwnedFd, path: &[u8], marks: Marks) -> Result<(), Unseen> {
        let found = attribute::of_directory(fd.as_fd(), marks).map_err(|reason| self.unseen(path, &reason))?;
        if found {
            self.teller.hides(path).map_err(|full| self.full(full))?;
        }
        Ok(())
    }

    /// Takes in all that a directory has.
    fn enter(&mut self, mut directory: Dir, path: Vec<u8>) -> Result<Level, Unseen> {
        let mut rest = Vec::new();
        let mut paid = 0;
        let fd = directory.as_fd().try_clone_to_owned().map_err(|e| self.unseen(&path, &e.to_string()))?;
        for entry in directory.iter() {
            let entry = entry.map_err(|e| self.unseen(&path, e.desc()))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                Some(kind) => Some(kind),
                None => fstatat(&fd, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok().map(|found| kind_of(&found)),
            };
            if kind == Some(Type::Directory) {
                let cost = name.to_bytes().len() + 40;
                if !self.shared.budget.take(cost) {
                    return Err(self.full(Full::Memory));
                }
                paid += cost;
                rest.push(name.to_owned());
            } else if let Some(place) = self.place(&join(&path, name.to_bytes()))? {
                self.entry(&fd, name, kind, place)?;
            }
        }
        Ok(Level { directory, path, rest, paid })
    }

    /// Something that is no directory.
    fn entry(&mut self, fd: &OwnedFd, name: &CStr, kind: Option<Type>, place: Place) -> Result<(), Unseen> {
        let stat = || fstatat(fd, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        let taken = match kind {
            Some(Type::File) => {
                if !Teller::may_tell(&place) {
                    return self.teller.passed(&place).map_err(|full| self.full(full));
                }
                let Ok(found) = stat() else {
                    self.gone(&place);
                    return Ok(());
                };
                if file_type(&found) != SFlag::S_IFREG {
                    self.gone(&place);
                    return Ok(());
                }
                let (size, mode) = (found.st_size.unsigned_abs(), found.st_mode & 0o7777);
                let content = match Teller::wanted(&place, size, mode) {
                    Interest::Nothing => return self.teller.passed(&place).map_err(|full| self.full(full)),
                    Interest::Name => Content::Nothing,
                    Interest::Text(_) | Interest::Script(_) | Interest::Packages(_) | Interest::Binary => {
                        Content::InPlace
                    }
                };
                if let Some(marks) = self.marks {
                    let whole = attribute::of_file(fd.as_fd(), name, marks);
                    whole.map_err(|reason| self.unseen(&place.path, &reason))?;
                }
                self.teller.file(place, size, mode, content)
            }
            Some(Type::Symlink) => {
                let Ok(target) = readlinkat(fd, name) else {
                    self.gone(&place);
                    return Ok(());
                };
                self.teller.link(place, target.as_bytes())
            }
            Some(Type::CharacterDevice) => {
                let Ok(found) = stat() else {
                    self.gone(&place);
                    return Ok(());
                };
                if self.marks.is_some() && found.st_rdev == 0 {
                    self.teller.whiteout(&place)
                } else {
                    self.teller.node(place, NodeKind::CharDevice, found.st_mode & 0o7777)
                }
            }
            Some(Type::BlockDevice) => self.teller.node(place, NodeKind::BlockDevice, 0),
            Some(Type::Fifo) => self.teller.node(place, NodeKind::Fifo, 0),
            Some(Type::Socket) => self.teller.node(place, NodeKind::Socket, 0),
            Some(Type::Directory) | None => {
                self.gone(&place);
                Ok(())
            }
        };
        taken.map_err(|full| self.full(full))
    }

    fn place(&mut self, path: &[u8]) -> Result<Option<Place>, Unseen> {
        self.teller.place(path, self.marks.is_some()).map_err(|full| self.full(full))
    }

    /// It changed while it was looked at, or may not be looked at.
    fn gone(&mut self, place: &Place) {
        self.teller.note(&place.path, "could not be looked at");
    }

    fn full(&self, full: Full) -> Unseen {
        Unseen::new(self.label.to_string_lossy(), full.reason())
    }

    fn unseen(&self, path: &[u8], reason: &str) -> Unseen {
        let path = String::from_utf8_lossy(path);
        Unseen::new(self.label.join(path.as_ref()).to_string_lossy(), reason)
    }
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
    [directory, slash, name].concat()
}

fn file_type(found: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT
}

fn kind_of(found: &FileStat) -> Type {
    match file_type(found) {
        SFlag::S_IFDIR => Type::Directory,
        SFlag::S_IFLNK => Type::Symlink,
        SFlag::S_IFCHR => Type::CharacterDevice,
        SFlag::S_IFBLK => Type::BlockDevice,
        SFlag::S_IFIFO => Type::Fifo,
        SFlag::S_IFSOCK => Type::Socket,
        _ => Type::File,
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
