//! A host profile: what is known of a machine, to judge images by elsewhere. Its reader is `collect::host::profile`.

use serde_json::json;

use super::json::SCHEMA_VERSION;
use crate::model::Host;
use crate::model::host::Carried;

/// The profile as JSON text, keys sorted, with nothing that differs between two looks at an unchanged machine.
///
/// # Errors
/// None that is known: all of it can be written as JSON.
pub fn text(host: &Host) -> serde_json::Result<String> {
    // a value's keys are sorted; a struct's are as they are declared
    let facts = serde_json::to_value(Carried::from(host))?;
    let profile = json!({"schema_version": SCHEMA_VERSION, "kind": "host-profile", "facts": {"host": facts}});
    Ok(format!("{profile:#}\n"))
}
