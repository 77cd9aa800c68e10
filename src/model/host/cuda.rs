//! What a real `cuInit` came to.

use serde::{Deserialize, Serialize};

/// The answer of libcuda, which makes no context and takes no memory for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CudaStart {
    /// Its code (`CUresult`); 0: it starts.
    Answered(u32),
    /// There is no libcuda where the loader looks, or it cannot be loaded: why.
    NotLoaded(String),
    /// It had not come back when the time was over.
    Late,
    /// The process ended in it.
    Died,
    /// It could not be called, which is no fault of its own: why.
    NotAsked(String),
}
