//! The service that makes the CDI specification at boot has not made it.

use crate::checks::not_applicable;
use crate::checks::stack::{is_native_with_gpu, ways};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::{Facts, Host};

const NOT_MADE: &str =
    "the service nvidia-cdi-refresh is enabled, the driver is loaded, and there is no CDI specification of its GPUs";

pub(in crate::checks::stack) const CHECKS: &[Check] = &[Check {
    id: "cdi-spec-not-generated-at-boot",
    title: "the CDI specification was to be made before the driver was there",
    why: "The service that makes it ran before the driver was loaded and failed: no engine has a device to give by CDI.",
    messages: &[NOT_MADE],
    remedy: &[
        Step {
            action: Action::RegenerateCdi,
            text: "Make it now.",
            command: Some(
                "systemctl restart nvidia-cdi-refresh   # or: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
            ),
        },
        Step {
            action: Action::StartService,
            text: "Load the driver's modules earlier at boot, and let the service come after them.",
            command: Some("printf 'nvidia\\nnvidia_uvm\\n' > /etc/modules-load.d/nvidia.conf"),
        },
    ],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Host],
    judge: not_generated_at_boot,
}];

/// The service should have made a specification by now.
pub(super) fn concerns(host: &Host) -> bool {
    host.cdi_refresh && host.driver.has_module("nvidia") == Ok(true)
}

fn not_generated_at_boot(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    if !host.cdi_refresh || !is_native_with_gpu(host)? || !host.driver.has_module("nvidia")? {
        return not_applicable();
    }
    // what cannot be read was made
    if host.cdi.known()?.iter().any(|spec| ways::gives_gpus(spec) || spec.broken.is_some()) {
        return Ok(Outcome::Pass);
    }
    // who has no engine lacks nothing yet
    let severity =
        if host.engines.is_empty() { Severity::Warning } else { ways::severity(&ways::of(host)?, |_| false) };
    Failure::new(severity, NOT_MADE).saw("host.cdi", "none of NVIDIA's GPUs", "/etc/cdi, /run/cdi").found()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, cdi_spec, unseen};
    use crate::model::host::{CdiSpec, EngineKind};
    use crate::model::{Observed, Severity};

    const ID: &str = "cdi-spec-not-generated-at-boot";

    fn with_podman() -> World {
        let mut world = World::machine(1);
        world.host.cdi_refresh = true;
        world.host.engines[0].kind = EngineKind::Podman;
        world.host.engines[0].path = "/usr/bin/podman".into();
        world.host.engines[0].runtimes.clear();
        world
    }

    #[test]
    fn an_enabled_service_without_its_file_is_an_error_if_nothing_else_gives_gpus() {
        let mut world = with_podman();
        assert_eq!(world.failure(ID).severity, Severity::Error);
        world.silent("cdi-spec-missing");
        world.host.cdi_refresh = false;
        world.silent(ID);
        let mut world = World::machine(1);
        world.host.cdi_refresh = true;
        assert_eq!(world.failure(ID).severity, Severity::Warning, "docker has its runtime");
        world.host.engines.clear();
        assert_eq!(world.failure(ID).severity, Severity::Warning);
    }

    #[test]
    fn any_specification_will_do_and_without_the_driver_none_is_due() {
        let mut world = with_podman();
        world.host.cdi = Observed::Known(vec![cdi_spec()]);
        world.silent(ID);
        world.host.cdi = Observed::Known(vec![CdiSpec { broken: Some("no valid YAML".into()), ..cdi_spec() }]);
        world.silent(ID);
        let mut world = with_podman();
        world.host.driver.modules = Observed::Known([].into());
        world.silent(ID);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = with_podman();
        world.host.cdi = unseen();
        world.unknown(ID);
        let mut world = with_podman();
        world.host.driver.modules = unseen();
        world.unknown(ID);
    }
}
