//! Facts of an image. Here: the little that a bundle's root file system tells at a glance.

use serde::Serialize;

use super::Observed;

/// What was seen of the image.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Image {
    /// The processor its dynamic loader is for, in the words of the image specification (`amd64`,
    /// `arm64`, …); `None` if it has no loader at a known place.
    pub architecture: Observed<Option<String>>,
    /// The path of the first sign of CUDA work among its files: a CUDA toolkit or runtime library at a
    /// well-known place, a framework for Python that carries CUDA; `None`: there is none.
    #[serde(skip)]
    pub cuda: Observed<Option<String>>,
}
