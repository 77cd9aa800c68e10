//! Containers whose user may, or may not, use its nodes, each for another reason.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use serde_json::json;

use super::container::{Container, DAC_OVERRIDE, DOCKER, Setup};

/// A scenario, as it is laid out, and what the container's own open of `/dev/nvidia0` must come to: else
/// it shows nothing.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) lay: fn(&mut Container<'_>),
    pub(super) granted: bool,
    /// The right answer is that nobody can know.
    pub(super) unknowable: bool,
    pub(super) setups: &'static [Setup],
}

const NVIDIA0: &str = "/dev/nvidia0";
const V1: &[Setup] = &[Setup::RuncV1, Setup::CrunV1];
const RUNC: &[Setup] = &[Setup::RuncV1, Setup::RuncV2];
const CRUN: &[Setup] = &[Setup::CrunV1];

const fn granted(name: &'static str, lay: fn(&mut Container<'_>)) -> Scenario {
    Scenario { name, lay, granted: true, unknowable: false, setups: &Setup::ALL }
}

const fn refused(name: &'static str, lay: fn(&mut Container<'_>)) -> Scenario {
    Scenario { granted: false, ..granted(name, lay) }
}

/// Of another user and group.
const FOREIGN: (u32, u32, u32) = (0o660, 1, 44);

pub(super) const SCENARIOS: &[Scenario] = &[
    granted("0666, user 1000", |c| {
        c.user(1000, 1000, &[]).owned(NVIDIA0, (0o666, 0, 0));
    }),
    refused("0660 group 44, user 1000", |c| {
        c.user(1000, 1000, &[]);
    }),
    granted("0660 group 44, group added", |c| {
        c.user(1000, 1000, &[7, 44]);
    }),
    granted("0660 group 44, primary group", |c| {
        c.user(1000, 44, &[]);
    }),
    granted("0600, owner", |c| {
        c.user(1000, 1000, &[]).owned(NVIDIA0, (0o600, 1000, 0));
    }),
    refused("0606, group denied", |c| {
        c.user(1000, 44, &[]).owned(NVIDIA0, (0o606, 0, 44));
    }),
    refused("deny after allow", |c| {
        c.rule(NVIDIA0, "-rw");
    }),
    refused("rule for reading only", |c| {
        c.rule(NVIDIA0, "-rwm").rule(NVIDIA0, "r");
    }),
    granted("root, default capabilities, foreign node", |c| {
        c.owned(NVIDIA0, FOREIGN);
    }),
    refused("root without DAC_OVERRIDE, foreign node", |c| {
        let sets = DOCKER & !DAC_OVERRIDE;
        c.owned(NVIDIA0, FOREIGN).capabilities(&[("bounding", sets), ("effective", sets), ("permitted", sets)]);
    }),
    granted("root, no capabilities, own node", |c| {
        c.capabilities(&[]);
    }),
    refused("root, no capabilities, foreign node", |c| {
        c.owned(NVIDIA0, FOREIGN).capabilities(&[]);
    }),
    granted("root, effective set empty, foreign node", |c| {
        c.owned(NVIDIA0, FOREIGN).capabilities(&[("bounding", DOCKER)]);
    }),
    refused("root, no new privileges, permitted empty", |c| {
        c.owned(NVIDIA0, FOREIGN).capabilities(&[("bounding", DOCKER)]).no_new_privileges();
    }),
    granted("user 1000, ambient DAC_OVERRIDE", |c| {
        let sets = ["bounding", "effective", "inheritable", "permitted", "ambient"].map(|set| (set, DAC_OVERRIDE));
        c.user(1000, 1000, &[]).capabilities(&sets).no_new_privileges();
    }),
    refused("root, no capabilities object, foreign node", |c| {
        c.owned(NVIDIA0, FOREIGN).spec["process"].as_object_mut().unwrap().remove("capabilities");
        c.question["identity"].as_object_mut().unwrap().remove("capabilities");
    }),
    refused("bind mount with nodev", |c| bind(c, &["bind", "nodev"])),
    refused("bind mount without a rule", |c| {
        c.rule(NVIDIA0, "-rwm");
        bind(c, &["bind"]);
    }),
    granted("read-only root and mount", |c| {
        c.spec["root"]["readonly"] = true.into();
        bind(c, &["bind", "ro"]);
    }),
    refused("/dev 0700, user 1000", |c| {
        c.user(1000, 1000, &[]).owned(NVIDIA0, (0o666, 0, 0));
        c.spec["mounts"][1]["options"] = json!(["nosuid", "mode=700"]);
        // runc takes the mode of the directory below the mount
        std::fs::set_permissions(c.path("rootfs/dev"), std::fs::Permissions::from_mode(0o700)).unwrap();
    }),
    granted("every parent of the rootfs 0700, user 1000", |c| {
        c.user(1000, 1000, &[]).owned(NVIDIA0, (0o666, 0, 0));
        std::fs::set_permissions(c.path(""), std::fs::Permissions::from_mode(0o700)).unwrap();
    }),
    granted("capability node 0444, user 1000", |c| {
        let cap = "/dev/nvidia-caps/nvidia-cap1";
        c.user(1000, 44, &[]).node(cap, (510, 1), (0o444, 0, 0)).rule(cap, "r");
    }),
    granted("links inside the rootfs", |c| {
        symlink("../../dev/nvidia0", c.path("rootfs/up")).unwrap();
        symlink("/dev/nvidiactl", c.path("rootfs/absolute")).unwrap();
        c.ask("/up").ask("/absolute");
    }),
    Scenario {
        setups: V1,
        ..granted("nvidia-uvm given by a hook at prestart", |c| {
            c.without("/dev/nvidia-uvm").before("prestart", "inject");
        })
    },
    Scenario {
        unknowable: true,
        ..granted("program with file capabilities, user 1000", |c| {
            c.user(1000, 1000, &[]);
            let program = c.path("rootfs/probe");
            assert!(Command::new("setcap").arg("cap_dac_override+ep").arg(program).status().unwrap().success());
            c.question["entrypoint"] = true.into();
        })
    },
    Scenario {
        unknowable: true,
        ..refused("a plain file and a pipe", |c| {
            c.rule(NVIDIA0, "-rw");
            for (name, kind) in [("file", SFlag::S_IFREG), ("pipe", SFlag::S_IFIFO)] {
                mknod(&c.path(&format!("rootfs/{name}")), kind, Mode::from_bits_truncate(0o666), 0).unwrap();
                c.ask(&format!("/{name}"));
            }
        })
    },
    Scenario {
        unknowable: true,
        ..granted("link of the kernel's own", |c| {
            symlink("/proc/1/root/dev/nvidia0", c.path("rootfs/magic")).unwrap();
            c.ask("/magic");
        })
    },
    Scenario { setups: RUNC, ..granted("rootfs by the hook's own directory", |c| c.question["inside"] = ".".into()) },
    Scenario { setups: CRUN, ..granted("groups of the caller kept", keep_groups) },
    Scenario { setups: RUNC, ..refused("groups of the caller not kept", keep_groups) },
    Scenario {
        unknowable: true,
        setups: CRUN,
        ..granted("user 4294967295", |c| {
            c.user(u32::MAX, 0, &[]);
        })
    },
    refused("user namespace, unmapped group", |c| {
        user_namespace(c, 44);
        c.user(1000, 44, &[]);
    }),
    // crun makes nodes of the container's root instead
    Scenario { setups: RUNC, ..refused("user namespace, root, unmapped owner", |c| user_namespace(c, 44)) },
    Scenario { setups: CRUN, ..granted("user namespace, root, own node", |c| user_namespace(c, 44)) },
    Scenario {
        setups: RUNC,
        ..granted("user namespace, mapped group", |c| {
            user_namespace(c, 100_044);
            c.user(1000, 1000, &[44]);
        })
    },
    Scenario {
        setups: &[Setup::RuncV1],
        ..refused("device controller mounted elsewhere", |c| {
            c.rule(NVIDIA0, "-rwm").machine = String::from(
                "umount /sys/fs/cgroup/devices; mkdir '/dev/my cgroups'; \
                 mount -t cgroup -o devices cgroup '/dev/my cgroups';",
            );
        })
    },
    Scenario { setups: &[Setup::RuncV1], ..refused("without root, setgroups denied", |c| rootless(c, 0o660)) },
    Scenario { setups: &[Setup::RuncV1], ..granted("without root, 0666", |c| rootless(c, 0o666)) },
];

/// Puts the machine's node, of root and group 44, into the container by a mount.
fn bind(container: &mut Container<'_>, options: &[&str]) {
    let node = container.path("node");
    mknod(&node, SFlag::S_IFCHR, Mode::from_bits_truncate(0o660), makedev(195, 0)).unwrap();
    container.without(NVIDIA0).mount(json!({
        "destination": NVIDIA0, "type": "bind", "source": node, "options": options,
    }));
}

fn keep_groups(container: &mut Container<'_>) {
    container.user(1000, 1000, &[]);
    container.spec["annotations"] = json!({"run.oci.keep_original_groups": "1"});
    container.question["keep_groups"] = true.into();
    container.starter = vec!["setpriv", "--groups", "44"];
}

/// A user namespace of 65536 ids. The runtimes bind the machine's nodes, which have to be there.
fn user_namespace(container: &mut Container<'_>, group: u32) {
    container.user_namespace(100_000, 65_536);
    nodes_on_the_machine(container, 0o660, group);
}

fn nodes_on_the_machine(container: &mut Container<'_>, mode: u32, group: u32) {
    container.machine = format!(
        "mknod -m {mode:o} /dev/nvidia0 c 195 0; chgrp {group} /dev/nvidia0; mknod -m 666 /dev/nvidiactl c 195 255; \
         mknod -m 600 /dev/nvidia-uvm c 511 0;"
    );
}

/// Started by user 1000, who is root inside; no cgroups.
fn rootless(container: &mut Container<'_>, mode: u32) {
    container.user_namespace(1000, 1);
    nodes_on_the_machine(container, mode, 44);
    container.spec["linux"].as_object_mut().unwrap().remove("resources");
    container.spec["linux"]["namespaces"].as_array_mut().unwrap().retain(|n| n["type"] != "network");
    container.spec["process"]["user"].as_object_mut().unwrap().remove("additionalGids");
    container.starter = vec!["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"];
}
