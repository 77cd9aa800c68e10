//! Libraries of CUDA that a framework looks for and the image does not have.

use std::collections::BTreeSet;

use super::{meant, needs};
use crate::checks::nodes::role::list;
use crate::checks::not_applicable;
use crate::knowledge::frameworks::package_with;
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Place, Severity, Step};

const MISSING: &str = "{what} needs {libraries}, which the image does not have: it fails, or goes on without the GPU";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "framework-cuda-library-missing",
    title: "a CUDA library that the framework needs is not in the image",
    why: "The framework cannot load cuDNN, cuBLAS, NVRTC or another library, and fails or goes on with the processor.",
    messages: &[MISSING],
    remedy: &[
        Step {
            action: Action::ChangePackages,
            text: "Install {packages}, in the version that the framework asks for.",
            command: None,
        },
        Step {
            action: Action::ChangeImage,
            text: "Take a base image that has it: runtime in place of base, cudnn in the tag.",
            command: None,
        },
    ],
    severities: &[Severity::Warning],
    places: &[Place::Hook, Place::Image],
    judge: library_missing,
}];

fn library_missing(facts: &Facts<'_>) -> Judgement {
    // a framework that can do without is left to do so where nobody speaks of a GPU
    if !meant::has_gpu(facts)? || (facts.place == Place::Image && !meant::is_for_gpu(facts)?) {
        return not_applicable();
    }
    let missing = &facts.image.missing.known()?.items;
    let Some(first) = missing.first() else { return not_applicable() };
    let names = missing.iter().filter(|library| library.needed_by == first.needed_by);
    let names: Vec<&str> = names.map(|library| library.name.as_str()).collect();
    let libraries = list(names.iter().copied());
    Failure::new(Severity::Warning, MISSING)
        .foreign("what", &first.needed_by)
        .foreign("libraries", &libraries)
        .arg("packages", packages(facts, &names))
        .saw("image.missing", libraries, first.source.clone())
        .found()
}

/// NVIDIA's packages that bring them, where their CUDA is known: by the libraries that are numbered as it is, else by
/// what the frameworks are built for.
fn packages(facts: &Facts<'_>, names: &[&str]) -> String {
    let own = names.iter().find_map(|name| {
        let (stem, version) = name.split_once(".so.")?;
        let of_cuda = matches!(stem, "libcudart" | "libcublas" | "libcublasLt" | "libnvrtc" | "libnvJitLink");
        version.split('.').next()?.parse().ok().filter(|_| of_cuda)
    });
    let built = || {
        let majors: BTreeSet<u32> = needs::of(facts).ok()?.all.iter().map(|need| need.cuda.number(0)).collect();
        majors.first().copied().filter(|_| majors.len() == 1)
    };
    let found: BTreeSet<String> = match own.or_else(built) {
        Some(major) => names.iter().filter_map(|name| package_with(name, major)).collect(),
        None => BTreeSet::new(),
    };
    if found.is_empty() { "the packages with them".to_owned() } else { list(found.iter().map(String::as_str)) }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::check::Arg;
    use crate::model::image::MissingLibrary;
    use crate::model::{Observed, Parts, Place};

    const ID: &str = "framework-cuda-library-missing";

    fn lacking(mut world: World) -> World {
        let missing = |name: &str| MissingLibrary {
            name: name.into(),
            needed_by: "cupy-cuda13x 13.6.0".into(),
            source: "/usr/lib/python3/dist-packages/cupy_cuda13x-13.6.0.dist-info".into(),
        };
        world.image.missing = Observed::Known(Parts::whole(vec![missing("libnvrtc.so.13"), missing("libx.so.1")]));
        world
    }

    #[test]
    fn a_library_that_is_nowhere_is_a_warning_where_a_gpu_is_meant() {
        let found = lacking(World::cdi(1)).short(ID);
        let told = |wanted: &str| found.args.iter().any(|(_, arg)| *arg == Arg::Ours(wanted.to_owned()));
        assert!(told("nvidia-cuda-nvrtc"), "{found:?}");
        let mut image = lacking(World { place: Place::Image, ..World::plain() });
        image.container.gpu_given = Observed::Known(crate::model::container::Given::LegacyHook);
        image.silent(ID);
        image.set("CUDA_VERSION", "12.9.1");
        image.short(ID);
        World::cdi(1).silent(ID);
        lacking(World::plain()).silent(ID);
        let mut unread = World::cdi(1);
        unread.image.missing = unseen();
        unread.unknown(ID);
    }
}
