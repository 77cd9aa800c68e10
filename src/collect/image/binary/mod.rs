//! What programs and libraries tell: what they load, the CUDA linked into them, their machine code for GPUs.
//!
//! Nothing is executed or loaded. A file that can be asked for any of its parts is read by its headers; one that goes by
//! in a stream tells the same, found as it passes.

use crate::model::CudaVersion;
use crate::model::image::{CompatNote, DeviceCode};

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
