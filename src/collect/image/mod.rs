//! Facts of an image. Here: what its root file system tells at a glance.

use std::ffi::OsString;

use super::files::Files;
use crate::model::image::{Answer, Libc, LibcKind};
#[cfg(feature = "cli")]
use crate::model::observed::ONLY_CONFIGURATION;
use crate::model::{Image, Observed, Unseen};

#[cfg(feature = "cli")]
pub mod binary;
mod compat;
#[cfg(feature = "cli")]
mod condense;
#[cfg(feature = "cli")]
mod configuration;
#[cfg(feature = "cli")]
mod contents;
mod driver;
#[cfg(all(feature = "cli", any(feature = "fuzzing", test)))]
pub mod fuzzing;
#[cfg(feature = "cli")]
mod json;
#[cfg(feature = "cli")]
mod layer;
mod missing;
mod places;
mod python;
mod reach;
mod runtime;
#[cfg(feature = "cli")]
mod site;
#[cfg(feature = "cli")]
pub mod source;
mod survey;
#[cfg(feature = "cli")]
mod telling;
#[cfg(feature = "cli")]
pub mod view;
mod walk;

#[cfg(feature = "cli")]
pub use contents::packages_of_machine;
pub use places::Hints;
#[cfg(feature = "cli")]
pub use site::packages_of_python;
pub use survey::{Survey, survey};

/// Dynamic loaders where the psABIs put them, glibc's and musl's. 64-bit first: an image for amd64 may
/// bring the 32-bit loader as well.
const LOADERS: [&str; 14] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib64/ld-linux-aarch64.so.1",
    "/lib64/ld64.so.2",
    "/lib/ld64.so.1",
    "/lib/ld-linux-riscv64-lp64d.so.1",
    "/lib64/ld-linux-loongarch-lp64d.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
    "/lib/ld-musl-powerpc64le.so.1",
    "/lib/ld-musl-riscv64.so.1",
    "/lib/ld-linux.so.2",
    "/lib/ld-linux-armhf.so.3",
    "/lib/ld-musl-armhf.so.1",
];
/// A directory of libraries of a distribution has some hundred.
const MOST_NAMES: usize = 2048;
/// As far as the processor's field, `e_machine`.
const HEADER_BYTES: usize = 20;

/// Looks at a root file system.
pub fn look(rootfs: &dyn Files, hints: &Hints<'_>) -> Image {
    let (architecture, libc) = loaders(rootfs);
    Image { architecture, libc, ..survey(rootfs, hints).into_image() }
}

/// Looks at an image that a source has found.
#[cfg(feature = "cli")]
pub fn examine(found: &source::Found) -> Image {
    let configuration = &found.configuration;
    let args = configuration.args();
    let hints = Hints {
        environment: Some(&configuration.environment),
        args: &args,
        working_directory: Some(&configuration.working_directory),
        ..Hints::default()
    };
    let mut image = match &found.files {
        Some(view) => contents::look(view, &hints),
        None => unseen("the image's files", ONLY_CONFIGURATION),
    };
    image.configuration = Some(configuration.clone());
    if !configuration.architecture.is_empty() {
        image.architecture = Observed::Known(Some(configuration.architecture.clone()));
    }
    image
}

/// The facts of an image that nobody could look at.
pub fn unseen(source: &str, reason: &str) -> Image {
    Image {
        configuration: None,
        architecture: Observed::unknown("image.architecture", source, reason),
        cuda: Observed::unknown("image.cuda", source, reason),
        frameworks: Observed::unknown("image.frameworks", source, reason),
        runtimes: Observed::unknown("image.cuda_versions", source, reason),
        compat: Observed::unknown("image.compat", source, reason),
        libc: Observed::unknown("image.libc", source, reason),
        driver_files: Observed::unknown("image.driver_files", source, reason),
        packages: Observed::unknown("image.packages", source, reason),
        device_code: Observed::unknown("image.gpu_archs", source, reason),
        missing: Observed::unknown("image.missing", source, reason),
        answer: Answer::default(),
    }
}

/// By its dynamic loaders: the processor that they are for, and whose C library they are of. `None`: it has none at a
/// known place.
pub fn loaders(rootfs: &dyn Files) -> (Observed<Option<String>>, Observed<Option<Libc>>) {
    let mut found: Vec<(&str, &str)> = Vec::new();
    let mut unseen = rootfs.unread().cloned();
    // One look into each directory, where it is not too large, instead of one for each name.
    let listed = ["/lib64", "/lib"].map(|directory| (directory, rootfs.list(directory, MOST_NAMES)));
    let is_absent = |path: &str| {
        listed.iter().any(|(directory, names)| {
            let name = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
            let has = |names: &Vec<OsString>| names.iter().any(|have| name.is_some_and(|name| have == name));
            name.is_some() && matches!(names, Ok(names) if !names.as_ref().is_some_and(has))
        })
    };
    for path in LOADERS.into_iter().filter(|path| !is_absent(path)) {
        match header(rootfs, path) {
            Ok(header) => found.extend(header.and_then(|header| processor(&header)).map(|name| (path, name))),
            Err(e) => unseen = unseen.or(Some(e)),
        }
    }
    let architecture = only(&found, unseen.as_ref()).map_err(|unseen| unseen.leaves_open("image.architecture"));
    (architecture.into(), libc(&listed, unseen))
}

/// The one processor that loaders are for; an unreadable one does not hide another.
fn only(found: &[(&str, &str)], unseen: Option<&Unseen>) -> Result<Option<String>, Unseen> {
    let found: Vec<&str> = found.iter().map(|(_, name)| *name).collect();
    let wide: Vec<&str> = found.iter().copied().filter(|name| !matches!(*name, "386" | "arm")).collect();
    let all = if wide.is_empty() { found } else { wide };
    match (all.split_first(), unseen) {
        (Some((first, others)), _) if others.iter().all(|other| other == first) => Ok(Some((*first).to_owned())),
        (Some(_), _) => Err(Unseen::new("the dynamic loaders", "they are for several processors")),
        (None, Some(unseen)) => Err(unseen.clone()),
        (None, None) => Ok(None),
    }
}

/// By the loaders' names. Where glibc's is there, programs for it run, whatever else is.
fn libc(listed: &[(&str, Listed)], unseen: Option<Unseen>) -> Observed<Option<Libc>> {
    let unread = listed.iter().find_map(|(_, names)| names.as_ref().err().cloned()).or(unseen);
    let of = |is_it: fn(&str) -> bool, kind| {
        listed.iter().find_map(|(directory, names)| {
            let names = names.as_ref().ok()?.as_ref()?;
            let name = names.iter().filter_map(|name| name.to_str()).find(|name| is_it(name))?;
            Some(Libc { kind, version: None, source: format!("{directory}/{name}") })
        })
    };
    let is_glibc = |name: &str| name.starts_with("ld-linux") || name.starts_with("ld64.so.");
    match (of(is_glibc, LibcKind::Glibc), unread) {
        (Some(glibc), _) => Observed::Known(Some(glibc)),
        (None, Some(unseen)) => Observed::Unknown(unseen.leaves_open("image.libc")),
        (None, None) => Observed::Known(of(|name| name.starts_with("ld-musl-"), LibcKind::Musl)),
    }
}

type Listed = Result<Option<Vec<OsString>>, Unseen>;

fn header(rootfs: &dyn Files, path: &str) -> Result<Option<[u8; HEADER_BYTES]>, Unseen> {
    Ok(rootfs.beginning(path, HEADER_BYTES)?.and_then(|bytes| bytes.try_into().ok()))
}

/// The processor of an ELF header in the words of the image specification (Go's `GOARCH`).
fn processor(header: &[u8; HEADER_BYTES]) -> Option<&'static str> {
    let [0x7f, b'E', b'L', b'F', class, data, .., low, high] = *header else { return None };
    let little = data == 1;
    let machine = if little { u16::from_le_bytes([low, high]) } else { u16::from_be_bytes([low, high]) };
    // e_machine of the System V ABI
    match (class, machine, little) {
        (2, 62, true) => Some("amd64"),
        (2, 183, true) => Some("arm64"),
        (2, 21, true) => Some("ppc64le"),
        (2, 21, false) => Some("ppc64"),
        (2, 22, false) => Some("s390x"),
        (2, 243, true) => Some("riscv64"),
        (2, 258, true) => Some("loong64"),
        (1, 3, true) => Some("386"),
        (1, 40, true) => Some("arm"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::collect::tree::{Kind, Tree};

    fn elf(class: u8, machine: u16) -> Vec<u8> {
        let mut header = vec![0x7f, b'E', b'L', b'F', class, 1, 1];
        header.resize(16, 0);
        header.extend([3, 0]);
        header.extend(machine.to_le_bytes());
        header.extend([0; 40]);
        header
    }

    fn write(root: &Path, path: &str, bytes: &[u8]) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn of(root: &Path) -> Observed<Option<String>> {
        look(&Tree::open(root, Kind::Image).unwrap(), &Hints::default()).architecture
    }

    #[test]
    fn the_loader_tells_the_processor() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(of(dir.path()), Observed::Known(None));
        write(dir.path(), "usr/lib64/ld-linux-x86-64.so.2", &elf(2, 62));
        symlink("usr/lib64", dir.path().join("lib64")).unwrap();
        assert_eq!(of(dir.path()), Observed::Known(Some("amd64".into())));
        write(dir.path(), "lib/ld-linux.so.2", &elf(1, 3));
        assert_eq!(of(dir.path()), Observed::Known(Some("amd64".into())));
        write(dir.path(), "lib/ld-linux-aarch64.so.1", &elf(2, 183));
        assert!(of(dir.path()).known().is_err(), "two processors");
    }

    #[test]
    fn the_loaders_name_tells_the_c_library() {
        let dir = tempfile::tempdir().unwrap();
        let libc = || look(&Tree::open(dir.path(), Kind::Image).unwrap(), &Hints::default()).libc;
        assert_eq!(libc(), Observed::Known(None));
        write(dir.path(), "lib/ld-musl-x86_64.so.1", &elf(2, 62));
        let found = libc().seen().cloned().flatten().unwrap();
        assert_eq!((found.kind, found.source.as_str()), (LibcKind::Musl, "/lib/ld-musl-x86_64.so.1"));
        // gcompat, or a glibc of its own
        write(dir.path(), "lib64/ld-linux-x86-64.so.2", &elf(2, 62));
        assert_eq!(libc().seen().cloned().flatten().unwrap().kind, LibcKind::Glibc);
    }

    #[test]
    fn what_is_no_loader_is_none() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "lib/ld-musl-x86_64.so.1", b"short");
        assert_eq!(of(dir.path()), Observed::Known(None));
        write(dir.path(), "lib/ld-linux-aarch64.so.1", b"not an ELF file of any length whatever");
        assert_eq!(of(dir.path()), Observed::Known(None));
        write(dir.path(), "lib/ld-musl-aarch64.so.1", &elf(2, 183));
        assert_eq!(of(dir.path()), Observed::Known(Some("arm64".into())));
        fs::create_dir_all(dir.path().join("lib64/ld64.so.2")).unwrap();
        assert_eq!(of(dir.path()), Observed::Known(Some("arm64".into())));
    }
}
