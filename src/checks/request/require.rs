//! Declared requirements that are switched off, or are meant to be.

use crate::checks::not_applicable;
use crate::knowledge::require::{DISABLE, are_declared, go_bool, is_disabled, is_near};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::Given;
use crate::model::{Facts, Unknown};

const BY_VARIABLE: &str =
    "{variable} switches the requirements of the image off: nobody checks them against the driver";
const BY_CONFIG: &str = "disable-require in {config} switches the requirements of images off for NVIDIA's hook";
const NEAR_MISS: &str = "{name} is set, which nothing reads; NVIDIA's tools know NVIDIA_DISABLE_REQUIRE";
const NO_BOOLEAN: &str = "NVIDIA_DISABLE_REQUIRE={value} counts as false: NVIDIA's tools know 1 and true";

const SET_IT: Step = Step {
    action: Action::ChangeEnvironment,
    text: "Set NVIDIA_DISABLE_REQUIRE=1, if the requirements are to be switched off.",
    command: None,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "require-disabled",
        title: "the image's declared requirements are switched off",
        why: "If the driver is too old for the image, the program fails instead of the start.",
        messages: &[BY_VARIABLE, BY_CONFIG],
        remedy: &[],
        severities: &[Severity::Note],
        places: &[Place::Hook, Place::Image],
        judge: require_disabled,
    },
    Check {
        id: "require-disable-misspelt",
        title: "a variable is meant to switch the image's requirements off and does not",
        why: "The requirements hold as before, and the start may be refused for them.",
        messages: &[NEAR_MISS, NO_BOOLEAN],
        remedy: &[SET_IT],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: require_disable_misspelt,
    },
];

fn require_disabled(facts: &Facts<'_>) -> Judgement {
    if !concerns_a_gpu(facts)? {
        return not_applicable();
    }
    let environment = facts.container.environment.known()?;
    if !are_declared(environment) {
        return not_applicable();
    }
    if is_disabled(environment) {
        let value = environment.get(DISABLE).map_or("", String::as_str);
        return Failure::new(Severity::Note, BY_VARIABLE).foreign("variable", format!("{DISABLE}={value}")).found();
    }
    if *facts.container.gpu_given.known()? != Given::LegacyHook {
        return Ok(Outcome::Pass);
    }
    let config = &facts.host.toolkit.config;
    let config =
        if facts.place == Place::Image { config.seen().and_then(Option::as_ref) } else { config.known()?.as_ref() };
    match config {
        Some(config) if config.disable_require == Some(true) => {
            Failure::new(Severity::Note, BY_CONFIG).foreign("config", &config.path).found()
        }
        _ => Ok(Outcome::Pass),
    }
}

fn require_disable_misspelt(facts: &Facts<'_>) -> Judgement {
    if !concerns_a_gpu(facts)? {
        return not_applicable();
    }
    let environment = facts.container.environment.known()?;
    if is_disabled(environment) {
        return Ok(Outcome::Pass);
    }
    if let Some(name) = environment.keys().find(|name| is_near(name)) {
        return Failure::new(Severity::Warning, NEAR_MISS).foreign("name", name).found();
    }
    match environment.get(DISABLE) {
        Some(value) if !value.is_empty() && go_bool(value).is_none() => {
            Failure::new(Severity::Warning, NO_BOOLEAN).foreign("value", value).found()
        }
        _ => Ok(Outcome::Pass),
    }
}

fn concerns_a_gpu(facts: &Facts<'_>) -> Result<bool, Unknown> {
    Ok(facts.container.wants_gpu.is_asked() || facts.container.has_gpu()?)
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::LegacyState;
    use crate::model::host::ToolkitConfig;

    const OFF: &str = "require-disabled";
    const MISSPELT: &str = "require-disable-misspelt";

    fn requiring() -> World {
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.set("NVIDIA_REQUIRE_CUDA", "cuda>=12.4");
        world
    }

    #[test]
    fn switched_off_by_variable_or_configuration_is_a_note() {
        let mut world = requiring();
        world.silent(OFF);
        world.set("NVIDIA_DISABLE_REQUIRE", "1");
        world.failure(OFF);
        world.set("NVIDIA_DISABLE_REQUIRE", "0");
        world.silent(OFF);
        let config = ToolkitConfig { disable_require: Some(true), ..ToolkitConfig::default() };
        world.host.toolkit.config = Observed::Known(Some(config));
        world.failure(OFF);
        world.host.toolkit.config = unseen();
        world.unknown(OFF);
    }

    #[test]
    fn without_requirements_or_without_a_gpu_nothing_is_switched_off() {
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.set("NVIDIA_DISABLE_REQUIRE", "1");
        world.silent(OFF);
        let mut world = World::plain();
        world.set("NVIDIA_DISABLE_REQUIRE", "1");
        world.set("NVIDIA_REQUIRE_CUDA", "cuda>=12.4");
        world.silent(OFF);
    }

    #[test]
    fn a_near_miss_and_a_word_that_is_no_boolean_are_warnings() {
        for (name, value) in [
            ("NVIDIA_DISABLE_REQUIRES", "1"),
            ("NVIDIA_REQUIRE_DISABLE", "true"),
            ("DISABLE_REQUIRE", "1"),
            ("NVIDIA_DISABLE_REQUIRE", "yes"),
        ] {
            let mut world = requiring();
            world.set(name, value);
            world.failure(MISSPELT);
            world.silent(OFF);
        }
    }

    #[test]
    fn the_right_name_with_a_boolean_is_fine() {
        for value in ["1", "true", "0", "False", ""] {
            let mut world = requiring();
            world.set("NVIDIA_DISABLE_REQUIRE", value);
            world.silent(MISSPELT);
        }
        let mut both = requiring();
        both.set("NVIDIA_DISABLE_REQUIRE", "1");
        both.set("NVIDIA_DISABLE_REQUIRES", "1");
        both.silent(MISSPELT);
        let mut world = requiring();
        world.container.environment = unseen();
        world.unknown(MISSPELT);
    }
}
