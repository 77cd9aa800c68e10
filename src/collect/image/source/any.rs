//! A name without a source: docker, then podman, then containerd, the first that has it; never the network.

use super::held::Looked;
use super::machine::Machine;
use super::manifest::short;
use super::{Failed, Found, Wish, containerd, dockerd, podman};
use crate::model::Unseen;

/// Finds an image in one of the engines. All are asked, which costs milliseconds: two may have the name for two images.
pub(super) fn find(machine: &Machine<'_>, name: &str, wish: &Wish) -> Result<Found, Failed> {
    first(
        name,
        wish,
        vec![
            ("docker", dockerd::locate(machine, name, wish)),
            ("podman", podman::locate(machine, name)),
            ("containerd", containerd::locate(machine, name, wish)),
        ],
    )
}

fn first(name: &str, wish: &Wish, all: Vec<(&str, Looked<'_>)>) -> Result<Found, Failed> {
    let mut remarks = Vec::new();
    let mut reasons = Vec::new();
    let mut have = Vec::new();
    for (engine, looked) in all {
        match looked {
            Ok(held) => have.push((engine, held)),
            Err(Failed::Absent(unseen)) => reasons.push(format!("{} {}", unseen.source, unseen.reason)),
            Err(Failed::Unreadable(unseen)) => {
                reasons.push(format!("{}: {}", unseen.source, unseen.reason));
                remarks.push(format!("{engine} could not be asked: {}: {}", unseen.source, unseen.reason));
            }
        }
    }
    let mut have = have.into_iter();
    let Some((engine, held)) = have.next() else {
        let failed = Unseen::new(short(name), reasons.join("; "));
        let is_open = !remarks.is_empty();
        return Err(if is_open { Failed::Unreadable(failed) } else { Failed::Absent(failed) });
    };
    let id = held.id().map(str::to_owned);
    let mut same = Vec::new();
    for (other, held) in have {
        match (held.id(), &id) {
            (Some(its), Some(id)) if its == id => same.push((other, held)),
            // of one that is not known nothing is said
            (Some(its), Some(id)) => {
                remarks.push(format!("{other} has another image of this name ({its}) than {engine} ({id})"));
            }
            _ => {}
        }
    }
    let mut found = held.read(wish);
    for (other, held) in same {
        let Err(Failed::Absent(unseen) | Failed::Unreadable(unseen)) = &found else { break };
        let why = format!("{engine} has it, and it was read from {other}: {}: {}", unseen.source, unseen.reason);
        if let Ok(read) = held.read(wish) {
            remarks.push(why);
            found = Ok(read);
        }
    }
    let mut found = found?;
    found.remarks.splice(0..0, remarks);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::held::Held;
    use super::super::{Depth, testing};
    use super::*;
    use crate::model::image::Configuration;

    struct Fake(Option<&'static str>, Result<&'static str, &'static str>);

    impl Held for Fake {
        fn id(&self) -> Option<&str> {
            self.0
        }

        fn read(self: Box<Self>, _: &Wish) -> Result<Found, Failed> {
            match self.1 {
                Ok(source) => Ok(Found {
                    source: source.to_owned(),
                    configuration: Configuration::default(),
                    id: self.0.map(str::to_owned),
                    files: None,
                    remarks: Vec::new(),
                }),
                Err(reason) => Err(Unseen::new("fake", reason).into()),
            }
        }
    }

    fn has(id: &'static str, read: Result<&'static str, &'static str>) -> Box<dyn Held> {
        Box::new(Fake(Some(id), read))
    }

    fn absent() -> Looked<'static> {
        Err(Failed::Absent(Unseen::new("engine", "has no such image")))
    }

    fn asked(all: [Looked<'static>; 3]) -> Result<Found, Failed> {
        let names = ["docker", "podman", "containerd"];
        first("x", &testing::wish(Depth::Config), names.into_iter().zip(all).collect())
    }

    #[test]
    fn the_first_that_has_it_is_read_and_another_image_is_remarked() {
        let found = asked([absent(), Ok(has("a", Ok("podman"))), Ok(has("a", Ok("containerd")))]).unwrap();
        assert_eq!((found.source.as_str(), found.remarks.len()), ("podman", 0));
        let found = asked([Ok(has("a", Ok("docker"))), Ok(has("b", Ok("podman"))), absent()]).unwrap();
        assert_eq!(found.source, "docker");
        assert_eq!(found.remarks, ["podman has another image of this name (b) than docker (a)"]);
    }

    #[test]
    fn the_same_image_may_be_read_elsewhere_and_another_may_not() {
        let found =
            asked([Ok(has("a", Err("no"))), Ok(has("b", Ok("podman"))), Ok(has("a", Ok("containerd")))]).unwrap();
        assert_eq!(found.source, "containerd");
        assert!(found.remarks.iter().any(|remark| remark.contains("it was read from containerd: fake: no")));
        assert!(asked([Ok(has("a", Err("no"))), Ok(has("b", Ok("podman"))), absent()]).is_err());
    }

    #[test]
    fn who_could_not_be_asked_is_named() {
        let deaf = || Err(Failed::Unreadable(Unseen::new("docker at /s", "this user may not talk to it")));
        let failed = asked([deaf(), absent(), absent()]).unwrap_err();
        assert!(matches!(failed, Failed::Unreadable(_)));
        assert!(failed.to_string().contains("may not talk to it"));
        assert!(matches!(asked([absent(), absent(), absent()]), Err(Failed::Absent(_))));
        let found = asked([deaf(), Ok(has("a", Ok("podman"))), absent()]).unwrap();
        assert!(found.remarks[0].contains("docker could not be asked"));
    }
}
