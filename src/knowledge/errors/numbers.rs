//! Error numbers and names of numbers in a line.

use super::{Code, codes, nvml};

/// Words that a line with a number has: only such lines are read again. In lower case.
pub const ANCHORS: &[&str] = &[
    "cuda_error_",
    "cudaerror",
    "cuda error",
    "cuda failure",
    "cuda runtime error",
    "cuda driver error",
    "cuinit",
    "cudagetdevicecount",
    "cudaruntimegetversion",
    "cudadrivergetversion",
    "cudasetdevice",
    "cudart error",
    "cudaerror_t",
    "error code",
    "nvml_error_",
    "nvmlerror",
    "nvml error",
    "nvml: error",
    "nvmlinit",
    "nvml init",
    "error_library_not_found",
    "error_driver_not_loaded",
    "xid (",
];

/// All codes of a line in lower case.
pub fn in_line(line: &str) -> Vec<Code> {
    let mut found = Vec::new();
    for word in line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        if word.starts_with("cuda_error_") || word.starts_with("cudaerror") {
            found.extend(codes::by_name(word).map(|row| Code::Cuda(row.number)));
        } else if word.starts_with("nvml_error_") || word.starts_with("nvmlerror_") || word.starts_with("error_") {
            found.extend(nvml::by_name(word).map(Code::Nvml));
        }
    }
    found.extend(xid(line).map(Code::Xid));
    let about_nvml = line.contains("nvml");
    if found.is_empty() && about_nvml {
        found.extend(
            number_behind(
                line,
                &[
                    "nvml error ",
                    "nvml error: ",
                    "nvmlinit_v2 failed: ",
                    "nvmlinit failed: ",
                    "error code ",
                    "error code: ",
                ],
            )
            .map(Code::Nvml),
        );
    } else if found.is_empty() && (line.contains("cuda") || line.contains("cuinit")) {
        found.extend(number_behind(line, CUDA).filter(|n| codes::by_number(*n).is_some()).map(Code::Cuda));
    }
    found.retain(|code| !matches!(code, Code::Cuda(0) | Code::Nvml(0)));
    found
}

/// What stands before CUDA's number. Forms of PyTorch, Paddle, ONNX Runtime, CuPy, ffmpeg, miners and of
/// programs that people write to try `cuInit`.
const CUDA: &[&str] = &[
    "cuda error(",
    "cuda error (",
    "cuda error: ",
    "cuda error ",
    "cuda error=",
    "cuda failure ",
    "cuda failure: ",
    "cuda runtime error (",
    "cuda driver error: ",
    "cuda driver error ",
    "cudart error ",
    "cudaerror_t ",
    "error code: ",
    "error code ",
    "error code=",
    "errorcode=",
    "code=",
    "error ",
    "cuinit failed: ",
    "cuinit returned ",
    "cuinit: ",
    "cuinit(0) = ",
    "cuinit(0): ",
    "cuinit(0) -> ",
    "cuinit(0) returned ",
    "cuinit = ",
    "cuinit ",
    "cudagetdevicecount returned ",
    "cudagetdevicecount failed: ",
    "returned error ",
    "returned ",
    "-> ",
];

fn number_behind(line: &str, words: &[&str]) -> Option<u32> {
    words.iter().find_map(|word| {
        let (_, rest) = line.split_once(word)?;
        let digits: &str = &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()];
        let after = rest[digits.len()..].chars().next();
        // 12.4 is a version, 0x1f an address.
        let whole = !matches!(after, Some('.' | 'x'))
            || rest[digits.len()..].starts_with(". ")
            || rest.len() == digits.len() + 1;
        (whole && digits.len() <= 3).then(|| digits.parse().ok()).flatten()
    })
}

/// The number of a line `NVRM: Xid (PCI:0000:09:00): 79, pid=0, …`.
fn xid(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("xid (")?;
    let (_, rest) = rest.split_once("): ")?;
    rest[..rest.bytes().take_while(u8::is_ascii_digit).count()].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_of_many_programs() {
        for (line, wanted) in [
            ("runtimeerror: cuda error: 999", Some(Code::Cuda(999))),
            ("oserror: (external) cuda error(35), cuda driver version is", Some(Code::Cuda(35))),
            ("cuda failure 100: no cuda-capable device ; gpu=0", Some(Code::Cuda(100))),
            ("cuda error: error code 34", Some(Code::Cuda(34))),
            ("failed call to cuinit: cuda_error_no_device: no", Some(Code::Cuda(100))),
            ("cudaerrornodevice: no", Some(Code::Cuda(100))),
            ("cuinit(0) = 999", Some(Code::Cuda(999))),
            ("cuinit failed: 803", Some(Code::Cuda(803))),
            ("pynvml.nvml.nvmlerror_libraryNotFound: x", Some(Code::Nvml(12))),
            ("nvml init failed: error_driver_not_loaded", Some(Code::Nvml(9))),
            ("kernel: nvrm: xid (pci:0000:41:00): 119, pid=1", Some(Code::Xid(119))),
            ("cuda error 12.4 is not here", None),
            ("cuda error: 0", None),
            ("http error 404 of a page about cuda", None),
            ("cuda_error_of_mine", None),
        ] {
            assert_eq!(in_line(&line.to_lowercase()).first().copied(), wanted, "{line}");
        }
    }
}
