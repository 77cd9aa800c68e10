//! What a host profile carries: the facts of a machine that an image is judged by, and its device nodes, which tell
//! what has changed, without what changes from one boot to the next. What it does not carry is unknown to whoever reads
//! it, not absent.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{
    CdiSpec, DriverLibrary, Engine, Gpu, Host, KernelModule, Majors, Node, NodeKind, PciFunction, Platform,
    ToolkitConfig,
};
use crate::model::{DriverVersion, Observed, Release};

/// How a profile says that something was looked for and is not there; `null` says that nobody could look.
const NONE: &str = "none";

/// The facts of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    #[serde(default)]
    platform: Platform,
    #[serde(skip_serializing_if = "Option::is_none")]
    l4t: Option<String>,
    kernel: Observed<String>,
    architecture: Observed<String>,
    #[serde(default)]
    driver: Driver,
    modules: Observed<BTreeMap<String, KernelModule>>,
    pci: Observed<Vec<PciFunction>>,
    gpus: Observed<Vec<Gpu>>,
    device_nodes: Observed<BTreeMap<String, CarriedNode>>,
    #[serde(default)]
    toolkit: Toolkit,
    #[serde(default)]
    engines: Vec<Engine>,
    cdi: Observed<Vec<CdiSpec>>,
    os: Observed<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Driver {
    #[serde(with = "or_none")]
    version: Observed<Option<DriverVersion>>,
    #[serde(with = "or_none")]
    open_kernel_modules: Observed<Option<bool>>,
    libraries: Observed<Vec<DriverLibrary>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Toolkit {
    #[serde(with = "or_none")]
    version: Observed<Option<Release>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    libnvidia_container: Option<Release>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predecessor: Option<Release>,
    programs: Observed<BTreeMap<String, String>>,
    #[serde(with = "or_none")]
    config: Observed<Option<ToolkitConfig>>,
}

/// A device node. Its major is given anew at boot; who registered it is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CarriedNode {
    kind: NodeKind,
    /// Who registered its major; `None`: nobody.
    driver: Option<String>,
    minor: u32,
    mode: String,
    uid: u32,
    gid: u32,
}

impl CarriedNode {
    fn of(path: &str, node: &Node, majors: &Majors) -> Self {
        let registered = majors.0.iter().filter(|(_, major)| **major == node.major).map(|(name, _)| name);
        // one major has several names where the GPUs' is
        let own = path.strip_prefix("/dev/").unwrap_or_default();
        let driver = registered.clone().find(|name| *name == own).or_else(|| registered.clone().next());
        let driver = driver.filter(|_| matches!(node.kind, NodeKind::CharDevice)).cloned();
        let mode = format!("{:04o}", node.mode);
        Self { kind: node.kind, driver, minor: node.minor, mode, uid: node.uid, gid: node.gid }
    }

    fn all(host: &Host) -> Observed<BTreeMap<String, Self>> {
        let majors = match host.majors.known() {
            Ok(majors) => majors,
            Err(unknown) => return Observed::Unknown(unknown),
        };
        let of = |(path, node): (&String, &Node)| (path.clone(), Self::of(path, node, majors));
        host.device_nodes.as_ref().map(|nodes| nodes.iter().map(of).collect())
    }
}

fn unseen<T>() -> Observed<T> {
    Observed::unknown("", "", "")
}

impl Default for Driver {
    fn default() -> Self {
        Self { version: unseen(), open_kernel_modules: unseen(), libraries: unseen() }
    }
}

impl Default for Toolkit {
    fn default() -> Self {
        Self { version: unseen(), libnvidia_container: None, predecessor: None, programs: unseen(), config: unseen() }
    }
}

/// A fact that may be absent: what it is, `"none"`, or `null` where nobody saw it.
mod or_none {
    use super::{
        Deserialize as _, DeserializeOwned, Deserializer, NONE, Observed, Serialize, Serializer, Value, unseen,
    };

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        fact: &Observed<Option<T>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match fact {
            Observed::Known(None) => serializer.serialize_str(NONE),
            Observed::Known(Some(value)) => value.serialize(serializer),
            Observed::Unknown(_) => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Observed<Option<T>>, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::Null => unseen(),
            Value::String(text) if text == NONE => Observed::Known(None),
            value => Observed::Known(Some(T::deserialize(value).map_err(serde::de::Error::custom)?)),
        })
    }
}

impl From<&Host> for Carried {
    fn from(host: &Host) -> Self {
        let device_nodes = CarriedNode::all(host);
        let host = host.clone();
        Self {
            platform: host.platform,
            l4t: host.l4t,
            kernel: host.kernel,
            architecture: host.architecture,
            driver: Driver {
                version: host.driver.version,
                open_kernel_modules: host.driver.open_kernel_modules,
                libraries: host.driver.libraries,
            },
            modules: host.driver.modules,
            pci: host.pci,
            gpus: host.gpus,
            device_nodes,
            toolkit: Toolkit {
                version: host.toolkit.version,
                libnvidia_container: host.toolkit.libnvidia_container,
                predecessor: host.toolkit.predecessor,
                programs: host.toolkit.programs,
                config: host.toolkit.config,
            },
            engines: host.engines,
            cdi: host.cdi,
            os: host.os,
        }
    }
}

impl Carried {
    /// The machine, as far as the profile tells and an image is judged by; `source` is the profile's name.
    pub fn into_host(self, source: &str) -> Host {
        let mut host = Host::unseen(source, "the profile does not tell it");
        host.platform = self.platform;
        host.l4t = self.l4t;
        host.engines = self.engines;
        host.toolkit.libnvidia_container = self.toolkit.libnvidia_container;
        host.toolkit.predecessor = self.toolkit.predecessor;
        put(&mut host.kernel, self.kernel);
        put(&mut host.architecture, self.architecture);
        put(&mut host.driver.version, self.driver.version);
        put(&mut host.driver.open_kernel_modules, self.driver.open_kernel_modules);
        put(&mut host.driver.libraries, self.driver.libraries);
        put(&mut host.driver.modules, self.modules);
        put(&mut host.pci, self.pci);
        put(&mut host.gpus, self.gpus);
        put(&mut host.toolkit.version, self.toolkit.version);
        put(&mut host.toolkit.programs, self.toolkit.programs);
        put(&mut host.toolkit.config, self.toolkit.config);
        put(&mut host.cdi, self.cdi);
        put(&mut host.os, self.os);
        host
    }
}

/// What was not read stays unknown under its own name.
fn put<T>(fact: &mut Observed<T>, read: Observed<T>) {
    if let Observed::Known(_) = read {
        *fact = read;
    }
}
