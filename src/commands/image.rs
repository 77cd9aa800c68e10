//! `gpu-preflight image`: judges an image before it is deployed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::checks;
use crate::cli::{self, Common};
use crate::collect::container;
use crate::collect::image;
use crate::collect::image::source::{self, Depth, Found, Machine, Progress, Reference, Wish};
use crate::collect::tree::{Kind, Tree};
use crate::commands::output::{Failed, conclude, is_of_no_machine};
use crate::commands::setting;
use crate::commands::watch::Watch;
use crate::knowledge::answer;
use crate::knowledge::architecture::runs_on;
use crate::knowledge::require::declared;
use crate::model::{Facts, Host, Image, Knowledge, Place, Report};
use crate::policy::{self, Policy};
use crate::report::answer::Answer;
use crate::report::image::{About, gpu_archs};
use crate::report::json::Subjects;

mod target;
mod words;

use target::Target;

/// An image that was read.
struct Read {
    found: Found,
    image: Image,
    about: About,
}

/// Reads, judges, prints.
pub(crate) fn run(asked: &cli::Image, common: &Common) -> Result<u8, Failed> {
    is_of_no_machine("image", common)?;
    let files = setting::host_tree(common)?;
    let policy = setting::policy(common, &files)?;
    let knowledge = setting::knowledge(&files);
    let targets = target::all(asked, common, &files, &knowledge)?;
    let machine = Machine::new(&files, common.host_root.is_some(), setting::environment());
    let images = read(asked, &targets, &machine, &knowledge, common)?;
    let judged: Vec<(&Target, &Read, Report)> = targets
        .iter()
        .filter_map(|target| Some((target, images.get(&target.architecture)?)))
        .map(|(target, read)| (target, read, judge(read, &target.host, &knowledge, &policy, &common.ignore)))
        .collect();
    let answers: Vec<Answer<'_>> = judged
        .iter()
        .map(|(target, read, report)| {
            let (host, image, about) = (Some(&target.host), Some(&read.image), Some(&read.about));
            Answer { host: &target.name, report, subjects: Subjects { host, image, about, ..Subjects::default() } }
        })
        .collect();
    conclude("image", &asked.reference, &answers, &|detail| words::text(&answers, detail), common)
}

/// The image for every processor that is wanted: once each, however many hosts it is judged for.
fn read(
    asked: &cli::Image,
    targets: &[Target],
    machine: &Machine<'_>,
    knowledge: &Knowledge,
    common: &Common,
) -> Result<BTreeMap<String, Read>, Failed> {
    let failed = |reason: String, way_out: &str| Failed::new(&asked.reference, reason, way_out);
    let reference = Reference::parse(&asked.reference);
    let progress: Arc<Progress> = Arc::default();
    let _watch = Watch::start(&asked.reference, Arc::clone(&progress), !common.quiet)
        .map_err(|error| failed(error.to_string(), "a machine with room for one more thread"))?;
    let mut images = BTreeMap::new();
    for target in targets {
        if images.contains_key(&target.architecture) {
            continue;
        }
        if !images.is_empty() && reference == Reference::Stdin {
            let reason = "the hosts have different processors, and standard input can be read only once";
            return Err(failed(reason.to_owned(), "name the image's place, or the one that is meant with --platform"));
        }
        let depth = match asked.depth {
            cli::Depth::Config => Depth::Config,
            cli::Depth::Files => Depth::Files,
        };
        let wish = Wish { depth, architecture: target.architecture.clone(), progress: Arc::clone(&progress) };
        let found = source::find(&reference, &wish, machine)
            .map_err(|why| failed(reason(&asked.reference, &why), &way_out(&reference)))?;
        let mut image = image::examine(&found);
        answer::tell(&mut image, &found.configuration.environment, knowledge);
        let mut about = about(&found, &image, asked.depth);
        about.remarks.extend(other_processor(&image, &target.architecture));
        images.insert(target.architecture.clone(), Read { found, image, about });
    }
    Ok(images)
}

/// Why there is no image. What was asked for is said before it, and is not said again.
fn reason(asked: &str, why: &source::Failed) -> String {
    let (source::Failed::Absent(unseen) | source::Failed::Unreadable(unseen)) = why;
    let is_engine = matches!(unseen.source.as_str(), "docker" | "podman" | "containerd");
    match why {
        _ if asked.ends_with(&unseen.source) => unseen.reason.clone(),
        source::Failed::Absent(_) if is_engine => format!("{} {}", unseen.source, unseen.reason),
        _ => why.to_string(),
    }
}

fn way_out(reference: &Reference) -> String {
    match reference {
        Reference::Any(name) if stands_here(name) => format!("./{name}: a path begins with ./, ../ or /"),
        Reference::Any(name) | Reference::Docker(name) | Reference::Podman(name) | Reference::Containerd(name) => {
            format!("registry:{name}, which asks the registry, or another place that gpu-preflight image --help names")
        }
        _ => "name an image that is there, as gpu-preflight image --help says".to_owned(),
    }
}

/// Somebody may have meant a file of the working directory.
fn stands_here(name: &str) -> bool {
    let here = std::path::absolute(name).ok();
    let files = Tree::open(Path::new("/"), Kind::Host).ok();
    here.zip(files).is_some_and(|(path, files)| matches!(files.stat(&path.to_string_lossy()), Ok(Some(_))))
}

fn about(found: &Found, image: &Image, depth: cli::Depth) -> About {
    let requirements = declared(&found.configuration.environment);
    About {
        source: found.source.clone(),
        depth: match depth {
            cli::Depth::Config => "config",
            cli::Depth::Files => "files",
        },
        id: found.id.clone(),
        requirements: requirements.iter().map(|one| format!("{}={}", one.variable, one.value)).collect(),
        gpu_archs: gpu_archs(image),
        asks_for_gpu: container::of_image(&found.configuration, &Host::default()).wants_gpu.is_asked(),
        remarks: found.remarks.clone(),
    }
}

/// A source with one image hands it over, whatever processor it is for.
fn other_processor(image: &Image, wanted: &str) -> Option<String> {
    let its = image.architecture.seen()?.as_ref().filter(|its| !runs_on(its, wanted))?;
    Some(format!("it is for {its}, not for {wanted}, which was looked for: --platform says which is meant"))
}

fn judge(read: &Read, host: &Host, knowledge: &Knowledge, policy: &Policy, ignore: &[String]) -> Report {
    let container = container::of_image(&read.found.configuration, host);
    let facts = Facts { host, image: &read.image, container: &container, knowledge, place: Place::Image };
    policy::report(policy, Some(&container), ignore, checks::judge(&facts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Observed;

    #[test]
    fn what_was_asked_for_is_said_once() {
        let absent = |asked: &str, source: &str, said: &str| {
            reason(asked, &source::Failed::Absent(crate::model::Unseen::new(source, said)))
        };
        assert_eq!(absent("./nope", "./nope", "there is nothing"), "there is nothing");
        assert_eq!(absent("oci:./nope", "./nope", "there is nothing"), "there is nothing");
        assert_eq!(absent("docker:nothing", "docker", "is not here"), "docker is not here");
        assert_eq!(absent("oci:./a", "./a/index.json", "it is empty"), "./a/index.json: it is empty");
        assert!(way_out(&Reference::parse("pytorch/pytorch:latest")).starts_with("registry:pytorch/pytorch:latest,"));
        // unit tests run in the directory of Cargo.toml
        assert!(way_out(&Reference::parse("Cargo.toml")).starts_with("./Cargo.toml:"));
        assert!(way_out(&Reference::parse("./nope")).starts_with("name an image that is there"));
    }

    #[test]
    fn an_image_for_another_processor_than_the_one_looked_for_is_said() {
        let of = |its: Option<&str>, wanted: &str| {
            let image = Image { architecture: Observed::Known(its.map(str::to_owned)), ..Image::default() };
            other_processor(&image, wanted)
        };
        assert!(of(Some("arm64"), "amd64").unwrap().contains("it is for arm64"));
        assert_eq!((of(Some("amd64"), "amd64"), of(Some("386"), "amd64"), of(None, "amd64")), (None, None, None));
    }
}
