//! What `install` changed, kept so that `uninstall` can take it back byte for byte.

use clap::ValueEnum as _;
use sha2::{Digest as _, Sha256};

use super::disk::Disk;
use super::plan::{Change, Plan};
use crate::cli::EngineName;
use crate::register::RUNTIME_NAME;
use crate::register::record::{Changed, DIRECTORY, Record};

/// The records of all engines.
pub(super) struct Records<'d> {
    disk: &'d Disk<'d>,
    all: Vec<(EngineName, Record)>,
}

impl<'d> Records<'d> {
    /// Those of this machine.
    pub(super) fn read(disk: &'d Disk<'d>) -> Result<Self, (String, String)> {
        let mut all = Vec::new();
        for engine in EngineName::value_variants() {
            let path = file(*engine);
            let broken = |reason: String| (path.clone(), reason);
            if let Some(text) = disk.text(&path).map_err(broken)? {
                let record =
                    serde_json::from_str(&text).map_err(|error| broken(format!("no valid record ({error})")))?;
                all.push((*engine, record));
            }
        }
        Ok(Self { disk, all })
    }

    /// Engines that something was changed for.
    pub(super) fn engines(&self) -> impl Iterator<Item = EngineName> {
        self.all.iter().map(|(engine, _)| *engine)
    }

    /// What was changed for one.
    pub(super) fn of(&self, engine: EngineName) -> Record {
        self.all.iter().find(|(other, _)| *other == engine).map(|(_, record)| record.clone()).unwrap_or_default()
    }

    /// Another engine that has need of a file as well.
    pub(super) fn other_with(&self, engine: EngineName, path: &str) -> Option<EngineName> {
        let has_it = |(other, record): &&(EngineName, Record)| *other != engine && record.file(path).is_some();
        self.all.iter().find(has_it).map(|(other, _)| *other)
    }

    /// The text that stood there.
    pub(super) fn before(&self, path: &str) -> Option<String> {
        self.disk.text(&kept(path)).ok().flatten()
    }

    /// As after `take_back`, for a run that only shows.
    pub(super) fn forget(&mut self, engine: EngineName) {
        self.all.retain(|(other, _)| *other != engine);
    }

    /// Nobody has changed it since.
    pub(super) fn is_as_written(&self, engine: EngineName, path: &str, now: &str) -> bool {
        self.of(engine).file(path).is_some_and(|changed| changed.after == digest(now))
    }

    /// Carries a plan out: what stood there is kept first, then the record, then the file. Whoever is interrupted finds
    /// the file old or new, and can do the same again.
    pub(super) fn carry_out(&mut self, plan: &Plan) -> Result<(), (String, String)> {
        let mut record = self.of(plan.engine);
        for change in &plan.changes {
            let failed = |reason: String| (change.path.clone(), reason);
            self.keep(plan.engine, change, &mut record).map_err(failed)?;
            let text = change.after.as_deref().unwrap_or_default();
            let made = self.disk.write(&change.path, text.as_bytes(), change.mode).map_err(failed)?;
            if let (false, Some(changed)) = (made.is_empty(), record.files.iter_mut().find(|f| f.path == change.path)) {
                changed.made = made;
                self.write(plan.engine, &record).map_err(failed)?;
            }
        }
        // a file that another engine's registration made is this one's too
        self.all.retain(|(other, _)| *other != plan.engine);
        if !record.files.is_empty() {
            self.all.push((plan.engine, record));
        }
        Ok(())
    }

    fn keep(&self, engine: EngineName, change: &Change, record: &mut Record) -> Result<(), String> {
        let after = digest(change.after.as_deref().unwrap_or_default());
        let now = change.now.as_deref();
        let changed = record.files.iter_mut().find(|changed| changed.path == change.path);
        // what is ours already is not what stood there before
        if let (Some(changed), true) = (changed, now.is_some_and(|now| now.contains(RUNTIME_NAME))) {
            // where others wrote meanwhile, their words must outlive ours: it is edited then, not put back
            let is_as_written = now.is_some_and(|now| changed.after == digest(now));
            changed.after = if is_as_written { after } else { String::new() };
        } else {
            record.files.retain(|changed| changed.path != change.path);
            record.files.push(Changed { path: change.path.clone(), existed: now.is_some(), after, made: Vec::new() });
            if let Some(now) = now {
                self.disk.write(&kept(&change.path), now.as_bytes(), 0o600)?;
            }
        }
        self.write(engine, record)
    }

    fn write(&self, engine: EngineName, record: &Record) -> Result<(), String> {
        let record = Record { schema_version: 1, ..record.clone() };
        let text = serde_json::to_string_pretty(&record).map_err(|error| error.to_string())?;
        self.disk.write(&file(engine), format!("{text}\n").as_bytes(), 0o600).map(|_| ())
    }

    /// Notes that an engine has need of files that are as they shall be already, by another's registration.
    pub(super) fn share(&mut self, engine: EngineName, path: &str) -> Result<(), String> {
        let theirs = self.all.iter().find(|(other, record)| *other != engine && record.file(path).is_some());
        let Some(changed) = theirs.and_then(|(_, record)| record.file(path)).cloned() else { return Ok(()) };
        let mut record = self.of(engine);
        if record.file(path).is_some() {
            return Ok(());
        }
        record.files.push(changed);
        self.write(engine, &record)?;
        self.all.retain(|(other, _)| *other != engine);
        self.all.push((engine, record));
        Ok(())
    }

    /// Carries out what takes ours out again; the record goes when nothing of ours is left.
    pub(super) fn take_back(&mut self, plan: &Plan) -> Result<(), (String, String)> {
        let record = self.of(plan.engine);
        for change in &plan.changes {
            let failed = |reason: String| (change.path.clone(), reason);
            let made = record.file(&change.path).map(|changed| changed.made.clone()).unwrap_or_default();
            match &change.after {
                Some(text) => self.disk.write(&change.path, text.as_bytes(), change.mode).map(|_| ()),
                None => self.disk.remove(&change.path, &made),
            }
            .map_err(failed)?;
        }
        if plan.stays {
            // what we leave is ours, too: when the rest goes, what stood there before comes back whole
            let mut record = record;
            for change in &plan.changes {
                let Some(now) = &change.now else { continue };
                if let Some(changed) = record.files.iter_mut().find(|f| f.path == change.path && f.after == digest(now))
                {
                    changed.after = digest(change.after.as_deref().unwrap_or_default());
                }
            }
            return self.write(plan.engine, &record).map_err(|reason| (file(plan.engine), reason));
        }
        // first what says that something is kept, then what is kept: interrupted between, only that is left behind
        self.disk.remove(&file(plan.engine), &[]).map_err(|reason| (file(plan.engine), reason))?;
        for changed in &record.files {
            // what another engine's registration goes back to is kept for it
            if self.other_with(plan.engine, &changed.path).is_none() {
                let _ = self.disk.remove(&kept(&changed.path), &ancestors(&changed.path));
            }
        }
        self.disk
            .remove(&file(plan.engine), &[parent(DIRECTORY), DIRECTORY.to_owned()])
            .map_err(|reason| (file(plan.engine), reason))?;
        self.forget(plan.engine);
        Ok(())
    }
}

/// The record of an engine.
pub(super) fn file(engine: EngineName) -> String {
    format!("{DIRECTORY}/{}.json", name(engine))
}

/// Where a file is kept as it was.
pub(super) fn kept(path: &str) -> String {
    format!("{DIRECTORY}/files{path}")
}

/// The directories of a kept file, the uppermost first.
fn ancestors(path: &str) -> Vec<String> {
    let whole = kept(path);
    let below = whole.match_indices('/').map(|(at, _)| whole[..at].to_owned());
    below.filter(|directory| directory.len() > DIRECTORY.len()).collect()
}

fn parent(path: &str) -> String {
    path.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned()
}

/// The engine's name on the command line.
pub(super) fn name(engine: EngineName) -> String {
    engine.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn digest(text: &str) -> String {
    format!("sha256:{:x}", Sha256::digest(text.as_bytes()))
}
