//! LXC, for real where it is installed, and Proxmox VE, whose hookscript gets two arguments: the guest's id and the
//! phase (guest-example-hookscript.pl, and `exec_hookscript` in pve-guest-common's GuestHelpers.pm). Proxmox itself was
//! not to be had.

use super::{Case, NOT_LOADED, Place, silent};
use crate::support::host::SimHost;
use crate::support::{needs, process, write};

const UVM_MISSING: &str = "rm dev/nvidia-uvm*";

/// As the usual instructions have it.
const ENTRIES: [&str; 3] = [
    "/dev/nvidia0 dev/nvidia0 none bind,create=file",
    "/dev/nvidiactl dev/nvidiactl none bind,create=file",
    "/dev/nvidia-uvm dev/nvidia-uvm none bind,create=file",
];

/// As Proxmox 8 writes what its web interface asked.
const DEVICES: &str = "arch: amd64\nhostname: frigate\ndev0: /dev/nvidia0,gid=44\ndev1: /dev/nvidiactl,gid=44\n\
    dev2: /dev/nvidia-uvm,gid=44\nunprivileged: 1\n";

pub(super) fn pre_start() -> Case {
    let prepare = |place: Place| {
        write(&place.at("config"), configuration(&ENTRIES));
        place
    };
    Case { script: "lxc-pre-start.sh", prepare, environment, args: &["c1", "lxc", "pre-start"], refuses: 1 }
}

pub(super) fn hookscript() -> Case {
    let environment = |_: &Place| Vec::new();
    let prepare = |place| proxmox(place, "lxc/100.conf", DEVICES);
    Case { script: "proxmox-hookscript.sh", prepare, environment, args: &["100", "pre-start"], refuses: 1 }
}

fn configuration(entries: &[&str]) -> String {
    let entries = entries.iter().map(|entry| format!("lxc.mount.entry = {entry} 0 0\n"));
    format!("lxc.uts.name = c1\nlxc.cgroup2.devices.allow = c 195:* rwm\n{}", entries.collect::<String>())
}

/// What LXC 5.0.2 set, besides its own environment.
fn environment(place: &Place) -> Vec<(&'static str, String)> {
    let config = place.at("config").display().to_string();
    [("LXC_CGNS_AWARE", "1"), ("LXC_HOOK_VERSION", "0"), ("LXC_NAME", "c1"), ("LXC_CONFIG_FILE", &config)]
        .map(|(name, value)| (name, value.to_owned()))
        .into()
}

fn proxmox(place: Place, path: &str, configuration: &str) -> Place {
    write(&place.at("pve").join(path), configuration);
    let containers = place.at("pve/lxc").display().to_string();
    place.edit("containers=/etc/pve/lxc", format!("containers={containers}"))
}

fn lxc(spoil: &'static str, configuration: &str) -> process::Ended {
    let place = Place::on(&SimHost::spoilt(spoil), "lxc-pre-start.sh");
    write(&place.at("config"), configuration);
    let environment = environment(&place);
    let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    place.run(&environment, &["c1", "lxc", "pre-start"])
}

fn guest(path: &str, configuration: &str, args: &[&str]) -> process::Ended {
    proxmox(Place::on(&SimHost::spoilt(NOT_LOADED), "proxmox-hookscript.sh"), path, configuration).run(&[], args)
}

#[test]
fn a_container_without_gpu_starts_on_any_machine() {
    silent(&lxc(NOT_LOADED, "lxc.uts.name = c1\n"), "LXC");
    silent(&lxc(NOT_LOADED, &configuration(&["/srv/nvidia srv none bind"])), "a directory of that name");
    silent(&guest("lxc/100.conf", "arch: amd64\nmp0: /srv,mp=/dev/nvidia\n", &["100", "pre-start"]), "Proxmox");
}

/// `optional` is the configuration's word for: starts without.
#[test]
fn where_the_gpu_is_optional_the_start_goes_on() {
    let optional = ENTRIES.map(|entry| entry.replace("bind,", "bind,optional,"));
    let ended = lxc(NOT_LOADED, &configuration(&optional.each_ref().map(String::as_str)));
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(ended.stdout.starts_with("gpu-preflight: start of c1 goes-on [driver-not-loaded] "), "{ended:?}");
    let entry = "lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind,optional,create=file\n";
    let ended = guest("lxc/100.conf", entry, &["100", "pre-start"]);
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(ended.stderr.starts_with("gpu-preflight: start of 100 goes-on "), "{ended:?}");
}

/// The libraries are the container's own, and nvidia-uvm is needed by who was given it.
#[test]
fn what_the_container_brings_or_does_not_use_does_not_count() {
    let libraries = "sed -i s/550.163.01/550.90.07/ proc/driver/nvidia/version sys/module/nvidia/version";
    silent(&lxc(libraries, &configuration(&ENTRIES)), "other libraries");
    silent(&lxc(UVM_MISSING, &configuration(&ENTRIES[..2])), "no uvm");
    assert_eq!(lxc(UVM_MISSING, &configuration(&ENTRIES)).code(), 1);
}

#[test]
fn proxmox_s_other_guests_and_phases_are_left_alone() {
    silent(&guest("qemu-server/100.conf", "hostpci0: 0000:01:00,pcie=1\n", &["100", "pre-start"]), "a virtual machine");
    for phase in ["post-start", "pre-stop", "post-stop"] {
        silent(&guest("lxc/100.conf", DEVICES, &["100", phase]), phase);
    }
    let snapshot = "arch: amd64\n\n[before]\ndev0: /dev/nvidia0\n";
    silent(&guest("lxc/100.conf", snapshot, &["100", "pre-start"]), "a snapshot had it");
}

/// The real one, on a machine made to look like a GPU host: the container's init says by its exit code, which LXC
/// logs, whether it has the node.
#[test]
fn lxc_itself_starts_the_good_and_refuses_the_bad() {
    if !needs::root() || !needs::tools(&["lxc-start", "cc"]) {
        return;
    }
    for (host, starts) in [(SimHost::default(), true), (SimHost::spoilt(UVM_MISSING), false)] {
        let place = Place::on(&SimHost::bare(), "lxc-pre-start.sh");
        write(
            &place.at("init.c"),
            "#include <sys/stat.h>\nint main(){struct stat s;return stat(\"/dev/nvidia0\",&s)?1:42;}",
        );
        let init = process::compile_c(&place.at("init.c"), &format!("lxc-init-{starts}"), &["-static"]);
        for directory in ["sbin", "dev", "proc", "sys"] {
            std::fs::create_dir_all(place.at("c1/rootfs").join(directory)).expect("a directory");
        }
        std::fs::copy(init, place.at("c1/rootfs/sbin/init")).expect("a program");
        let (rootfs, hook) = (place.at("c1/rootfs"), place.installed());
        let more = format!(
            "lxc.rootfs.path = dir:{}\nlxc.net.0.type = empty\nlxc.apparmor.profile = unconfined\nlxc.hook.pre-start = {}\n",
            rootfs.display(),
            hook.display()
        );
        let own = configuration(&ENTRIES).replace("lxc.cgroup2.devices.allow = c 195:* rwm\n", "") + &more;
        write(&place.at("c1/config"), own);
        let [containers, log] = [".", "log"].map(|name| place.at(name).display().to_string());
        let ended = host.run(["lxc-start", "-P", &containers, "-n", "c1", "-F", "-l", "debug", "-o", &log]).end();
        // LXC leaves these behind, empty.
        for hierarchy in std::fs::read_dir("/sys/fs/cgroup").expect("cgroups").flatten() {
            let _ = std::fs::remove_dir(hierarchy.path().join("lxc.pivot"));
        }
        let log = std::fs::read_to_string(place.at("log")).expect("LXC's log");
        assert_eq!(ended.status.success(), starts, "{ended:?}\n{log}");
        assert_eq!(log.contains("start of c1 refused [uvm-node-missing]"), !starts, "{log}");
    }
}
