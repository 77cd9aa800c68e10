//! A container whose runtime has called us as a hook.

use std::path::{Path, PathBuf};

use super::assemble::{Call, Draft};
use super::bundle::Reading;
use super::spec::{MOST_BYTES, Spec};
use super::state::State;
use crate::collect::tree::{Kind, Tree};
use crate::model::container::{LegacyState, Moment, Stage};
use crate::model::host::NodeKind;
use crate::model::{Host, Observed};

const MOST_CMDLINE: usize = 128 << 10;
const MOST_STATUS: usize = 64 << 10;
/// Where crun keeps its own copy of `config.json` unless `--root` says otherwise.
const CRUN_ROOT: &str = "/run/crun";

/// Reads the container of a state. `files`: the machine's, from `/` as this process sees it; `own_program`:
/// the path of the hook as it is registered. Nothing makes this fail: what could not be read is unknown.
pub fn read_hook(state: &State, at: Stage, own_program: Option<&str>, host: &Host, files: &Tree) -> Reading {
    let (bundle, spec) = spec(state, files);
    // crun's `root` is as the spec has it: absolute, or relative to the bundle
    let written = spec.root_path().or(state.root.as_deref()).map(Path::new);
    let root_path = written.and_then(|root| match &bundle {
        Some(bundle) => Some(bundle.join(root)),
        None => root.is_absolute().then(|| root.to_owned()),
    });
    let rootfs = rootfs(state, at, root_path.as_deref(), files);
    let label = bundle.as_deref().unwrap_or(&state.bundle).to_string_lossy().into_owned();
    let call = Call { id: &state.id, bundle: &label, moment: Moment::Hook(at), own_program };
    let mut draft = Draft::new(&spec, call, Some(host));
    match &rootfs {
        Some(rootfs) => {
            draft.look_at_nodes(host, rootfs);
            draft.look_at_entrypoint(rootfs);
        }
        // what a hook has made is not in the spec
        None if draft.container.legacy_hook.as_ref().is_some_and(|hook| hook.state == LegacyState::HasRun) => {
            let reason = "the container's root file system could not be entered";
            draft.container.devices = Observed::unknown("container.devices", "/proc", reason);
        }
        None => draft.foretell_nodes(host, None),
    }
    if draft.is_idle() {
        let reason = "nobody looked: no GPU is wanted or given";
        draft.container.libcuda = Observed::unknown("container.libcuda", "the container", reason);
    } else {
        draft.look_for_libcuda(host, files, rootfs.as_ref(), rootfs.is_some());
    }
    Reading { container: draft.container, rootfs, root_path, bundle }
}

/// The bundle and its spec; annotations from the state where the spec has none to show.
fn spec(state: &State, files: &Tree) -> (Option<PathBuf>, Spec) {
    let candidates = bundles(state, files);
    let mut reason = None;
    for (directory, is_bundle) in candidates {
        let path = directory.join("config.json");
        let name = path.to_string_lossy();
        match files.read(&name, MOST_BYTES) {
            Ok(Some(bytes)) => {
                let mut spec = Spec::parse(bytes, &name);
                complete(&mut spec, state);
                return (is_bundle.then_some(directory), spec);
            }
            Ok(None) => {}
            Err(unseen) => reason = Some(unseen.reason),
        }
    }
    let bundle = state.bundle_is_known().then(|| state.bundle.clone());
    let source =
        bundle.as_ref().map_or_else(|| "config.json".to_owned(), |b| b.join("config.json").display().to_string());
    let mut spec = Spec::unread(&source, reason.as_deref().unwrap_or("the runtime names no bundle that has this file"));
    complete(&mut spec, state);
    (bundle, spec)
}

fn complete(spec: &mut Spec, state: &State) {
    match &mut spec.annotations {
        Observed::Known(annotations) => {
            for (name, value) in &state.annotations {
                annotations.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        Observed::Unknown(_) if !state.annotations.is_empty() => {
            spec.annotations = Observed::Known(state.annotations.clone());
        }
        Observed::Unknown(_) => {}
    }
}

/// Where the spec may be, and whether that is the bundle. crun's state says `/` for some containers with a user namespace (until
/// 1.27); its own arguments know better, and it keeps a copy of the file below its root directory.
fn bundles(state: &State, files: &Tree) -> Vec<(PathBuf, bool)> {
    if state.bundle_is_known() {
        return vec![(state.bundle.clone(), true)];
    }
    let arguments = parent_arguments(files).unwrap_or_default();
    let option = |names: &[&str]| option(&arguments, names).map(Path::new);
    let mut found: Vec<(PathBuf, bool)> = Vec::new();
    found.extend(option(&["--bundle", "-b"]).map(|bundle| (bundle.to_owned(), true)));
    if is_one_name(&state.id) {
        found.push((option(&["--root"]).unwrap_or(Path::new(CRUN_ROOT)).join(&state.id), false));
    }
    found.retain(|(path, _)| path.is_absolute());
    found
}

/// The command line of the runtime, our parent as the host counts.
fn parent_arguments(files: &Tree) -> Option<Vec<String>> {
    let status = files.read_text("/proc/self/status", MOST_STATUS).ok()??;
    let parent: u32 = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    let line = files.read_text(&format!("/proc/{parent}/cmdline"), MOST_CMDLINE).ok()??;
    Some(line.split('\0').map(str::to_owned).collect())
}

fn option<'a>(arguments: &'a [String], names: &[&str]) -> Option<&'a str> {
    arguments.iter().enumerate().find_map(|(place, argument)| {
        names.iter().find_map(|name| match argument.strip_prefix(name)? {
            "" => arguments.get(place + 1).map(String::as_str),
            rest => rest.strip_prefix('='),
        })
    })
}

fn is_one_name(id: &str) -> bool {
    !id.is_empty() && !id.contains('/') && id != "." && id != ".."
}

/// The container's root file system, with its mounts.
///
/// At prestart and createRuntime it lies in the mount namespace of the container's first process, whose
/// own root is still the host's: never the path by itself, which here shows what was there before the
/// mounts. At createContainer we are in that namespace, and the state's pid is of no use; if the path
/// cannot be entered (user namespaces), runc's working directory is it.
fn rootfs(state: &State, at: Stage, path: Option<&Path>, files: &Tree) -> Option<Tree> {
    if at == Stage::CreateContainer {
        let by_path = path.filter(|p| p.is_absolute()).and_then(|path| Tree::open(path, Kind::Container).ok());
        return by_path.or_else(|| working_directory(files));
    }
    let namespace = files.label().join(format!("proc/{}/root", state.pid?));
    let path = path?.to_str()?;
    // links on the way are the namespace's, so they are followed within it
    Tree::open(&namespace, Kind::Host).ok()?.below(path, Kind::Container).ok()?
}

/// The working directory, if it can be a container's root: not the machine's own (youki), not a bundle
/// (crun).
fn working_directory(files: &Tree) -> Option<Tree> {
    let here = Tree::open(Path::new("."), Kind::Container).ok()?;
    let is_machine = here.stat("/").ok()??.identity == files.stat("/").ok()??.identity;
    let has_dev = here.stat("/dev").ok()?.is_some_and(|dev| dev.kind == NodeKind::Directory);
    (!is_machine && has_dev).then_some(here)
}
