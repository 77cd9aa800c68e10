//! What may befall a container that runs, done to it from outside.

use std::path::{Path, PathBuf};

use super::nvml;
use crate::support::{link, needs};

/// The files of a container that runs.
pub(super) struct Inside {
    /// Its root as it is seen from here.
    root: PathBuf,
}

impl Inside {
    /// Those of the container of this process.
    pub(super) fn of(pid: &str) -> Self {
        Self { root: PathBuf::from(format!("/proc/{pid}/root")) }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn library(&self) -> PathBuf {
        self.at(&format!("sim/usr/lib/{}-linux-gnu", std::env::consts::ARCH))
    }

    /// A node that came as a device is one of its root file system, or a mount of its own.
    fn lose_node(&self, name: &str) {
        let node = self.at("sim/dev").join(name);
        std::fs::remove_file(&node).unwrap_or_else(|error| panic!("{}: {error}", node.display()));
    }

    /// Takes the rule for a node out of its device cgroup, as a daemon-reload does.
    fn lose_rule(&self, number: &str) {
        let pid = self.root.parent().expect("its process");
        let cgroups = std::fs::read_to_string(pid.join("cgroup")).expect("its cgroups");
        let path = cgroups.lines().find_map(|line| line.split_once(":devices:")).expect("a device cgroup").1;
        let file = format!("/sys/fs/cgroup/devices{path}/devices.deny");
        std::fs::write(&file, format!("c {number} rwm")).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
}

/// The finding that names it, and what does it.
pub(super) type Fault = (&'static str, fn(&Inside));

/// All of them.
pub(super) fn faults() -> Vec<Fault> {
    let mut all: Vec<Fault> = vec![
        ("uvm-node-missing", |inside| inside.lose_node("nvidia-uvm")),
        ("gpu-node-missing", |inside| inside.lose_node("nvidia0")),
        ("driver-library-mismatch", |inside| {
            let (directory, new) = (inside.library(), "libnvidia-ml.so.560.28.03");
            std::fs::copy(&nvml().other, directory.join(new)).expect("a library");
            std::fs::remove_file(directory.join("libnvidia-ml.so.1")).expect("its link");
            link(new, &directory.join("libnvidia-ml.so.1"));
        }),
        ("driver-call-hung", |inside| {
            let library = inside.library().join("libnvidia-ml.so.550.163.01");
            let new = library.with_extension("new");
            std::fs::copy(&nvml().hangs, &new).expect("a library");
            std::fs::rename(new, library).expect("the library");
        }),
    ];
    if Path::new("/sys/fs/cgroup/devices/devices.deny").exists()
        || needs::skip("a device cgroup of version 1", "rules cannot be taken away by a file")
    {
        all.push(("cgroup-lost-after-daemon-reload", |inside| inside.lose_rule("1:7")));
    }
    all
}
