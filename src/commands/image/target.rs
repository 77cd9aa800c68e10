//! The machines that an image is judged for: this one, stated ones, or those of profiles.

use std::path::Path;

use crate::cli::{Common, Image};
use crate::collect::host;
use crate::collect::tree::{Kind, Tree};
use crate::commands::output::Failed;
use crate::commands::setting;
use crate::knowledge::architecture::oci_name;
use crate::knowledge::gpus::{Stated, Unnamed};
use crate::model::host::Gpu;
use crate::model::observed::NOT_STATED;
use crate::model::{DriverVersion, Host, Knowledge, Observed};

/// Where a stated fact comes from.
const STATED: &str = "the command line";

/// A machine that the image is judged for.
#[derive(Debug)]
pub(super) struct Target {
    /// What it is called: `this machine`, a profile's file, what was stated.
    pub(super) name: String,
    /// What is known of it.
    pub(super) host: Host,
    /// Which image is taken where there are several.
    pub(super) architecture: String,
}

/// All of them, in the order in which they were named.
pub(super) fn all(asked: &Image, common: &Common, files: &Tree, knowledge: &Knowledge) -> Result<Vec<Target>, Failed> {
    let targets = if !asked.host_profile.is_empty() {
        asked.host_profile.iter().map(|file| profile(file)).collect::<Result<_, _>>()?
    } else if asked.driver.is_some() || !asked.gpu.is_empty() {
        stated(asked, knowledge)?
    } else {
        vec![(setting::name_of_machine(common), setting::machine(common, files, knowledge))]
    };
    let wanted = |host: &Host| match (&asked.platform, host.architecture.seen()) {
        (Some(platform), _) => platform.clone(),
        (None, Some(name)) => oci_name(name).to_owned(),
        (None, None) => oci_name(std::env::consts::ARCH).to_owned(),
    };
    Ok(targets.into_iter().map(|(name, host)| Target { architecture: wanted(&host), name, host }).collect())
}

fn profile(file: &Path) -> Result<(String, Host), Failed> {
    let name = file.display().to_string();
    let failed = |reason: String| {
        Failed::new(name.clone(), reason, "name a file that gpu-preflight host --save wrote with --host-profile")
    };
    let path = setting::readable(file, "--host-profile")?;
    let here = Tree::open(Path::new("/"), Kind::Host).map_err(|error| failed(error.to_string()))?;
    let host = host::profile(&here, &path.to_string_lossy(), &name).map_err(|unseen| failed(unseen.reason))?;
    Ok((name, host))
}

/// One for each kind of GPU that was stated, or one of which only the driver is known.
fn stated(asked: &Image, knowledge: &Knowledge) -> Result<Vec<(String, Host)>, Failed> {
    let mut gpus: Vec<Stated> = Vec::new();
    for text in &asked.gpu {
        let gpu = knowledge.stated_gpu(text).map_err(|unnamed| no_gpu(text, unnamed))?;
        if !gpus.contains(&gpu) {
            gpus.push(gpu);
        }
    }
    let driver = asked.driver.as_ref();
    let platform = asked.platform.as_deref();
    Ok(if gpus.is_empty() {
        vec![machine(driver, None, platform)]
    } else {
        gpus.iter().map(|gpu| machine(driver, Some(gpu), platform)).collect()
    })
}

/// Nothing of this machine counts: what was not stated is not known.
fn machine(driver: Option<&DriverVersion>, gpu: Option<&Stated>, platform: Option<&str>) -> (String, Host) {
    let mut host = Host::unseen(STATED, NOT_STATED);
    let mut name = Vec::new();
    if let Some(version) = driver {
        name.push(format!("driver {version}"));
        host.driver.version = Observed::Known(Some(version.clone()));
    }
    if let Some(gpu) = gpu {
        name.push(gpu.name.clone().unwrap_or_else(|| format!("sm_{}{}", gpu.capability.major, gpu.capability.minor)));
        host.gpus = Observed::Known(vec![Gpu {
            name: gpu.name.clone(),
            compute_capability: Some(gpu.capability),
            ..Gpu::default()
        }]);
    }
    if let Some(platform) = platform {
        host.architecture = Observed::Known(platform.to_owned());
    }
    (name.join(", "), host)
}

fn no_gpu(text: &str, unnamed: Unnamed) -> Failed {
    let (reason, near) = match unnamed {
        Unnamed::Ambiguous(near) => ("several kinds of GPU have this name", near),
        Unnamed::Unknown(near) => ("no GPU that is known here has this name or compute capability", near),
    };
    let way_out = if near.is_empty() {
        "a product's name as nvidia-smi shows it, or its compute capability as sm_90".to_owned()
    } else {
        format!("one of {}, or its compute capability as sm_90", near.join(", "))
    };
    Failed::new(format!("--gpu {text}"), reason, way_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::BUILT_IN;

    fn asked(args: &[&str]) -> Image {
        use clap::Parser as _;
        let line = ["gpu-preflight", "image", "x"].iter().chain(args);
        match crate::cli::Cli::try_parse_from(line).unwrap().command {
            crate::cli::Command::Image(image) => image,
            other => panic!("{other:?}"),
        }
    }

    fn stated_by(args: &[&str]) -> Vec<(String, Host)> {
        stated(&asked(args), &BUILT_IN).unwrap()
    }

    #[test]
    fn what_is_not_stated_is_not_known() {
        let by_driver = stated_by(&["--driver", "535.183.01"]);
        let [(name, host)] = by_driver.as_slice() else { panic!("{by_driver:?}") };
        assert_eq!(name, "driver 535.183.01");
        assert!(host.gpus.known().unwrap_err().was_not_asked() && host.engines.is_empty());
        let by_gpu = stated_by(&["--gpu", "sm_90"]);
        let [(name, host)] = by_gpu.as_slice() else { panic!("{by_gpu:?}") };
        assert_eq!((name.as_str(), host.has_gpu()), ("sm_90", Ok(true)));
        assert!(host.driver.version.known().unwrap_err().was_not_asked());
        assert!(host.architecture.known().is_err());
    }

    #[test]
    fn each_kind_of_gpu_is_a_machine() {
        let all =
            stated_by(&["--driver", "535.183.01", "--gpu", "H100,T4", "--gpu", "H100", "--platform", "linux/arm64"]);
        let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["driver 535.183.01, H100", "driver 535.183.01, T4"]);
        assert_eq!(all[0].1.architecture, Observed::Known("arm64".to_owned()));
    }

    #[test]
    fn a_name_that_is_none_is_answered_with_near_ones() {
        let failed = stated(&asked(&["--gpu", "H1000"]), &BUILT_IN).unwrap_err();
        assert!(failed.way_out.contains("H100") && failed.what == "--gpu H1000", "{failed:?}");
        let failed = stated(&asked(&["--gpu", "RTX 6000"]), &BUILT_IN).unwrap_err();
        assert!(failed.reason.contains("several") && failed.way_out.contains("Quadro RTX 6000"), "{failed:?}");
    }
}
