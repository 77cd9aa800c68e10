//! What an image is, in few lines: where it was found, what is in it, what it needs.

use std::fmt::Write as _;

use serde::Serialize;

use super::text::{BOLD, DIM, Detail, shown};
use crate::model::image::{Answer, Build, Framework};
use crate::model::{Image, Observed};

/// Longer lists are cut, unless everything is to be shown.
const MOST_SHOWN: usize = 8;

/// What is to be said of an image besides its files' facts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct About {
    /// Where it was found: `docker, in place (overlay2)`.
    pub source: String,
    /// How deep it was looked at: `config` or `files`.
    pub depth: &'static str,
    /// The digest of its configuration, which is its id.
    pub id: Option<String>,
    /// What its configuration requires of driver and GPU, variable by variable.
    pub requirements: Vec<String>,
    /// Which GPUs it has machine code for (`sm_90`), and from which PTX can be made for newer ones (`compute_90`).
    pub gpu_archs: Option<Vec<String>>,
    /// Its configuration asks for a GPU.
    #[serde(skip)]
    pub asks_for_gpu: bool,
    /// What the user should know of the source.
    #[serde(skip)]
    pub remarks: Vec<String>,
}

/// The architectures of all code in an image: machine code first, each sorted by number.
pub fn gpu_archs(image: &Image) -> Option<Vec<String>> {
    let code = image.device_code.seen()?;
    let groups = || code.items.iter().flat_map(|file| &file.groups);
    let sorted = |prefix: &str, all: Vec<&String>| {
        let mut all: Vec<&String> = all;
        all.sort_by_key(|name| (number(name), (*name).clone()));
        all.dedup();
        all.into_iter().map(|name| format!("{prefix}{}", name.replacen('.', "", 1))).collect::<Vec<_>>()
    };
    let mut archs = sorted("sm_", groups().flat_map(|group| &group.machine).collect());
    archs.extend(sorted("compute_", groups().flat_map(|group| &group.ptx).collect()));
    Some(archs)
}

/// `9.0a` as numbers.
fn number(name: &str) -> (u32, u32) {
    let digits = |text: &str| text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
    name.split_once('.').map_or((0, 0), |(major, minor)| (digits(major), digits(minor)))
}

/// The lines.
pub fn facts(image: &Image, about: &About, detail: Detail) -> String {
    let mut out = String::new();
    let mut line = |name: &str, what: &str| {
        let _ = writeln!(out, "    {DIM}{name:<12}{DIM:#}{what}");
    };
    let inside = if about.depth == "config" { "configuration alone" } else { "files read" };
    line("found in", &format!("{}, {inside}", shown(&about.source)));
    for remark in &about.remarks {
        line("mind", &shown(remark));
    }
    if let Some(id) = &about.id {
        line("id", &shown(id));
    }
    if let Some(Some(architecture)) = image.architecture.seen() {
        line("built for", &shown(architecture));
    }
    if !about.requirements.is_empty() {
        line("requires", &few(about.requirements.iter().map(|text| shown(text)).collect(), detail));
    }
    if about.depth == "config" {
        return out;
    }
    line("CUDA", &runtimes(image, detail));
    line("frameworks", &frameworks(image, detail));
    if let Some(driver) = driver(&image.answer) {
        line("driver", &driver);
    }
    match about.gpu_archs.as_deref() {
        Some([]) => {}
        Some(archs) => line("code for", &archs.iter().map(|name| shown(name)).collect::<Vec<_>>().join(" ")),
        None if detail == Detail::Verbose => line("code for", "not known"),
        None => {}
    }
    out
}

/// The smallest that can start it, and the one it was made for.
fn driver(answer: &Answer) -> Option<String> {
    let least = answer.min_driver.as_ref().map(|least| format!("{BOLD}{}{BOLD:#} or newer", shown(least.as_str())));
    let made_for = answer.full_driver.as_ref().filter(|full| Some(*full) != answer.min_driver.as_ref());
    let made_for = made_for.map(|full| format!("made for {}", shown(full.as_str())));
    let said: Vec<String> = [least, made_for].into_iter().flatten().collect();
    if said.is_empty() { None } else { Some(said.join(", ")) }
}

fn runtimes(image: &Image, detail: Detail) -> String {
    list(&image.runtimes, "no runtime library", detail, |runtime| {
        let place = if detail == Detail::Verbose { format!(" ({})", shown(&runtime.source)) } else { String::new() };
        format!("{BOLD}{}{BOLD:#}{place}", shown(runtime.version.as_str()))
    })
}

fn frameworks(image: &Image, detail: Detail) -> String {
    list(&image.frameworks, "none that is known", detail, |framework| {
        let place = if detail == Detail::Verbose { format!(", {}", shown(&framework.source)) } else { String::new() };
        format!(
            "{BOLD}{} {}{BOLD:#} ({}{place})",
            shown(&framework.name),
            shown(&framework.version),
            built_for(framework)
        )
    })
}

fn built_for(framework: &Framework) -> String {
    let guessed = if framework.sure { "" } else { ", by its release" };
    match (framework.build, &framework.cuda) {
        (Build::Cpu, _) => format!("for the CPU{guessed}"),
        (Build::Cuda, Some(cuda)) => format!("CUDA {}{guessed}", shown(cuda.as_str())),
        (Build::Cuda, None) => format!("CUDA{guessed}"),
        (Build::Unknown, _) => "build not known".to_owned(),
    }
}

/// What was seen of a list, each once, and that there may be more.
fn list<T>(fact: &Observed<crate::model::Parts<T>>, none: &str, detail: Detail, say: impl Fn(&T) -> String) -> String {
    let parts = match fact {
        Observed::Known(parts) => parts,
        Observed::Unknown(unknown) => return format!("not known: {}", shown(&unknown.reason)),
    };
    let mut said: Vec<String> = Vec::new();
    for one in parts.items.iter().map(say) {
        if !said.contains(&one) {
            said.push(one);
        }
    }
    let open = parts.unread.first().map(|unknown| format!("not all was looked at: {}", shown(&unknown.reason)));
    if said.is_empty() && open.is_none() {
        return none.to_owned();
    }
    let all = few(said, detail);
    [Some(all).filter(|text| !text.is_empty()), open].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn few(mut all: Vec<String>, detail: Detail) -> String {
    let more = all.len().saturating_sub(MOST_SHOWN);
    if detail < Detail::Verbose && more > 0 {
        all.truncate(MOST_SHOWN);
        all.push(format!("and {more} more"));
    }
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::image::{CodeGroup, CudaLibrary, DeviceCode};
    use crate::model::observed::ONLY_CONFIGURATION;
    use crate::model::{Parts, Unknown};

    fn framework(name: &str, version: &str, build: Build, cuda: Option<&str>) -> Framework {
        Framework {
            name: name.to_owned(),
            version: version.to_owned(),
            build,
            cuda: cuda.map(|cuda| cuda.parse().unwrap()),
            source: "/usr/lib/python3/version.py".to_owned(),
            sure: cuda.is_some(),
            min_driver: None,
        }
    }

    fn image() -> Image {
        let group = |machine: &[&str], ptx: &[&str]| CodeGroup {
            machine: machine.iter().map(|name| (*name).to_owned()).collect(),
            ptx: ptx.iter().map(|name| (*name).to_owned()).collect(),
            containers: 1,
        };
        let runtime = |version: &str| CudaLibrary {
            version: version.parse().unwrap(),
            source: format!("/usr/local/cuda/lib64/libcudart.so.{version}"),
            linked_in: false,
        };
        Image {
            architecture: Observed::Known(Some("amd64".to_owned())),
            frameworks: Observed::Known(Parts::whole(vec![
                framework("torch", "2.9.0+cu128", Build::Cuda, Some("12.8")),
                framework("jax\u{1b}", "0.4", Build::Unknown, None),
            ])),
            runtimes: Observed::Known(Parts::whole(vec![runtime("12.8.90"), runtime("12.8.90")])),
            device_code: Observed::Known(Parts::whole(vec![DeviceCode {
                groups: vec![group(&["12.0", "8.0"], &["12.0"]), group(&["8.0", "9.0a"], &[])],
                ..DeviceCode::default()
            }])),
            answer: Answer {
                cuda_runtime: Some("12.8".parse().unwrap()),
                min_driver: Some("525.60.13".parse().unwrap()),
                full_driver: Some("570.86.10".parse().unwrap()),
            },
            ..Image::default()
        }
    }

    fn about(image: &Image) -> About {
        About {
            source: "docker, in place (overlay2)".to_owned(),
            depth: "files",
            id: Some("sha256:00".to_owned()),
            requirements: vec!["cuda>=12.8".to_owned()],
            gpu_archs: gpu_archs(image),
            asks_for_gpu: false,
            remarks: vec!["podman has another image of this name".to_owned()],
        }
    }

    #[test]
    fn an_image_in_few_lines() {
        let image = image();
        let text = anstream::adapter::strip_str(&facts(&image, &about(&image), Detail::Usual)).to_string();
        let expected = "    found in    docker, in place (overlay2), files read\n    \
                        mind        podman has another image of this name\n    \
                        id          sha256:00\n    \
                        built for   amd64\n    \
                        requires    cuda>=12.8\n    \
                        CUDA        12.8.90\n    \
                        frameworks  torch 2.9.0+cu128 (CUDA 12.8), \"jax\\u{1b}\" 0.4 (build not known)\n    \
                        driver      525.60.13 or newer, made for 570.86.10\n    \
                        code for    sm_80 sm_90a sm_120 compute_120\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_was_not_seen_is_said() {
        let mut image = image();
        let unread = Unknown::new("image.frameworks", "/opt", "too many names");
        image.frameworks = Observed::Known(Parts { items: Vec::new(), unread: vec![unread] });
        image.runtimes = Observed::unknown("image.cuda_versions", "layer 1", "its window is too large");
        let text = facts(&image, &about(&image), Detail::Usual);
        assert!(text.contains("not all was looked at: too many names"), "{text}");
        assert!(text.contains("not known: its window is too large"), "{text}");
        image.frameworks = Observed::unknown("image.frameworks", "the image's files", ONLY_CONFIGURATION);
        let shallow = facts(&image, &About { depth: "config", ..about(&image) }, Detail::Verbose);
        assert!(shallow.contains("configuration alone") && !shallow.contains("frameworks"), "{shallow}");
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..11).map(|n| format!("a{n}")).collect();
        assert!(few(names.clone(), Detail::Usual).ends_with("a7, and 3 more"));
        assert!(few(names, Detail::Verbose).ends_with("a9, a10"));
    }
}
