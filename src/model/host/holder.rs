//! Who a process on a GPU is.

use serde::Serialize;

/// A process on a GPU, as its files below `/proc` tell. Its command line is left alone, which may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Holder {
    /// The short name of its program, which the program may choose: `python3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Its user's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Its user's name in the machine's own list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Its container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<HeldBy>,
    /// UID of its Kubernetes pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Its systemd unit: `ollama.service`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// It is below a user's own service manager: what its cgroup is called there is that user's choice.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_user_manager: bool,
}

/// A container, by its cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldBy {
    /// Whose it is: `docker`, `podman`, `containerd`, `cri-o`; `None`: the cgroup does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<&'static str>,
    /// Its id, 64 hexadecimal digits.
    pub id: String,
}
