//! Everything a check may look at.

use super::{Container, Host, Image, Knowledge, Place};

/// The facts of one question. References, so that one image can meet a thousand hosts without copies.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The machine.
    pub host: &'a Host,
    /// The image, or as much of it as was looked at.
    pub image: &'a Image,
    /// The container; a default one where none is judged.
    pub container: &'a Container,
    /// What is known of CUDA, drivers and GPUs.
    pub knowledge: &'a Knowledge,
    /// Where the question is asked.
    pub place: Place,
}
