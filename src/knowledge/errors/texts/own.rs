//! What this program itself says of a container or a machine: the check is named.

use super::super::{Cause, Text, high};
use crate::knowledge::catalogue::IDS;

const WHY: &str = "gpu-preflight's own finding";

/// A cause for each name.
static CAUSES: [Cause; IDS.len()] = {
    let mut all = [high("", WHY); IDS.len()];
    let mut place = 0;
    while place < IDS.len() {
        all[place] = high(IDS[place], WHY);
        place += 1;
    }
    all
};

pub(super) const TEXTS: &[Text] = &[Text {
    name: "a finding of gpu-preflight",
    tells: &[
        &["start refused ["],
        &["be refused (mode warn) ["],
        &["also ["],
        &["error ["],
        &["warning ["],
        &["note ["],
    ],
    refine: Some(named),
    ..Text::PLAIN
}];

/// The first check that is named in brackets.
fn named(line: &str) -> Option<&'static [Cause]> {
    line.split('[').skip(1).find_map(|rest| {
        let (id, _) = rest.split_once(']')?;
        CAUSES.iter().find(|cause| cause.id == id).map(std::slice::from_ref)
    })
}
