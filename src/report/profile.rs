//! A host profile: what is known of a machine, to judge images by elsewhere. Its reader is `collect::host::profile`.

use serde_json::{Value, json};

use super::json::SCHEMA_VERSION;
use crate::model::Host;
use crate::model::host::Carried;

/// What the document says that it is.
pub const KIND: &str = "host-profile";

/// The profile as JSON text, keys sorted, with nothing that differs between two looks at an unchanged machine.
///
/// # Errors
/// None that is known: all of it can be written as JSON.
pub fn text(host: &Host) -> serde_json::Result<String> {
    Ok(format!("{:#}\n", document(&Carried::from(host))?))
}

/// The profile as a JSON value.
///
/// # Errors
/// As [`text`].
pub fn document(carried: &Carried) -> serde_json::Result<Value> {
    // a value's keys are sorted; a struct's are as they are declared
    let facts = serde_json::to_value(carried)?;
    Ok(json!({"schema_version": SCHEMA_VERSION, "kind": KIND, "facts": {"host": facts}}))
}
