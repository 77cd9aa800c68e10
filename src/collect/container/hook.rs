//! A container whose runtime has called us as a hook, or is about to be called.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::assemble::{Call, Draft};
use super::classic_build;
use super::foreseeable;
use super::spec::{MOST_BYTES, Spec};
use super::state::State;
use crate::collect::tree::{Kind, Stat, Tree};
use crate::model::container::{Builder, Container, ContainerNode, EngineName, LegacyState, Moment, Stage};
use crate::model::host::NodeKind;
use crate::model::{Host, Observed, Unknown};

const MOST_CMDLINE: usize = 128 << 10;
const MOST_STATUS: usize = 64 << 10;
/// Where crun keeps its own copy of `config.json` unless `--root` says otherwise.
const CRUN_ROOT: &str = "/run/crun";

/// A container whose runtime has called us, by its state and its spec. Nothing inside was looked at yet.
#[derive(Debug)]
pub struct Called {
    state: State,
    moment: Moment,
    spec: Spec,
    bundle: Option<PathBuf>,
    root_path: Option<PathBuf>,
    /// The path of the hook as it is registered.
    own_program: Option<String>,
    /// What the spec alone says, and whether that leaves nothing to do.
    by_spec: Container,
    idle: bool,
}

impl Called {
    /// Reads the spec of a state. `own_program`: the path of the hook as it is registered; `files`: the
    /// machine's, from `/` as this process sees it. Nothing makes this fail: what could not be read is
    /// unknown.
    pub fn read(state: State, at: Stage, own_program: Option<String>, files: &Tree) -> Self {
        Self::at(state, Moment::Hook(at), own_program, files)
    }

    /// The same of a container whose runtime is about to be called: what its hook will find is foretold.
    pub fn handed_over(id: String, bundle: PathBuf, files: &Tree) -> Self {
        Self::at(State { id, bundle, ..State::default() }, Moment::HandedOver, None, files)
    }

    fn at(state: State, moment: Moment, own_program: Option<String>, files: &Tree) -> Self {
        let (bundle, spec) = spec(&state, files);
        // crun's `root` is as the spec has it: absolute, or relative to the bundle
        let written = spec.root_path().or(state.root.as_deref()).map(Path::new);
        let root_path = written.and_then(|root| match &bundle {
            Some(bundle) => Some(bundle.join(root)),
            None => root.is_absolute().then(|| root.to_owned()),
        });
        let by_spec = Container::default();
        let mut called = Self { state, moment, spec, bundle, root_path, own_program, by_spec, idle: false };
        let draft = called.draft(None);
        let idle = draft.is_idle();
        let mut by_spec = draft.container;
        // A step of docker's classic builder, which the spec does not show.
        let unsaid = by_spec.engine == EngineName::Docker && by_spec.builder.is_none();
        if unsaid && !idle && classic_build::is_step(&called.spec, &called.state.id, files) {
            by_spec.builder = Some(Builder::DockerClassic);
        }
        (called.by_spec, called.idle) = (by_spec, idle);
        called
    }

    /// By its spec it neither wants a GPU nor was given one.
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// What the spec alone says; nodes and libcuda are unknown here.
    pub fn by_spec(&self) -> &Container {
        &self.by_spec
    }

    /// The same, on a machine.
    pub fn on(&self, host: &Host) -> Container {
        Container { builder: self.by_spec.builder, ..self.draft(Some(host)).container }
    }

    /// Enters the container to look around in it. `read_host` is called where its nodes depend on the
    /// machine's.
    pub fn inside<'a>(&'a self, read_host: &'a dyn Fn() -> Host, files: &'a Tree) -> Inside<'a> {
        let (rootfs, is_working_directory) = self.rootfs(files);
        let host = OnceCell::new();
        let by_spec = &self.by_spec;
        let foretold = self.moment.is_foretold();
        if foretold || by_spec.legacy_hook.is_some() || by_spec.gpu_given.seen().is_none() || rootfs.is_none() {
            host.get_or_init(read_host);
        }
        let covered = foretold.then(|| foreseeable::hides_files(&self.spec, files)).flatten();
        Inside { draft: self.draft(host.get()), host, files, rootfs, is_working_directory, covered }
    }

    /// When it is looked at.
    pub fn moment(&self) -> Moment {
        self.moment
    }

    /// What its hook will find can be told from the spec: nothing of unknown effect runs before.
    pub fn is_foreseeable(&self) -> bool {
        foreseeable::is_foreseeable(&self.spec)
    }

    /// The container's first process, as the machine counts it; of no use at createContainer.
    pub fn pid(&self) -> Option<i32> {
        self.state.pid
    }

    /// Its bundle, if it was found.
    pub fn bundle(&self) -> Option<&Path> {
        self.bundle.as_deref()
    }

    /// Where its root file system lies, in its own mount namespace.
    pub fn root_path(&self) -> Option<&Path> {
        self.root_path.as_deref().filter(|path| path.is_absolute())
    }

    /// crun called: its state has a key that the others' have not.
    pub fn is_crun(&self) -> bool {
        self.state.root.is_some()
    }

    fn draft(&self, host: Option<&Host>) -> Draft<'_> {
        let bundle = self.bundle.as_deref().unwrap_or(&self.state.bundle).to_str().unwrap_or_default();
        let own_program = self.own_program.as_deref();
        let call = Call { id: &self.state.id, bundle, moment: self.moment, own_program };
        Draft::new(&self.spec, call, host)
    }

    /// The container's root file system, with its mounts; whether it is the working directory.
    ///
    /// At prestart and createRuntime it lies in the mount namespace of the container's first process,
    /// whose own root is still the host's: never the path by itself, which here shows what was there
    /// before the mounts. At createContainer we are in that namespace, and the state's pid is of no use;
    /// if the path cannot be entered (user namespaces), runc's working directory is it.
    fn rootfs(&self, files: &Tree) -> (Option<Tree>, bool) {
        if self.moment.is_foretold() {
            return (self.root_path().and_then(|path| Tree::open(path, Kind::Container).ok()), false);
        }
        if self.moment == Moment::Hook(Stage::CreateContainer) {
            return match self.root_path().and_then(|path| Tree::open(path, Kind::Container).ok()) {
                Some(by_path) => (Some(by_path), false),
                None => (working_directory(files), true),
            };
        }
        let by_process = || {
            let namespace = files.label().join(format!("proc/{}/root", self.state.pid?));
            // Links on the way are the namespace's, so they are followed within it.
            Tree::open(&namespace, Kind::Host).ok()?.below(self.root_path()?.to_str()?, Kind::Container).ok()?
        };
        (by_process(), false)
    }
}

/// The inside of a container whose runtime has called us.
pub struct Inside<'a> {
    draft: Draft<'a>,
    /// Unset where nothing depends on it.
    host: OnceCell<Host>,
    files: &'a Tree,
    rootfs: Option<Tree>,
    is_working_directory: bool,
    /// Why the files that the container will see cannot be foretold.
    covered: Option<Unknown>,
}

impl Inside<'_> {
    /// Its nodes as they are, and as a legacy hook that is still to run will leave them; and whether they
    /// tell that the legacy hook has run, where its place in the list did not.
    pub fn devices(&mut self) -> (Observed<Vec<ContainerNode>>, bool) {
        let state = |draft: &Draft<'_>| draft.container.legacy_hook.as_ref().map(|hook| hook.state);
        let before = state(&self.draft);
        let host = self.host.get_or_init(Host::default);
        match &self.rootfs {
            rootfs if self.draft.container.moment.is_foretold() => self.draft.foretell_nodes(host, rootfs.as_ref()),
            Some(rootfs) => self.draft.look_at_nodes(host, rootfs),
            // What a hook has made is not in the spec.
            None if before == Some(LegacyState::HasRun) => {
                let reason = "the container's root file system could not be entered";
                self.draft.container.devices = Observed::unknown("container.devices", "/proc", reason);
            }
            None => self.draft.foretell_nodes(host, None),
        }
        let has_run = before == Some(LegacyState::StillToRun) && state(&self.draft) == Some(LegacyState::HasRun);
        (self.draft.container.devices.clone(), has_run)
    }

    /// What the kernel told of one of its nodes, after a look at them.
    pub fn stat(&self, path: &str) -> Option<&Stat> {
        self.draft.found.iter().find_map(|(found, stat)| (found == path).then_some(stat))
    }

    /// Whether its program may raise its privileges; `None`: nobody can tell, or it is root's anyway.
    pub fn privileged_entrypoint(&mut self) -> Option<bool> {
        if let Some(rootfs) = &self.rootfs {
            self.draft.look_at_entrypoint(rootfs);
        }
        self.draft.container.privileged_entrypoint
    }

    /// Where the loader would find libcuda.
    pub fn libcuda(&mut self) -> Observed<Vec<String>> {
        if let Some(unknown) = &self.covered {
            return Observed::Unknown(unknown.clone());
        }
        let host = self.host.get_or_init(Host::default);
        let mounted = self.rootfs.is_some() && !self.draft.container.moment.is_foretold();
        self.draft.look_for_libcuda(host, self.files, self.rootfs.as_ref(), mounted);
        self.draft.container.libcuda.clone()
    }

    /// Its root file system, if it could be entered.
    pub fn rootfs(&self) -> Option<&Tree> {
        self.rootfs.as_ref()
    }

    /// The same, for what the container will see of the image: not where mounts may put other files in the place of
    /// these.
    pub fn of_image(&self) -> Result<Option<&Tree>, Unknown> {
        self.covered.as_ref().map_or_else(|| Ok(self.rootfs()), |unknown| Err(unknown.clone()))
    }

    /// What the spec says of it.
    pub fn container(&self) -> &Container {
        &self.draft.container
    }

    /// The root file system is the working directory, and its path cannot be entered.
    pub fn is_working_directory(&self) -> bool {
        self.is_working_directory
    }
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

/// The working directory, if it can be a container's root: not the machine's own (youki), not a bundle
/// (crun).
fn working_directory(files: &Tree) -> Option<Tree> {
    let here = Tree::open(Path::new("."), Kind::Container).ok()?;
    let is_machine = here.stat("/").ok()??.identity == files.stat("/").ok()??.identity;
    let has_dev = here.stat("/dev").ok()?.is_some_and(|dev| dev.kind == NodeKind::Directory);
    (!is_machine && has_dev).then_some(here)
}
