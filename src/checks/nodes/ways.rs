//! How bad it is that a module or a node is missing: who could still make it, and which ways remain.

use crate::checks::stack::ways::{gives_gpus, is_searched};
use crate::model::host::{EngineKind, Inside};
use crate::model::{Facts, Host, Place, Severity, Unknown};

use super::expect::{has_gpu_node, may_set_up_the_machine};

/// How bad it is that a module is not loaded, or that a node which it serves is missing.
///
/// A warning where somebody on the way still makes it: NVIDIA's legacy hook, which loads modules and
/// makes nodes, or a container that sets up the machine itself.
pub(crate) fn missing(facts: &Facts<'_>, module: &str) -> Result<Severity, Unknown> {
    let (host, container) = (facts.host, facts.container);
    let somebody_may = match facts.place {
        // What it could use once it has not still to make.
        Place::Healthcheck if container.had(|_| true) => return Ok(Severity::Error),
        Place::Hook | Place::Healthcheck if may_set_up_the_machine(container) => return Ok(Severity::Warning),
        // Whatever makes nodes for a container has done so before its programs run.
        Place::Healthcheck => false,
        Place::Hook => container.legacy_still_to_run() && !container.rootless && hook_loads_modules(host),
        _ => legacy_way(host) && hook_loads_modules(host),
    };
    Ok(if somebody_may && at_hand(host, module)? { Severity::Warning } else { Severity::Error })
}

/// How bad it is that a node is missing which GPUs need: no more than a warning where no GPU is given.
pub(crate) fn of_a_gpu(facts: &Facts<'_>, module: &str) -> Result<Severity, Unknown> {
    if has_gpu_node(facts)? { missing(facts, module) } else { Ok(Severity::Warning) }
}

/// The legacy hook loads modules and makes nodes: the default of `load-kmods`, but not in a user
/// namespace. Source: libnvidia-container src/nvc.c at 06deb20d.
fn hook_loads_modules(host: &Host) -> bool {
    let config = host.toolkit.config.seen().and_then(Option::as_ref);
    config.and_then(|c| c.load_kmods) != Some(false) && host.inside != Some(Inside::UnprivilegedLxc)
}

/// The module is loaded, so that only its node is to be made (a containerised driver keeps its file elsewhere,
/// an update of the kernel may have removed it), or lies on disk for the running kernel. Where nobody could
/// look, it may lie there; a machine that is only laid out has what it shows.
fn at_hand(host: &Host, module: &str) -> Result<bool, Unknown> {
    let loaded = host.driver.modules.seen().is_some_and(|loaded| loaded.contains_key(module));
    Ok(loaded || on_disk(host, module)?.unwrap_or(!host.laid_out))
}

/// The module lies on disk for the running kernel; `None`: nobody could look.
pub(crate) fn on_disk(host: &Host, module: &str) -> Result<Option<bool>, Unknown> {
    let files = host.driver.module_files.looked_at()?;
    Ok(files.map(|files| files.running.iter().any(|m| m.replace('-', "_") == module)))
}

/// `docker --gpus` with the legacy hook: dockerd takes it for registered where it finds the program.
pub(crate) fn legacy_way(host: &Host) -> bool {
    let program = |name| host.toolkit.programs.seen().is_some_and(|p| p.contains_key(name));
    host.engines.iter().any(|e| e.kind == EngineKind::Docker)
        && program("nvidia-container-cli")
        && (program("nvidia-container-runtime-hook") || program("nvidia-container-toolkit"))
}

/// An engine that can take GPUs by CDI: from a specification, or from NVIDIA's runtime, which makes one
/// at every start (jit-cdi, the default since toolkit 1.18.0).
pub(crate) fn cdi_way(host: &Host) -> bool {
    let specs = host.cdi.seen().map(Vec::as_slice).unwrap_or_default();
    let reads = |engine| specs.iter().any(|spec| gives_gpus(spec) && is_searched(engine, spec));
    let mode = host.toolkit.config.seen().and_then(Option::as_ref).and_then(|c| c.mode.as_deref());
    let jit = host.toolkit_release().is_some_and(|r| (r.number(0), r.number(1)) >= (1, 18)) || mode == Some("jit-cdi");
    let runtime_makes = jit && !matches!(mode, Some("legacy" | "csv"));
    host.engines.iter().any(|engine| {
        let nvidia = engine.runtimes.values().any(|p| p.rsplit('/').next() == Some("nvidia-container-runtime"));
        (engine.cdi != Some(false) && reads(engine)) || (runtime_makes && nvidia)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, cdi_spec, unseen};
    use crate::model::Observed;
    use crate::model::container::LegacyState;
    use crate::model::host::{CdiSpec, ModuleFiles, ToolkitConfig};

    fn of(world: &World, module: &str) -> Severity {
        let facts = world.facts();
        missing(&facts, module).unwrap()
    }

    fn with_files(mut world: World, files: &[&str]) -> World {
        let running = files.iter().map(|f| (*f).to_owned()).collect();
        world.host.driver.module_files = Observed::Known(ModuleFiles { running, ..ModuleFiles::default() });
        world.host.driver.modules = Observed::Known([].into());
        world
    }

    #[test]
    fn the_legacy_hook_makes_what_lies_on_disk() {
        let world = with_files(World::legacy(1, LegacyState::StillToRun), &["nvidia", "nvidia-uvm"]);
        assert_eq!(of(&world, "nvidia_uvm"), Severity::Warning);
        assert_eq!(of(&world, "nvidia_modeset"), Severity::Error);
        assert_eq!(of(&with_files(World::cdi(1), &["nvidia"]), "nvidia"), Severity::Error);
        let ran = with_files(World::legacy(1, LegacyState::HasRun), &["nvidia"]);
        assert_eq!(of(&ran, "nvidia"), Severity::Error);

        let mut loaded = with_files(World::legacy(1, LegacyState::StillToRun), &[]);
        assert_eq!(of(&loaded, "nvidia_uvm"), Severity::Error);
        loaded.host.driver.modules = crate::model::testing::host(1).driver.modules;
        assert_eq!(of(&loaded, "nvidia_uvm"), Severity::Warning, "nvidia-modprobe makes its node");
        loaded.host.driver.module_files = unseen();
        loaded.host.driver.modules = Observed::default();
        assert_eq!(of(&loaded, "nvidia_uvm"), Severity::Warning, "it may be there");
        loaded.host.laid_out = true;
        assert_eq!(of(&loaded, "nvidia_uvm"), Severity::Error);

        let mut told = world.clone();
        told.host.toolkit.config =
            Observed::Known(Some(ToolkitConfig { load_kmods: Some(false), ..Default::default() }));
        assert_eq!(of(&told, "nvidia_uvm"), Severity::Error);
        let mut rootless = world;
        rootless.container.rootless = true;
        assert_eq!(of(&rootless, "nvidia_uvm"), Severity::Error);
    }

    #[test]
    fn on_the_machine_an_engine_must_be_there_to_call_the_hook() {
        let mut world = with_files(World::machine(1), &["nvidia"]);
        assert_eq!(of(&world, "nvidia"), Severity::Warning);
        world.host.engines.clear();
        assert_eq!(of(&world, "nvidia"), Severity::Error);
    }

    #[test]
    fn a_cdi_way_needs_a_specification_or_a_runtime_that_makes_one() {
        let mut host = crate::model::testing::host(1);
        assert!(!cdi_way(&host), "toolkit 1.17 with docker and no specification");
        host.toolkit.version = Observed::Known(Some("1.18.0".parse().unwrap()));
        assert!(cdi_way(&host));
        host.toolkit.config =
            Observed::Known(Some(ToolkitConfig { mode: Some("legacy".into()), ..Default::default() }));
        assert!(!cdi_way(&host));
        host.cdi = Observed::Known(vec![CdiSpec { kind: "nvidia.com/gpu".into(), ..CdiSpec::default() }]);
        assert!(!cdi_way(&host), "a name is no GPU");
        host.cdi = Observed::Known(vec![CdiSpec { kind: "example.com/accelerator".into(), ..cdi_spec() }]);
        assert!(cdi_way(&host));
        host.engines.clear();
        assert!(!cdi_way(&host));
    }
}
