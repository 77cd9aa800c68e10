//! CDI specifications: are they there, fresh, complete and alone?
//!
//! The hook reads them only for a container that was given its GPU by CDI and lacks a node.

use super::ways::{directory, gives_gpus, is_installed, is_searched};
use crate::model::container::Given;
use crate::model::host::{CdiSpec, Majors, NodeKind};
use crate::model::{Container, Host, Unknown};

pub(super) mod at_boot;
pub(super) mod conflict;
pub(super) mod lacks_uvm;
pub(super) mod missing;
pub(super) mod stale;

/// The specifications of NVIDIA's GPUs that engines use: those in directories that they search, and not
/// those of which every device stands in a later directory too, which takes its place. (Later in the list
/// stands later in priority.)
fn used(host: &Host) -> Result<Vec<&CdiSpec>, Unknown> {
    let specs = host.cdi.known()?;
    let replaced = |place: usize, spec: &CdiSpec| {
        spec.devices.iter().all(|device| {
            specs.iter().skip(place + 1).any(|later| {
                later.broken.is_none()
                    && later.kind == spec.kind
                    && directory(later) != directory(spec)
                    && later.devices.iter().any(|d| d.name == device.name)
            })
        })
    };
    let engines: Vec<_> = host.engines.iter().filter(|e| is_installed(e)).collect();
    let searched = |spec: &CdiSpec| engines.is_empty() || engines.iter().any(|engine| is_searched(engine, spec));
    let used =
        specs.iter().enumerate().filter(|(place, spec)| gives_gpus(spec) && searched(spec) && !replaced(*place, spec));
    Ok(used.map(|(_, spec)| spec).collect())
}

/// The container was given its GPU by CDI, and one of the nodes that every CUDA program needs is lacking:
/// this one.
fn lacking_node(container: &Container) -> Result<Option<&'static str>, Unknown> {
    if *container.gpu_given.known()? != Given::Cdi {
        return Ok(None);
    }
    let nodes = container.devices.known()?;
    let has = |is: &dyn Fn(&str) -> bool| nodes.iter().any(|n| n.kind == NodeKind::CharDevice && is(&n.path));
    Ok(if !has(&|path| path == "/dev/nvidiactl") {
        Some("/dev/nvidiactl")
    } else if !has(&|path| Majors::gpu_minor(path).is_some()) {
        Some("/dev/nvidia0")
    } else if has(&|path| path == "/dev/nvidia-uvm") {
        None
    } else {
        Some("/dev/nvidia-uvm")
    })
}

#[cfg(test)]
mod testing {
    use crate::model::host::{CdiDevice, CdiNode, CdiSpec};

    pub(super) fn node(path: &str) -> CdiNode {
        CdiNode { path: path.into(), ..CdiNode::default() }
    }

    /// As `nvidia-ctk cdi generate` writes it for a machine with one GPU and driver 550.163.01.
    pub(super) fn spec(path: &str) -> CdiSpec {
        CdiSpec {
            path: path.into(),
            version: "0.5.0".into(),
            kind: "nvidia.com/gpu".into(),
            devices: ["0", "all"].map(|name| CdiDevice { name: name.into(), nodes: vec![node("/dev/nvidia0")] }).into(),
            nodes: ["/dev/nvidiactl", "/dev/nvidia-uvm"].map(node).into(),
            mounts: vec!["/usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01".into()],
            driver: Some("550.163.01".parse().unwrap()),
            ..CdiSpec::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::spec;
    use super::*;
    use crate::checks::testing::World;
    use crate::model::Observed;

    #[test]
    fn a_later_directory_takes_the_place_of_an_earlier_one() {
        let mut host = crate::model::testing::host(1);
        host.cdi = Observed::Known(vec![spec("/etc/cdi/nvidia.yaml"), spec("/var/run/cdi/nvidia.yaml")]);
        let paths = |host: &Host| used(host).unwrap().iter().map(|s| s.path.clone()).collect::<Vec<_>>();
        assert_eq!(paths(&host), ["/var/run/cdi/nvidia.yaml"]);
        let Observed::Known(specs) = &mut host.cdi else { panic!() };
        specs[1].devices.remove(0);
        assert_eq!(paths(&host).len(), 2);
    }

    #[test]
    fn a_directory_that_no_engine_searches_holds_none_that_is_used() {
        let mut host = crate::model::testing::host(1);
        host.cdi = Observed::Known(vec![spec("/srv/cdi/nvidia.yaml")]);
        assert!(used(&host).unwrap().is_empty());
        host.engines[0].cdi_spec_dirs = Some(vec!["/srv/cdi".into()]);
        assert_eq!(used(&host).unwrap().len(), 1);
        host.engines.clear();
        assert_eq!(used(&host).unwrap().len(), 1);
    }

    #[test]
    fn a_node_is_lacking_only_where_cdi_gave_the_others() {
        let mut world = World::cdi(1);
        assert_eq!(lacking_node(&world.container), Ok(None));
        world.without_node("/dev/nvidia-uvm", false);
        assert_eq!(lacking_node(&world.container), Ok(Some("/dev/nvidia-uvm")));
        assert_eq!(lacking_node(&World::plain().container), Ok(None));
    }
}
