//! Libraries of CUDA that a framework looks for and the image does not have.

use super::meant;
use crate::checks::nodes::role::list;
use crate::checks::not_applicable;
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
            action: Action::ChangeImage,
            text: "Install it, in the version that the framework asks for.",
            command: Some("pip install nvidia-cudnn-cu12"),
        },
        Step {
            action: Action::ChangeImage,
            text: "Or take a base image that has it: runtime in place of base, cudnn in the tag.",
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
    let libraries = list(names.map(|library| library.name.as_str()));
    Failure::new(Severity::Warning, MISSING)
        .foreign("what", &first.needed_by)
        .foreign("libraries", &libraries)
        .saw("image.missing", libraries, first.source.clone())
        .found()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
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
        lacking(World::cdi(1)).short(ID);
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
