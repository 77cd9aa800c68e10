//! NVIDIA's container runtime: ours first in `runtimes` of its `config.toml`, so that it is called last and sees the
//! specification with all that NVIDIA's has put into it, whatever its mode.

use toml_edit::{Array, Item, Value};

use super::wrapper::Registered;
use super::{Trouble, is_ours, is_runc, table, wrapper};

const TABLE: &str = "nvidia-container-runtime";
const KEY: &str = "runtimes";

/// What it calls if its configuration does not say (toolkit `internal/config`, d34b3046).
const DEFAULT: [&str; 2] = ["runc", "crun"];

/// Puts ours first. `whose` tells the wrappers of several configurations apart. `is_there` says which programs there are: it calls the first of its list that is.
pub fn register(text: Option<&str>, whose: &str, is_there: impl Fn(&str) -> bool) -> Result<Registered, Trouble> {
    let mut document = table::parse(text)?;
    let runtime = table::made(&mut document, &[TABLE])?;
    let list = runtime.entry(KEY).or_insert_with(|| Item::Value(Value::Array(Array::from_iter(DEFAULT))));
    let list = list.as_array_mut().ok_or_else(|| Trouble::Broken(format!("{TABLE}.{KEY} in it is no list")))?;
    let others: Vec<&str> = list.iter().filter_map(Value::as_str).filter(|program| !is_ours(program)).collect();
    let called = others.iter().find(|program| is_there(program)).or(others.first());
    let (program, wrapper) = wrapper::calling(called.copied().filter(|program| !is_runc(program)), whose)?;
    if list.get(0).and_then(Value::as_str) != Some(program.as_str()) {
        table::take_out(list, is_ours);
        table::put_first(list, &program);
    }
    Ok(Registered { text: table::written(&document, text), wrapper })
}

/// Takes ours out. `None`: nothing is left in a file that was not there before.
pub fn unregister(text: &str, before: Option<&str>) -> Result<Option<String>, Trouble> {
    let mut document = table::parse(Some(text))?;
    let said = |text: Option<&str>| {
        let document = table::parse(text).ok()?;
        Some((table::at(&document, &[TABLE]).is_some(), table::at(&document, &[TABLE])?.contains_key(KEY)))
    };
    let (had_table, had_key) = said(before).unwrap_or_default();
    if let Some(runtime) = document.get_mut(TABLE).and_then(Item::as_table_like_mut) {
        if let Some(list) = runtime.get_mut(KEY).and_then(Item::as_array_mut) {
            table::take_out(list, is_ours);
            let rest: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            if !had_key && rest == DEFAULT {
                runtime.remove(KEY);
            }
        }
        if runtime.is_empty() && !had_table {
            document.remove(TABLE);
        }
    }
    Ok((before.is_some() || !document.is_empty()).then(|| table::written(&document, Some(text))))
}

/// Ours is the first that it calls.
pub fn leads_to_ours(text: &str) -> bool {
    let first = |text| {
        let document = table::parse(Some(text)).ok()?;
        let list = table::at(&document, &[TABLE])?.get(KEY)?.as_array()?.clone();
        Some(list.get(0).and_then(Value::as_str).is_some_and(is_ours))
    };
    first(text).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::super::RUNTIME;
    use super::*;

    /// As NVIDIA's package writes it (toolkit 1.17), shortened.
    const SHIPPED: &str = r#"#accept-nvidia-visible-devices-as-volume-mounts = false
disable-require = false

[nvidia-container-cli]
#debug = "/var/log/nvidia-container-toolkit.log"
load-kmods = true

[nvidia-container-runtime]
#debug = "/var/log/nvidia-container-runtime.log"
log-level = "info"
mode = "auto"
runtimes = ["runc", "crun"]

[nvidia-container-runtime.modes]

[nvidia-container-runtime.modes.cdi]
annotation-prefixes = ["cdi.k8s.io/"]
"#;

    fn there(program: &str) -> bool {
        matches!(program, "runc" | "/usr/bin/crun")
    }

    fn text(before: Option<&str>) -> String {
        register(before, "nvidia", there).unwrap().text
    }

    #[test]
    fn ours_comes_first_and_nothing_else_changes() {
        let with = text(Some(SHIPPED));
        let list = format!("runtimes = [\"{RUNTIME}\", \"runc\", \"crun\"]");
        assert_eq!(with, SHIPPED.replace("runtimes = [\"runc\", \"crun\"]", &list));
        assert_eq!(text(Some(&with)), with, "twice is once");
        assert_eq!(unregister(&with, Some(SHIPPED)).unwrap().as_deref(), Some(SHIPPED));
        assert!(leads_to_ours(&with) && !leads_to_ours(SHIPPED));
    }

    #[test]
    fn what_its_configuration_does_not_say_is_said_and_taken_back() {
        for before in ["", "disable-require = true\n", "[nvidia-container-runtime]\nmode = \"cdi\"\n"] {
            let with = text(Some(before));
            assert!(with.contains(&format!("runtimes = [\"{RUNTIME}\", \"runc\", \"crun\"]")), "{with}");
            assert_eq!(unregister(&with, Some(before)).unwrap().as_deref(), Some(before));
        }
        assert_eq!(unregister(&text(None), None), Ok(None));
    }

    #[test]
    fn lists_over_several_lines_keep_their_form() {
        let before = "[nvidia-container-runtime]\nruntimes = [\n    \"docker-runc\", # old\n    \"runc\",\n]\n";
        let with = text(Some(before));
        assert!(
            with.contains(&format!("[\n    \"{RUNTIME}\",\n    \"docker-runc\", # old\n    \"runc\",\n]")),
            "{with}"
        );
        assert_eq!(unregister(&with, Some(before)).unwrap().as_deref(), Some(before));
    }

    #[test]
    fn another_runtime_than_runc_is_called_through_a_wrapper() {
        let before = "[nvidia-container-runtime]\nruntimes = [\"/opt/absent\", \"/usr/bin/crun\", \"runc\"]\n";
        let Registered { text, wrapper } = register(Some(before), "nvidia", there).unwrap();
        let wrapper = wrapper.unwrap();
        assert!(text.contains(&wrapper.path) && wrapper.text.contains("--runtime /usr/bin/crun"), "{text} {wrapper:?}");
        assert_eq!(register(Some(&text), "nvidia", there).unwrap().text, text, "twice is once");
        assert_eq!(unregister(&text, Some(before)).unwrap().as_deref(), Some(before));
    }

    #[test]
    fn a_broken_file_is_not_touched() {
        for before in ["[nvidia", "nvidia-container-runtime = 7", "[nvidia-container-runtime]\nruntimes = \"runc\"\n"] {
            assert!(matches!(register(Some(before), "nvidia", there), Err(Trouble::Broken(_))), "{before}");
        }
        let Err(Trouble::Broken(words)) = register(Some("a = 1\nb = \n"), "nvidia", there) else { panic!() };
        assert!(words.contains("line 2"), "{words}");
    }
}
