//! The image's C library.

use super::meant;
use crate::checks::not_applicable;
use crate::knowledge::programs::is_bare;
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::image::LibcKind;

const MUSL: &str = "the image's C library is musl ({source}): NVIDIA's programs and libraries are built for glibc and do \
                    not start in it";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "musl-image",
    title: "the image has no glibc",
    why: "NVIDIA's programs and libraries need glibc; in Alpine and others with musl they are there and do not start.",
    messages: &[MUSL],
    remedy: &[Step {
        action: Action::ChangeImage,
        text: "Take a base image with glibc, such as debian, ubuntu or nvidia/cuda.",
        command: None,
    }],
    severities: &[Severity::Warning],
    places: &[Place::Hook, Place::Image],
    judge: musl,
}];

fn musl(facts: &Facts<'_>) -> Judgement {
    // a program that never speaks of a GPU is rightly in a small image; in a base image anything may be run
    let starts_program = || facts.container.args.seen().is_some_and(|args| !is_bare(args));
    if !meant::has_gpu(facts)? || (facts.place == Place::Image && starts_program() && !meant::is_for_gpu(facts)?) {
        return not_applicable();
    }
    match facts.image.libc.known()? {
        Some(libc) if libc.kind == LibcKind::Musl => Failure::new(Severity::Warning, MUSL)
            .foreign("source", &libc.source)
            .saw("image.libc", "musl", libc.source.clone())
            .found(),
        _ => Ok(Outcome::Pass),
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::image::{Libc, LibcKind};
    use crate::model::{Observed, Place};

    const ID: &str = "musl-image";

    #[test]
    fn musl_alone_is_a_warning_where_a_gpu_is_meant() {
        let mut world = World::cdi(1);
        world.silent(ID);
        let libc = |kind| Libc { kind, version: None, source: "/lib/ld-musl-x86_64.so.1".into() };
        world.image.libc = Observed::Known(Some(libc(LibcKind::Musl)));
        world.short(ID);
        World { place: Place::Image, ..world.clone() }.failure(ID);
        world.image.libc = Observed::Known(Some(libc(LibcKind::Glibc)));
        world.silent(ID);
        world.image.libc = unseen();
        world.unknown(ID);
        let mut plain = World::plain();
        plain.image.libc = Observed::Known(Some(libc(LibcKind::Musl)));
        plain.silent(ID);
        let mut for_cpu = World { place: Place::Image, ..plain.clone() };
        for_cpu.container.gpu_given = Observed::Known(crate::model::container::Given::LegacyHook);
        for args in [&[][..], &["/bin/sh"]] {
            for_cpu.container.args = Observed::Known(args.iter().map(|&word| word.to_owned()).collect());
            for_cpu.failure(ID);
        }
        for args in [&["nginx", "-g", "daemon off;"][..], &["redis-server"], &["sh", "-c", "serve"]] {
            for_cpu.container.args = Observed::Known(args.iter().map(|&word| word.to_owned()).collect());
            for_cpu.silent(ID);
        }
        let mut bare = World { place: Place::Image, host: crate::model::testing::bare_host(), ..plain };
        bare.container.gpu_given = Observed::Known(crate::model::container::Given::LegacyHook);
        bare.silent(ID);
    }
}
