//! The files in which frameworks write what they were built for. Their text comes out of an image: it is
//! matched line by line, and never run.

use super::version::of_text;
use crate::model::CudaVersion;
use crate::model::image::Build;

/// What such a file says, and more.
const LONGEST: usize = 64 * 1024;

/// What a framework's version file says; `None`: nothing that is known here. `file` is one of the paths that
/// [`super::Recognised::version_file`] names, whatever comes before it.
///
/// Forms as in the wheels of torch 1.12.1, 2.10.0 and 2.15.0, `TensorFlow` 2.21.0, Paddle 2.6.2, ONNX Runtime
/// 1.31.1 and `CuPy` 13.6.0 (opened 2026-11).
pub fn of_version_file(file: &str, text: &str) -> Option<(Build, Option<CudaVersion>)> {
    let text = cut(text);
    if file.ends_with("torch/version.py") {
        torch(text)
    } else if file.ends_with("paddle/version/__init__.py") || file.ends_with("paddle/version.py") {
        assigned(text, "cuda_version").map(build)
    } else if file.ends_with("platform/build_info.py") {
        tensorflow(text)
    } else if file.ends_with("build_and_package_info.py") {
        onnxruntime(text)
    } else if file.ends_with("_wheel.json") {
        let wheel: serde_json::Value = serde_json::from_str(text).ok()?;
        Some((Build::Cuda, wheel.get("cuda").and_then(|cuda| of_text(cuda.as_str()?))))
    } else {
        None
    }
}

/// Where older releases have a version file.
pub fn older_place(file: &str) -> Option<&'static str> {
    (file == "paddle/version/__init__.py").then_some("paddle/version.py")
}

/// `cuda: Optional[str] = '13.2'`, `cuda = '10.2'`, `cuda = None`; beside it `hip`, which AMD's builds fill.
fn torch(text: &str) -> Option<(Build, Option<CudaVersion>)> {
    let cuda = assigned(text, "cuda")?;
    let hip = assigned(text, "hip").is_some_and(|hip| quoted(hip).is_some());
    Some(if hip && quoted(cuda).is_none() { (Build::Unknown, None) } else { build(cuda) })
}

/// `package_name = 'onnxruntime-gpu'`, and `cuda_version = '13.0'` in builds for CUDA alone.
fn onnxruntime(text: &str) -> Option<(Build, Option<CudaVersion>)> {
    let package = quoted(assigned(text, "package_name")?)?;
    let cuda = assigned(text, "cuda_version").and_then(quoted).and_then(of_text);
    Some(match (cuda, package) {
        (Some(cuda), _) => (Build::Cuda, Some(cuda)),
        (None, name) if name.contains("gpu") => (Build::Cuda, None),
        (None, "onnxruntime") => (Build::Cpu, None),
        (None, _) => (Build::Unknown, None),
    })
}

/// `build_info = collections.OrderedDict([… ('cuda_version', '12.5.1'), … ('is_cuda_build', True), …])`; in
/// old releases plain assignments, `is_cuda_build = True` and `cuda_version_number = '10.1'`.
fn tensorflow(text: &str) -> Option<(Build, Option<CudaVersion>)> {
    if after(text, "is_cuda_build")?.starts_with("False") {
        return Some((Build::Cpu, None));
    }
    let cuda = after(text, "cuda_version").or_else(|| after(text, "cuda_version_number"));
    Some((Build::Cuda, cuda.and_then(quoted).and_then(of_text)))
}

/// A value that was assigned: a version in quotes; `None` or `'False'` of a build without CUDA.
fn build(value: &str) -> (Build, Option<CudaVersion>) {
    if value.starts_with("None") || value.starts_with("False") {
        return (Build::Cpu, None);
    }
    match quoted(value) {
        Some("" | "False" | "None") => (Build::Cpu, None),
        Some(cuda) if of_text(cuda).is_some() => (Build::Cuda, of_text(cuda)),
        _ => (Build::Unknown, None),
    }
}

/// What stands behind `name =`, or `name: annotation =`, at the start of a line.
fn assigned<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?.trim_start();
        let rest = if rest.starts_with(':') { rest.split_once('=')?.1 } else { rest.strip_prefix('=')? };
        Some(rest.trim())
    })
}

/// What follows a word, in quotes or not, behind a comma, a colon or an equals sign.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word).find_map(|(at, _)| {
        let rest = &text[at + word.len()..];
        let whole = !text[..at].ends_with(is_part) && !rest.starts_with(is_part);
        let rest = rest.strip_prefix(['\'', '"']).unwrap_or(rest).trim_start();
        whole.then(|| rest.strip_prefix([',', ':', '=']).map(str::trim_start)).flatten()
    })
}

/// The text between the quotes that the value begins with.
fn quoted(value: &str) -> Option<&str> {
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    value[1..].split_once(quote).map(|(inside, _)| inside)
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(file: &str, text: &str) -> Option<(Build, Option<String>)> {
        of_version_file(file, text).map(|(build, cuda)| (build, cuda.map(|c| c.to_string())))
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is what the answers hold")]
    fn cuda(version: &str) -> Option<(Build, Option<String>)> {
        Some((Build::Cuda, Some(version.to_owned())))
    }

    const CPU: Option<(Build, Option<String>)> = Some((Build::Cpu, None));

    #[test]
    fn torch_says_its_cuda() {
        let of = |text| said("usr/lib/python3/dist-packages/torch/version.py", text);
        let new = "from typing import Optional\n\n__all__ = ['__version__', 'cuda']\n__version__ = '2.15.0+cu132'\ndebug = False\ncuda: Optional[str] = '13.2'\ngit_version = '1'\nhip: Optional[str] = None\n";
        assert_eq!(of(new), cuda("13.2"));
        assert_eq!(of("__version__ = '1.12.1+cu102'\r\ncuda = '10.2'\r\nhip = None\r\n"), cuda("10.2"));
        assert_eq!(of("__version__ = '2.10.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None"), CPU);
        assert_eq!(of("cuda = None\nhip = '6.2.41133'\n"), Some((Build::Unknown, None)));
        assert_eq!(of("cuda = __import__('os').system('x')"), Some((Build::Unknown, None)));
        assert_eq!(of("cudart = '1'\n"), None);
    }

    #[test]
    fn paddle_says_its_cuda() {
        let text = "full_version    = '2.6.2'\ncuda_version    = '11.8'\ncudnn_version   = '8.6.0'\n";
        assert_eq!(said("paddle/version/__init__.py", text), cuda("11.8"));
        assert_eq!(said("paddle/version.py", "cuda_version = '10.2'\n"), cuda("10.2"));
        assert_eq!(said("paddle/version/__init__.py", "cuda_version    = 'False'\n"), CPU);
    }

    #[test]
    fn tensorflow_says_its_cuda() {
        let of = |text| said("tensorflow/python/platform/build_info.py", text);
        let new = "import collections\nbuild_info = collections.OrderedDict([('cpu_compiler', 'clang'), ('cuda_compute_capabilities', ['sm_60', 'compute_90']), ('cuda_version', '12.5.1'), ('cudnn_version', '9'), ('is_cuda_build', True), ('is_rocm_build', False)])\n";
        assert_eq!(of(new), cuda("12.5.1"));
        assert_eq!(of("build_info = {'is_cuda_build': True, \"cuda_version\": \"11.2\"}"), cuda("11.2"));
        assert_eq!(of("build_info = OrderedDict([('is_cuda_build', False), ('is_rocm_build', False)])"), CPU);
        assert_eq!(of("is_cuda_build = True\ncuda_version_number = '10.1'\n"), cuda("10.1"));
    }

    #[test]
    fn the_others_say_it_too() {
        let ort = |text| said("onnxruntime/capi/build_and_package_info.py", text);
        let gpu = "package_name = 'onnxruntime-gpu'\n__version__ = '1.31.1'\ncuda_version = '13.0'\n";
        assert_eq!(ort(gpu), cuda("13.0"));
        assert_eq!(ort("package_name = 'onnxruntime-gpu'\n"), Some((Build::Cuda, None)));
        assert_eq!(ort("package_name = 'onnxruntime'\n__version__ = '1.20.0'\n"), CPU);
        let cupy = |text| said("cupy/.data/_wheel.json", text);
        assert_eq!(cupy("{\"cuda\": \"12.x\", \"packaging\": \"pip\"}"), cuda("12"));
        assert_eq!(cupy("{\"cuda\": "), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "(?s).{0,300}", word in "(cuda|cuda_version|is_cuda_build|'cuda_version')( |=|:|'|\"|é)*") {
            for file in ["torch/version.py", "paddle/version.py", "x/platform/build_info.py", "_wheel.json",
                "onnxruntime/capi/build_and_package_info.py"] {
                let _ = of_version_file(file, &text);
                let _ = of_version_file(file, &format!("{word}{text}\n{word}"));
            }
        }
    }
}
