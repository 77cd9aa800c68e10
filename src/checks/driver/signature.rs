//! Secure Boot, and modules whose signature the kernel does not take.

use crate::checks::nodes::role::plain;
use crate::checks::nodes::ways::on_disk;
use crate::checks::not_applicable;
use crate::model::{Action, Check, Facts, Failure, Host, Judgement, Outcome, Place, Severity, Step, Unknown};

use super::unloadable::{concerned, held_by_nouveau, severity};

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[Check {
    id: "secure-boot-module-rejected",
    title: "Secure Boot keeps the NVIDIA kernel module out",
    why: "With Secure Boot the kernel loads only modules signed with a key it knows; nvidia is refused, and no GPU can be used.",
    messages: &[
        "Secure Boot is on and the nvidia module on disk for this kernel is not signed: the kernel will not load it",
        "the kernel refused nvidia, though on disk for this kernel, for its signature: {line}",
        "{sign}, and the nvidia module, though on disk for this kernel, is not loaded: it may be signed with a key that is not enrolled",
    ],
    remedy: &[Step {
        action: Action::Reboot,
        text: "Enrol the key that signed the module and confirm it at the next boot.",
        command: Some("mokutil --import /var/lib/dkms/mok.pub && reboot"),
    }],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Host, Place::Hook],
    judge: secure_boot,
}];

/// It is certain that the kernel refuses the module.
pub(super) fn is_certain(host: &Host) -> bool {
    matches!(rejected(host), Ok(Some(Rejection::Unsigned | Rejection::Logged(_))))
}

fn secure_boot(facts: &Facts<'_>) -> Judgement {
    if !concerned(facts)? || !held_by_nouveau(facts.host)?.is_empty() {
        return not_applicable();
    }
    let messages = CHECKS[0].messages;
    let failure = match rejected(facts.host)? {
        None => return Ok(Outcome::Pass),
        Some(Rejection::Unsigned) => Failure::new(severity(facts), messages[0])
            .saw("host.secure_boot", "on", "/sys/firmware/efi/efivars")
            .saw("host.module_files", "nvidia without a signature", "/lib/modules"),
        Some(Rejection::Logged(line)) => Failure::new(severity(facts), messages[1]).foreign("line", &line).saw(
            "host.kernel_log",
            plain(&line),
            "the kernel's log",
        ),
        Some(Rejection::Maybe { secure_boot: true }) => Failure::new(Severity::Warning, messages[2])
            .arg("sign", "Secure Boot is on")
            .saw("host.secure_boot", "on", "/sys/firmware/efi/efivars"),
        Some(Rejection::Maybe { secure_boot: false }) => Failure::new(Severity::Warning, messages[2])
            .arg("sign", "the kernel refused a module for its signature")
            .saw("host.kernel_log", "a module was rejected", "the kernel's log"),
    };
    failure.saw("host.modules", "no nvidia", "/sys/module").found()
}

enum Rejection {
    /// Secure Boot is on, the module lies there without a signature for a GPU that nobody drives.
    Unsigned,
    /// Since boot the kernel has refused this very module.
    Logged(String),
    /// A module was refused, or Secure Boot would refuse one: nothing shows that it was this one.
    Maybe { secure_boot: bool },
}

/// What the kernel, and who asked it to load a module, write when it turns one away. Source: Linux
/// kernel/module/signing.c, security/lockdown; the text of EKEYREJECTED.
const TURNED_AWAY: [&str; 4] = [
    "key was rejected by service",
    "loading of unsigned module is rejected",
    "loading of module with unavailable key is rejected",
    "unsigned module loading is restricted",
];
/// The kernel's first line. Log files outlive reboots, and a key may have been enrolled since.
const BOOT: &str = "Linux version ";
/// The kernel loaded the module though it does not trust it: signatures are not enforced.
const TAINTED: &str = "nvidia: module verification failed";

fn rejected(host: &Host) -> Result<Option<Rejection>, Unknown> {
    if on_disk(host, "nvidia")? != Some(true) {
        host.driver.module_files.known()?;
        return Ok(None);
    }
    let log = host.kernel_log.looked_at()?.map(Vec::as_slice).unwrap_or_default();
    let boot = log.iter().rposition(|line| line.contains(BOOT));
    let since_boot = boot.and_then(|at| log.get(at..)).unwrap_or_default();
    let says = |line: &&String| TURNED_AWAY.iter().any(|text| line.to_ascii_lowercase().contains(text));
    if let Some(line) = since_boot.iter().rev().filter(says).find(|line| line.to_ascii_lowercase().contains("nvidia")) {
        return Ok(Some(Rejection::Logged(line.clone())));
    }
    // Nodes are left behind by a module that was loaded before, so it is not the key that keeps it out.
    let was_loaded = host.device_nodes.known()?.keys().any(|path| path.starts_with("/dev/nvidia"));
    // udev loads it at boot by the GPU's alias: where nobody drives the GPU, it was tried.
    let undriven = host.pci.known()?.iter().any(|f| f.is_for_the_host() && f.driver.is_none());
    if was_loaded || !undriven {
        return Ok(None);
    }
    let refused = if boot.is_some() { since_boot } else { log }.iter().any(|line| says(&line));
    if *host.secure_boot.known()? != Some(true) {
        return Ok(refused.then_some(Rejection::Maybe { secure_boot: false }));
    }
    let unsigned = host.driver.module_files.known()?.signed == Some(false);
    let enforced = !log.iter().any(|line| line.contains(TAINTED));
    Ok(Some(if unsigned && enforced { Rejection::Unsigned } else { Rejection::Maybe { secure_boot: true } }))
}

#[cfg(test)]
mod tests {
    use super::super::unloadable::testing::{RUNNING, SECURE_BOOT, everywhere, on_disk, only, signed, unloaded};
    use crate::checks::testing::{World, unseen};
    use crate::model::{Observed, Severity};

    #[test]
    fn a_module_without_a_signature_is_kept_out_by_secure_boot() {
        for world in everywhere(&[(RUNNING, true)]) {
            let mut world = signed(world, Some(false));
            world.silent(SECURE_BOOT);
            world.host.secure_boot = Observed::Known(Some(true));
            only(&world, SECURE_BOOT);
            world.host.kernel_log = Observed::Known(vec![
                "kernel: nvidia: module verification failed: signature and/or required key missing - tainting kernel"
                    .into(),
            ]);
            assert_eq!(world.short(SECURE_BOOT).severity, Severity::Warning, "this kernel does not enforce");
            world.host.secure_boot = unseen();
            world.unknown(SECURE_BOOT);
        }
    }

    #[test]
    fn a_module_whose_signature_nobody_can_judge_is_a_warning_beside_the_plain_fact() {
        for signature in [None, Some(true)] {
            for world in everywhere(&[(RUNNING, true)]) {
                let mut world = signed(world, signature);
                world.host.secure_boot = Observed::Known(Some(true));
                assert_eq!(world.short(SECURE_BOOT).severity, Severity::Warning);
                let plain = world.failure("driver-not-loaded").severity;
                world.host.secure_boot = Observed::Known(Some(false));
                world.silent(SECURE_BOOT);
                assert_eq!(world.failure("driver-not-loaded").severity, plain);
            }
        }
    }

    #[test]
    fn the_log_proves_it_where_it_names_the_module_since_boot() {
        let boot = "kernel: Linux version 6.1.0-30-amd64 (debian-kernel@lists.debian.org)";
        let nameless = "kernel: Loading of module with unavailable key is rejected";
        let named = "systemd-modules-load: Failed to insert module 'nvidia': Key was rejected by service";
        let mut world = unloaded(World::cdi(1), &[(RUNNING, true)]);
        let mut with = |lines: &[&str]| {
            world.host.kernel_log = Observed::Known(lines.iter().map(|l| (*l).to_owned()).collect());
            world.clone()
        };
        only(&with(&[boot, nameless, named]), SECURE_BOOT);
        for lines in [&[boot, nameless][..], &[named], &[nameless]] {
            assert_eq!(with(lines).short(SECURE_BOOT).severity, Severity::Warning, "{lines:?}");
        }
        with(&[named, boot]).silent(SECURE_BOOT);
    }

    #[test]
    fn a_module_that_was_loaded_before_is_not_kept_out_by_its_key() {
        let mut world = unloaded(World::machine(1), &[(RUNNING, true)]);
        world.host.secure_boot = Observed::Known(Some(true));
        world.host.device_nodes = crate::model::testing::host(1).device_nodes;
        world.silent("secure-boot-module-rejected");
        world.host.device_nodes = Observed::default();
        world = on_disk(world, &[(RUNNING, false)]);
        world.silent("secure-boot-module-rejected");
    }
}
