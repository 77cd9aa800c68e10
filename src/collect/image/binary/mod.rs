//! What programs and libraries tell: what they load, the CUDA linked into them, their machine code for GPUs.
//!
//! Nothing is executed or loaded. A file that can be asked for any of its parts is read by its headers; one that goes by
//! in a stream tells the same, found as it passes.

use crate::knowledge::cuda::is_of_cuda;
use crate::model::CudaVersion;
use crate::model::image::{CompatNote, DeviceCode};

mod capture;
mod cudart;
mod dynamic;
mod fatbin;
mod file;
mod header;
mod stream;
mod strings;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

pub use file::{read, section};
pub use stream::Scanner;

/// A program that asks the loader for nothing, by its bytes.
pub fn is_static(program: &[u8]) -> bool {
    let mut read_at = |offset: u64, into: &mut [u8]| {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(program.len());
        let rest = program.get(start..).unwrap_or_default();
        let length = rest.len().min(into.len());
        into.get_mut(..length).unwrap_or_default().copy_from_slice(rest.get(..length).unwrap_or_default());
        Ok(length)
    };
    let found = read(&mut read_at, program.len() as u64);
    !found.architecture.is_empty() && found.needed.is_empty() && found.unread.is_none()
}

/// What a program or library tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Binary {
    /// Its processor in the words of the image specification; empty: it is no ELF file.
    pub architecture: String,
    /// Its first bytes, so that other readers of headers need not ask again.
    pub head: Vec<u8>,
    /// Shared libraries that it asks the loader for (`DT_NEEDED`).
    pub needed: Vec<String>,
    /// Where it asks the loader to look for them (`DT_RPATH`, `DT_RUNPATH`), as written.
    pub search: Vec<String>,
    /// Its own name as a library (`DT_SONAME`).
    pub name: Option<String>,
    /// The CUDA runtime that is in it, shared or linked in.
    pub runtime: Option<CudaVersion>,
    /// Its machine code for GPUs, if it has any.
    pub code: Option<DeviceCode>,
    /// What a libcuda for forward compatibility says of itself.
    pub compat: Option<CompatNote>,
    /// A part of it could not be read, and why.
    pub unread: Option<String>,
}

impl Binary {
    /// What of its code counts. NVIDIA's own libraries have code for all GPUs of their release, which says nothing of
    /// what a framework runs on, and a runtime in them each with a version of their own. Else a runtime is looked for
    /// where it tells something: in its own library, and in what has code for GPUs and does not ask the loader for that.
    fn conclude(&mut self, code: fatbin::Found, runtime: impl FnOnce(&mut Self) -> cudart::Found) {
        let is_own = self.name.as_deref().is_some_and(is_runtime);
        if !self.is_of_nvidia() {
            if code.is_lost() {
                self.lose("its machine code for GPUs");
            }
            self.code = code.into_code();
        }
        if is_own || self.code.is_some() && !self.needed.iter().any(|name| is_runtime(name)) {
            self.runtime = runtime(self).version();
        }
    }

    /// A library of CUDA or beside it, by the name that it has for itself.
    fn is_of_nvidia(&self) -> bool {
        self.name.as_deref().is_some_and(is_of_cuda)
    }

    /// A part of it could not be read.
    fn lose(&mut self, what: &str) {
        self.unread.get_or_insert_with(|| format!("{what} cannot be read"));
    }
}

fn is_runtime(name: &str) -> bool {
    name.starts_with("libcudart")
}
