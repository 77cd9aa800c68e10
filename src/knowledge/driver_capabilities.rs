//! `NVIDIA_DRIVER_CAPABILITIES`: which of the driver's files NVIDIA's hook brings into a container.
//!
//! Only the legacy hook reads it; CDI brings everything. `compute` brings libcuda and
//! `/dev/nvidia-uvm` (libnvidia-container `src/nvc_info.c`, 1d44a936). Unset it means
//! `utility,compute` since release 1.4.0 of the NVIDIA Container Toolkit, and `utility` before
//! (CHANGELOG 1.4.0); images of the time before `NVIDIA_REQUIRE_CUDA` get everything
//! (`internal/config/image`, d34b3046, 2026-08-21).

use std::collections::BTreeMap;

/// What a container asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capabilities {
    /// Everything: `all`, or an image of the old kind that sets nothing.
    All,
    /// The variable is not set, or empty, which is no choice: the toolkit's default.
    Default,
    /// These words, in lower case.
    Words(Vec<String>),
}

/// Words that stand for a use of their own, without CUDA.
const USES: [&str; 4] = ["graphics", "display", "video", "ngx"];

impl Capabilities {
    /// As the hook reads a container's environment.
    pub fn of(environment: &BTreeMap<String, String>) -> Self {
        let variable = environment.get("NVIDIA_DRIVER_CAPABILITIES");
        let value = variable.map_or("", |v| v.trim());
        let words: Vec<_> = value.split(',').map(|w| w.trim().to_ascii_lowercase()).filter(|w| !w.is_empty()).collect();
        if words.iter().any(|w| w == "all") || (variable.is_none() && is_old_image(environment)) {
            Self::All
        } else if words.is_empty() {
            Self::Default
        } else {
            Self::Words(words)
        }
    }

    /// The words name this one, or all.
    pub fn names(&self, word: &str) -> bool {
        match self {
            Self::All => true,
            Self::Default => false,
            Self::Words(words) => words.iter().any(|w| w == word),
        }
    }

    /// CUDA is not left out: `compute` or `all` is named, or nothing is.
    pub fn allow_compute(&self) -> bool {
        *self == Self::Default || self.names("compute")
    }

    /// Something other than CUDA is asked for by name: graphics, video.
    pub fn name_another_use(&self) -> bool {
        matches!(self, Self::Words(_)) && USES.iter().any(|w| self.names(w))
    }
}

/// An image of the time before `NVIDIA_REQUIRE_CUDA`: it has a `CUDA_VERSION` and no such requirement.
/// NVIDIA's tools then take all devices and all capabilities for asked.
pub fn is_old_image(environment: &BTreeMap<String, String>) -> bool {
    let set = |name: &str| environment.get(name).is_some_and(|v| !v.is_empty());
    set("CUDA_VERSION") && !set("NVIDIA_REQUIRE_CUDA")
}

/// The environment speaks of CUDA.
pub fn speaks_of_cuda(environment: &BTreeMap<String, String>) -> bool {
    word_of_cuda(environment).is_some()
}

/// The variable by which the environment speaks of CUDA: one of those that NVIDIA's CUDA images set.
pub fn word_of_cuda(environment: &BTreeMap<String, String>) -> Option<&'static str> {
    let set = |name: &&str| environment.get(*name).is_some_and(|v| !v.is_empty());
    ["CUDA_VERSION", "NVIDIA_REQUIRE_CUDA"].into_iter().find(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn of(value: &str) -> Capabilities {
        Capabilities::of(&environment(&[("NVIDIA_DRIVER_CAPABILITIES", value)]))
    }

    #[test]
    fn words_are_read_with_blanks_and_in_any_case() {
        assert_eq!(of(" Compute, utility,"), Capabilities::Words(vec!["compute".into(), "utility".into()]));
        assert_eq!(of("utility,all"), Capabilities::All);
        assert_eq!((of(""), Capabilities::of(&environment(&[]))), (Capabilities::Default, Capabilities::Default));
    }

    #[test]
    fn compute_is_left_out_only_by_naming_others() {
        for (value, compute, another) in [
            ("all", true, false),
            ("", true, false),
            ("compute,utility", true, false),
            ("compute,graphics", true, true),
            ("utility", false, false),
            ("graphics,utility", false, true),
            ("video", false, true),
        ] {
            let found = of(value);
            assert_eq!((found.allow_compute(), found.name_another_use()), (compute, another), "{value}");
        }
    }

    #[test]
    fn images_of_the_old_kind_get_everything() {
        assert_eq!(Capabilities::of(&environment(&[("CUDA_VERSION", "8.0.61")])), Capabilities::All);
        let chosen = environment(&[("CUDA_VERSION", "8.0.61"), ("NVIDIA_DRIVER_CAPABILITIES", "")]);
        assert_eq!(Capabilities::of(&chosen), Capabilities::Default);
        let newer = environment(&[("CUDA_VERSION", "12.4.1"), ("NVIDIA_REQUIRE_CUDA", "cuda>=12.4")]);
        assert_eq!(Capabilities::of(&newer), Capabilities::Default);
        assert!(speaks_of_cuda(&newer) && !speaks_of_cuda(&environment(&[("PATH", "/bin")])));
    }
}
