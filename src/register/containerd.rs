//! containerd's `config.toml`: a runtime handler of ours, a copy of the default one that names our program, and made
//! the default.
//!
//! The shim gives its program no arguments, so a default runtime that is not runc is called through a wrapper. NVIDIA's
//! runtime calls ours by its own configuration: it must stay outside, so that ours sees what it made.

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::wrapper::{self, Registered};
use super::{RUNTIME_NAME, Trouble, already_default, is_runc, layout, table};

/// The CRI plugin's table in the configuration's versions 1, 2 and 3.
const PLUGINS: [&str; 3] = ["cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"];

/// The handler that containerd takes where its configuration names none (`pkg/cri/config`, 1.6 to 2.1).
const STOCK: &str = "runc";
const SHIM: &str = "io.containerd.runc.v2";

/// Adds our handler, and with `default` makes it that of every pod that names no other. `before`: the file as it was
/// before ours, where that is kept.
pub fn register(text: Option<&str>, before: Option<&str>, default: bool) -> Result<Registered, Trouble> {
    let mut document = table::parse(text)?;
    if text.is_none_or(|text| text.trim().is_empty()) {
        // read by 1.x, and by 2.x, which translates it
        document.insert("version", Item::Value(2.into()));
    }
    let plugin = plugin(&document)?;
    if is_switched_off(&document) {
        return Err(Trouble::refused(
            "its plugin for Kubernetes is switched off (disabled_plugins): this containerd serves docker",
            "gpu-preflight install docker",
        ));
    }
    let present = default_name(&document, plugin);
    let is_default = present == RUNTIME_NAME;
    if is_default && !default {
        return Err(already_default("containerd"));
    }
    // where ours is the default already, what it stands before is told by the file as it was
    let origin = if is_default { table::parse(before)? } else { document.clone() };
    let of_origin = self::plugin(&origin)?;
    let name = Some(default_name(&origin, of_origin)).filter(|name| name != RUNTIME_NAME);
    let name = name.unwrap_or_else(|| STOCK.to_owned());
    let of_default = table::at(&origin, &["plugins", of_origin, "containerd", "runtimes", &name]);
    let program = of_default.and_then(program);
    if program.is_some_and(is_of_nvidia) {
        return Err(Trouble::refused(
            "its default runtime is NVIDIA's, which calls ours by its own configuration",
            "gpu-preflight install nvidia",
        ));
    }
    if table::at(&origin, &["plugins", of_origin, "containerd", "default_runtime"]).is_some() {
        return Err(Trouble::refused(
            "it names its default runtime in the old way (default_runtime), which wins over the new one",
            "move it to runtimes and default_runtime_name",
        ));
    }
    let kind = of_default.and_then(|handler| table::text(handler, "runtime_type")).unwrap_or(SHIM);
    if default && kind != SHIM {
        return Err(Trouble::refused(
            format!("its default runtime {name:?} is of type {kind:?}, which calls no OCI program"),
            "register ours beside it with --no-default, and name it in a RuntimeClass",
        ));
    }
    let called = program.filter(|program| !is_runc(program) && default);
    let (program, wrapper) = wrapper::calling(called, "containerd")?;
    let keys = ["plugins", plugin, "containerd", "runtimes", RUNTIME_NAME];
    if table::at(&document, &keys).is_none() {
        let copy = of_default.map(as_table).unwrap_or_default();
        let ours = table::made(&mut document, &keys)?;
        for (key, item) in copy {
            ours.insert(&key, item);
        }
        if !ours.contains_key("runtime_type") {
            ours.insert("runtime_type", value(SHIM));
        }
    }
    let options = table::made(&mut document, &[keys.as_slice(), &["options"]].concat())?;
    if table::text(options, "BinaryName") != Some(program.as_str()) {
        table::set(options, "BinaryName", &program);
    }
    if default && !is_default {
        table::set(table::made(&mut document, &keys[..3])?, "default_runtime_name", RUNTIME_NAME);
    }
    layout::indent(&mut document);
    Ok(Registered { text: table::written(&document, text), wrapper })
}

/// Takes our handler out; what was the default before is it again. `None`: nothing is left in a file that was not there
/// before.
pub fn unregister(text: &str, before: Option<&str>) -> Result<Option<String>, Trouble> {
    let mut document = table::parse(Some(text))?;
    let earlier = table::parse(before)?;
    let plugin = plugin(&document)?;
    let keys = ["plugins", plugin, "containerd", "runtimes"];
    if let Some(runtimes) = existing(&mut document, &keys) {
        runtimes.remove(RUNTIME_NAME);
    }
    if let Some(containerd) = existing(&mut document, &keys[..3])
        && table::text(containerd, "default_runtime_name") == Some(RUNTIME_NAME)
    {
        let name = table::at(&earlier, &keys[..3]).and_then(|table| table::text(table, "default_runtime_name"));
        match name.filter(|name| *name != RUNTIME_NAME) {
            Some(name) => table::set(containerd, "default_runtime_name", name),
            None => {
                containerd.remove("default_runtime_name");
            }
        }
    }
    // tables that were made for ours go with it, and headers of those that had none
    for depth in (1..=keys.len()).rev() {
        if table_at(&earlier, &keys[..depth]).is_some_and(Table::is_implicit)
            && let Some((last, above)) = keys[..depth].split_last()
            && let Some(table) =
                existing(&mut document, above).and_then(|above| above.get_mut(last)).and_then(Item::as_table_mut)
        {
            table.set_implicit(true);
        }
        let (path, was_there) = (&keys[..depth], table::at(&earlier, &keys[..depth]).is_some());
        let is_empty = table::at(&document, path).is_some_and(TableLike::is_empty);
        if is_empty
            && !was_there
            && let Some((last, above)) = path.split_last()
            && let Some(above) = existing(&mut document, above)
        {
            above.remove(last);
        }
    }
    let is_left = before.is_some() || document.iter().any(|(key, _)| key != "version");
    Ok(is_left.then(|| table::written(&document, Some(text))))
}

/// The name of the default handler.
fn default_name(document: &DocumentMut, plugin: &str) -> String {
    let containerd = table::at(document, &["plugins", plugin, "containerd"]);
    containerd.and_then(|table| table::text(table, "default_runtime_name")).unwrap_or(STOCK).to_owned()
}

/// By the version that the configuration names; without one it is the first.
fn plugin(document: &DocumentMut) -> Result<&'static str, Trouble> {
    let version = document.get("version").and_then(Item::as_integer).unwrap_or(1);
    let place = usize::try_from(version).ok().and_then(|version| version.checked_sub(1));
    place.and_then(|place| PLUGINS.get(place)).copied().ok_or_else(|| {
        Trouble::refused(
            format!("it has version {version}, which is newer than this program"),
            "register by hand: hooks/containerd-2.toml",
        )
    })
}

fn is_switched_off(document: &DocumentMut) -> bool {
    let list = document.get("disabled_plugins").and_then(Item::as_array);
    list.is_some_and(|list| list.iter().filter_map(Value::as_str).any(|name| PLUGINS.contains(&name)))
}

/// The handler's program; `None`: what the shim takes by itself.
fn program(handler: &dyn TableLike) -> Option<&str> {
    table::text(handler.get("options")?.as_table_like()?, "BinaryName").filter(|name| !name.is_empty())
}

fn is_of_nvidia(program: &str) -> bool {
    program.rsplit('/').next().is_some_and(|name| name.starts_with("nvidia-container-runtime"))
}

/// A copy of a handler, without the comments before it.
fn as_table(handler: &dyn TableLike) -> Table {
    let mut copy = Table::new();
    for (key, item) in handler.iter() {
        let item = match item.as_table_like() {
            Some(inner) if !item.is_value() => Item::Table(as_table(inner)),
            _ => item.clone(),
        };
        copy.insert(key, item);
    }
    copy
}

fn existing<'d>(document: &'d mut DocumentMut, keys: &[&str]) -> Option<&'d mut dyn TableLike> {
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for key in keys {
        table = table.get_mut(key)?.as_table_like_mut()?;
    }
    Some(table)
}

/// A table with a header of its own, or with none because only its tables have some.
fn table_at<'d>(document: &'d DocumentMut, keys: &[&str]) -> Option<&'d Table> {
    keys.iter().try_fold(document.as_table(), |table, key| table.get(key)?.as_table())
}

fn value(text: &str) -> Item {
    Item::Value(Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::super::RUNTIME;
    use super::*;

    /// As Debian 12 ships it.
    const DEBIAN: &str = "version = 2\n\n[plugins]\n  [plugins.\"io.containerd.grpc.v1.cri\"]\n    \
        [plugins.\"io.containerd.grpc.v1.cri\".cni]\n      bin_dir = \"/usr/lib/cni\"\n      conf_dir = \"/etc/cni/net.d\"\n  \
        [plugins.\"io.containerd.internal.v1.opt\"]\n    path = \"/var/lib/containerd\"\n";

    /// What kubeadm's instructions make of `containerd config default`, shortened.
    const KUBEADM: &str = r#"version = 3 # of 2.0
root = "/var/lib/containerd"

[plugins]
  [plugins.'io.containerd.cri.v1.runtime']
    enable_cdi = true
    [plugins.'io.containerd.cri.v1.runtime'.containerd]
      default_runtime_name = 'runc' # the usual
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes]
        [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
          runtime_type = 'io.containerd.runc.v2'
          pod_annotations = ["a.*"]
          [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
            BinaryName = ''
            SystemdCgroup = true
"#;

    /// The handler that is the default by this file alone.
    fn default_of(text: Option<&str>) -> Option<String> {
        let document = table::parse(text).ok()?;
        Some(default_name(&document, plugin(&document).ok()?))
    }

    fn parsed(text: &str) -> toml::Table {
        text.parse().unwrap()
    }

    fn ours<'t>(text: &'t toml::Table, plugin: &str) -> &'t toml::Value {
        &text["plugins"][plugin]["containerd"]["runtimes"]["gpu-preflight"]
    }

    fn there_and_back(before: Option<&str>, default: bool) -> Option<String> {
        let with = register(before, None, default).unwrap().text;
        assert_eq!(register(Some(&with), before, default).unwrap().text, with, "twice is once");
        assert_eq!(default_of(Some(&with)).as_deref() == Some("gpu-preflight"), default);
        unregister(&with, before).unwrap()
    }

    #[test]
    fn the_default_handler_is_copied_with_what_it_needs() {
        let with = register(Some(KUBEADM), None, true).unwrap();
        let text = parsed(&with.text);
        let handler = ours(&text, PLUGINS[2]);
        assert_eq!(handler["options"]["SystemdCgroup"].as_bool(), Some(true));
        assert_eq!(handler["options"]["BinaryName"].as_str(), Some(RUNTIME));
        assert_eq!(handler["pod_annotations"][0].as_str(), Some("a.*"));
        assert!(with.text.contains("version = 3 # of 2.0") && with.text.contains("enable_cdi = true"));
        assert_eq!(with.wrapper, None);
    }

    #[test]
    fn without_a_handler_runcs_own_is_meant() {
        for (before, plugin) in [(Some(DEBIAN), PLUGINS[1]), (None, PLUGINS[1]), (Some("root = \"/d\"\n"), PLUGINS[0])]
        {
            let text = parsed(&register(before, None, true).unwrap().text);
            assert_eq!(ours(&text, plugin)["runtime_type"].as_str(), Some(SHIM));
            assert_eq!(text["plugins"][plugin]["containerd"]["default_runtime_name"].as_str(), Some("gpu-preflight"));
        }
    }

    #[test]
    fn what_was_put_in_comes_out_again() {
        for before in [DEBIAN, KUBEADM, "", "version = 2\n", "root = \"/d\"\n"] {
            for default in [true, false] {
                let back = there_and_back(Some(before), default).unwrap();
                let (mut back, before) = (parsed(&back), parsed(before));
                if before.is_empty() {
                    back.remove("version");
                }
                assert_eq!(back, before);
            }
        }
        assert_eq!(there_and_back(None, true), None);
    }

    #[test]
    fn another_runtime_is_called_through_a_wrapper_and_nvidias_by_its_own_configuration() {
        let with = |program: &str| KUBEADM.replace("BinaryName = ''", &format!("BinaryName = '{program}'"));
        let registered = register(Some(&with("/usr/bin/crun")), None, true).unwrap();
        let wrapper = registered.wrapper.unwrap();
        assert_eq!(
            ours(&parsed(&registered.text), PLUGINS[2])["options"]["BinaryName"].as_str(),
            Some(wrapper.path.as_str())
        );
        assert!(wrapper.text.contains("--runtime /usr/bin/crun"));
        // made again where it is gone
        let crun = with("/usr/bin/crun");
        assert_eq!(register(Some(&registered.text), Some(&crun), true).unwrap().wrapper, Some(wrapper));
        assert!(matches!(register(Some(&registered.text), None, false), Err(Trouble::Refused { .. })));
        assert!(register(Some(&with("/usr/bin/x;y")), None, true).is_err());
        let refused = register(Some(&with("/usr/bin/nvidia-container-runtime")), None, true);
        assert!(matches!(refused, Err(Trouble::Refused { way_out, .. }) if way_out.ends_with("nvidia")));
    }

    #[test]
    fn comments_line_ends_and_marks_stay() {
        let before = KUBEADM.replace("'runc' # the usual", "'runc' # ticket 4711").replace('\n', "\r\n");
        let with = register(Some(&before), None, true).unwrap().text;
        assert!(with.contains("default_runtime_name = \"gpu-preflight\" # ticket 4711\r\n"), "{with}");
        assert_eq!(with.matches('\n').count(), with.matches("\r\n").count());
        let marked = format!("\u{feff}{DEBIAN}");
        assert!(register(Some(&marked), None, true).unwrap().text.starts_with("\u{feff}version = 2\n"));
        let mixed = DEBIAN.replacen('\n', "\r\n", 1);
        assert!(matches!(register(Some(&mixed), None, true), Err(Trouble::Broken(_))));
    }

    #[test]
    fn a_runc_that_lies_elsewhere_is_called_where_it_lies() {
        let with = KUBEADM.replace("BinaryName = ''", "BinaryName = '/opt/runc-1.2/runc'");
        assert!(register(Some(&with), None, true).unwrap().wrapper.unwrap().text.contains("/opt/runc-1.2/runc"));
        let old =
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.default_runtime]\nruntime_type = \"x\"\n";
        assert!(matches!(register(Some(old), None, true), Err(Trouble::Refused { .. })));
    }

    #[test]
    fn new_tables_are_indented_where_the_files_own_are() {
        let debian = register(Some(DEBIAN), None, true).unwrap().text;
        let ours = "\n    [plugins.\"io.containerd.grpc.v1.cri\".containerd]\n      default_runtime_name = \"gpu-preflight\"\n";
        assert!(debian.contains(ours), "{debian}");
        let kubeadm = register(Some(KUBEADM), None, true).unwrap().text;
        let header = "\n        [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.gpu-preflight";
        for text in [
            format!("{header}]\n          runtime_type = 'io.containerd.runc.v2'\n"),
            header.replacen('\n', "\n  ", 1) + ".options]\n            BinaryName = ",
        ] {
            assert!(kubeadm.contains(&text), "{text}: {kubeadm}");
        }
        let flat = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"x\"\n";
        let with = register(Some(flat), None, true).unwrap().text;
        assert!(with.starts_with(flat) && with.lines().all(|line| !line.starts_with(' ')), "{with}");
    }

    #[test]
    fn what_ours_cannot_stand_before_is_left_alone() {
        for text in [
            "version = 2\ndisabled_plugins = [\"cri\"]\n",
            "version = 9\n",
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\ndefault_runtime_name = \"kata\"\n\
             [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.kata]\nruntime_type = \"io.containerd.kata.v2\"\n",
        ] {
            assert!(matches!(register(Some(text), None, true), Err(Trouble::Refused { .. })), "{text}");
        }
        for text in ["version = ", "plugins = 3\n", "version = 2\n[plugins]\n\"io.containerd.grpc.v1.cri\" = 7\n"] {
            assert!(matches!(register(Some(text), None, true), Err(Trouble::Broken(_))), "{text}");
        }
    }
}
