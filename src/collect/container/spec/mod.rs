//! `config.json`, piece by piece.
//!
//! `oci_spec::runtime::Spec` refuses a whole file for one capability, seccomp word or namespace that it
//! does not know, and newer engines bring such words; a file that is not read would be a container that
//! is not judged. So every piece is parsed by itself, lists element by element.

use std::collections::BTreeMap;
use std::path::Path;

use oci_spec::runtime as oci;
use serde_json::value::RawValue;

use crate::model::container::{Mount, SpecHook};
use crate::model::{Observed, Parts};

pub(super) mod json;
mod linux;
mod process;
#[cfg(test)]
mod tests;

pub(super) use linux::Linux;
pub(super) use process::{Process, variable};

/// Bytes of a `config.json` that is still read.
pub(super) const MOST_BYTES: usize = 8 << 20;

/// What a `config.json` says, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    pub(super) process: Process,
    pub(super) linux: Linux,
    pub(super) root: Observed<Option<String>>,
    pub(super) hostname: Option<String>,
    pub(super) mounts: Observed<Parts<Mount>>,
    /// There is no key `mounts`: no engine wrote this file, so its absence says nothing about mounts.
    pub(super) no_mounts_key: bool,
    pub(super) hooks: Observed<Parts<SpecHook>>,
    pub(super) annotations: Observed<BTreeMap<String, String>>,
}

impl Spec {
    /// Reads what there is. `source` is the file's name for messages.
    pub fn parse(mut bytes: Vec<u8>, source: &str) -> Self {
        if bytes.len() > MOST_BYTES {
            return Self::unread(source, &format!("longer than {MOST_BYTES} bytes"));
        }
        make_text(&mut bytes);
        let names = ["process", "root", "hostname", "mounts", "hooks", "annotations", "linux"];
        let fields = std::str::from_utf8(&bytes).map_err(|_| "no text".to_owned()).and_then(|t| json::fields(t, names));
        let [process, root, hostname, mounts, hooks, annotations, linux] = match fields {
            Ok(fields) if fields.iter().all(Option::is_none) => {
                return Self::unread(source, "nothing of a spec is in it");
            }
            Ok(fields) => fields,
            Err(reason) => return Self::unread(source, &reason),
        };
        let budget = json::Budget::new();
        Self {
            process: Process::read(&budget, source, process),
            linux: Linux::read(&budget, source, linux),
            root: root_path(source, root),
            hostname: hostname.and_then(|raw| json::value(raw.get()).ok()),
            mounts: match mounts {
                Some(_) => json::list(&budget, "container.mounts", &format!("{source} /mounts"), mounts, mount),
                None => Observed::unknown("container.mounts", source, "the file lists no mounts at all"),
            },
            no_mounts_key: mounts.is_none(),
            hooks: all_hooks(&budget, &format!("{source} /hooks"), hooks),
            annotations: annotations_of(&budget, &format!("{source} /annotations"), annotations),
        }
    }

    /// A file that could not be read: nothing of it is known.
    pub fn unread(source: &str, reason: &str) -> Self {
        Self {
            process: Process::unread(source, reason),
            linux: Linux::unread(source, reason),
            root: Observed::unknown("container.root", source, reason),
            hostname: None,
            mounts: Observed::unknown("container.mounts", source, reason),
            no_mounts_key: false,
            hooks: Observed::unknown("container.hooks", source, reason),
            annotations: Observed::unknown("container.annotations", source, reason),
        }
    }

    /// `root.path`, as it is written: absolute, or relative to the bundle.
    pub fn root_path(&self) -> Option<&str> {
        self.root.seen().and_then(Option::as_deref)
    }
}

/// JSON is UTF-8; a byte that is not becomes `?` in its place, which takes no memory. The runtimes
/// written in Go read such a file too, and put U+FFFD there.
fn make_text(bytes: &mut [u8]) {
    let mut good = 0;
    while let Some(rest) = bytes.get_mut(good..) {
        let Err(error) = std::str::from_utf8(rest) else { return };
        let bad = error.valid_up_to();
        let length = error.error_len().unwrap_or(rest.len() - bad);
        if let Some(wrong) = rest.get_mut(bad..bad + length) {
            wrong.fill(b'?');
        }
        good += bad + length;
    }
}

fn string(fact: &str, source: &str, piece: Option<&RawValue>) -> Observed<Option<String>> {
    match piece.map(|raw| json::value::<String>(raw.get())).transpose() {
        Ok(value) => Observed::Known(value.filter(|v| !v.is_empty())),
        Err(reason) => Observed::unknown(fact, source, reason),
    }
}

fn root_path(source: &str, root: Option<&RawValue>) -> Observed<Option<String>> {
    match root.map_or(Ok([None]), |raw| json::fields(raw.get(), ["path"])) {
        Ok([path]) => string("container.root", &format!("{source} /root/path"), path),
        Err(reason) => Observed::unknown("container.root", source, reason),
    }
}

fn mount(text: &str) -> Result<Mount, String> {
    let mount: oci::Mount = json::value(text)?;
    Ok(Mount {
        destination: utf8(mount.destination())?,
        source: mount.source().as_deref().map_or_else(|| Ok(String::new()), utf8)?,
        kind: mount.typ().clone().unwrap_or_default(),
        options: mount.options().clone().unwrap_or_default(),
    })
}

fn all_hooks(budget: &json::Budget, source: &str, hooks: Option<&RawValue>) -> Observed<Parts<SpecHook>> {
    const STAGES: [&str; 6] =
        ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"];
    let read = || -> Result<Parts<SpecHook>, String> {
        let mut parts = Parts::default();
        let Some(hooks) = hooks else { return Ok(parts) };
        for (stage, list) in STAGES.into_iter().zip(json::fields(hooks.get(), STAGES)?) {
            let before = parts.items.len();
            json::add(&mut parts, budget, "container.hooks", &format!("{source}/{stage}"), list, |text| {
                hook(stage, text)
            })?;
            for (place, hook) in parts.items.iter_mut().skip(before).enumerate() {
                hook.place = place;
            }
        }
        Ok(parts)
    };
    read().map_or_else(|reason| Observed::unknown("container.hooks", source, reason), Observed::Known)
}

fn hook(stage: &str, text: &str) -> Result<SpecHook, String> {
    let hook: oci::Hook = json::value(text)?;
    Ok(SpecHook {
        stage: stage.to_owned(),
        place: 0,
        path: utf8(hook.path())?,
        args: hook.args().clone().unwrap_or_default(),
    })
}

fn annotations_of(budget: &json::Budget, source: &str, piece: Option<&RawValue>) -> Observed<BTreeMap<String, String>> {
    let read = || -> Result<BTreeMap<String, String>, String> {
        let Some(piece) = piece else { return Ok(BTreeMap::new()) };
        let mut kept = BTreeMap::new();
        for (name, value) in json::entries(piece.get())? {
            budget.take(value.get())?;
            // one that is no string is no annotation that anybody could mean
            if let Ok(value) = json::value::<String>(value.get()) {
                kept.insert(name, value);
            }
        }
        Ok(kept)
    };
    read().map_or_else(|reason| Observed::unknown("container.annotations", source, reason), Observed::Known)
}

fn utf8(path: &Path) -> Result<String, String> {
    path.to_str().map(str::to_owned).ok_or_else(|| "a path that is no text".to_owned())
}
