//! May the user who asks for the machine use its GPUs?

use crate::checks::not_applicable;
use crate::knowledge::nvml::{NO_PERMISSION, said};
use crate::model::Facts;
use crate::model::check::{Action, Failure, Judgement, Outcome, Severity};
use crate::model::host::{Nvml, NvmlTrouble};

pub(super) const REFUSED: &str = "this user may not use {node}: NVML answers with {code}";

/// By NVML alone, which opens the nodes. A user may well be given some of the GPUs only, as a scheduler does it.
pub(super) fn refused(facts: &Facts<'_>) -> Judgement {
    let Some(nvml) = &facts.host.nvml else { return not_applicable() };
    let is_refused = |trouble: Option<&NvmlTrouble>| trouble.and_then(NvmlTrouble::code) == Some(NO_PERMISSION);
    let all = |nvml: &Nvml| !nvml.gpus.is_empty() && nvml.gpus.iter().all(|gpu| is_refused(gpu.trouble.as_ref()));
    let node = match nvml {
        nvml if is_refused(nvml.trouble.as_ref()) => "/dev/nvidiactl",
        nvml if all(nvml) => "/dev/nvidia*",
        _ => return Ok(Outcome::Pass),
    };
    Failure::new(Severity::Warning, REFUSED)
        .arg("node", node)
        .arg("code", said(NO_PERMISSION))
        .only(&[Action::FixPermissions])
        .saw("host.nvml", format!("code {NO_PERMISSION}"), "NVML")
        .found()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::World;
    use crate::model::Severity;
    use crate::model::host::{Nvml, NvmlGpu, NvmlTrouble};

    const ID: &str = "node-access-refused";

    fn answering(trouble: Option<u32>, gpus: &[Option<u32>]) -> World {
        let failed = |code: u32| NvmlTrouble::Failed("nvmlDeviceGetHandleByIndex_v2".into(), code);
        let gpu = |code: &Option<u32>| NvmlGpu { trouble: code.map(failed), ..NvmlGpu::default() };
        let mut world = World::machine(2);
        world.host.nvml =
            Some(Nvml { trouble: trouble.map(failed), gpus: gpus.iter().map(gpu).collect(), ..Nvml::default() });
        world
    }

    #[test]
    fn a_user_who_may_use_none_is_told_and_no_gpu_is_called_sick() {
        for world in [answering(Some(4), &[]), answering(None, &[Some(4), Some(4)])] {
            assert_eq!(world.failure(ID).severity, Severity::Warning);
            world.unknown("one-gpu-unhealthy");
        }
    }

    #[test]
    fn a_user_who_was_given_some_of_the_gpus_lacks_nothing() {
        let world = answering(None, &[Some(4), None]);
        world.silent(ID);
        world.silent("one-gpu-unhealthy");
        answering(Some(999), &[]).silent(ID);
        World::machine(2).silent(ID);
    }
}
