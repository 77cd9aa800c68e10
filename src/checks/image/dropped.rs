//! A driver that has dropped the GPU.

use super::gpus;
use super::meant;
use crate::model::Facts;
use crate::model::Unknown;
use crate::model::check::{Action, Failure, Severity, Step};

pub(super) const BY_DRIVER: &str =
    "driver {driver} has dropped {gpu} (compute capability {capability}): {branch} is the last that runs it";

pub(super) const OLDER_DRIVER: Step =
    Step { action: Action::UpdateDriver, text: "On a host with this GPU use a driver of {branch}.", command: None };

/// Of a machine that is stated nobody saw that its driver runs its GPUs, as a driver does that is loaded and names
/// them.
pub(super) fn by_driver(facts: &Facts<'_>, certain: bool) -> Result<Option<Failure>, Unknown> {
    let Some(Some(driver)) = facts.host.driver.version.seen() else { return Ok(None) };
    if !facts.host.is_stated() || !meant::is_for_gpu(facts)? {
        return Ok(None);
    }
    let gpus = gpus::of(facts)?;
    let dropped = gpus.iter().find_map(|gpu| {
        let capability = gpu.capability(facts)?;
        let generation = facts.knowledge.generation_of(capability)?.value;
        let last = generation.last_branch?;
        (facts.knowledge.driver_supports(capability, driver) == Some(false)).then_some((gpu, capability, last))
    });
    let Some((gpu, capability, last)) = dropped else { return Ok(None) };
    let severity = if certain && gpus.len() == 1 { Severity::Error } else { Severity::Warning };
    let failure = Failure::new(severity, BY_DRIVER)
        .arg("driver", driver)
        .foreign("gpu", gpu.label())
        .arg("capability", capability)
        .arg("branch", format!("branch {last}"))
        .saw("host.driver.version", driver, facts.host.source_of_driver())
        .saw("host.gpus.compute_capability", capability, "the tables of GPUs")
        .only(&[Action::UpdateDriver]);
    Ok(Some(failure))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::World;
    use crate::model::container::{Given, LegacyState};
    use crate::model::host::Gpu;
    use crate::model::observed::NOT_STATED;
    use crate::model::{ComputeCapability, Host, Observed, Place, Severity};

    const ID: &str = "gpu-generation-dropped";

    fn stated(driver: &str, major: u8, minor: u8) -> World {
        let mut world = World { place: Place::Image, ..World::legacy(1, LegacyState::StillToRun) };
        world.host = Host::unseen("the command line", NOT_STATED);
        world.host.driver.version = Observed::Known(Some(driver.parse().unwrap()));
        let capability = ComputeCapability::new(major, minor);
        world.host.gpus = Observed::Known(vec![Gpu { compute_capability: Some(capability), ..Gpu::default() }]);
        world
    }

    #[test]
    fn a_stated_driver_that_no_longer_runs_the_stated_gpu_is_an_error() {
        let found = stated("535.183.01", 3, 7).short(ID);
        assert_eq!(found.severity, Severity::Error);
        assert_eq!(stated("590.48.01", 7, 0).short(ID).severity, Severity::Error);
        stated("470.256.02", 3, 7).silent(ID);
        stated("580.95.05", 7, 0).silent(ID);
        stated("590.48.01", 9, 0).silent(ID);
        // too old for it, perhaps, of which the tables are not sure
        stated("450.80.02", 9, 0).silent(ID);
        let mut monitor = stated("590.48.01", 7, 0);
        monitor.container.args = Observed::Known(vec!["nvidia-smi".into()]);
        assert_eq!(monitor.failure(ID).severity, Severity::Warning);
        let mut for_cpu = stated("590.48.01", 7, 0);
        for_cpu.container = World::plain().container;
        for_cpu.container.gpu_given = Observed::Known(Given::LegacyHook);
        for_cpu.silent(ID);
    }

    #[test]
    fn a_driver_that_is_loaded_and_names_the_gpu_runs_it() {
        let world = World { place: Place::Image, ..World::legacy(1, LegacyState::StillToRun) };
        world.driver("590.48.01").gpu("Tesla V100-SXM2-32GB", 0x1db5).silent(ID);
    }
}
