//! What error texts mean: which programs print them, and the causes that they have in the field.
//!
//! A text is a literal of a file in `texts`: what it is told by, and its causes, best first. Numbers (CUDA, NVML,
//! Xid) have tables of their own. The order of the causes is that of their frequency in public reports, as far as
//! those collected for this project until 2026-11 show it (nvidia-container-toolkit, nvidia-docker,
//! k8s-device-plugin, pytorch, vllm, ollama, Paddle and others); other lines of the same log move it (`context`).

pub mod context;
pub mod numbers;
pub mod reader;
mod scan;
pub mod signs;
#[cfg(test)]
mod tests;
pub mod texts;
pub mod xid;

pub use reader::{Reader, Reading, Tables, Told};

/// How well a cause fits a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It happens.
    Low,
    /// One of the usual causes.
    Medium,
    /// The text says so, or nearly always means this.
    High,
}

impl Confidence {
    /// Its name in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A cause that a text can have.
#[derive(Debug, Clone, Copy)]
pub struct Cause {
    /// The check that names it.
    pub id: &'static str,
    /// How well it fits, this text alone.
    pub confidence: Confidence,
    /// Why it fits; `{found}` is the word behind [`Text::after`].
    pub why: &'static str,
}

/// The text all but says it.
pub(crate) const fn high(id: &'static str, why: &'static str) -> Cause {
    Cause { id, confidence: Confidence::High, why }
}

/// One of its usual causes.
pub(crate) const fn medium(id: &'static str, why: &'static str) -> Cause {
    Cause { id, confidence: Confidence::Medium, why }
}

/// It happens.
pub(crate) const fn low(id: &'static str, why: &'static str) -> Cause {
    Cause { id, confidence: Confidence::Low, why }
}

/// A number of an interface that reports errors by numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// `cudaError_t` and `CUresult`, which agree on their numbers from 3 on, as far as both have them.
    Cuda(u32),
    /// `nvmlReturn_t`.
    Nvml(u32),
    /// A line of the kernel's log.
    Xid(u32),
}

/// Decides by a line, in lower case, which causes a text has in it; none: the line is about something else.
pub type Refine = fn(&str) -> Option<&'static [Cause]>;

/// What is spoken of, and what is said of it.
pub type Pair = (&'static [&'static str], &'static [&'static str]);

/// An error text.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    /// What it is, for people and tests.
    pub name: &'static str,
    /// It is there if all fragments of one of these stand in one line, or in two that follow each other: a line
    /// may have been wrapped. In lower case, single blanks.
    pub tells: &'static [&'static [&'static str]],
    /// It is there too if a word of the first list and one of the second stand close to each other in one line: what
    /// a program says in words of its own. In lower case, single blanks.
    pub pairs: &'static [Pair],
    /// It is there too if one of these numbers is reported.
    pub codes: &'static [Code],
    /// Lines with one of these are about something else.
    pub unless: &'static [&'static str],
    /// The word behind this one is what the text is about.
    pub after: Option<&'static str>,
    /// Its causes, best first.
    pub causes: &'static [Cause],
    /// It says only that something is amiss: a text of the same log that says more counts alone.
    pub general: bool,
    /// Where what stands in the line decides on the causes.
    pub refine: Option<Refine>,
}

impl Text {
    /// What a literal leaves out.
    pub const PLAIN: Self = Self {
        name: "",
        tells: &[],
        pairs: &[],
        codes: &[],
        unless: &[],
        after: None,
        causes: &[],
        general: false,
        refine: None,
    };
}
