//! docker after `uninstall`, and with a file that somebody else has written: what the one that runs has in memory counts.

use super::lay;
use super::machine::{LIBEXEC, Machine};
use crate::support::process::Ended;

const FILE: &str = "/etc/docker/daemon.json";

/// Without a default runtime: a reload leaves docker the one it has.
const SETTINGS: &str = "{\"iptables\": false, \"bridge\": \"none\"}\n";

#[test]
fn docker_20_is_asked_what_it_still_calls() {
    let Some(machine) = Machine::debian_12(&["docker", "dockerd", "containerd", "runc"]) else { return };
    all(&machine);
}

#[test]
fn docker_26_is_asked_what_it_still_calls() {
    let Some(machine) = Machine::debian_13() else { return };
    all(&machine);
}

fn all(machine: &Machine) {
    machine.put(FILE, SETTINGS);
    machine.gpu_preflight("install docker");
    lay::cdi(machine);
    lay::legacy(machine);
    start(machine);
    machine.shell(&format!("{} | docker import - plain", lay::root_of_images(machine)));
    assert!(machine.gpu_preflight("status").contains("checked by its default runtime"), "before all");
    lingers(machine);
    is_broken(machine);
    keeps_the_name(machine);
}

/// Somebody else has written the file without the registration; the program must stay until docker is restarted.
fn lingers(machine: &Machine) {
    machine.put(FILE, SETTINGS);
    for command in ["uninstall docker", "uninstall docker", "uninstall"] {
        let said = machine.gpu_preflight(command);
        let restarts = said.contains("then: systemctl restart docker") && said.contains(&format!("leave {LIBEXEC}"));
        assert!(restarts, "{command}: {said}");
    }
    let said = status(machine);
    assert!(said.stdout.contains("checked still, until it is restarted"), "{said:?}");
    assert!(said.stdout.contains("warning [preflight-not-loaded]"), "{said:?}");
    machine.shell(&format!("mv {LIBEXEC} /root/away"));
    let said = status(machine);
    assert_eq!(said.code(), 1, "{said:?}");
    assert!(said.stdout.contains("error [preflight-not-loaded]"), "{said:?}");
    let ran = machine.run(["docker", "run", "--rm", "--network=none", "plain", "/app"]).end();
    assert_ne!(ran.code(), 0, "it is an error indeed");
    machine.shell(&format!("mv /root/away {LIBEXEC}"));
}

/// Neither install nor a restart helps a docker whose file it cannot read.
fn is_broken(machine: &Machine) {
    machine.gpu_preflight("install docker");
    machine.put(FILE, "{ oops");
    let said = status(machine);
    assert!(
        said.stdout.contains("[docker-configuration-invalid]") && said.stdout.contains("line 1 column 3"),
        "{said:?}"
    );
    for words in ["preflight-overwritten", "preflight-not-loaded", "install docker", "systemctl"] {
        assert!(!said.stdout.contains(words), "{words}: {said:?}");
    }
    let host = machine.run(["/opt/gpu-preflight/gpu-preflight", "host"]).end();
    assert!(host.stdout.contains("warning [docker-configuration-invalid]"), "{host:?}");
    // what is said of it is so
    for text in ["{ oops", "{\"debug\": true,}", "["] {
        machine.put("/root/tried.json", text);
        let tried = "timeout -k 1 9 dockerd --config-file=/root/tried.json --host=unix:///root/d --pidfile=/root/d.pid \
            --data-root=/root/d.data --exec-root=/root/d.exec 2>&1 || true";
        let said = machine.shell(tried);
        assert!(said.contains("unable to configure the Docker daemon with file"), "{text}: {said}");
        machine.put(FILE, text);
        assert!(status(machine).stdout.contains("[docker-configuration-invalid]"), "{text}");
    }
    // docker 20.10 starts with the first two, 26 with the last two
    for text in ["{} behind", "{}", ""] {
        machine.put(FILE, text);
        assert!(!status(machine).stdout.contains("[docker-configuration-invalid]"), "{text}");
    }
    machine.put(FILE, SETTINGS);
}

/// A container remembers our name: docker was reloaded, and still gives it to all that it makes.
fn keeps_the_name(machine: &Machine) {
    machine.gpu_preflight("install docker");
    stop(machine);
    start(machine);
    machine.shell("docker create --name kept --network=none plain /app");
    assert!(machine.gpu_preflight("uninstall docker").contains("then: systemctl restart docker"));
    machine.shell("kill -HUP $(cat /run/docker.pid)");
    machine.wait_until("docker info --format '{{json .}}' | grep -q '\"gpu-preflight\":{\"path\":\"runc\"'");
    assert_eq!(machine.shell("docker info --format '{{.DefaultRuntime}}'"), "gpu-preflight\n");
    machine.shell("docker rm kept");
    let said = machine.gpu_preflight("uninstall docker");
    assert!(said.contains("then: systemctl restart docker") && !said.contains("reload docker"), "{said}");
    let said = status(machine);
    assert!(said.stdout.contains("each container that it makes remembers the name"), "{said:?}");
    assert!(said.stdout.contains("systemctl restart docker"), "{said:?}");
    stop(machine);
    start(machine);
    assert!(machine.gpu_preflight("uninstall").contains("no engine has it"));
    assert_eq!(std::fs::read_to_string(machine.at(FILE)).expect("docker's configuration"), SETTINGS);
}

fn status(machine: &Machine) -> Ended {
    machine.run(["/opt/gpu-preflight/gpu-preflight", "status"]).end()
}

fn start(machine: &Machine) {
    machine.serve("dockerd", "docker version");
}

fn stop(machine: &Machine) {
    machine.shell("kill $(cat /run/docker.pid)");
    machine.wait_until("! kill -0 $(cat /run/docker.pid)");
}
