//! Where the caller's images are, and root's.

use nix::unistd::geteuid;
use toml::Value;

use crate::collect::image::source::machine::Machine;

/// Where root's are as a rule.
const DEFAULT: &str = "/var/lib/containers/storage";

/// The roots of all stores, the caller's own first.
pub(super) fn roots(machine: &Machine<'_>) -> Vec<String> {
    let mut roots = Vec::new();
    if let Some(told) = machine.variable("CONTAINERS_STORAGE_CONF") {
        add(machine, told, &mut roots);
        if roots.is_empty() {
            roots.push(default(machine));
        }
        return roots;
    }
    let system = ["/etc/containers/storage.conf", "/usr/share/containers/storage.conf"];
    let system = system.into_iter().find(|path| machine.files().stat(path).is_ok_and(|found| found.is_some()));
    if !machine.is_root() {
        let own = machine.home().map(|home| format!("{home}/.config/containers/storage.conf"));
        if let Some(own) = own {
            add(machine, &own, &mut roots);
        }
        let rootless = system
            .and_then(|path| machine.toml(path))
            .and_then(|table| Some(expanded(machine, table.get("storage")?.get("rootless_storage_path")?.as_str()?)));
        roots.extend(rootless);
        roots.push(default(machine));
    }
    if let Some(system) = system {
        add(machine, system, &mut roots);
    }
    roots.push(DEFAULT.to_owned());
    let mut seen = std::collections::BTreeSet::new();
    roots.retain(|root| seen.insert(root.clone()));
    roots
}

fn default(machine: &Machine<'_>) -> String {
    if machine.is_root() {
        return DEFAULT.to_owned();
    }
    let data = machine.variable("XDG_DATA_HOME").map(str::to_owned);
    let data = data.or_else(|| machine.home().map(|home| format!("{home}/.local/share")));
    data.map_or_else(|| DEFAULT.to_owned(), |data| format!("{data}/containers/storage"))
}

/// The roots that a file names: its own, and the further ones that are only read.
fn add(machine: &Machine<'_>, path: &str, roots: &mut Vec<String>) {
    let Some(table) = machine.toml(path) else { return };
    let Some(storage) = table.get("storage") else { return };
    let own = storage.get("graphroot").and_then(Value::as_str).filter(|root| !root.is_empty());
    roots.push(own.map_or_else(|| default(machine), |root| expanded(machine, root)));
    let further = storage.get("options").and_then(|options| options.get("additionalimagestores"));
    let further = further.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    roots.extend(further.map(|root| expanded(machine, root)));
}

fn expanded(machine: &Machine<'_>, path: &str) -> String {
    path.replace("$HOME", machine.home().unwrap_or_default())
        .replace("$UID", &geteuid().to_string())
        .replace("$USER", machine.variable("USER").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::collect::tree::{Kind, Tree};

    fn of(files: &[(&str, &str)], laid_out: bool, variables: &[(&str, &str)]) -> Vec<String> {
        let dir = crate::collect::testing::laid(files);
        let tree = Tree::open(dir.path(), Kind::Host).unwrap();
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment: BTreeMap<String, String> = variables.iter().map(own).collect();
        roots(&Machine::new(&tree, laid_out, environment))
    }

    #[test]
    fn what_storage_conf_says_counts_and_the_default_is_asked_too() {
        let conf = "[storage]\ndriver = \"overlay\"\ngraphroot = \"/srv/c\"\n[storage.options]\nadditionalimagestores = [\"/ro\"]\n";
        let files = [("etc/containers/storage.conf", conf)];
        assert_eq!(of(&files, true, &[]), ["/srv/c", "/ro", DEFAULT]);
        assert_eq!(of(&[], true, &[]), [DEFAULT]);
        assert_eq!(of(&[("etc/containers/storage.conf", "[storage")], true, &[]), [DEFAULT]);
        let told = [("other.conf", conf)];
        assert_eq!(of(&told, false, &[("CONTAINERS_STORAGE_CONF", "/other.conf")]), ["/srv/c", "/ro"]);
        assert_eq!(of(&told, true, &[("CONTAINERS_STORAGE_CONF", "/other.conf")]), [DEFAULT], "not of that machine");
    }
}
