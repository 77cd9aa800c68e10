//! From an engine's container id, or name, to its bundle and process, by the files that engines and runtimes keep.
//! No daemon is asked.

use std::path::PathBuf;

use super::named;
use crate::collect::tree::Tree;
use crate::collect::users;
use crate::model::Unseen;

/// Characters of an id as engines make them.
const WHOLE_ID: usize = 64;

/// Directories whose entries are bundles named by container id. `*` is any one name.
const BUNDLES: [&str; 5] = [
    // docker and nerdctl over containerd, kubelet over containerd
    "/run/containerd/io.containerd.runtime.v2.task/*",
    "/run/docker/containerd/daemon/io.containerd.runtime.v2.task/*",
    "/var/run/docker/containerd/daemon/io.containerd.runtime.v2.task/*",
    // CRI-O
    "/run/containers/storage/overlay-containers/*/userdata",
    "/var/lib/containers/storage/overlay-containers/*/userdata",
];

/// Where runtimes keep their state, by container id: `state.json` of runc, `status` of crun.
const STATES: [&str; 8] = [
    "/run/runc",
    "/run/crun",
    "/run/youki",
    "/run/docker/runtime-runc/*",
    "/run/containerd/runc/*",
    "/run/docker/containerd/runc/*",
    "/run/runc-*",
    "/run/crun-*",
];

/// The same of a user's own engine, below `/run/user/UID`.
const BUNDLES_OF_USERS: [&str; 1] = ["containers/overlay-containers/*/userdata"];
const STATES_OF_USERS: [&str; 3] = ["runc", "crun", "youki"];

/// At most so many entries of a directory are looked at.
const ENTRIES: usize = 16_384;

/// A JSON file of a runtime's state is at most this long.
const STATE_LIMIT: usize = 8 << 20;

/// A container that was found by its id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Located {
    /// The whole id.
    pub id: String,
    /// Its bundle on the host, if one was found.
    pub bundle: Option<PathBuf>,
    /// Its first process, if it runs.
    pub pid: Option<i32>,
}

/// The container of an id, a name, or an id's beginning, in this order as docker has it; `None`: no engine's files know
/// it.
///
/// # Errors
/// Several containers have the name or begin with it, or a directory cannot be read.
pub fn by_word(host: &Tree, word: &str) -> Result<Option<Located>, Unseen> {
    if word.len() == WHOLE_ID && word.bytes().all(|b| b.is_ascii_hexdigit()) {
        return by_id(host, word);
    }
    let named = named::ids(host, word);
    let mut ids = named.iter();
    match (ids.next(), ids.next()) {
        (Some(_), Some(_)) => {
            Err(Unseen::new(word, "containers of several engines have this name; name one by its id"))
        }
        (Some(id), None) => {
            Ok(Some(by_id(host, id)?.unwrap_or_else(|| Located { id: id.clone(), ..Located::default() })))
        }
        (None, _) => by_id(host, word),
    }
}

/// The container of an id or of an id's beginning.
fn by_id(host: &Tree, id: &str) -> Result<Option<Located>, Unseen> {
    let usable = id.len() >= 3
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && !id.starts_with('.');
    if !usable {
        return Ok(None);
    }
    let mut found: Option<Located> = None;
    let users = users::at_work(host);
    let of_users = users.iter().flat_map(|uid| {
        STATES_OF_USERS.iter().chain(&BUNDLES_OF_USERS).map(move |place| format!("/run/user/{uid}/{place}"))
    });
    let places = STATES.iter().chain(&BUNDLES).map(|place| (*place).to_owned()).chain(of_users);
    for place in places {
        for (whole, directory) in candidates(host, &place, id)? {
            let located = found.get_or_insert_with(|| Located { id: whole.clone(), bundle: None, pid: None });
            if located.id != whole {
                return Err(Unseen::new(id, "several containers' ids begin with it"));
            }
            look(host, &directory, located)?;
        }
    }
    Ok(found)
}

/// Entries below a place whose name is the id or begins with it, with their directories.
fn candidates(host: &Tree, place: &str, id: &str) -> Result<Vec<(String, String)>, Unseen> {
    let names = |directory: &str| -> Result<Vec<String>, Unseen> {
        let names = host.list(directory, ENTRIES)?.unwrap_or_default();
        Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
    };
    let Some((before, after)) = place.split_once('*') else {
        let fits = names(place)?.into_iter().filter(|name| name.starts_with(id));
        return Ok(fits.map(|name| (name.clone(), format!("{place}/{name}"))).collect());
    };
    let (parent, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let mut all = Vec::new();
    for name in names(parent)?.into_iter().filter(|name| name.starts_with(prefix)) {
        if after.is_empty() {
            let inner = format!("{parent}/{name}");
            all.extend(
                names(&inner)?.into_iter().filter(|n| n.starts_with(id)).map(|n| (n.clone(), format!("{inner}/{n}"))),
            );
        } else if name.starts_with(id) {
            all.push((name.clone(), format!("{parent}/{name}{after}")));
        }
    }
    Ok(all)
}

/// Takes from a directory what it tells.
fn look(host: &Tree, directory: &str, located: &mut Located) -> Result<(), Unseen> {
    if located.bundle.is_none() && host.stat(&format!("{directory}/config.json"))?.is_some() {
        located.bundle = Some(directory.into());
    }
    if located.pid.is_none() {
        located.pid = match host.read_text(&format!("{directory}/init.pid"), 64)? {
            Some(text) => text.trim().parse().ok(),
            None => state_pid(host, directory, "state.json")?.or(state_pid(host, directory, "status")?),
        };
    }
    if located.bundle.is_none() {
        located.bundle = state_bundle(host, directory)?;
    }
    Ok(())
}

fn state(host: &Tree, directory: &str, name: &str) -> Result<Option<serde_json::Value>, Unseen> {
    let bytes = host.read(&format!("{directory}/{name}"), STATE_LIMIT)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// runc: `init_process_pid`; crun and youki: `pid`. A stopped container has 0 there.
fn state_pid(host: &Tree, directory: &str, name: &str) -> Result<Option<i32>, Unseen> {
    let Some(state) = state(host, directory, name)? else { return Ok(None) };
    let pid = ["init_process_pid", "pid"].iter().find_map(|key| state.get(key)?.as_i64());
    Ok(pid.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 1))
}

/// runc: the label `bundle=…`; crun and youki: `bundle`.
fn state_bundle(host: &Tree, directory: &str) -> Result<Option<PathBuf>, Unseen> {
    for name in ["state.json", "status"] {
        let Some(state) = state(host, directory, name)? else { continue };
        let labels = state.pointer("/config/labels").and_then(|labels| labels.as_array());
        let of_runc = labels.and_then(|labels| labels.iter().find_map(|label| label.as_str()?.strip_prefix("bundle=")));
        let bundle = of_runc.or_else(|| state.get("bundle")?.as_str());
        if let Some(bundle) = bundle {
            return Ok(Some(bundle.into()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::tree::Kind;

    fn laid(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let dir = crate::collect::testing::laid(files);
        let tree = Tree::open(dir.path(), Kind::Host).unwrap();
        (dir, tree)
    }

    #[test]
    fn a_task_of_containerd_is_found_by_the_beginning_of_its_id() {
        let task = "/run/containerd/io.containerd.runtime.v2.task/moby/c0ffee0123";
        let (_dir, tree) = laid(&[(&format!("{task}/config.json"), "{}"), (&format!("{task}/init.pid"), "4242")]);
        let found = by_id(&tree, "c0ff").unwrap().unwrap();
        assert_eq!(found, Located { id: "c0ffee0123".into(), bundle: Some(task.into()), pid: Some(4242) });
        assert_eq!(by_id(&tree, "beef").unwrap(), None);
    }

    #[test]
    fn the_runtimes_own_state_is_enough() {
        let (_dir, tree) = laid(&[
            (
                "/run/runc/one/state.json",
                r#"{"init_process_pid": 7001, "config": {"labels": ["x=y", "bundle=/b/one"]}}"#,
            ),
            ("/run/crun/two/status", r#"{"pid": 7002, "bundle": "/b/two"}"#),
            ("/run/crun/done/status", r#"{"pid": 0, "bundle": "/b/done"}"#),
        ]);
        assert_eq!(
            by_id(&tree, "one").unwrap().unwrap(),
            Located { id: "one".into(), bundle: Some("/b/one".into()), pid: Some(7001) }
        );
        assert_eq!(by_id(&tree, "two").unwrap().unwrap().pid, Some(7002));
        assert_eq!(by_id(&tree, "done").unwrap().unwrap().pid, None);
    }

    #[test]
    fn a_name_is_taken_before_an_ids_beginning_and_users_have_engines_of_their_own() {
        let podman = "/var/lib/containers/storage/overlay-containers/containers.json";
        let (_dir, tree) = laid(&[
            (podman, r#"[{"id": "one", "names": ["abc"]}, {"id": "gone", "names": ["stopped"]}]"#),
            ("/run/runc/one/state.json", r#"{"init_process_pid": 7001}"#),
            ("/run/user/1000/crun/abcdef/status", r#"{"pid": 7002, "bundle": "/b/two"}"#),
        ]);
        assert_eq!(by_word(&tree, "abc").unwrap().unwrap().pid, Some(7001));
        assert_eq!(by_word(&tree, "abcd").unwrap().unwrap().pid, Some(7002));
        assert_eq!(by_word(&tree, "stopped").unwrap().unwrap(), Located { id: "gone".into(), ..Located::default() });
        assert_eq!(by_word(&tree, "nobody").unwrap(), None);
    }

    #[test]
    fn a_beginning_that_fits_several_is_not_guessed_and_no_id_is_a_path() {
        let (_dir, tree) = laid(&[("/run/runc/abc1/state.json", "{}"), ("/run/runc/abc2/state.json", "{}")]);
        assert!(by_id(&tree, "abc").is_err());
        for id in ["../../etc", "a/b", "..", "", "ab"] {
            assert_eq!(by_id(&tree, id).unwrap(), None, "{id}");
        }
    }
}
