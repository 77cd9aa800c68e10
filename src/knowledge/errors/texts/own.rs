//! What this program itself says of a container or a machine: the check is named.

use super::super::{Cause, Text, high, low};
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

pub(super) const TEXTS: &[Text] = &[
    Text {
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
    },
    // crun shows its user nothing but the number with which the hook ended
    Text {
        name: "crun: the hook of gpu-preflight ended with a number of a refusal",
        tells: &[&["executing hook", "gpu-preflight", "(exit code: 1"]],
        refine: Some(refused),
        ..Text::PLAIN
    },
    Text {
        name: "an engine finds no program of gpu-preflight where it is registered",
        tells: &[
            &["gpu-preflight-runtime", "no such file or directory"],
            &["gpu-preflight-runtime", "executable file not found"],
            &["gpu-preflight-hook", "no such file or directory"],
        ],
        causes: &[
            high("preflight-program-missing", "The engine names a program that is gone."),
            low("preflight-program-unsound", "Or it is there, linked dynamically, and its loader is not."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "docker knows no runtime of gpu-preflight's",
        tells: &[
            &["unknown or invalid runtime name", "gpu-preflight"],
            &["unknown runtime specified", "gpu-preflight"],
        ],
        causes: &[
            high(
                "preflight-overwritten",
                "The container was made when docker knew the runtime, and by now it does not: register it again, or make the container anew.",
            ),
            low("preflight-not-loaded", "Or docker has not read its configuration since the registration."),
        ],
        ..Text::PLAIN
    },
];

/// By the families' numbers.
static REFUSED: [(&str, Cause); 6] = [
    (
        "(exit code: 10)",
        high("preflight-refused", "10 is a refusal for the request: a GPU was asked for, and not given."),
    ),
    ("(exit code: 11)", high("preflight-refused", "11 is a refusal for the nodes in /dev.")),
    ("(exit code: 12)", high("preflight-refused", "12 is a refusal for the driver.")),
    ("(exit code: 13)", high("preflight-refused", "13 is a refusal for the container stack.")),
    ("(exit code: 14)", high("preflight-refused", "14 is a refusal for the image: it does not suit driver or GPU.")),
    ("(exit code: 15)", high("preflight-refused", "15 is a refusal for the environment.")),
];

/// The number is one of a refusal's.
fn refused(line: &str) -> Option<&'static [Cause]> {
    REFUSED.iter().find(|(number, _)| line.contains(number)).map(|(_, cause)| std::slice::from_ref(cause))
}

/// The first check that is named in brackets.
fn named(line: &str) -> Option<&'static [Cause]> {
    line.split('[').skip(1).find_map(|rest| {
        let (id, _) = rest.split_once(']')?;
        CAUSES.iter().find(|cause| cause.id == id).map(std::slice::from_ref)
    })
}
