//! What an image's configuration says of itself, and what it does not.

use super::meant;
use super::needs;
use crate::checks::not_applicable;
use crate::knowledge::cuda_visible_devices::{Entry, parse};
use crate::knowledge::programs::{is_blind_check, uses_host_index};
use crate::knowledge::require::declared;
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};

const NO_MINIMUM: &str = "nothing in the image says what driver it needs: no NVIDIA_REQUIRE_CUDA, no CUDA_VERSION, no \
                          framework that is known";
const BLIND: &str = "the image's health check ({check}) does not look at the GPU: a container that has lost it stays \
                     healthy";
const UUID: &str = "CUDA_VISIBLE_DEVICES={value} names {entry}, and {what} takes its entries for numbers: it fails when \
                    it starts";
const HOST_INDEX: &str = "{command} uses NVIDIA_VISIBLE_DEVICES as a number in the container, where GPUs count from 0";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "framework-cannot-parse-uuid",
        title: "the program takes UUIDs for numbers",
        why: "CUDA takes UUIDs and MIG names in CUDA_VISIBLE_DEVICES; some programs convert each entry to a number, \
              and fail.",
        messages: &[UUID],
        remedy: &[
            Step {
                action: Action::ChangeEnvironment,
                text: "Give numbers, which in a container count from 0.",
                command: Some("CUDA_VISIBLE_DEVICES=0"),
            },
            Step { action: Action::ChangeImage, text: "Update the program.", command: None },
        ],
        severities: &[Severity::Warning],
        places: &[Place::Image],
        judge: cannot_parse_uuid,
    },
    Check {
        id: "program-uses-host-index",
        title: "a program in the container uses the host's GPU numbers",
        why: "A script asks for a GPU by its number on the host; in the container the GPUs count from 0.",
        messages: &[HOST_INDEX],
        remedy: &[],
        severities: &[Severity::Note],
        places: &[Place::Image],
        judge: host_index,
    },
    Check {
        id: "no-minimum-declared",
        title: "nothing in the image says what driver it needs",
        why: "No NVIDIA_REQUIRE_CUDA, no CUDA_VERSION, no known framework: whether a driver suits shows only at run \
              time.",
        messages: &[NO_MINIMUM],
        remedy: &[],
        severities: &[Severity::Note],
        places: &[Place::Image],
        judge: no_minimum,
    },
    Check {
        id: "healthcheck-blind-to-gpu",
        title: "the image's health check does not look at the GPU",
        why: "A container that has lost its GPU stays healthy for the engine.",
        messages: &[BLIND],
        remedy: &[Step {
            action: Action::ChangeImage,
            text: "Use gpu-preflight healthcheck in it.",
            command: Some("HEALTHCHECK CMD [\"gpu-preflight\", \"healthcheck\"]"),
        }],
        severities: &[Severity::Note],
        places: &[Place::Image],
        judge: blind,
    },
];

/// vLLM's `device_id_to_physical_device_id` calls `int` on each entry: from 0.5 (vllm#6565, 2024-07) to 0.20.1
/// (vllm#41848, 2026-05), and the change that ends it (vllm#46132) was open in 2026-06.
const VLLM: ((u32, u32), (u32, u32)) = ((0, 5), (0, 20));

fn cannot_parse_uuid(facts: &Facts<'_>) -> Judgement {
    let Some(value) = facts.container.variable("CUDA_VISIBLE_DEVICES")? else { return not_applicable() };
    let entries = parse(value);
    let of_uuid = |entry: &&Entry| matches!(entry, Entry::Uuid(_) | Entry::MigUuid(_) | Entry::MigOldName(_));
    let Some(entry) = entries.iter().find(of_uuid) else { return not_applicable() };
    let frameworks = &facts.image.frameworks.known()?.items;
    let is_known = |version: &str| {
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
        let version = (numbers.next().flatten(), numbers.next().flatten());
        matches!(version, (Some(major), Some(minor)) if (VLLM.0..=VLLM.1).contains(&(major, minor)))
    };
    let vllm = frameworks.iter().find(|framework| framework.name == "vllm" && is_known(&framework.version));
    let Some(vllm) = vllm else { return Ok(Outcome::Pass) };
    let name = match entry {
        Entry::Uuid(name) | Entry::MigUuid(name) | Entry::MigOldName(name) => name.as_str(),
        _ => value,
    };
    let what = format!("vllm {}", vllm.version);
    Failure::new(Severity::Warning, UUID)
        .foreign("value", value)
        .foreign("entry", name)
        .foreign("what", &what)
        .saw("image.frameworks", what, vllm.source.clone())
        .found()
}

fn host_index(facts: &Facts<'_>) -> Judgement {
    let Some(configuration) = &facts.image.configuration else { return not_applicable() };
    let check = configuration.health_check.iter().flat_map(|check| &check.test);
    let words = configuration.entrypoint.iter().chain(&configuration.command).chain(check);
    match words.filter(|word| uses_host_index(word)).max_by_key(|word| word.len()) {
        Some(command) => Failure::new(Severity::Note, HOST_INDEX)
            .foreign("command", command)
            .saw("image.configuration", "NVIDIA_VISIBLE_DEVICES", "the image's configuration")
            .found(),
        None => not_applicable(),
    }
}

fn no_minimum(facts: &Facts<'_>) -> Judgement {
    if !meant::has_gpu(facts)? || !meant::is_for_gpu(facts)? {
        return not_applicable();
    }
    if !declared(facts.container.environment.known()?).is_empty() {
        return Ok(Outcome::Pass);
    }
    let needs = needs::of(facts)?;
    // what was not looked at may say it, and so may a framework of which it is not known here
    if !facts.image.frameworks.known()?.items.is_empty()
        || !needs.all.is_empty()
        || !needs.complete
        || needs::of_image(facts)?.is_some()
    {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Note, NO_MINIMUM).found()
}

fn blind(facts: &Facts<'_>) -> Judgement {
    let Some(check) = facts.image.configuration.as_ref().and_then(|all| all.health_check.as_ref()) else {
        return not_applicable();
    };
    if !meant::has_gpu(facts)? || !meant::is_for_gpu(facts)? {
        return not_applicable();
    }
    let command = check.test.iter().skip(1).map(String::as_str).collect::<Vec<_>>().join(" ");
    if check.test.first().is_none_or(|word| word == "NONE") || !is_blind_check(&command) {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Note, BLIND)
        .foreign("check", &command)
        .saw("image.configuration", &command, "the image's configuration")
        .found()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::World;
    use crate::model::image::{Configuration, HealthCheck};
    use crate::model::{Observed, Place};

    fn image() -> World {
        World { place: Place::Image, ..World::cdi(1) }
    }

    fn configured(test: &[&str], command: &[&str]) -> World {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let health_check = (!test.is_empty()).then(|| HealthCheck { test: owned(test) });
        let mut world = image();
        world.image.configuration =
            Some(Configuration { health_check, command: owned(command), ..Configuration::default() });
        world
    }

    #[test]
    fn vllm_takes_uuids_for_numbers() {
        let with = |name: &str, version: &str, value: &str| {
            let mut world = image().framework(name, version, "12.1");
            world.set("CUDA_VISIBLE_DEVICES", value);
            world
        };
        for value in ["MIG-377e0049-554c-540b-93c6-d0976f8426cb", "0,GPU-52a3a85d-3c55-ca3a-a955-82c69ed360fc"] {
            with("vllm", "0.5.2", value).short("framework-cannot-parse-uuid");
            with("vllm", "0.20.1", value).failure("framework-cannot-parse-uuid");
            with("vllm", "0.33.0", value).silent("framework-cannot-parse-uuid");
            with("torch", "2.9.0", value).silent("framework-cannot-parse-uuid");
        }
        with("vllm", "0.5.2", "0,1").silent("framework-cannot-parse-uuid");
        image().framework("vllm", "0.5.2", "12.1").silent("framework-cannot-parse-uuid");
    }

    #[test]
    fn a_command_that_uses_the_hosts_numbers_is_a_note() {
        let id = "program-uses-host-index";
        configured(&[], &["sh", "-c", "nvidia-smi --id=$NVIDIA_VISIBLE_DEVICES && run"]).failure(id);
        configured(&["CMD-SHELL", "CUDA_VISIBLE_DEVICES=$NVIDIA_VISIBLE_DEVICES check"], &[]).failure(id);
        configured(&[], &["sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES; run"]).silent(id);
        configured(&[], &["nvidia-smi"]).silent(id);
    }

    #[test]
    fn an_image_for_gpus_that_says_nothing_of_drivers_is_a_note() {
        let id = "no-minimum-declared";
        image().failure(id);
        let mut declared = image();
        declared.set("NVIDIA_REQUIRE_CUDA", "cuda>=12.4");
        declared.silent(id);
        let mut versioned = image();
        versioned.set("CUDA_VERSION", "12.4.1");
        versioned.silent(id);
        image().framework("torch", "2.9.0+cu128", "12.8").silent(id);
        let mut of_unknown_cuda = image().framework("onnxruntime", "1.20.0", "12.8");
        let Observed::Known(frameworks) = &mut of_unknown_cuda.image.frameworks else { panic!() };
        frameworks.items[0].build = crate::model::image::Build::Unknown;
        frameworks.items[0].cuda = None;
        of_unknown_cuda.silent(id);
        image().in_part().silent(id);
        let mut plain = World { place: Place::Image, ..World::plain() };
        plain.container.gpu_given = Observed::Known(crate::model::container::Given::LegacyHook);
        plain.silent(id);
    }

    #[test]
    fn a_health_check_that_asks_the_network_alone_is_a_note() {
        let id = "healthcheck-blind-to-gpu";
        configured(&["CMD-SHELL", "curl -f http://localhost:8000/health || exit 1"], &[]).failure(id);
        configured(&["CMD", "pgrep", "server"], &[]).failure(id);
        configured(&["CMD", "gpu-preflight", "healthcheck"], &[]).silent(id);
        configured(&["CMD-SHELL", "nvidia-smi && curl localhost"], &[]).silent(id);
        configured(&["CMD", "/healthcheck.sh"], &[]).silent(id);
        configured(&["NONE"], &[]).silent(id);
        configured(&[], &[]).silent(id);
    }
}
