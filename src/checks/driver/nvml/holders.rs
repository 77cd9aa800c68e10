//! Who is on a GPU, in words, and how to end it.

use crate::model::host::{Holder, Host, NvmlProcess};
use crate::model::wording::quote;

const MIB: u64 = 1 << 20;
/// So many are named, those that hold most.
const NAMED: usize = 2;
/// As engines show them, and take them.
const SHORT_ID: usize = 12;

/// What asks the driver, where nobody knows a better way.
const ASK: &str = "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv";

/// `python3 (pid 4711, user alice, docker container 0123456789ab) 70000 MiB`, and how many more there are.
pub(super) fn words(host: &Host, processes: &[&NvmlProcess]) -> String {
    let named: Vec<String> = processes.iter().take(NAMED).map(|process| one(host, process)).collect();
    match processes.len().saturating_sub(NAMED) {
        0 => named.join(" and "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn one(host: &Host, process: &NvmlProcess) -> String {
    let memory = process.memory.map(|bytes| format!(" {} MiB", bytes / MIB)).unwrap_or_default();
    let Some(pid) = process.pid else { return format!("a process{memory}") };
    let Some(holder) = host.gpu_processes.get(&pid) else { return format!("pid {pid}{memory}") };
    let mut of = vec![format!("pid {pid}")];
    match (&holder.user, holder.uid) {
        (Some(user), _) => of.push(format!("user {}", name(user))),
        (None, Some(uid)) => of.push(format!("uid {uid}")),
        (None, None) => {}
    }
    if let Some(container) = &holder.container {
        let engine = container.engine.map(|engine| format!("{engine} ")).unwrap_or_default();
        of.push(format!("{engine}container {}", short(&container.id)));
    } else if let Some(unit) = &holder.unit {
        of.push(format!("unit {unit}"));
    }
    if let Some(pod) = &holder.pod {
        of.push(format!("pod {pod}"));
    }
    let program = holder.program.as_deref().map_or_else(|| "a process".to_owned(), name);
    format!("{program} ({}){memory}", of.join(", "))
}

/// A program chooses its own name: what is not plain is quoted.
fn name(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:/+@-".contains(&byte);
    if text.bytes().all(is_plain) { text.to_owned() } else { quote(text) }
}

fn short(id: &str) -> &str {
    id.get(..SHORT_ID).unwrap_or(id)
}

/// The command that ends the one that holds most, in the words of who started it.
pub(super) fn end(host: &Host, processes: &[&NvmlProcess]) -> String {
    let Some(pid) = processes.first().and_then(|process| process.pid) else { return ASK.to_owned() };
    // in a container, what NVML calls 4711 may be another process here
    host.gpu_processes.get(&pid).map_or_else(|| ASK.to_owned(), |holder| end_of(pid, holder))
}

fn end_of(pid: u32, holder: &Holder) -> String {
    // There its user's own engine would have to be asked, as that user, and what cgroups are called is the user's choice.
    if holder.of_user_manager {
        return format!("kill {pid}");
    }
    match (&holder.container, &holder.unit) {
        (Some(container), _) if holder.pod.is_some() => {
            format!("crictl inspect {} | grep io.kubernetes.pod   # then: kubectl delete pod", short(&container.id))
        }
        (Some(container), _) => match container.engine {
            Some(engine @ ("docker" | "podman")) => format!("{engine} stop {}", short(&container.id)),
            Some("cri-o") => format!("crictl stop {}", short(&container.id)),
            _ => format!("kill {pid}"),
        },
        (None, Some(unit)) if unit.ends_with(".service") && !unit.starts_with("user@") => {
            format!("systemctl stop {unit}")
        }
        _ => format!("kill {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::host::HeldBy;

    const POD: &str = "8e1c3c3e-4b1f-4c5a-9d47-0c0e5a1b2c3d";

    fn process(pid: u32, memory: Option<u64>) -> NvmlProcess {
        NvmlProcess { pid: Some(pid), memory: memory.map(|mib| mib * MIB) }
    }

    fn machine(holder: Holder) -> Host {
        Host { gpu_processes: [(4711, holder)].into(), ..Host::default() }
    }

    fn held(engine: Option<&'static str>) -> Holder {
        let container = Some(HeldBy { engine, id: "0123456789abcdef".repeat(4) });
        Holder {
            program: Some("python3".into()),
            user: Some("alice".into()),
            uid: Some(1000),
            container,
            ..Holder::default()
        }
    }

    #[test]
    fn those_that_hold_most_are_named_with_all_that_is_known() {
        let host = machine(held(Some("docker")));
        let all = [process(4711, Some(70_000)), process(4712, Some(8000)), process(4713, None)];
        let [first, second, third] = all.each_ref();
        let docker = "python3 (pid 4711, user alice, docker container 0123456789ab) 70000 MiB";
        assert_eq!(words(&host, &[first]), docker);
        assert_eq!(words(&host, &[first, second]), format!("{docker} and pid 4712 8000 MiB"));
        assert_eq!(words(&host, &[first, second, third]), format!("{docker}, pid 4712 8000 MiB and 1 more"));
        assert_eq!(words(&host, &[&NvmlProcess { pid: None, memory: Some(MIB) }]), "a process 1 MiB");
        let pod = Holder { pod: Some(POD.into()), uid: Some(7), user: None, ..held(Some("containerd")) };
        let of_pod = format!("python3 (pid 4711, uid 7, containerd container 0123456789ab, pod {POD})");
        assert_eq!(words(&machine(pod), &[&process(4711, None)]), of_pod);
    }

    #[test]
    fn a_name_that_would_pass_for_more_is_quoted() {
        let told = |program: &str| {
            words(&machine(Holder { program: Some(program.into()), ..Holder::default() }), &[&process(4711, None)])
        };
        assert_eq!(told("VLLM::EngineCor"), "VLLM::EngineCor (pid 4711)");
        assert_eq!(told("x (pid 1"), "\"x (pid 1\" (pid 4711)");
        assert_eq!(told("a\u{1b}[2J"), "\"a\\u{1b}[2J\" (pid 4711)");
    }

    #[test]
    fn it_is_ended_in_the_words_of_who_started_it() {
        let unit =
            |unit: &str, of_user_manager| Holder { unit: Some(unit.into()), of_user_manager, ..Holder::default() };
        for (holder, command) in [
            (held(Some("docker")), "docker stop 0123456789ab"),
            (held(Some("podman")), "podman stop 0123456789ab"),
            (held(Some("cri-o")), "crictl stop 0123456789ab"),
            (held(None), "kill 4711"),
            (Holder { of_user_manager: true, ..held(Some("podman")) }, "kill 4711"),
            (unit("ollama.service", false), "systemctl stop ollama.service"),
            (unit("user@1000.service", true), "kill 4711"),
            (unit("session-3.scope", false), "kill 4711"),
            (Holder::default(), "kill 4711"),
        ] {
            assert_eq!(end(&machine(holder), &[&process(4711, None)]), command);
        }
        let pod = Holder { pod: Some(POD.into()), ..held(Some("containerd")) };
        assert!(end(&machine(pod), &[&process(4711, None)]).starts_with("crictl inspect 0123456789ab "));
        assert_eq!(end(&Host::default(), &[&process(1, None)]), ASK);
        assert_eq!(end(&Host::default(), &[&NvmlProcess::default()]), ASK);
    }
}
