//! How a GPU is given, in the words of who started the container.

use crate::model::Container;
use crate::model::container::{EngineName, Scheduler};

/// The option or setting that gives a GPU, to stand after "with".
pub(in crate::checks) fn to_give(container: &Container) -> &'static str {
    match container.scheduler {
        Some(Scheduler::Kubernetes) => return "a resource limit nvidia.com/gpu: 1 in the pod",
        Some(Scheduler::Nomad) => return "a device \"nvidia/gpu\" block in the task's resources",
        Some(Scheduler::Ecs) => return "a resource requirement of type GPU in the task definition",
        Some(Scheduler::Slurm) => return "--gpus=1 for the job",
        None => {}
    }
    match container.engine {
        EngineName::Docker => "--gpus all",
        EngineName::Podman => "--device nvidia.com/gpu=all",
        EngineName::Containerd => "--gpus all (nerdctl) or --gpus 0 (ctr)",
        EngineName::Crio => "a resource limit nvidia.com/gpu: 1 in the pod",
        EngineName::Unknown => "--gpus all (docker, nerdctl) or --device nvidia.com/gpu=all (podman)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_speaks_before_the_engine() {
        let mut container = Container { engine: EngineName::Containerd, ..Container::default() };
        assert!(to_give(&container).contains("nerdctl"));
        container.scheduler = Some(Scheduler::Kubernetes);
        assert!(to_give(&container).contains("resource limit"));
    }
}
