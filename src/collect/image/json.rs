//! JSON that an image's author wrote.

use serde::de::DeserializeOwned;

use crate::model::Unseen;

/// Values of one document: each takes many times the memory of its letters, and large indexes have ten thousand.
const MOST_VALUES: usize = 100_000;

/// A document as what it should be; `source` is what it is called.
pub(super) fn read<T: DeserializeOwned>(source: &str, bytes: &[u8]) -> Result<T, Unseen> {
    // no array or object has two values without one
    if memchr::memchr_iter(b',', bytes).nth(MOST_VALUES).is_some() {
        return Err(Unseen::new(source, format!("has more than {MOST_VALUES} values")));
    }
    serde_json::from_slice(bytes).map_err(|error| Unseen::new(source, format!("is no such JSON ({error})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_too_many_values_is_not_taken_apart() {
        let of = |many: usize| read::<Vec<u8>>("x", format!("[{}1]", "1,".repeat(many)).as_bytes());
        assert_eq!(of(MOST_VALUES).unwrap().len(), MOST_VALUES + 1);
        assert!(of(MOST_VALUES + 1).unwrap_err().reason.contains("more than 100000 values"));
        assert!(read::<Vec<u8>>("x", b"{").unwrap_err().reason.starts_with("is no such JSON"));
    }
}
