//! `gpu-preflight host`: judges this machine.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::checks;
use crate::cli::{self, Common, Format};
use crate::collect::host;
use crate::collect::tree::{Kind, Tree};
use crate::commands::output::{Failed, deliver, detail, exit_code, rendered};
use crate::commands::{saved, setting};
use crate::model::host::Carried;
use crate::model::{Container, Facts, Host, Image, Judged, Knowledge, Place, Report, Verdict};
use crate::policy::{self, Policy};
use crate::report::answer::Answer;
use crate::report::changes::{self, Comparison, words};
use crate::report::json::Subjects;
use crate::report::operators::{Watched, nagios, nfd, prometheus};
use crate::report::profile;
use crate::report::text::report_with;

mod nvml;

pub(crate) use nvml::Told;

/// Of a file that other programs read, under users of their own.
const READABLE: u32 = 0o644;

/// Where variables of the caller lead is read at once, or lies on a file system that does not answer.
const CALLER: Duration = Duration::from_secs(1);

/// What this machine came to, before policy.
pub(crate) struct Asked {
    pub(crate) host: Host,
    pub(crate) policy: Policy,
    pub(crate) judged: Vec<Judged>,
    pub(crate) knowledge: Knowledge,
}

/// Reads and judges.
pub(crate) fn ask(common: &Common, told: &Told<'_>, with_cuda: bool) -> Result<Asked, Failed> {
    let started = Instant::now();
    let tree = setting::host_tree(common)?;
    let policy = setting::policy(common, &tree)?;
    let knowledge = setting::knowledge(&tree);
    let mut host = nvml::machine(common, &tree, &knowledge, told)?;
    host::add_caller(&tree, &setting::environment(), &mut host, Instant::now() + CALLER);
    // a recording alone is of another machine, whose processes are not these
    let suspects = (!nvml::is_all_there_is(common, told)).then(|| host::suspects(&tree, &host));
    nvml::ask(&tree, &mut host, told, suspects.as_ref(), started);
    if with_cuda {
        nvml::start_cuda(&mut host);
    }
    if let Some(suspects) = suspects {
        host.stuck = suspects.that_stay(&tree);
    }
    let (image, container) = (Image::default(), Container::default());
    let facts = Facts { host: &host, image: &image, container: &container, knowledge: &knowledge, place: Place::Host };
    let judged = checks::judge(&facts);
    Ok(Asked { host, policy, judged, knowledge })
}

/// Reads, judges, compares, saves, prints.
pub(crate) fn run(asked: &cli::Host, common: &Common) -> Result<u8, Failed> {
    // a file that cannot be read is said before this machine is looked at, and may be the one that is saved to
    let before = asked.compare.as_deref().map(|file| earlier(file, common)).transpose()?;
    let Asked { host, policy, judged, knowledge } = ask(common, &Told::of(asked), asked.cuda)?;
    let mut report = policy::report(&policy, None, &common.ignore, judged);
    let nothing = nothing_of_nvidia(&host);
    if nothing && report.verdict == Verdict::Pass {
        report.verdict = Verdict::Skip;
    }
    let mut headline = if nothing { "this machine has no NVIDIA part".to_owned() } else { headline(&host, &report) };
    if asked.nvml.is_some() && common.host_root.is_none() && report.verdict == Verdict::Pass {
        // of all else nothing is known
        headline = format!("nothing is found against what NVML said{}", setting::besides(&report));
    }
    let since = before.map(|before| compare(&before, &host)).transpose()?;
    if let Some(file) = &asked.save {
        save(&host, file)?;
    }
    if let Some(file) = &asked.save_nvml {
        nvml::save(&host, file)?;
    }
    let target = match &asked.nvml {
        Some(file) if common.host_root.is_none() => file.display().to_string(),
        _ => setting::name_of_machine(common),
    };
    let subjects = Subjects { host: Some(&host), since: since.as_ref(), ..Subjects::default() };
    let answer = Answer { host: &target, report: &report, subjects };

    let cuda = cuda_offered(&host, &knowledge);
    let watched = Watched { host: &host, report: &report, cuda: cuda.as_deref() };
    if let (Some(file), Some(since)) = (&asked.compare, &since) {
        headline.push_str(&words::headline(&file.display().to_string(), since));
    }
    let changes = since.as_ref().map(words::lines).unwrap_or_default();
    let in_words = |detail| report_with(&headline, &changes, &report, detail);
    let rendered = match common.format {
        Format::Nagios => nagios::text(&headline, &watched, detail(common)),
        Format::Prometheus => prometheus::text(&watched),
        Format::Nfd => nfd::text(&watched),
        Format::Text | Format::Json | Format::Sarif | Format::Junit => {
            rendered("host", &target, &[answer], &in_words, common)?
        }
    };
    match &asked.output {
        // colour is for terminals
        Some(file) if common.format == Format::Text => {
            write(file, &anstream::adapter::strip_str(&rendered).to_string())?;
        }
        Some(file) => write(file, &rendered)?,
        None => deliver(&rendered, common),
    }
    Ok(if common.format == Format::Nagios { nagios::code(&report) } else { exit_code(&[answer], common) })
}

/// The CUDA that the driver offers. Of a driver newer than the tables only the least is known, which is no answer.
fn cuda_offered(host: &Host, knowledge: &Knowledge) -> Option<String> {
    if let Some(cuda) = host.nvml.as_ref().and_then(|nvml| nvml.cuda.clone()) {
        return Some(cuda);
    }
    let offered = knowledge.offered_by(host.driver.version.seen()?.as_ref()?)?;
    (!offered.by_rule).then(|| offered.value.to_string())
}

/// What the profile holds that is compared with; only text and JSON have a place for what changed.
fn earlier(file: &Path, common: &Common) -> Result<Carried, Failed> {
    if !matches!(common.format, Format::Text | Format::Json) {
        return Err(Failed::new(
            "host --compare",
            "what changed is told in text and JSON only",
            "--format text or --format json",
        ));
    }
    let name = file.display().to_string();
    let failed = |reason: String| {
        Failed::new(name.clone(), reason, "name a file that gpu-preflight host --save wrote with --compare")
    };
    let path = setting::readable(file, "--compare")?;
    let here = Tree::open(Path::new("/"), Kind::Host).map_err(|error| failed(error.to_string()))?;
    host::carried(&here, &path.to_string_lossy(), &name).map_err(|unseen| failed(unseen.reason))
}

fn compare(before: &Carried, host: &Host) -> Result<Comparison, Failed> {
    let document = |carried: &Carried| {
        profile::document(carried)
            .map_err(|error| Failed::new("host --compare", error.to_string(), "report this as a bug"))
    };
    Ok(changes::between(&document(before)?, &document(&Carried::from(host))?))
}

/// Writes the report for those who wait for it.
fn write(file: &Path, text: &str) -> Result<(), Failed> {
    saved::renew(file, format!("{text}\n").as_bytes(), READABLE).map_err(|error| {
        Failed::new(
            file.display().to_string(),
            format!("it could not be written ({error})"),
            "name a file in a directory that can be written to with --output",
        )
    })
}

/// Writes the profile.
fn save(host: &Host, file: &Path) -> Result<(), Failed> {
    let failed = |reason: String| {
        Failed::new(file.display().to_string(), reason, "name a file in a directory that can be written to with --save")
    };
    let text = profile::text(host).map_err(|error| failed(error.to_string()))?;
    if holds_something_else(file, profile::KIND) {
        return Err(failed("what stands there is no host profile, and stays".to_owned()));
    }
    saved::replace(file, text.as_bytes()).map_err(|error| failed(format!("it could not be written ({error})")))
}

/// What stands there is no document of this kind: a slip of the hand must not cost `/etc/hostname`.
fn holds_something_else(file: &Path, wanted: &str) -> bool {
    let old = std::path::absolute(file).ok().and_then(|path| {
        let here = Tree::open(path.parent()?, Kind::Host).ok()?;
        here.read(path.file_name()?.to_str()?, host::MOST_PROFILE).transpose()
    });
    match old {
        None => false,
        Some(Err(_)) => true,
        Some(Ok(old)) => {
            let kind =
                || serde_json::from_slice::<serde_json::Value>(&old).ok()?.get("kind")?.as_str().map(str::to_owned);
            !old.trim_ascii().is_empty() && kind().as_deref() != Some(wanted)
        }
    }
}

/// No GPU, no driver, no toolkit: nothing to judge.
fn nothing_of_nvidia(host: &Host) -> bool {
    host.has_gpu() == Ok(false)
        && host.driver.version.seen().is_some_and(Option::is_none)
        && host.driver.modules.seen().is_some_and(|modules| !modules.contains_key("nvidia"))
        && host.device_nodes.seen().is_some_and(std::collections::BTreeMap::is_empty)
}

fn headline(host: &Host, report: &Report) -> String {
    let driver = match host.driver.version.seen() {
        Some(Some(version)) => format!("driver {version}"),
        Some(None) => "driver not loaded".to_owned(),
        None => "driver unknown".to_owned(),
    };
    let gpus = host.gpus.seen().map(Vec::as_slice).unwrap_or_default();
    let on_bus = host.pci.seen().map_or(0, Vec::len);
    let count = if gpus.is_empty() { on_bus } else { gpus.len() };
    let name = gpus.first().and_then(|g| g.name.as_deref()).unwrap_or("GPU");
    let state = match report.verdict {
        Verdict::Fail => "GPU containers will not work",
        Verdict::Unknown => "some of it could not be judged",
        Verdict::Pass | Verdict::Skip => "ready for GPU containers",
    };
    format!("{state} ({driver}, {count} x {name}){}", setting::besides(report))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, cdi_spec};
    use crate::collect::container::of_image;
    use crate::collect::host::profile as read;
    use crate::model::host::{CdiHook, EngineKind, Gpu, Platform, ToolkitConfig};
    use crate::model::image::Configuration;
    use crate::model::{ComputeCapability, Observed};

    /// Saved, and read again.
    fn travelled(host: &Host) -> Host {
        let directory = tempfile::tempdir().unwrap();
        save(host, &directory.path().join("a.json")).unwrap();
        let tree = Tree::open(directory.path(), Kind::Host).unwrap();
        read(&tree, "a.json", "a.json").unwrap()
    }

    fn judged(host: &Host, image: &Image) -> Report {
        let variables = [("NVIDIA_REQUIRE_CUDA", "cuda>=12.8"), ("NVIDIA_VISIBLE_DEVICES", "all")];
        let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let configuration = Configuration { environment, architecture: "arm64".to_owned(), ..Configuration::default() };
        let image = Image {
            architecture: Observed::Known(Some("arm64".to_owned())),
            configuration: Some(configuration.clone()),
            ..image.clone()
        };
        let container = of_image(&configuration, host);
        let knowledge = crate::knowledge::BUILT_IN;
        let facts = Facts { host, image: &image, container: &container, knowledge: &knowledge, place: Place::Image };
        policy::report(&Policy::default(), Some(&container), &[], checks::judge(&facts))
    }

    fn hosts() -> Vec<Host> {
        let plain = crate::model::testing::host(2);
        let mut by_cdi = plain.clone();
        let hook = CdiHook { path: "/usr/bin/nvidia-cdi-hook".into(), args: vec!["enable-cuda-compat".into()] };
        let spec = crate::model::host::CdiSpec { hooks: vec![hook], mounts: vec!["/a".into()], ..cdi_spec() };
        by_cdi.cdi = Observed::Known(vec![spec]);
        for engine in &mut by_cdi.engines {
            engine.kind = EngineKind::Podman;
            engine.runtime_args = [("nvidia".to_owned(), vec!["--debug".to_owned()])].into();
        }
        let config = ToolkitConfig { disable_require: Some(true), ..ToolkitConfig::default() };
        let mut lenient = plain.clone();
        lenient.toolkit.config = Observed::Known(Some(config));
        let mut half_seen = plain.clone();
        half_seen.toolkit.config = Observed::unknown("host.toolkit.config", "/etc", "refused");
        half_seen.driver.version = Observed::unknown("host.driver.version", "/sys", "refused");
        let mut stated = plain.clone();
        let capability = Some(ComputeCapability::new(7, 0));
        stated.gpus = Observed::Known(vec![Gpu { compute_capability: capability, excluded: true, ..Gpu::default() }]);
        stated.pci = Observed::Known(Vec::new());
        let mut none = plain.clone();
        none.driver.version = Observed::Known(None);
        let wsl = Host { platform: Platform::Wsl, ..crate::model::testing::bare_host() };
        let tegra =
            Host { platform: Platform::Tegra, l4t: Some("36.4.0".into()), ..crate::model::testing::bare_host() };
        vec![plain, by_cdi, lenient, half_seen, stated, none, wsl, tegra, crate::model::testing::bare_host()]
    }

    #[test]
    fn a_machine_that_travelled_is_judged_as_the_one_that_stayed() {
        let image = World::machine(0)
            .framework("torch", "2.11.0", "13.0")
            .compat("580.65.06", Some(&["/usr/local/nvidia/lib64"]))
            .image;
        let mut findings = 0;
        for (number, host) in hosts().iter().enumerate() {
            let (here, there) = (judged(host, &image), judged(&travelled(host), &image));
            assert_eq!((here.verdict, &here.findings), (there.verdict, &there.findings), "host {number}");
            let open = |report: &Report| {
                report.unknown.iter().map(|unknown| (unknown.check, unknown.fact.clone())).collect::<Vec<_>>()
            };
            assert_eq!((open(&here), here.settled), (open(&there), there.settled), "host {number}");
            findings += here.findings.len();
        }
        assert!(findings > 8, "only {findings} findings: the image is not spoilt enough to compare anything");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test looks at what was written")]
    fn a_file_that_is_no_profile_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("hostname");
        for (text, taken) in [("node7\n", false), ("{\"kind\": \"report\"}", false), ("", true), ("\n", true)] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(save(&hosts()[0], &file).is_ok(), taken, "{text:?}");
            assert!(taken || std::fs::read_to_string(&file).unwrap() == text);
        }
        save(&hosts()[1], &file).unwrap();
    }

    #[test]
    fn a_profile_of_a_profile_is_the_same_but_for_its_nodes() {
        for mut host in hosts() {
            let travelled = profile::text(&travelled(&host)).unwrap();
            host.device_nodes = Observed::unknown("host.device_nodes", "a.json", "the profile does not tell it");
            assert_eq!(profile::text(&host).unwrap(), travelled);
        }
    }

    #[test]
    fn what_was_saved_is_read_again_whole_and_differs_in_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.json");
        for host in hosts() {
            save(&host, &file).unwrap();
            let tree = Tree::open(directory.path(), Kind::Host).unwrap();
            let before = crate::collect::host::carried(&tree, "a.json", "a.json").unwrap();
            assert_eq!(compare(&before, &host).unwrap(), Comparison::default());
        }
    }

    #[test]
    fn a_driver_newer_than_the_tables_offers_what_nobody_knows() {
        let mut host = crate::model::testing::host(1);
        assert_eq!(cuda_offered(&host, &crate::knowledge::BUILT_IN).as_deref(), Some("12.4"));
        host.driver.version = Observed::Known(Some("9999.1".parse().unwrap()));
        assert_eq!(cuda_offered(&host, &crate::knowledge::BUILT_IN), None);
    }

    #[test]
    fn its_keys_are_sorted_and_it_ends_as_a_text_file() {
        fn check(value: &serde_json::Value, text: &str) {
            if let serde_json::Value::Object(map) = value {
                let mut at = 0;
                for (key, value) in map {
                    let key = format!("\"{key}\":");
                    at += text[at..].find(&key).unwrap_or_else(|| panic!("{key} comes before its neighbour"));
                    check(value, &text[at..]);
                }
            }
        }
        let text = profile::text(&crate::model::testing::host(1)).unwrap();
        check(&serde_json::from_str(&text).unwrap(), &text);
        assert!(text.ends_with("}\n") && !text.contains("proc/self"));
    }
}
