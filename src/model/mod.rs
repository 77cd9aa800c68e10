//! Plain data: the facts that collectors gather, the literals that checks are, the report they end in.
//!
//! Nothing here reads the world or imports another part of the crate, so every judgement can be
//! tried on facts written down by hand.

pub mod capability;
pub mod check;
pub mod container;
pub mod facts;
pub mod host;
pub mod image;
pub mod knowledge;
pub mod observed;
pub mod own;
pub mod page;
pub mod report;
#[cfg(test)]
pub(crate) mod testing;
pub mod version;
pub mod wording;

pub use capability::ComputeCapability;
pub use check::{Action, Check, Evidence, Failure, Family, Judged, Judgement, Outcome, Place, Severity, Step};
pub use container::Container;
pub use facts::Facts;
pub use host::Host;
pub use image::Image;
pub use knowledge::Knowledge;
pub use observed::{Observed, Parts, Unknown, Unseen};
pub use page::{Page, Sign};
pub use report::{Finding, Report, Verdict};
pub use version::{CudaVersion, DriverVersion, Release};
