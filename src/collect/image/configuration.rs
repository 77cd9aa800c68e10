//! The configuration of an image: the JSON that its id is the digest of.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::json;
use crate::model::Unseen;
use crate::model::image::{Configuration, HealthCheck};

/// Large images have some hundred, and of each much is made.
const MOST_VARIABLES: usize = 10_000;

/// Of the OCI image specification and docker's, which differ in what is optional; unknown fields and `null` are let
/// pass, since many programs write it.
#[derive(Deserialize)]
struct Written {
    architecture: Option<String>,
    os: Option<String>,
    config: Option<Config>,
    rootfs: Option<RootFs>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Config {
    env: Option<Vec<String>>,
    labels: Option<BTreeMap<String, String>>,
    user: Option<String>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    working_dir: Option<String>,
    healthcheck: Option<Check>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Check {
    test: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct RootFs {
    diff_ids: Option<Vec<String>>,
}

/// Reads one.
pub(super) fn parse(bytes: &[u8]) -> Result<Configuration, Unseen> {
    let written: Written = json::read("the image's configuration", bytes)?;
    let config = written.config.unwrap_or_default();
    if config.env.as_ref().is_some_and(|env| env.len() > MOST_VARIABLES) {
        let reason = format!("has more than {MOST_VARIABLES} variables");
        return Err(Unseen::new("the image's configuration", reason));
    }
    let variable = |entry: String| {
        let (name, value) = entry.split_once('=').unwrap_or((&entry, ""));
        (name.to_owned(), value.to_owned())
    };
    Ok(Configuration {
        architecture: written.architecture.unwrap_or_default(),
        os: written.os.unwrap_or_default(),
        environment: config.env.unwrap_or_default().into_iter().map(variable).collect(),
        labels: config.labels.unwrap_or_default(),
        user: config.user.unwrap_or_default(),
        entrypoint: config.entrypoint.unwrap_or_default(),
        command: config.cmd.unwrap_or_default(),
        working_directory: config.working_dir.unwrap_or_default(),
        health_check: config.healthcheck.and_then(|check| check.test).map(|test| HealthCheck { test }),
        diff_ids: written.rootfs.and_then(|rootfs| rootfs.diff_ids).unwrap_or_default(),
    })
}
