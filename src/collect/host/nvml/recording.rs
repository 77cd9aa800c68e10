//! What NVML said once, on this machine or another, as `host --save-nvml` wrote it. Anybody may have written the file.

use std::time::Instant;

use serde::Deserialize;
use serde_json::Value;

use super::{Source, harmless};
use crate::collect::tree::Tree;
use crate::model::Unseen;
use crate::model::host::Nvml;

/// 16 GPUs with all their processes are a tenth of it.
const LIMIT: usize = 1 << 20;
/// More than NVML counts on any machine.
const MOST_GPUS: usize = 256;

/// A recording.
#[derive(Debug, Clone)]
pub struct Recording {
    nvml: Nvml,
    /// The processor of the machine, as the kernel calls it; `None`: it was not known.
    pub architecture: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    schema_version: u32,
    kind: String,
    architecture: Option<String>,
    nvml: Value,
}

impl Recording {
    /// Reads it; `name` is the file's in messages.
    ///
    /// # Errors
    /// It is not there, too long, or not what `host --save-nvml` writes.
    pub fn open(tree: &Tree, path: &str, name: &str) -> Result<Self, Unseen> {
        let named = |unseen: Unseen| Unseen::new(name, unseen.reason);
        let other = |reason: String| Unseen::new(name, reason);
        let bytes = tree.read(path, LIMIT).map_err(named)?.ok_or_else(|| other("it is absent".to_owned()))?;
        // what the reader of JSON says may quote the file
        let no_recording = |_| other("it is no recording of NVML".to_owned());
        let document: Document = serde_json::from_slice(&bytes).map_err(no_recording)?;
        if (document.schema_version, document.kind.as_str()) != (1, "nvml-recording") {
            return Err(other("it is no recording of NVML that this version can read".to_owned()));
        }
        let nvml = harmless(document.nvml).map_err(no_recording)?;
        if nvml.gpus.len() > MOST_GPUS {
            return Err(other(format!("it has more than {MOST_GPUS} GPUs")));
        }
        let is_name = |text: &String| text.len() <= 16 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        Ok(Self { nvml, architecture: document.architecture.filter(is_name) })
    }
}

impl Source for Recording {
    fn read(&self, _: Instant) -> Nvml {
        self.nvml.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::laid;
    use crate::collect::tree::Kind;
    use crate::model::host::NvmlTrouble;

    fn opened(text: &str) -> Result<Recording, Unseen> {
        let dir = laid(&[("a.json", text)]);
        Recording::open(&Tree::open(dir.path(), Kind::Host).unwrap(), "a.json", "a.json")
    }

    #[test]
    fn what_is_no_recording_is_refused_with_the_reason() {
        let deep = "[".repeat(100_000);
        let many =
            format!(r#"{{"schema_version":1,"kind":"nvml-recording","nvml":{{"gpus":[{}{{}}]}}}}"#, "{},".repeat(256));
        for (text, reason) in [
            ("", "no recording"),
            ("{}", "no recording"),
            (deep.as_str(), "no recording"),
            (r#"{"schema_version":1,"kind":"host-profile","nvml":{}}"#, "no recording"),
            (r#"{"schema_version":2,"kind":"nvml-recording","nvml":{}}"#, "this version"),
            (r#"{"schema_version":1,"kind":"nvml-recording","nvml":{"gpus":[{"index":-1}]}}"#, "no recording"),
            (r#"{"schema_version":1,"kind":"nvml-recording","nvml":{"trouble":{"late":7}}}"#, "no recording"),
            (many.as_str(), "more than 256"),
            (&" ".repeat(LIMIT + 1), "larger than"),
        ] {
            let unseen = opened(text).unwrap_err();
            assert!(unseen.reason.contains(reason), "{text:.60}: {unseen:?}");
            assert_eq!(unseen.source, "a.json");
        }
    }

    #[test]
    fn words_of_the_file_cannot_command_a_terminal() {
        let text = r#"{"schema_version":1,"kind":"nvml-recording","nvml":{"trouble":{"not-loaded":"a\u001b[2J\u202eb"},"driver":"DRIVER"}}"#;
        let nvml = opened(&text.replace("DRIVER", &"9".repeat(5000))).unwrap().nvml;
        assert_eq!(nvml.trouble, Some(NvmlTrouble::NotLoaded("a?[2J?b".to_owned())));
        assert!(nvml.driver.unwrap().len() <= 300);
    }
}
