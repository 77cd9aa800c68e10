//! The container that an image will be run as, by its configuration and the way in which this machine gives GPUs.

use crate::model::container::{Given, LegacyHook, LegacyState, Moment, Strength, Wants};
use crate::model::image::Configuration;
use crate::model::{Container, Host, Observed};

/// As if somebody started it here with all of the machine's GPUs.
pub fn of_image(configuration: &Configuration, host: &Host) -> Container {
    let _ = host;
    let environment = configuration.environment.clone();
    let visible_devices = environment.get("NVIDIA_VISIBLE_DEVICES").cloned();
    let asks = visible_devices.as_deref().filter(|value| !matches!(*value, "" | "void" | "none"));
    let wants_gpu = match asks {
        Some(value) => {
            let why = format!("NVIDIA_VISIBLE_DEVICES={value}");
            Wants { wanted: true, strength: Strength::Environment, why }
        }
        None => Wants::default(),
    };
    Container {
        moment: Moment::NotStarted,
        wants_gpu,
        gpu_given: Observed::Known(Given::LegacyHook),
        legacy_hook: Some(LegacyHook {
            path: "nvidia-container-runtime-hook".to_owned(),
            stage: "prestart".to_owned(),
            state: LegacyState::StillToRun,
        }),
        visible_devices: Observed::Known(visible_devices),
        environment: Observed::Known(environment),
        args: Observed::Known(configuration.args()),
        working_directory: Some(configuration.working_directory.clone()),
        ..Container::default()
    }
}
