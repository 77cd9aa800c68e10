//! Facts written down by hand, for the tests of the checks.

use crate::checks;
use crate::knowledge::BUILT_IN;
use crate::model::container::{
    Access, CapabilitySets, ContainerNode, DeviceRule, Given, Identity, LegacyHook, LegacyState, Moment, SpecDevice,
    Stage, Strength, Wants,
};
pub(crate) use crate::model::testing::{cdi_spec, host, known, numbers};
use crate::model::{Container, Facts, Failure, Host, Image, Judgement, Observed, Parts, Place};

mod image;

/// A host, an image and a container that can be spoilt one fact at a time.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) host: Host,
    pub(crate) image: Image,
    pub(crate) container: Container,
    pub(crate) place: Place,
}

impl World {
    /// The question `host`.
    pub(crate) fn machine(gpus: u32) -> Self {
        Self { host: host(gpus), image: Image::default(), container: Container::default(), place: Place::Host }
    }

    /// A container of a machine with one GPU that neither wants nor has one.
    pub(crate) fn plain() -> Self {
        let mut container = Container { moment: Moment::Hook(Stage::CreateRuntime), ..Container::default() };
        container.user = known(Identity {
            capabilities: Some(CapabilitySets {
                bounding: 0xa804_25fb,
                effective: 0xa804_25fb,
                permitted: 0xa804_25fb,
                ..CapabilitySets::default()
            }),
            ..Identity::default()
        });
        container.rules = known(Parts::whole(vec![DeviceRule {
            allow: false,
            kind: 'a',
            major: None,
            minor: None,
            access: "rwm".into(),
        }]));
        Self { host: host(1), image: Image::default(), container, place: Place::Hook }
    }

    /// A container that asks for a GPU by its environment and was given none.
    pub(crate) fn asking(value: &str) -> Self {
        let mut world = Self::plain();
        world.set("NVIDIA_VISIBLE_DEVICES", value);
        world.container.visible_devices = known(Some(value.to_owned()));
        world.container.wants_gpu =
            Wants { wanted: true, strength: Strength::Environment, why: format!("NVIDIA_VISIBLE_DEVICES={value}") };
        world
    }

    /// All well, by CDI, at createRuntime, on a machine with `gpus` GPUs of which all were given.
    pub(crate) fn cdi(gpus: u32) -> Self {
        let mut world = Self::asking("all");
        world.host = host(gpus);
        world.container.gpu_given = known(Given::Cdi);
        world.container.cdi_marked = true;
        world.give(&numbers(gpus));
        world.container.libcuda = known(vec!["/usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01".into()]);
        world
    }

    /// All well, by the legacy hook, which has run (`HasRun`) or not.
    pub(crate) fn legacy(gpus: u32, state: LegacyState) -> Self {
        let mut world = Self::asking("all");
        world.host = host(gpus);
        world.container.gpu_given = known(Given::LegacyHook);
        world.container.legacy_hook =
            Some(LegacyHook { path: "/usr/bin/nvidia-container-runtime-hook".into(), stage: "prestart".into(), state });
        world.set("NVIDIA_DRIVER_CAPABILITIES", "compute,utility");
        match state {
            LegacyState::HasRun => {
                world.give(&numbers(gpus));
                world.container.spec_devices = known(Parts::whole(Vec::new()));
                world.container.libcuda = known(vec!["/usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01".into()]);
            }
            LegacyState::StillToRun => world.container.moment = Moment::NotStarted,
        }
        world
    }

    /// Puts a variable into the container's environment.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        if let Observed::Known(environment) = &mut self.container.environment {
            environment.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Takes a variable out of the container's environment.
    pub(crate) fn unset(&mut self, name: &str) {
        if let Observed::Known(environment) = &mut self.container.environment {
            environment.remove(name);
        }
    }

    fn give(&mut self, numbers: &[(String, u32, u32)]) {
        self.container.spec_devices = known(Parts::whole(
            numbers
                .iter()
                .map(|(path, major, minor)| SpecDevice {
                    path: path.clone(),
                    kind: 'c',
                    major: i64::from(*major),
                    minor: i64::from(*minor),
                    ..SpecDevice::default()
                })
                .collect(),
        ));
        self.container.devices = known(
            numbers
                .iter()
                .map(|(path, major, minor)| ContainerNode {
                    path: path.clone(),
                    major: *major,
                    minor: *minor,
                    mode: 0o666,
                    access: Access::Granted,
                    looked_at: true,
                    ..ContainerNode::default()
                })
                .collect(),
        );
        if let Observed::Known(rules) = &mut self.container.rules {
            rules.items.extend(numbers.iter().map(|(_, major, minor)| DeviceRule {
                allow: true,
                kind: 'c',
                major: Some(i64::from(*major)),
                minor: Some(i64::from(*minor)),
                access: "rwm".into(),
            }));
        }
    }

    /// A node of the container, to be spoilt.
    pub(crate) fn node(&mut self, path: &str) -> &mut ContainerNode {
        let Observed::Known(devices) = &mut self.container.devices else { panic!("no nodes are known") };
        devices.iter_mut().find(|n| n.path == path).unwrap_or_else(|| panic!("no node {path}"))
    }

    /// Gives all nodes of the machine and of the container these permission bits.
    pub(crate) fn with_mode(mut self, mode: u32) -> Self {
        let Observed::Known(nodes) = &mut self.host.device_nodes else { panic!("no nodes are known") };
        for node in nodes.values_mut() {
            node.mode = mode;
        }
        if let Observed::Known(devices) = &mut self.container.devices {
            for node in devices.iter_mut() {
                node.mode = mode;
            }
        }
        self
    }

    /// Takes a node out of the container, its spec and the machine's `/dev` where `of_host` says so.
    pub(crate) fn without_node(&mut self, path: &str, of_host: bool) {
        if let Observed::Known(devices) = &mut self.container.devices {
            devices.retain(|n| n.path != path);
        }
        if let Observed::Known(spec) = &mut self.container.spec_devices {
            spec.items.retain(|n| n.path != path);
        }
        if let (true, Observed::Known(nodes)) = (of_host, &mut self.host.device_nodes) {
            nodes.remove(path);
        }
    }

    /// Judges with one check.
    pub(crate) fn judge(&self, id: &str) -> Judgement {
        let (_, check) = checks::find(id).unwrap_or_else(|| panic!("no check {id}"));
        let facts = self.facts();
        assert!(check.places.contains(&self.place), "{id} is not asked at {:?}", self.place);
        let judgement = (check.judge)(&facts);
        if let Some(failure) = judgement.as_ref().ok().and_then(|o| o.failure()) {
            assert!(check.messages.contains(&failure.message), "{id}: a message that the literal does not list");
            assert!(check.severities.contains(&failure.severity), "{id}: a severity that the literal does not list");
            let worst = checks::worst(check, self.place);
            assert!(failure.severity <= worst, "{id}: said never to be an error at {:?}", self.place);
            let words = checks::testing::words(check, failure);
            assert!(!words.contains('{'), "{id}: an argument is lacking in {words}");
        }
        judgement
    }

    /// The failure that a check must find.
    pub(crate) fn failure(&self, id: &str) -> Failure {
        match self.judge(id) {
            Ok(outcome) => outcome.failure().cloned().unwrap_or_else(|| panic!("{id}: {outcome:?}")),
            Err(unknown) => panic!("{id} is unknown: {unknown:?}"),
        }
    }

    /// The failure that a check must find, in words that fit the hook's line: with the first remedy at
    /// most 300 of its 400 bytes, so that the check's name and the way to override have their place.
    pub(crate) fn short(&self, id: &str) -> Failure {
        use crate::model::wording::fill;
        let failure = self.failure(id);
        let (_, check) = checks::find(id).unwrap_or_else(|| panic!("no check {id}"));
        let step = check.remedy.iter().find(|s| failure.only.is_empty() || failure.only.contains(&s.action));
        let line = format!(
            "{} {}",
            fill(failure.message, &failure.args),
            step.map_or(String::new(), |s| fill(s.text, &failure.args))
        );
        assert!(line.len() <= 300, "{id}: {} bytes: {line}", line.len());
        failure
    }

    /// The check must not find anything, and must know it.
    pub(crate) fn silent(&self, id: &str) {
        match self.judge(id) {
            Ok(outcome) => assert!(outcome.failure().is_none(), "{id}: {outcome:?}"),
            Err(unknown) => panic!("{id} is unknown: {unknown:?}"),
        }
    }

    /// The check must not find anything in a copy that is changed.
    pub(crate) fn silent_with(&self, change: impl FnOnce(&mut Self), id: &str) {
        let mut world = self.clone();
        change(&mut world);
        world.silent(id);
    }

    /// The check must be unknown.
    pub(crate) fn unknown(&self, id: &str) {
        assert!(self.judge(id).is_err(), "{id}: {:?}", self.judge(id));
    }
}

/// Message and remedies that fit, as they will be printed.
pub(crate) fn words(check: &crate::model::Check, failure: &Failure) -> String {
    use crate::model::wording::fill;
    let steps = check.remedy.iter().filter(|s| failure.only.is_empty() || failure.only.contains(&s.action));
    let mut out = fill(failure.message, &failure.args);
    for step in steps {
        out.push('\n');
        out.push_str(&fill(step.text, &failure.args));
        out.push_str(&fill(step.command.unwrap_or(""), &failure.args));
    }
    out
}

/// A fact that nobody saw.
pub(crate) fn unseen<T>() -> Observed<T> {
    Observed::unknown("test.fact", "test", "not seen")
}

impl World {
    /// The facts, for helpers of checks that are tried by themselves.
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            host: &self.host,
            image: &self.image,
            container: &self.container,
            knowledge: &BUILT_IN,
            place: self.place,
        }
    }
}
