//! Pieces of a JSON text, each read by itself, so that one word that nobody knows loses one piece.
//!
//! What is not wanted is skipped by `serde_json` without recursion, whatever its depth; what is wanted
//! is bounded in bytes and elements before it is parsed.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::model::{Observed, Parts, Unknown};

/// Bytes of a list or map that is still read: half of what the kernel takes as environment and
/// arguments together.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// Elements of a list that is still read.
pub(super) const MOST_ELEMENTS: usize = 16_384;
/// Bytes of one element: a mount, a hook with its arguments.
const MOST_ELEMENT_BYTES: usize = 64 << 10;
/// Unreadable elements that are remembered; one is enough for a doubt.
const MOST_UNREAD: usize = 16;

/// What may be kept of one file, in bytes of memory: an engine's takes a tenth of a percent of it.
const MOST_KEPT: usize = 12 << 20;

/// The memory that a file's pieces share, so that many middling pieces are no large one.
pub(super) struct Budget(Cell<usize>);

impl Budget {
    pub(super) fn new() -> Self {
        Self(Cell::new(MOST_KEPT))
    }

    /// Takes what an element will cost, in the spec and again in the container's facts: its text, its
    /// structure, and a string for every comma.
    pub(super) fn take(&self, text: &str) -> Result<(), String> {
        let strings = text.bytes().filter(|byte| *byte == b',').count();
        let cost = 2 * (text.len() + 96 + strings * size_of::<String>());
        let left = self.0.get().checked_sub(cost).ok_or_else(|| "the file holds more than is kept".to_owned())?;
        self.0.set(left);
        Ok(())
    }
}

/// The fields of an object by name, `None` where absent or `null`. The last of several counts, as it
/// does in the runtimes; what follows the object is not looked at, as runc does not (`json.Decoder`).
pub(crate) fn fields<'a, const N: usize>(text: &'a str, names: [&str; N]) -> Result<[Option<&'a RawValue>; N], String> {
    if text.trim_ascii() == "null" {
        return Ok([None; N]);
    }
    serde_json::Deserializer::from_str(text).deserialize_map(Fields(names)).map_err(|e| reason(&e))
}

/// The elements of a list, or the reason why it is not read.
pub(super) fn elements(text: &str) -> Result<Vec<&RawValue>, String> {
    within(text, MOST_BYTES)?;
    serde_json::Deserializer::from_str(text).deserialize_seq(Elements).map_err(|e| reason(&e))
}

/// The entries of an object in their order, or the reason why it is not read.
pub(crate) fn entries(text: &str) -> Result<Vec<(String, &RawValue)>, String> {
    within(text, MOST_BYTES)?;
    serde_json::Deserializer::from_str(text).deserialize_map(Entries).map_err(|e| reason(&e))
}

/// A value of a small piece.
pub(crate) fn value<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    within(text, MOST_ELEMENT_BYTES)?;
    serde_json::from_str(text).map_err(|e| reason(&e))
}

/// A list element by element; an absent one is empty.
pub(super) fn list<T>(
    budget: &Budget,
    fact: &str,
    source: &str,
    piece: Option<&RawValue>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Observed<Parts<T>> {
    let mut parts = Parts::default();
    match add(&mut parts, budget, fact, source, piece, read) {
        Ok(()) => Observed::Known(parts),
        Err(reason) => Observed::unknown(fact, source, reason),
    }
}

/// Adds the elements of a list to others.
pub(super) fn add<T>(
    parts: &mut Parts<T>,
    budget: &Budget,
    fact: &str,
    source: &str,
    piece: Option<&RawValue>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<(), String> {
    let Some(piece) = piece else { return Ok(()) };
    for (place, element) in elements(piece.get())?.into_iter().enumerate() {
        budget.take(element.get())?;
        match read(element.get()) {
            Ok(_) if parts.items.len() >= MOST_ELEMENTS => return Err(format!("more than {MOST_ELEMENTS} elements")),
            Ok(item) => parts.items.push(item),
            Err(reason) if parts.unread.len() < MOST_UNREAD => {
                parts.unread.push(Unknown::new(fact, format!("{source}/{place}"), reason));
            }
            Err(_) => {}
        }
    }
    Ok(())
}

fn within(text: &str, limit: usize) -> Result<(), String> {
    if text.len() > limit { Err(format!("longer than {limit} bytes")) } else { Ok(()) }
}

/// Without serde's own words: they quote the value, which is somebody else's text of any length.
fn reason(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Data => "of another form than expected",
        serde_json::error::Category::Eof => "cut off",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => "no JSON, or nested too deeply",
    };
    format!("{what} (line {}, column {})", error.line(), error.column())
}

struct Fields<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> Visitor<'de> for Fields<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(place) = map.next_key_seed(Name(&self.0))? {
            match place.and_then(|place| found.get_mut(place)) {
                Some(slot) => *slot = Some(map.next_value::<&'de RawValue>()?).filter(|v| v.get() != "null"),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

/// A key: its place among the wanted names.
struct Name<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|name| *name == key))
    }
}

struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST_ELEMENTS} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(element) = list.next_element::<&'de RawValue>()? {
            if found.len() == MOST_ELEMENTS {
                return Err(serde::de::Error::invalid_length(MOST_ELEMENTS + 1, &self));
            }
            found.push(element);
        }
        Ok(found)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of at most {MOST_ELEMENTS} entries")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(entry) = map.next_entry::<String, &'de RawValue>()? {
            if found.len() == MOST_ELEMENTS {
                return Err(serde::de::Error::invalid_length(MOST_ELEMENTS + 1, &self));
            }
            found.push(entry);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_fields_counts_and_null_is_absence() {
        let [a, b, c] = fields(r#"{"a":1,"x":{"a":5},"b":null,"a":2} trailing"#, ["a", "b", "c"]).unwrap();
        assert_eq!((a.map(RawValue::get), b.is_none(), c.is_none()), (Some("2"), true, true));
        assert!(fields("null", ["a"]).unwrap()[0].is_none());
        assert!(fields("[]", ["a"]).is_err());
        assert!(fields(r#"{"a":1"#, ["a"]).unwrap_err().contains("cut off"));
    }

    #[test]
    fn depth_costs_no_stack_where_it_is_skipped_and_an_error_where_it_is_read() {
        for depth in [10_000, 1_000_000] {
            let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let text = format!(r#"{{"skipped":{deep},"wanted":{deep},"a":1}}"#);
            let [wanted, a] = fields(&text, ["wanted", "a"]).unwrap();
            assert_eq!(a.map(RawValue::get), Some("1"));
            let read = list(&Budget::new(), "f", "s", wanted, value::<Vec<u32>>);
            assert!(read.seen().is_none_or(|parts| parts.items.is_empty() && parts.unread.len() == 1));
        }
    }

    #[test]
    fn one_bad_element_does_not_lose_the_others() {
        let raw: &RawValue = serde_json::from_str(r#"[1,"x",2]"#).unwrap();
        let parts = list(&Budget::new(), "container.x", "/x", Some(raw), value::<u32>);
        let parts = parts.known().unwrap();
        assert_eq!(parts.items, [1, 2]);
        assert_eq!(parts.unread[0].source, "/x/1");
    }

    #[test]
    fn all_lists_together_have_an_end() {
        let budget = Budget::new();
        let element = format!("[{}0]", "0,".repeat(30_000));
        let text = format!("[{}]", vec![element; 16].join(","));
        let raw: &RawValue = serde_json::from_str(&text).unwrap();
        let known = (0..4).filter(|_| list(&budget, "f", "s", Some(raw), value::<Vec<u8>>).known().is_ok()).count();
        assert!(known < 2, "{known}");
        assert!(list(&Budget::new(), "f", "s", Some(raw), |_| Ok(())).known().is_err());
    }

    #[test]
    fn lists_have_an_end() {
        let text = format!("[{}0]", "0,".repeat(MOST_ELEMENTS));
        assert!(elements(&text).is_err());
        assert!(elements(&format!("[{}0]", "0,".repeat(MOST_ELEMENTS - 1))).is_ok());
        assert!(elements(&format!(r#"["{}"]"#, "x".repeat(MOST_BYTES))).unwrap_err().contains("longer"));
    }
}
