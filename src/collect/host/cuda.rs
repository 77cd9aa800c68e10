//! A real `cuInit`, in a child with a deadline: it opens the driver's nodes, and one that is stuck does not come back.

use std::ffi::OsStr;
use std::io::Write as _;
use std::time::Instant;

use libloading::{Library, Symbol};

use crate::collect::child;
use crate::model::host::CudaStart;

const LIMIT: usize = 4096;

/// Starts CUDA by this library: a path, or a name that the loader looks for.
pub fn start(file: &OsStr, deadline: Instant) -> CudaStart {
    let answer = child::run(deadline, LIMIT, |out| {
        child::few_descriptors();
        // nobody who could hear of it
        let _ = out.write_all(&serde_json::to_vec(&call(file)).unwrap_or_default());
    });
    match answer {
        Ok(mut answer) => {
            let is_late = Instant::now() >= deadline;
            let said = serde_json::from_slice(&answer.bytes).ok().filter(|_| answer.complete);
            said.unwrap_or_else(|| match answer.excuse() {
                Some(why) => CudaStart::NotAsked(why),
                None if is_late => CudaStart::Late,
                None => CudaStart::Died,
            })
        }
        Err(error) => CudaStart::NotAsked(format!("no process could be made ({:?})", error.kind())),
    }
}

/// What the loader lacks of this process's own says nothing of the library.
fn not_loaded(why: String) -> CudaStart {
    let lacks = ["Cannot allocate memory", "Too many open files"];
    if lacks.iter().any(|lack| why.contains(lack)) { CudaStart::NotAsked(why) } else { CudaStart::NotLoaded(why) }
}

#[expect(unsafe_code, reason = "libcuda is a C library that is only there at run time")]
fn call(file: &OsStr) -> CudaStart {
    // SAFETY: its initialisers run in this child alone, which does nothing else and ends behind it.
    let library = match unsafe { Library::new(file) } {
        Ok(library) => library,
        Err(error) => return not_loaded(error.to_string()),
    };
    // SAFETY: `CUresult cuInit(unsigned int Flags)` since CUDA 2.0 (cuda.h).
    let init: Symbol<'_, unsafe extern "C" fn(u32) -> u32> = match unsafe { library.get(b"cuInit\0") } {
        Ok(init) => init,
        Err(error) => return CudaStart::NotLoaded(error.to_string()),
    };
    // SAFETY: as above; 0 is the only flag there is.
    CudaStart::Answered(unsafe { init(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_the_process_lacks_is_no_fault_of_the_library() {
        for why in [
            "libcuda.so.1: failed to map segment from shared object: Cannot allocate memory",
            "libcuda.so.1: cannot open shared object file: Too many open files",
        ] {
            assert_eq!(not_loaded(why.to_owned()), CudaStart::NotAsked(why.to_owned()));
        }
        let gone = start(OsStr::new("/nowhere/libcuda.so.1"), Instant::now() + std::time::Duration::from_secs(20));
        assert!(matches!(&gone, CudaStart::NotLoaded(why) if why.contains("No such file")), "{gone:?}");
    }
}
