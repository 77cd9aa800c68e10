//! `gpu-preflight container`: judges one container, before its start or while it runs.

use std::path::Path;
use std::time::Duration;

use crate::checks;
use crate::cli::Common;
use crate::collect::container::{self, Reading};
use crate::collect::image;
use crate::collect::rehearsal::{self, Look, Place as Seen, Rehearsal, RuntimeKind, Wish};
use crate::collect::tree::Tree;
use crate::commands::output::{Failed, finish, is_of_no_machine};
use crate::commands::setting;
use crate::knowledge::answer;
use crate::model::container::{Given, Moment, Strength, Wants};
use crate::model::{Container, Facts, Host, Image, Judged, Observed, Place, Report, Unknown, Unseen, Verdict};
use crate::policy::{self, Mode, Policy};
use crate::report::answer::Answer;
use crate::report::json::Subjects;

/// Whoever calls waits for the answer; a kernel that is slow may be.
const REHEARSAL: Duration = Duration::from_secs(2);

/// What a container came to, before policy.
pub(crate) struct Asked {
    pub(crate) host: Host,
    pub(crate) image: Image,
    pub(crate) container: Container,
    pub(crate) policy: Policy,
    pub(crate) judged: Vec<Judged>,
}

/// Reads and judges.
pub(crate) fn ask(target: &Path, common: &Common) -> Result<Asked, Failed> {
    let files = setting::host_tree(common)?;
    let policy = setting::policy(common, &files)?;
    let knowledge = setting::knowledge(&files);
    let host = setting::machine(common, &files, &knowledge);
    let mut reading = read(target, &host, &files)?;
    if let Some(unknown) = nothing_read(&reading.container) {
        let way_out = "name a bundle directory or a config.json as an engine writes it";
        return Err(Failed::new(
            target.display().to_string(),
            format!("{}: {}", unknown.source, unknown.reason),
            way_out,
        ));
    }
    let mut image = look_at_image(&reading);
    if let Some(environment) = reading.container.environment.seen() {
        answer::tell(&mut image, environment, &knowledge);
    }
    wish_by_files(&mut reading.container, &image);
    let container = reading.container;
    let facts = Facts { host: &host, image: &image, container: &container, knowledge: &knowledge, place: Place::Hook };
    let judged = checks::judge(&facts);
    Ok(Asked { host, image, container, policy, judged })
}

/// Reads, judges, prints.
pub(crate) fn run(target: &Path, common: &Common) -> Result<u8, Failed> {
    is_of_no_machine("container", common)?;
    let Asked { host, image, container, policy, judged } = ask(target, common)?;
    let report = policy::report(&policy, Some(&container), &common.ignore, judged);
    let subjects =
        Subjects { host: Some(&host), image: Some(&image), container: Some(&container), ..Subjects::default() };
    let answer = Answer { host: &setting::name_of_machine(common), report: &report, subjects };
    let headline = headline(&container, &report, policy.mode_for(&container));
    finish("container", &target.display().to_string(), &headline, answer, common)
}

/// Why none of the spec's parts could be read, if that is so.
fn nothing_read(container: &Container) -> Option<Unknown> {
    let lacks =
        [container.environment.known().err(), container.user.known().err(), container.annotations.known().err()];
    lacks.into_iter().collect::<Option<Vec<_>>>()?.into_iter().next()
}

/// A path, a pid, or a container's id or name, in this order.
fn read(target: &Path, host: &Host, files: &Tree) -> Result<Reading, Failed> {
    let name = target.display().to_string();
    let text = target.to_str().unwrap_or_default();
    let failed = |reason: String| {
        Failed::new(
            name.clone(),
            reason,
            "a bundle directory (with a / in its path), a config.json, a pid, or the id or name of a container that runs",
        )
    };
    if text.contains('/') || text == "." || text == ".." {
        return container::read_bundle(target, host, files).map_err(|unseen| failed(said(&name, &unseen)));
    }
    if let Ok(pid) = text.parse::<i32>() {
        return running(pid, None, host, files).map_err(failed);
    }
    match container::by_word(files, text) {
        Err(unseen) => Err(failed(unseen.reason)),
        Ok(None) => Err(failed(
            "no engine's files know a container of this id or name (docker's are root's to read)".to_owned(),
        )),
        Ok(Some(located)) => match (located.pid, located.bundle) {
            (Some(pid), bundle) => running(pid, bundle.as_deref(), host, files).map_err(failed),
            (None, Some(bundle)) => {
                container::read_bundle(&bundle, host, files).map_err(|unseen| failed(unseen.reason))
            }
            (None, None) => Err(failed("it does not run, and its bundle is gone".to_owned())),
        },
    }
}

/// What could not be seen, without the target's name twice.
fn said(target: &str, unseen: &Unseen) -> String {
    if unseen.source == target { unseen.reason.clone() } else { format!("{}: {}", unseen.source, unseen.reason) }
}

/// A container that runs, with the kernel's word on its nodes.
fn running(pid: i32, bundle: Option<&Path>, host: &Host, files: &Tree) -> Result<Reading, String> {
    let mut reading = container::read_pid(pid, bundle, host, files)
        .map_err(|unseen| format!("{}: {}", unseen.source, unseen.reason))?;
    let container = &mut reading.container;
    if let (false, Observed::Known(nodes), Some(identity)) =
        (host.laid_out, &mut container.devices, container.user.seen())
    {
        let answers = rehearsal::rehearse(&Rehearsal {
            place: Seen::Running { pid },
            identity,
            nodes: nodes.iter().map(|node| Wish::of(&node.path)).collect(),
            keep_groups: false,
            // It has its capabilities by now, whatever gave them.
            runtime: RuntimeKind::Unknown,
            privileged_entrypoint: Some(false),
            deadline: REHEARSAL,
            expendable: false,
        });
        for (node, answer) in nodes.iter_mut().zip(answers) {
            if let Look::Node(stat) = &answer.look {
                (node.uid, node.gid) = (stat.uid, stat.gid);
            }
            node.access = answer.access;
        }
    }
    Ok(reading)
}

fn look_at_image(reading: &Reading) -> Image {
    let Some(rootfs) = &reading.rootfs else { return image::unseen("the root file system", "it could not be entered") };
    let container = &reading.container;
    let hints = match container.moment {
        Moment::NotStarted => image::Hints::before_mounts(container),
        _ => image::Hints::of(container),
    };
    image::look(rootfs, &hints)
}

/// Files that work with CUDA are a wish too, the weakest; but whoever sets the variable has chosen.
fn wish_by_files(container: &mut Container, image: &Image) {
    let chosen = !matches!(container.variable("NVIDIA_VISIBLE_DEVICES"), Ok(None));
    if let (false, false, Some(Some(path))) = (container.wants_gpu.wanted, chosen, image.cuda.seen()) {
        container.wants_gpu = Wants { wanted: true, strength: Strength::Files, why: path.clone() };
    }
}

fn headline(container: &Container, report: &Report, mode: Mode) -> String {
    let wish = match container.wants_gpu.strength {
        Strength::None => "wants no GPU",
        Strength::Files => "has files that work with CUDA",
        Strength::Environment | Strength::Demand => "wants a GPU",
    };
    let given = match container.gpu_given.seen() {
        None => "how one is given could not be told",
        Some(Given::None) => "none is given",
        Some(Given::Cdi) => "given by CDI",
        Some(Given::LegacyHook) => "given by NVIDIA's hook",
        Some(Given::Privileged) => "given by running privileged",
        Some(Given::RawDevices) => "given as single devices",
        Some(Given::Wsl) => "given by WSL",
        Some(Given::Tegra) => "given as Jetson's devices",
        Some(Given::Vm) => "given to a virtual machine",
    };
    let runs = container.moment == Moment::Running;
    let answer = match report.verdict {
        Verdict::Fail if runs => "its GPU does not work",
        // It, or the machine's policy, told the hook not to refuse.
        Verdict::Fail if mode != Mode::Enforce => "its GPU will not work, and its start would not be refused",
        Verdict::Fail => "its start would be refused",
        Verdict::Unknown => "some of it could not be judged",
        Verdict::Pass if container.has_gpu() == Ok(false) => "nothing stands in its way",
        Verdict::Pass if runs => "nothing is wrong with its GPU as far as can be seen",
        Verdict::Pass => "nothing is found against its start; who may open its nodes shows then",
        Verdict::Skip => "nothing to judge",
    };
    format!("{answer} (it {wish}, {given}){}", setting::besides(report))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::BUILT_IN;

    fn with_files(variables: &[(&str, &str)], cuda: Option<&str>) -> (Container, Image) {
        let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let container = Container { environment: Observed::Known(environment), ..Container::default() };
        (container, Image { cuda: Observed::Known(cuda.map(str::to_owned)), ..Image::default() })
    }

    #[test]
    fn files_are_a_wish_of_whoever_did_not_choose() {
        let strength = |variables: &[(&str, &str)], cuda| {
            let (mut container, image) = with_files(variables, cuda);
            wish_by_files(&mut container, &image);
            container.wants_gpu.strength
        };
        let sign = Some("/usr/local/cuda/lib64");
        assert_eq!(strength(&[], sign), Strength::Files);
        assert_eq!(strength(&[], None), Strength::None);
        assert_eq!(strength(&[("NVIDIA_VISIBLE_DEVICES", "void")], sign), Strength::None);
    }

    #[test]
    fn a_container_for_the_cpu_with_a_framework_for_cuda_gets_a_note_and_passes() {
        let (mut container, image) = with_files(&[], Some("/usr/local/lib/python3.12/site-packages/vllm-1.dist-info"));
        wish_by_files(&mut container, &image);
        let host = Host::default();
        let facts =
            Facts { host: &host, image: &image, container: &container, knowledge: &BUILT_IN, place: Place::Hook };
        let report = policy::report(&policy::Policy::default(), Some(&container), &[], checks::judge(&facts));
        let found: Vec<_> = report.findings.iter().map(|f| (f.id, f.severity)).collect();
        assert_eq!(found, [("gpu-not-requested", crate::model::Severity::Note)]);
        assert_eq!((report.verdict, report.unknown.as_slice()), (Verdict::Pass, &[][..]));
        assert!(
            headline(&container, &report, Mode::Enforce).starts_with("nothing stands in its way (it has files that")
        );
    }
}
