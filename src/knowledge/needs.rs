//! What the image's programs need of CUDA: frameworks, then runtime libraries of their own, then the CUDA
//! that the image itself is made of.

use std::collections::BTreeMap;

use super::cuda::is_release;
use super::toolkit::base_name;
use crate::model::image::{Build, Framework};
use crate::model::{CudaVersion, Image, Parts, Unknown};

/// What works inside torch, with torch's CUDA.
const OF_TORCH: [&str; 4] = ["triton", "flash-attn", "bitsandbytes", "vllm"];

/// A part of the image that starts only where CUDA is new enough.
#[derive(Debug, Clone)]
pub struct Need<'a> {
    /// For messages: `torch 2.9.0+cu128`, a library's path.
    pub what: String,
    /// The CUDA it is built for; the major alone where no more is known.
    pub cuda: &'a CudaVersion,
    /// That was read, not inferred.
    pub sure: bool,
    /// Where.
    pub source: &'a str,
    /// The framework it is.
    pub framework: Option<&'a Framework>,
}

/// What was found, and whether that is all.
#[derive(Debug)]
pub struct Needs<'a> {
    /// Each with a CUDA of its own.
    pub all: Vec<Need<'a>>,
    /// All places where frameworks lie were looked at.
    pub complete: bool,
}

/// What programs in the image need. Its CUDA toolkit alone says nothing of what programs use, and a runtime that
/// lies somewhere little: it may be there for a part that nobody runs.
pub fn of(image: &Image) -> Result<Needs<'_>, Unknown> {
    let frameworks = image.frameworks.known()?;
    let runtimes = image.runtimes.known()?;
    let Needs { mut all, complete } = of_frameworks(frameworks);
    if all.is_empty() {
        for runtime in runtimes.items.iter().filter(|runtime| !is_of_toolkit(&runtime.source)) {
            if all.iter().any(|need| need.cuda == &runtime.version) {
                continue;
            }
            let what = match runtime.source.strip_suffix(".dist-info") {
                Some(package) => base_name(package),
                None => runtime.source.as_str(),
            };
            all.push(Need {
                what: what.to_owned(),
                cuda: &runtime.version,
                sure: false,
                source: &runtime.source,
                framework: None,
            });
        }
    }
    Ok(Needs { all, complete: complete && runtimes.unread.is_empty() })
}

/// What these frameworks need.
pub fn of_frameworks(frameworks: &Parts<Framework>) -> Needs<'_> {
    let mut all: Vec<Need<'_>> = Vec::new();
    let mut open = false;
    for framework in frameworks.items.iter().filter(|framework| framework.build != Build::Cpu) {
        let Some(cuda) = framework.cuda.as_ref().filter(|_| framework.build == Build::Cuda) else {
            // torch speaks for those that work inside it; of another nobody knows whether it starts
            open |= !OF_TORCH.contains(&framework.name.as_str());
            continue;
        };
        // It brings one backend a major, and takes the one that the driver can run.
        if framework.name == "ollama"
            && let Some(other) = all.iter_mut().find(|need| need.framework.is_some_and(|f| f.name == "ollama"))
        {
            if cuda < other.cuda {
                other.cuda = cuda;
            }
            continue;
        }
        let what = format!("{} {}", framework.name, framework.version).trim_end().to_owned();
        all.push(Need { what, cuda, sure: framework.sure, source: &framework.source, framework: Some(framework) });
    }
    Needs { all, complete: !open && frameworks.unread.is_empty() }
}

/// The CUDA that the image is made of, with where that is said: its variable, or its toolkit's runtime.
pub fn of_image(
    environment: &BTreeMap<String, String>,
    image: &Image,
) -> Result<Option<(CudaVersion, String)>, Unknown> {
    let variable = environment.get("CUDA_VERSION").and_then(|value| value.trim().parse().ok()).filter(is_release);
    if let Some(version) = variable {
        return Ok(Some((version, "CUDA_VERSION".to_owned())));
    }
    let runtimes = image.runtimes.known()?;
    let of_toolkit = runtimes.items.iter().filter(|runtime| is_of_toolkit(&runtime.source));
    Ok(of_toolkit.max_by(|a, b| a.version.cmp(&b.version)).map(|r| (r.version.clone(), r.source.clone())))
}

/// Lies in a toolkit, NVIDIA's or a distribution's: there for whoever wants it.
fn is_of_toolkit(path: &str) -> bool {
    ["/usr/local/cuda", "/opt/cuda", "/usr/lib"].iter().any(|start| path.starts_with(start)) && !path.ends_with("-info")
}
