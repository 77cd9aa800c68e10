//! Versions of packages, as far as they matter here.

use crate::model::image::Build;
use crate::model::{CudaVersion, Release};

/// More than any version of a package has.
const LONGEST: usize = 100;

/// Major and minor of a package's version: `2.9.0+cu128` and `2.6.0a0+df5bbc0` are 2.9 and 2.6.
pub(super) fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.get(..LONGEST).unwrap_or(version).split(['.', '+', '-']);
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next().map_or(Some(0), leading_number)?;
    Some((major, minor))
}

/// What a version says of the CUDA it was built for: the local part of most (`+cu128`, `+cu12torch2.6`,
/// `+cuda12.cudnn89`, `+cpu`). `None`: it says nothing.
///
/// Forms as seen at the frameworks' own package indexes, 2026-11.
pub(super) fn of_cuda_suffix(version: &str) -> Option<(Build, Option<CudaVersion>)> {
    let version = version.get(..LONGEST).unwrap_or(version);
    if let Some((_, local)) = version.split_once('+') {
        let word = local.split(['.', '-', '_']).next().unwrap_or_default();
        if word == "cpu" {
            return Some((Build::Cpu, None));
        }
        if word.starts_with("rocm") || word.starts_with("xpu") {
            return Some((Build::Unknown, None));
        }
        if let Some(digits) = word.strip_prefix("cuda").or_else(|| word.strip_prefix("cu")) {
            return of_digits(digits).map(|cuda| (Build::Cuda, Some(cuda)));
        }
        // NVIDIA's own builds: `2.6.0a0+ecf3bae40a.nv25.01`
        return local.split('.').any(|part| part.starts_with("nv")).then_some((Build::Cuda, None));
    }
    None
}

/// Paddle's `2.4.2.post112`: CUDA 11.2. Others' `.post1` is a plain second release, and conda's `.post302` a build.
pub(super) fn of_post(version: &str) -> Option<CudaVersion> {
    let version = version.get(..LONGEST).unwrap_or(version);
    let (_, post) = version.rsplit_once(".post").filter(|(_, post)| post.len() > 1)?;
    of_digits(post)
}

/// `128` is 12.8, `92` 9.2, `12` and `130` what they look like. Paddle wrote the cuDNN where the minor
/// stands (`post107` is CUDA 10 with cuDNN 7): a minor that its major never had leaves the major alone.
pub(super) fn of_digits(text: &str) -> Option<CudaVersion> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).take(5).collect();
    let number: u32 = digits.parse().ok()?;
    let (major, minor) = match digits.len() {
        2 if number < 80 => (number, None),
        2 | 3 => (number / 10, Some(number % 10)),
        4 => (number / 100, Some(number % 100)),
        _ => return None,
    };
    let newest = match major {
        8 => 0,
        9 | 10 => 2,
        11 => 8,
        12 => 9,
        _ => 99,
    };
    match (major, minor) {
        (0..8, _) => None,
        (_, Some(minor)) if minor <= newest => Some(Release::of(&[major, minor])),
        _ => Some(Release::of(&[major])),
    }
}

/// `12.8`, `12.x`, `12.5.1`: as much of it as is numbers.
pub(super) fn of_text(text: &str) -> Option<CudaVersion> {
    let numbers: Vec<u32> = text.trim().split('.').take(4).map_while(|part| part.parse().ok()).collect();
    (1..100).contains(numbers.first()?).then(|| Release::of(&numbers))
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn suffixes_tell_the_cuda() {
        let cuda = |version: &str| match of_cuda_suffix(version) {
            Some((Build::Cuda, Some(cuda))) => cuda.to_string(),
            other => format!("{other:?}"),
        };
        for (version, expected) in [
            ("2.9.0+cu128", "12.8"),
            ("2.11.0+cu130", "13.0"),
            ("1.12.1+cu102", "10.2"),
            ("1.7.1+cu92", "9.2"),
            ("2.0.1+cu117.with.pypi.cudnn", "11.7"),
            ("2.7.4.post1+cu12torch2.6cxx11abiFALSE", "12"),
            ("0.4.13+cuda12.cudnn89", "12"),
            ("0.1.69+cuda111", "11.1"),
        ] {
            assert_eq!(cuda(version), expected, "{version}");
        }
        for (version, expected) in
            [("2.4.2.post112", "11.2"), ("1.8.5.post107", "10"), ("1.8.5.post97", "9"), ("2.0.0.post100", "10.0")]
        {
            assert_eq!(of_post(version).map(|cuda| cuda.to_string()).as_deref(), Some(expected), "{version}");
        }
        assert_eq!(of_post("1.23.2.post1"), None);
        assert_eq!(of_cuda_suffix("2.9.0+cpu"), Some((Build::Cpu, None)));
        assert_eq!(of_cuda_suffix("2.9.0+cpu.cxx11.abi"), Some((Build::Cpu, None)));
        assert_eq!(of_cuda_suffix("2.6.0+rocm6.2"), Some((Build::Unknown, None)));
        assert_eq!(of_cuda_suffix("2.6.0a0+ecf3bae40a.nv25.01"), Some((Build::Cuda, None)));
        for silent in ["2.9.0", "2.6.0a0+gitdf5bbc0", "2.7.4.post1", "2.5.1.post302", "1.0+cu", "1.0+cu3", ""] {
            assert_eq!(of_cuda_suffix(silent), None, "{silent}");
        }
    }

    #[test]
    fn numbers_come_first() {
        assert_eq!(major_minor("2.6.0a0+df5bbc0"), Some((2, 6)));
        assert_eq!(major_minor("2.10rc1"), Some((2, 10)));
        assert_eq!(major_minor("3"), Some((3, 0)));
        assert_eq!(major_minor("git"), None);
        assert_eq!(of_text("12.x").map(|v| v.to_string()), Some("12".into()));
        assert_eq!(of_text("False"), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "\\PC{0,200}", digits in "[0-9]{0,12}") {
            let _ = (major_minor(&text), of_cuda_suffix(&text), of_text(&text), of_digits(&digits));
            let _ = of_cuda_suffix(&format!("1.0+cu{digits}{text}"));
        }
    }
}
