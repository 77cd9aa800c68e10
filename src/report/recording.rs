//! What NVML said, as a file for whoever judges it elsewhere: a report of a defect, a test.

use serde_json::json;

use crate::model::host::Nvml;

/// The document's version.
const SCHEMA_VERSION: u32 = 1;
/// What it says that it is.
pub const KIND: &str = "nvml-recording";

/// The file: all that NVML said but for pids, which are nobody else's business, and for what processor.
///
/// # Errors
/// None that is known: all of it can be written as JSON.
pub fn text(nvml: &Nvml, architecture: Option<&str>) -> serde_json::Result<String> {
    let mut nvml = nvml.clone();
    for gpu in &mut nvml.gpus {
        for process in gpu.processes.iter_mut().chain(&mut gpu.graphics).flatten() {
            process.pid = None;
        }
    }
    let document = json!({"schema_version": SCHEMA_VERSION, "kind": KIND, "architecture": architecture, "nvml": nvml});
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::host::{NvmlGpu, NvmlProcess};

    #[test]
    fn processes_stay_and_their_pids_do_not() {
        let process = NvmlProcess { pid: Some(4711), memory: Some(1) };
        let gpu =
            NvmlGpu { processes: Some(vec![process.clone()]), graphics: Some(vec![process]), ..NvmlGpu::default() };
        let text = text(&Nvml { gpus: vec![gpu], ..Nvml::default() }, Some("x86_64")).unwrap();
        assert!(!text.contains("4711") && text.matches("memory").count() == 2, "{text}");
    }
}
