//! The texts, a file for each kind of program that prints them.

use super::{Code, Text};

mod benign;
mod cdi;
mod cli;
mod cuda;
mod device;
mod engines;
mod frameworks;
mod images;
mod kernel;
mod nvml;
mod platforms;
mod python;

/// All of them. Where two fit equally well, the former counts.
pub const FILES: &[&[Text]] = &[
    cli::TEXTS,
    device::TEXTS,
    engines::TEXTS,
    cdi::TEXTS,
    platforms::TEXTS,
    kernel::TEXTS,
    nvml::TEXTS,
    images::TEXTS,
    frameworks::TEXTS,
    python::TEXTS,
    cuda::TEXTS,
    benign::TEXTS,
];

/// A line of the kernel's log with an Xid number; its causes are the number's.
pub const XID: Text = Text { name: "Xid", tells: &[&["nvrm: xid"]], ..Text::PLAIN };

/// All texts, in the order of [`FILES`].
pub fn all() -> impl Iterator<Item = &'static Text> {
    FILES.iter().flat_map(|file| file.iter())
}

/// The text of a number: its place among [`all`].
pub(super) fn of_code(code: Code) -> Option<usize> {
    let own = all().position(|text| text.codes.contains(&code));
    own.or_else(|| match code {
        // Any other number is the program's own business.
        Code::Cuda(_) => all().position(|text| text.name == cuda::PROGRAM),
        Code::Nvml(_) | Code::Xid(_) => None,
    })
}
