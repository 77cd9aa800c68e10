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
        // nobody who could hear of it
        let _ = out.write_all(&serde_json::to_vec(&call(file)).unwrap_or_default());
    });
    match answer {
        Ok(answer) => match serde_json::from_slice(&answer.bytes) {
            Ok(start) if answer.complete => start,
            _ if Instant::now() >= deadline => CudaStart::Late,
            _ => CudaStart::Died,
        },
        Err(error) => CudaStart::NotLoaded(format!("no process to start it in ({:?})", error.kind())),
    }
}

#[expect(unsafe_code, reason = "libcuda is a C library that is only there at run time")]
fn call(file: &OsStr) -> CudaStart {
    // SAFETY: its initialisers run in this child alone, which does nothing else and ends behind it.
    let library = match unsafe { Library::new(file) } {
        Ok(library) => library,
        Err(error) => return CudaStart::NotLoaded(error.to_string()),
    };
    // SAFETY: `CUresult cuInit(unsigned int Flags)` since CUDA 2.0 (cuda.h).
    let init: Symbol<'_, unsafe extern "C" fn(u32) -> u32> = match unsafe { library.get(b"cuInit\0") } {
        Ok(init) => init,
        Err(error) => return CudaStart::NotLoaded(error.to_string()),
    };
    // SAFETY: as above; 0 is the only flag there is.
    CudaStart::Answered(unsafe { init(0) })
}
