//! `gpu-preflight install` and `uninstall`: registration with the engines of this machine.
//!
//! The program comes first, the files that name it behind it; on the way out the files first.

use std::path::Path;

use clap::ValueEnum as _;

use crate::cli::{Common, EngineName, Install, Uninstall};
use crate::collect::host;
use crate::collect::tree::{Kind, Tree};
use crate::commands::output::{Failed, has_no_report};
use crate::commands::setting;
use crate::model::host::Daemon;
use crate::model::own::LARGEST_PROGRAM;
use crate::register::{Trouble, policy};

mod disk;
mod plan;
mod programs;
mod record;
mod shown;

use disk::Disk;
use plan::{Asked, Change, No, Plan};
use programs::Programs;
use record::Records;
use shown::{Done, Shown};

/// What to do about a file that could not be written.
const UNWRITTEN: &str = "mend that, then the same again: what stood there stands there still";

/// Registers with the engines asked for, or with all that are here.
pub(crate) fn install(asked: &Install, common: &Common) -> Result<u8, Failed> {
    has_no_report("install", common)?;
    let files = setting::host_tree(common)?;
    let policy = setting::policy(common, &files)?;
    let host = setting::machine(common, &files, &setting::knowledge(&files));
    let disk = disk_of(common, &files, asked.dry_run)?;
    let _alone = disk.alone(asked.dry_run)?;
    let programs = Programs::plan(&disk, beside())?;
    let mut records = Records::read(&disk).map_err(|(path, reason)| unwritten(&path, reason))?;
    let plans = Asked {
        host: &host,
        policy: &policy,
        disk: &disk,
        default: !asked.no_default,
        force: false,
        docker: Daemon::None,
    };
    let everybody = asked.engines.is_empty();
    let engines =
        engines(&asked.engines, EngineName::value_variants().iter().copied().filter(|e| *e != EngineName::Cdi));

    let mut shown = Shown::new("install", asked.dry_run);
    if let Some(words) = programs.words() {
        shown.program(words);
        if !asked.dry_run {
            programs.carry_out(&disk)?;
        }
    }
    if asked.build_host {
        build_host(&disk, asked.dry_run, &mut shown)?;
    }
    for engine in engines {
        match plans.install(engine, &records) {
            Err(No::Absent(_)) if everybody => {}
            Err(no) => shown.add(engine, refused(no, everybody)),
            Ok(plan) => {
                let share = |records: &mut Records<'_>| {
                    plan.shares
                        .iter()
                        .try_for_each(|path| records.share(engine, path).map_err(|why| (path.clone(), why)))
                };
                let done =
                    if asked.dry_run { Ok(()) } else { records.carry_out(&plan).and_then(|()| share(&mut records)) };
                shown.add(engine, ended(plan, done));
            }
        }
    }
    Ok(shown.print(common))
}

/// Takes it out of the engines asked for, or of all that it is registered with.
pub(crate) fn uninstall(asked: &Uninstall, common: &Common) -> Result<u8, Failed> {
    has_no_report("uninstall", common)?;
    let files = setting::host_tree(common)?;
    let policy = setting::policy(common, &files)?;
    let machine = setting::machine(common, &files, &setting::knowledge(&files));
    let disk = disk_of(common, &files, asked.dry_run)?;
    let _alone = disk.alone(asked.dry_run)?;
    let mut records = Records::read(&disk).map_err(|(path, reason)| unwritten(&path, reason))?;
    let everybody = asked.engines.is_empty();
    let is_meant = everybody || asked.engines.contains(&EngineName::Docker);
    let docker = if is_meant && !machine.laid_out { host::docker_keeps(&files) } else { Daemon::None };
    let plans = Asked { host: &machine, policy: &policy, disk: &disk, default: true, force: asked.force, docker };
    let registered: Vec<EngineName> = records.engines().collect();
    let lingering = plans.keeps_docker_default().then_some(EngineName::Docker);
    let engines = engines(&asked.engines, registered.iter().copied().chain(lingering));

    let mut shown = Shown::new("uninstall", asked.dry_run);
    for engine in engines {
        if !registered.contains(&engine) && (engine != EngineName::Docker || lingering.is_none()) {
            shown.add(engine, Done::Nothing("not registered by gpu-preflight install".to_owned()));
            continue;
        }
        match plans.uninstall(engine, &records) {
            Err(no) => shown.add(engine, refused(no, everybody)),
            Ok(plan) => {
                let done = if !registered.contains(&engine) {
                    Ok(())
                } else if asked.dry_run {
                    if !plan.stays {
                        records.forget(engine);
                    }
                    Ok(())
                } else {
                    records.take_back(&plan)
                };
                shown.add(engine, ended(plan, done));
            }
        }
    }
    if everybody
        && let Ok(Some(now)) = disk.text(policy::FILE)
        && now == policy::TEXT
    {
        shown.file(Change { path: policy::FILE.to_owned(), now: Some(now), after: None, mode: 0 });
        if !asked.dry_run {
            disk.remove(policy::FILE, &policy::DIRECTORIES.map(str::to_owned))
                .map_err(|reason| unwritten(policy::FILE, reason))?;
        }
    }
    Ok(shown.print(common))
}

/// In the order of the catalogue, each once.
fn engines(asked: &[EngineName], all: impl Iterator<Item = EngineName>) -> Vec<EngineName> {
    let mut engines: Vec<EngineName> = if asked.is_empty() { all.collect() } else { asked.to_vec() };
    engines.sort_unstable();
    engines.dedup();
    engines
}

/// A plan that was carried out, or the file that could not be written; the other engines are gone on with.
fn ended(plan: Plan, done: Result<(), (String, String)>) -> Done {
    match done {
        Ok(()) => Done::Planned(plan),
        Err((path, reason)) => Done::Failed { path: Some(path), reason, way_out: UNWRITTEN.to_owned() },
    }
}

/// What cannot be done for one engine is no failure where nobody asked for that one.
fn refused(no: No, everybody: bool) -> Done {
    match no {
        No::Absent(reason) => Done::Failed { path: None, reason, way_out: "gpu-preflight status".to_owned() },
        No::Trouble(path, Trouble::Refused { reason, way_out }) if everybody => {
            Done::Nothing(format!("{path}: {reason}; {way_out}"))
        }
        No::Trouble(path, Trouble::Refused { reason, way_out }) => Done::Failed { path: Some(path), reason, way_out },
        No::Trouble(path, broken @ Trouble::Broken(_)) => Done::Failed {
            path: Some(path),
            reason: broken.to_string(),
            way_out: "mend the file, then the same again".to_owned(),
        },
    }
}

fn build_host(disk: &Disk<'_>, dry_run: bool, shown: &mut Shown) -> Result<(), Failed> {
    let now = disk.text(policy::FILE).map_err(|reason| unwritten(policy::FILE, reason))?;
    if now.as_deref() == Some(policy::TEXT) {
        return Ok(());
    }
    if now.is_some() {
        let way_out = "write gpu-not-requested = \"warning\" below [severity] into it";
        return Err(Failed::new(policy::FILE, "somebody has written it with another text, which stays", way_out));
    }
    if !dry_run {
        let written = disk.write(policy::FILE, policy::TEXT.as_bytes(), 0o644);
        written.map_err(|reason| unwritten(policy::FILE, reason))?;
    }
    shown.file(Change { path: policy::FILE.to_owned(), now, after: Some(policy::TEXT.to_owned()), mode: 0o644 });
    Ok(())
}

fn disk_of<'t>(common: &Common, files: &'t Tree, dry_run: bool) -> Result<Disk<'t>, Failed> {
    if !dry_run && common.host_root.is_none() && !nix::unistd::geteuid().is_root() {
        return Err(Failed::new(
            "the machine's configuration",
            "only root may change it",
            "sudo, or --dry-run to see the change",
        ));
    }
    Ok(Disk::new(common.host_root.as_deref().unwrap_or(Path::new("/")), files))
}

/// The static program that was built or unpacked together with this one.
fn beside() -> Option<Vec<u8>> {
    let own = std::env::current_exe().ok()?;
    let directory = Tree::open(own.parent()?, Kind::Host).ok()?;
    directory.read("gpu-preflight-hook", LARGEST_PROGRAM).ok()?
}

fn unwritten(path: &str, reason: String) -> Failed {
    Failed::new(path, reason, UNWRITTEN)
}
