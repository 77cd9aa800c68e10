//! Error numbers and names of numbers in a line.

use super::Code;
use crate::knowledge::cuda::codes;
use crate::knowledge::nvml;

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
    "init failure",
    "(error ",
    "return status: ",
    "xid (",
    "xid ",
    "xid: ",
    "xid=",
    "call to cu",
];

/// All codes of a line in lower case.
pub fn in_line(line: &str) -> Vec<Code> {
    let mut found = Vec::new();
    for word in line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| word.len() > 8) {
        if word.starts_with("cuda_error_") || word.starts_with("cudaerror") {
            found.extend(codes::by_name(word).map(|row| Code::Cuda(row.number)));
        } else if word.starts_with("error_") && line.contains("cuda") && !line.contains("nvml") {
            // Julia's names.
            found.extend(codes::by_name(&format!("cuda_{word}")).map(|row| Code::Cuda(row.number)));
        } else if word.starts_with("nvml_error_") || word.starts_with("nvmlerror_") || word.starts_with("error_") {
            found.extend(nvml::by_name(word).map(Code::Nvml));
        }
    }
    found.extend(xid(line).map(Code::Xid));
    let about_nvml = line.contains("nvml");
    if found.is_empty() && about_nvml {
        found.extend(
            number_behind(line, &["nvml error ", "nvml error: ", "nvmlinit_v2 failed: ", "nvmlinit failed: "])
                .or_else(|| {
                    let spoken_of = ["nvmlinit", "nvml:", "nvml error", "nvml call", "nvmldevice"]
                        .iter()
                        .any(|word| line.contains(word));
                    spoken_of.then(|| number_behind(line, &["error code ", "error code: "])).flatten()
                })
                .map(Code::Nvml),
        );
    } else if found.is_empty() && (["cuda", "cuinit", "[["].iter().any(|word| line.contains(word))) {
        let by_any = || SPOKEN_OF.iter().any(|word| line.contains(word)).then(|| number_behind(line, ANY)).flatten();
        let number = number_behind(line, CUDA).or_else(by_any);
        found.extend(number.filter(|n| codes::by_number(*n).is_some()).map(Code::Cuda));
    }
    found.retain(|code| !matches!(code, Code::Cuda(0) | Code::Nvml(0)));
    found
}

/// What stands before CUDA's number. Forms of `PyTorch`, Paddle, ONNX Runtime, `CuPy`, ffmpeg, miners and of
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
    "init failure: ",
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
];

/// The same where the line speaks of a call of CUDA: any program has codes of its own.
const ANY: &[&str] = &[
    "error code: ",
    "error code ",
    "error code=",
    "return status: ",
    "(error ",
    "errorcode=",
    "code=",
    "error ",
    "returned error ",
    "returned ",
    "unknown error (",
    "(code ",
    "err: ",
    "err=",
    "err = ",
    "-> ",
];

/// Words by which a line speaks of one.
const SPOKEN_OF: &[&str] = &[
    "cuda error",
    "cuda failure",
    "cudaerror",
    "cuda driver",
    "cuda runtime",
    "cuda init",
    "cuda library",
    "cudaget",
    "cudaset",
    "cudamalloc",
    "cudamem",
    "cudalaunch",
    "cudadevice",
    "cudastream",
    "cuinit",
    "cudevice",
    "cuctx",
    "cumem",
    "libcuda",
    "libcudart",
    "torch_cuda",
    "[[",
    "(external)",
    "nvcc fatal",
    "cuda:",
    "ggml_cuda",
    "init cuda",
    "initialize cuda",
    "initializing cuda",
    "initialise cuda",
];

/// The first number of at most three digits that stands behind one of the words.
fn number_behind(line: &str, words: &[&str]) -> Option<u32> {
    let bytes = line.as_bytes();
    let mut at = 0;
    while let Some(skipped) = bytes.get(at..)?.iter().position(u8::is_ascii_digit) {
        let from = at + skipped;
        let rest = line.get(from..)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        at = from + digits;
        let after = rest.as_bytes().get(digits..).unwrap_or_default();
        // 12.4 is a version, 0x1f an address, 35 and 35. are numbers.
        let whole = match after {
            [b'.', next, ..] => !next.is_ascii_digit(),
            [next, ..] => !next.is_ascii_alphabetic(),
            [] => true,
        };
        if whole && digits <= 3 && words.iter().any(|word| line[..from].ends_with(word)) {
            return rest[..digits].parse().ok();
        }
    }
    None
}

/// The number of a line `NVRM: Xid (PCI:0000:09:00): 79, pid=0, …`, or of a report of one: `Xid 79`, `XID error: 79`.
fn xid(line: &str) -> Option<u32> {
    if let Some((_, rest)) = line.split_once("xid (pci") {
        return leading(rest.split_once("): ")?.1);
    }
    line.match_indices("xid").find_map(|(at, word)| {
        let alone = !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let rest = line[at + word.len()..].trim_start_matches([' ', ':', '=']);
        let rest = rest.strip_prefix("error").unwrap_or(rest).trim_start_matches([' ', ':', '=']);
        leading(rest).filter(|number| alone && super::xid::meaning(*number).is_some())
    })
}

fn leading(text: &str) -> Option<u32> {
    text[..text.bytes().take_while(u8::is_ascii_digit).count()].parse().ok()
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
            ("gpu 3 has xid 48", Some(Code::Xid(48))),
            ("xid error: 94 on gpu 1", Some(Code::Xid(94))),
            ("maxid 48", None),
            ("xid 123456", None),
            ("cuda driver library init failure: 999. see", Some(Code::Cuda(999))),
            ("cuda error 12.4 is not here", None),
            ("make: *** [cuda] error code 100", None),
            ("subprocess exited with error code 2: building cuda extension", None),
            ("pip returned 1 for a cuda package", None),
            ("curl failed: nvml download error code 9", None),
            ("cuda error: 0", None),
            ("http error 404 of a page about cuda", None),
            ("cuda_error_of_mine", None),
        ] {
            assert_eq!(in_line(&line.to_lowercase()).first().copied(), wanted, "{line}");
        }
    }
}
