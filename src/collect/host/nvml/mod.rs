//! NVML, in a child with a deadline: a GPU that no longer answers blocks whoever asks, even against SIGKILL, and a
//! library of another version may end the process.
//!
//! The child says line by line what it is about to call and what it got, so that what a hanging GPU's neighbours said
//! before is kept, and the call that hangs has a name.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::collect::child::{self, Answer};
use crate::model::host::{Nvml, NvmlGpu, NvmlTrouble};

mod library;
mod recording;

pub use recording::Recording;

/// A reading of a machine with 16 GPUs has some kilobytes; processes are what grows.
const LIMIT: usize = 1 << 20;

/// Longer texts are cut.
const LONGEST: usize = 300;

/// Whoever can read NVML: the library, or a recording.
pub trait Source {
    /// One reading, ended at the deadline.
    fn read(&self, deadline: Instant) -> Nvml;
}

/// The library of this machine.
#[derive(Debug, Clone)]
pub struct Library<'a> {
    /// A path, or a name that the loader looks for.
    pub file: &'a OsStr,
}

/// What the child says.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    Calls(String),
    Trouble(NvmlTrouble),
    Driver(String),
    Cuda(String),
    Gpu(Box<NvmlGpu>),
}

impl Source for Library<'_> {
    fn read(&self, deadline: Instant) -> Nvml {
        let told = child::run(deadline, LIMIT, |out| {
            child::few_descriptors();
            library::talk(self.file, &mut |said| say(out, said));
        });
        match told {
            Ok(mut answer) => heard(&mut answer, Instant::now() >= deadline),
            Err(error) => Nvml {
                trouble: Some(NvmlTrouble::NotAsked(format!("no process could be made ({:?})", error.kind()))),
                ..Nvml::default()
            },
        }
    }
}

fn say(out: &mut File, said: &Said) {
    if let Ok(line) = serde_json::to_string(said) {
        // nobody who could hear of it
        let _ = out.write_all(format!("{line}\n").as_bytes());
    }
}

fn heard(answer: &mut Answer, is_late: bool) -> Nvml {
    let mut nvml = Nvml::default();
    let mut call = "nvmlInit_v2".to_owned();
    let text = String::from_utf8_lossy(&answer.bytes);
    for said in text.lines().filter_map(|line| serde_json::from_str::<Said>(line).ok()) {
        match said {
            Said::Calls(name) => call = name,
            Said::Trouble(trouble) => nvml.trouble = Some(trouble),
            Said::Driver(version) => nvml.driver = Some(version),
            Said::Cuda(version) => nvml.cuda = Some(version),
            // said again when more of it is known
            Said::Gpu(gpu) => {
                nvml.gpus.pop_if(|last| last.index == gpu.index);
                nvml.gpus.push(*gpu);
            }
        }
    }
    if !answer.complete && nvml.trouble.is_none() {
        nvml.trouble = Some(match answer.excuse() {
            Some(why) => NvmlTrouble::NotAsked(why),
            None if is_late => NvmlTrouble::Late(call),
            None => NvmlTrouble::Died(call),
        });
    }
    // what can be written as JSON can be read again
    serde_json::to_value(&nvml).and_then(harmless).unwrap_or(nvml)
}

/// A snapshot whose texts are short and printable: they stand in messages, and a terminal obeys.
fn harmless(mut nvml: Value) -> serde_json::Result<Nvml> {
    fn clean(value: &mut Value) {
        match value {
            Value::String(text) => {
                *text = text.chars().take(LONGEST).map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect();
            }
            Value::Array(all) => all.iter_mut().for_each(clean),
            Value::Object(all) => all.values_mut().for_each(clean),
            _ => {}
        }
    }
    clean(&mut nvml);
    serde_json::from_value(nvml)
}
