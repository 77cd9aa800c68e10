//! How a GPU is given, in the words of who started the container, by what this machine is set up for.

use crate::checks::stack::ways::gives_gpus;
use crate::knowledge::toolkit::{CLI, HOOK};
use crate::model::container::{EngineName, Scheduler};
use crate::model::{Facts, Host, Unknown};

/// The option or setting that gives a GPU, to stand after "with".
///
/// # Errors
/// The hook has not looked yet at what the machine is set up for.
pub(in crate::checks) fn to_give(facts: &Facts<'_>) -> Result<&'static str, Unknown> {
    match facts.container.scheduler {
        Some(Scheduler::Kubernetes) => return Ok("a resource limit nvidia.com/gpu: 1 in the pod"),
        Some(Scheduler::Nomad) => return Ok("a device \"nvidia/gpu\" block in the task's resources"),
        Some(Scheduler::Ecs) => return Ok("a resource requirement of type GPU in the task definition"),
        Some(Scheduler::Slurm) => return Ok("--gpus=1 for the job"),
        None => {}
    }
    let host = facts.host;
    Ok(match facts.container.engine {
        EngineName::Docker => match set_up(host, HOOK)? {
            SetUp::Hook => "--gpus all",
            SetUp::Cdi => "--device nvidia.com/gpu=all",
            SetUp::Nothing => "--gpus all, once NVIDIA's container toolkit is installed",
        },
        EngineName::Podman => match set_up(host, HOOK)? {
            SetUp::Nothing => "--device nvidia.com/gpu=all, once nvidia-ctk has made a CDI specification",
            SetUp::Cdi | SetUp::Hook => "--device nvidia.com/gpu=all",
        },
        EngineName::Containerd => match set_up(host, CLI)? {
            SetUp::Hook => "--gpus all (nerdctl) or --gpus 0 (ctr)",
            SetUp::Cdi => "the CDI device nvidia.com/gpu=all",
            SetUp::Nothing => "--gpus all (nerdctl) or --gpus 0 (ctr), once NVIDIA's container toolkit is installed",
        },
        EngineName::Crio => "a resource limit nvidia.com/gpu: 1 in the pod",
        EngineName::Unknown => "--gpus all (docker, nerdctl) or --device nvidia.com/gpu=all (podman)",
    })
}

/// By what this machine hands over GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SetUp {
    /// By NVIDIA's hook and what it calls; also where nobody could look, since that is what most machines have.
    Hook,
    Cdi,
    Nothing,
}

/// `program`: without which the toolkit's option of this engine fails.
fn set_up(host: &Host, program: &str) -> Result<SetUp, Unknown> {
    let Some(programs) = host.toolkit.programs.looked_at()? else { return Ok(SetUp::Hook) };
    if programs.contains_key(program) {
        return Ok(SetUp::Hook);
    }
    Ok(match host.cdi.looked_at()? {
        None => SetUp::Hook,
        Some(specs) if specs.iter().any(gives_gpus) => SetUp::Cdi,
        Some(_) => SetUp::Nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, cdi_spec, unseen};
    use crate::model::Observed;
    use crate::model::observed::LEFT_OUT;

    fn way(world: &World) -> &'static str {
        to_give(&world.facts()).unwrap()
    }

    #[test]
    fn the_scheduler_speaks_before_the_engine() {
        let mut world = World::plain();
        world.container.engine = EngineName::Containerd;
        assert!(way(&world).contains("nerdctl"));
        world.container.scheduler = Some(Scheduler::Kubernetes);
        assert!(way(&world).contains("resource limit"));
    }

    #[test]
    fn an_option_that_would_fail_here_is_not_offered() {
        let mut world = World::plain();
        world.container.engine = EngineName::Docker;
        assert_eq!(way(&world), "--gpus all");
        world.host.toolkit.programs = Observed::Known([].into());
        assert!(way(&world).ends_with("is installed"));
        world.host.cdi = Observed::Known(vec![cdi_spec()]);
        for engine in [EngineName::Docker, EngineName::Podman] {
            world.container.engine = engine;
            assert_eq!(way(&world), "--device nvidia.com/gpu=all", "{engine:?}");
        }
        world.container.engine = EngineName::Containerd;
        assert!(way(&world).contains("CDI"));
        world.host.cdi = Observed::Known(Vec::new());
        world.container.engine = EngineName::Podman;
        assert!(way(&world).contains("nvidia-ctk"));
    }

    #[test]
    fn where_nobody_could_look_the_usual_one_is_offered_and_the_hook_looks_first() {
        let mut world = World::plain();
        world.container.engine = EngineName::Docker;
        world.host.toolkit.programs = unseen();
        assert_eq!(way(&world), "--gpus all");
        world.host.toolkit.programs = Observed::unknown("host.toolkit.programs", "/usr/bin", LEFT_OUT);
        assert_eq!(to_give(&world.facts()).unwrap_err().fact, "host.toolkit.programs");
    }
}
