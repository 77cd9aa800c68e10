//! Entries of a table of contents, one after the other: all at once they would take more memory than is used.

use std::borrow::Cow;
use std::fmt;
use std::io;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::odd;
use crate::collect::image::layer::tar::Kind;

/// The version of both formats (containers/storage `minimal.TOC`, 1.51; stargz-snapshotter `estargz.JTOC`, 0.15).
const VERSION: u64 = 1;

/// An entry, in the words of both formats.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    link_name: Option<String>,
    #[serde(default)]
    mode: u64,
    #[serde(default)]
    pub(super) size: u64,
    /// Of a file: where it begins to be packed on its own.
    #[serde(default)]
    pub(super) offset: u64,
    #[serde(default)]
    end_offset: u64,
    /// It begins in the middle of what is packed together.
    #[serde(default)]
    inner_offset: u64,
    pub(super) digest: Option<String>,
}

impl Entry<'_> {
    /// What it is; `None`: a further part of the file before it.
    pub(super) fn kind(&self) -> io::Result<Option<Kind>> {
        if self.inner_offset != 0 {
            return Err(odd("files are packed together"));
        }
        Ok(Some(match &*self.kind {
            "reg" => Kind::File,
            "dir" => Kind::Directory,
            "symlink" => Kind::Symlink,
            "hardlink" => Kind::HardLink,
            "char" => Kind::CharDevice,
            "block" => Kind::BlockDevice,
            "fifo" => Kind::Fifo,
            "chunk" => return Ok(None),
            _ => return Err(odd("an entry is of no known kind")),
        }))
    }

    pub(super) fn target(&self) -> &str {
        self.link_name.as_deref().unwrap_or_default()
    }

    pub(super) fn mode(&self) -> u32 {
        u32::try_from(self.mode & 0o7777).unwrap_or(0)
    }

    /// Where its bytes end, if that is said.
    pub(super) fn end(&self) -> Option<u64> {
        (self.end_offset > 0).then_some(self.end_offset)
    }
}

/// Goes through the entries of a table.
pub(super) fn entries(json: &[u8], each: &mut dyn FnMut(&Entry<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut from = serde_json::Deserializer::from_slice(json);
    from.deserialize_map(Whole(each)).and_then(|()| from.end()).map_err(io::Error::from)
}

type Each<'e> = &'e mut dyn FnMut(&Entry<'_>) -> io::Result<()>;

struct Whole<'e>(Each<'e>);

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of contents")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut version, mut seen) = (None, false);
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            match &*key {
                "version" => version = Some(map.next_value::<u64>()?),
                "entries" if seen => return Err(A::Error::custom("its entries are there twice")),
                "entries" => {
                    seen = true;
                    map.next_value_seed(List(&mut *self.0))?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if version == Some(VERSION) && seen { Ok(()) } else { Err(A::Error::custom("it is of another version")) }
    }
}

struct List<'e>(Each<'e>);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(entry) = list.next_element::<Entry<'de>>()? {
            (self.0)(&entry).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
