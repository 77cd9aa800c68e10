//! Which of a store's images a name means, as podman decides it.

use std::collections::{BTreeMap, BTreeSet};

use super::store::Image;
use crate::collect::image::source::machine::Machine;
use crate::collect::image::source::registry::trust::registries;

/// As few digits of an id as anybody writes.
const FEWEST_DIGITS: usize = 4;

/// How names without a registry are completed on a machine.
#[derive(Debug, Default)]
pub(super) struct Search {
    aliases: BTreeMap<String, String>,
    registries: Vec<String>,
}

impl Search {
    /// Of `registries.conf` and the names that podman was once asked about.
    pub(super) fn of(machine: &Machine<'_>) -> Self {
        let mut search = Self::default();
        let mut tables = registries(machine);
        let cache = machine.home().map(|home| format!("{home}/.cache/containers/short-name-aliases.conf"));
        tables.extend(cache.and_then(|path| machine.toml(&path)));
        for table in tables {
            let aliases = table.get("aliases").and_then(toml::Value::as_table).into_iter().flatten();
            search.aliases.extend(aliases.filter_map(|(name, whole)| Some((name.clone(), whole.as_str()?.to_owned()))));
            if let Some(all) = table.get("unqualified-search-registries").and_then(toml::Value::as_array) {
                search.registries = all.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
            }
        }
        search
    }

    /// The whole repositories that a written one may mean, the likeliest first.
    fn candidates(&self, repository: &str) -> Vec<String> {
        let mut all = vec![repository.to_owned(), format!("localhost/{repository}")];
        all.extend(self.aliases.get(repository).cloned());
        all.extend(self.registries.iter().map(|registry| format!("{registry}/{repository}")));
        let on_hub = repository.strip_prefix("docker.io/").unwrap_or(repository);
        all.push(format!("docker.io/{on_hub}"));
        all.push(format!("docker.io/library/{on_hub}"));
        all
    }
}

/// A name in its parts.
struct Parts<'a> {
    repository: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

fn parts(text: &str) -> Parts<'_> {
    let (name, digest) = match text.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (text, None),
    };
    match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => Parts { repository, tag: Some(tag), digest },
        _ => Parts { repository: name, tag: None, digest },
    }
}

/// The image that is meant; `None`: there is none. An error: several may be.
pub(super) fn choose<'a>(images: &'a [Image], text: &str, search: &Search) -> Result<Option<&'a Image>, String> {
    if let Some(id) = text.strip_prefix("sha256:") {
        return by_id(images, id);
    }
    let wanted = parts(text);
    let tag = wanted.tag.unwrap_or("latest");
    let has = |image: &Image, fits: &dyn Fn(&str) -> bool| {
        image.names().any(|name| {
            let name = parts(name);
            fits(name.repository)
                && match wanted.digest {
                    Some(digest) => name.digest == Some(digest) || image.is_of_manifest(digest),
                    None => name.tag == Some(tag),
                }
        })
    };
    for candidate in search.candidates(wanted.repository) {
        if let Some(image) = images.iter().find(|image| has(image, &|repository| repository == candidate)) {
            return Ok(Some(image));
        }
    }
    let tail = format!("/{}", wanted.repository);
    let by_tail = images.iter().filter(|image| has(image, &|repository| repository.ends_with(&tail)));
    match one_of(by_tail.collect())? {
        Some(image) => Ok(Some(image)),
        None => by_id(images, text),
    }
}

fn by_id<'a>(images: &'a [Image], id: &str) -> Result<Option<&'a Image>, String> {
    if id.len() < FEWEST_DIGITS || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(None);
    }
    one_of(images.iter().filter(|image| image.id.starts_with(id)).collect())
}

fn one_of(images: Vec<&Image>) -> Result<Option<&Image>, String> {
    let ids: BTreeSet<&str> = images.iter().map(|image| image.id.as_str()).collect();
    if ids.len() > 1 {
        let names: Vec<&str> = images.iter().flat_map(|image| image.names().take(1)).take(4).collect();
        return Err(format!("may mean several images ({}): name one in full", names.join(", ")));
    }
    Ok(images.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images() -> Vec<Image> {
        let manifest = format!("sha256:{}", "d".repeat(64));
        let text = serde_json::json!([
            {"id": "aaaa1111", "names": ["127.0.0.1:5055/spike/traps:latest"], "digest": manifest},
            {"id": "aaaa2222", "names": ["docker.io/library/shorty:latest"]},
            {"id": "bbbb1111", "names": ["quay.io/a/other:2"]},
            {"id": "bbbb2222", "names": ["localhost/own:latest"]},
            {"id": "cccc1111", "names": ["one.io/x/twice:latest"]},
            {"id": "cccc2222", "names": ["two.io/x/twice:latest"]},
            {"id": "dddd1111", "names": null}]);
        serde_json::from_value(text).unwrap()
    }

    fn chosen(text: &str, search: &Search) -> String {
        match choose(&images(), text, search) {
            Ok(found) => found.map_or("none".to_owned(), |image| image.id.clone()),
            Err(why) => why,
        }
    }

    #[test]
    fn names_are_completed_as_podman_does() {
        let of = |text: &str| chosen(text, &Search::default());
        for text in ["traps", "spike/traps", "127.0.0.1:5055/spike/traps", "127.0.0.1:5055/spike/traps:latest"] {
            assert_eq!(of(text), "aaaa1111", "{text}");
        }
        for text in ["shorty", "library/shorty", "docker.io/shorty", "docker.io/library/shorty:latest"] {
            assert_eq!(of(text), "aaaa2222", "{text}");
        }
        assert_eq!((of("other"), of("other:2"), of("own")), ("none".into(), "bbbb1111".into(), "bbbb2222".into()));
        assert_eq!(of("raps"), "none");
        assert!(of("twice").contains("one.io/x/twice:latest, two.io/x/twice:latest"), "{}", of("twice"));
        assert_eq!(of("two.io/x/twice"), "cccc2222");
    }

    #[test]
    fn ids_and_digests_name_images() {
        let of = |text: &str| chosen(text, &Search::default());
        assert_eq!(
            (of("bbbb1"), of("sha256:dddd1111"), of("bbb")),
            ("bbbb1111".into(), "dddd1111".into(), "none".into())
        );
        assert!(of("aaaa").contains("several"));
        assert_eq!(of(&format!("spike/traps@sha256:{}", "d".repeat(64))), "aaaa1111");
        assert_eq!(of(&format!("spike/traps@sha256:{}", "e".repeat(64))), "none");
        assert_eq!(of(""), "none");
    }

    #[test]
    fn aliases_and_registries_of_the_machine_count() {
        let search = Search {
            aliases: BTreeMap::from([("twice".to_owned(), "one.io/x/twice".to_owned())]),
            registries: vec!["two.io".to_owned()],
        };
        assert_eq!((chosen("twice", &search), chosen("x/twice", &search)), ("cccc1111".into(), "cccc2222".into()));
    }
}
