//! `process`: environment, program, user and capabilities.

use std::str::FromStr as _;

use caps::Capability;
use oci_spec::runtime::User;
use serde_json::value::RawValue;

use super::json;
use crate::model::Observed;
use crate::model::container::{CapabilitySets, Identity};

/// The fields of `process` that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    /// Variables in their order, repeats and all.
    pub(crate) environment: Observed<Vec<(String, String)>>,
    pub(crate) args: Observed<Vec<String>>,
    pub(crate) cwd: Option<String>,
    pub(crate) user: Observed<Identity>,
    pub(crate) selinux_label: Observed<Option<String>>,
}

impl Process {
    pub(super) fn read(budget: &json::Budget, source: &str, piece: Option<&RawValue>) -> Self {
        let source = format!("{source} /process");
        let Some(piece) = piece else { return Self::unread(&source, "absent") };
        let names = ["env", "args", "cwd", "user", "capabilities", "noNewPrivileges", "selinuxLabel"];
        match json::fields(piece.get(), names) {
            Ok([env, args, cwd, user, capabilities, no_new_privileges, selinux]) => Self {
                environment: strings(budget, "container.environment", &format!("{source}/env"), env, |s| variable(&s)),
                args: strings(budget, "container.args", &format!("{source}/args"), args, Some),
                cwd: cwd.and_then(|raw| json::value(raw.get()).ok()),
                user: identity(user, capabilities, no_new_privileges)
                    .map_or_else(|reason| Observed::unknown("container.user", source.clone(), reason), Observed::Known),
                selinux_label: super::string("container.selinux_label", &format!("{source}/selinuxLabel"), selinux),
            },
            Err(reason) => Self::unread(&source, &reason),
        }
    }

    pub(super) fn unread(source: &str, reason: &str) -> Self {
        Self {
            environment: Observed::unknown("container.environment", source, reason),
            args: Observed::unknown("container.args", source, reason),
            cwd: None,
            user: Observed::unknown("container.user", source, reason),
            selinux_label: Observed::unknown("container.selinux_label", source, reason),
        }
    }
}

/// `NAME=value`. The kernel takes any string; what has no name, or an end in its middle, no program sees.
pub(crate) fn variable(entry: &str) -> Option<(String, String)> {
    let (name, value) = entry.split_once('=')?;
    (!name.is_empty() && !entry.contains('\0')).then(|| (name.to_owned(), value.to_owned()))
}

/// Strings of a list. An element that is no string makes the list unknown: no runtime starts with it.
fn strings<T>(
    budget: &json::Budget,
    fact: &str,
    source: &str,
    piece: Option<&RawValue>,
    keep: impl Fn(String) -> Option<T>,
) -> Observed<Vec<T>> {
    let read = || -> Result<Vec<T>, String> {
        let Some(piece) = piece else { return Ok(Vec::new()) };
        let mut kept = Vec::new();
        for element in json::elements(piece.get())? {
            budget.take(element.get())?;
            kept.extend(keep(string(element)?));
        }
        Ok(kept)
    };
    read().map_or_else(|reason| Observed::unknown(fact, source, reason), Observed::Known)
}

/// A string as long as its list; a single variable may be 128 KiB long.
fn string(element: &RawValue) -> Result<String, String> {
    serde_json::from_str(element.get()).map_err(|_| "an element is no string".to_owned())
}

/// An absent `user` is root, as in the runtimes.
fn identity(
    user: Option<&RawValue>,
    capabilities: Option<&RawValue>,
    no_new_privileges: Option<&RawValue>,
) -> Result<Identity, String> {
    let user: User = user.map_or_else(|| Ok(User::default()), |raw| json::value(raw.get()))?;
    Ok(Identity {
        uid: user.uid(),
        gid: user.gid(),
        additional_gids: user.additional_gids().clone().unwrap_or_default(),
        capabilities: capabilities.map(|raw| capability_sets(raw.get())).transpose()?,
        no_new_privileges: no_new_privileges.map_or(Ok(false), |raw| json::value(raw.get()))?,
    })
}

fn capability_sets(text: &str) -> Result<CapabilitySets, String> {
    let names = ["bounding", "effective", "inheritable", "permitted", "ambient"];
    let [bounding, effective, inheritable, permitted, ambient] = json::fields(text, names)?;
    Ok(CapabilitySets {
        bounding: mask(bounding)?,
        effective: mask(effective)?,
        inheritable: mask(inheritable)?,
        permitted: mask(permitted)?,
        ambient: mask(ambient)?,
    })
}

/// A name that nobody knows is dropped, not the set: the runtimes warn and go on (runtime-spec, `process`).
fn mask(piece: Option<&RawValue>) -> Result<u64, String> {
    let Some(piece) = piece else { return Ok(0) };
    let mut mask = 0;
    for element in json::elements(piece.get())? {
        if let Ok(capability) = Capability::from_str(&string(element)?) {
            mask |= capability.bitmask();
        }
    }
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(text: &str) -> Process {
        Process::read(&json::Budget::new(), "config.json", Some(serde_json::from_str(text).unwrap()))
    }

    #[test]
    fn a_capability_that_nobody_knows_loses_only_itself() {
        let p = process(
            r#"{"user":{"uid":1000,"gid":44,"additionalGids":null},"capabilities":
            {"bounding":["CAP_DAC_OVERRIDE","CAP_FROM_TOMORROW","cap_chown"],"ambient":null,"new":[1]}}"#,
        );
        let user = p.user.known().unwrap();
        assert_eq!((user.uid, user.gid, user.additional_gids.len()), (1000, 44, 0));
        assert_eq!(user.capabilities, Some(CapabilitySets { bounding: 2, ..CapabilitySets::default() }));
        assert!(!user.no_new_privileges);
    }

    #[test]
    fn no_capabilities_object_is_not_the_same_as_none_in_it() {
        assert_eq!(process(r#"{"args":["x"]}"#).user.known().unwrap().capabilities, None);
        assert_eq!(
            process(r#"{"capabilities":{}}"#).user.known().unwrap().capabilities,
            Some(CapabilitySets::default())
        );
    }

    #[test]
    fn an_unreadable_piece_leaves_the_others() {
        let p = process(r#"{"user":{"uid":-1},"env":["A=1","nonsense","=x","B=a\u0000b","C="],"selinuxLabel":7}"#);
        assert!(p.user.known().is_err() && p.selinux_label.known().is_err());
        let kept: Vec<_> = p.environment.known().unwrap().iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(kept, [("A", "1"), ("C", "")]);
        assert!(process(r#"{"env":["A=1",2]}"#).environment.known().is_err());
    }
}
