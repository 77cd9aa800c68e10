//! Which things of two lists are the same one.

use serde_json::Value;

/// The fields that tell things of the list at this place apart: where the first is not known of one of two, the next
/// decides. `None`: the list is one value.
pub(super) fn identities(place: &str) -> Option<&'static [&'static str]> {
    Some(match place {
        "gpus" => &["uuid", "pci"],
        "pci" => &["address"],
        "engines" => &["kind"],
        "cdi" | "driver.libraries" | "cdi.nodes" | "cdi.devices.nodes" => &["path"],
        "cdi.devices" => &["name"],
        _ => return None,
    })
}

/// Each thing with its name, as it was and as it is; those that are only new come last.
pub(super) fn of<'a>(
    identities: &[&str],
    before: &'a [Value],
    after: &'a [Value],
) -> Vec<(String, Option<&'a Value>, Option<&'a Value>)> {
    let mut partner: Vec<Option<usize>> = vec![None; before.len()];
    let mut taken = vec![false; after.len()];
    for (rank, field) in identities.iter().enumerate() {
        for (old, partner) in before.iter().zip(&mut partner).filter(|(_, partner)| partner.is_none()) {
            let is_it = |new: &Value| {
                let told_apart = identities[..rank].iter().any(|field| known(old, field) && known(new, field));
                !told_apart && known(old, field) && old.get(field) == new.get(field)
            };
            *partner = (0..after.len()).find(|place| !taken[*place] && is_it(&after[*place]));
            if let Some(place) = *partner {
                taken[place] = true;
            }
        }
    }
    let paired = before.iter().zip(partner).map(|(old, partner)| (Some(old), partner.map(|place| &after[place])));
    let new = after.iter().zip(taken).filter(|(_, taken)| !taken).map(|(new, _)| (None, Some(new)));
    paired.chain(new).map(|(old, new)| (name(identities, old, new), old, new)).collect()
}

fn known(thing: &Value, field: &str) -> bool {
    thing.get(field).is_some_and(|value| !value.is_null())
}

fn name(identities: &[&str], old: Option<&Value>, new: Option<&Value>) -> String {
    let told = identities.iter().find_map(|field| {
        [old, new].into_iter().flatten().find_map(|thing| thing.get(field).filter(|value| !value.is_null()))
    });
    match told {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}
