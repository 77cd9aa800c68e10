//! The drop-in of `--build-host`: docker's classic builder runs its steps as containers that look like any other.

/// The file.
pub const FILE: &str = "/etc/gpu-preflight/conf.d/50-build-host.toml";

/// What is in it.
pub const TEXT: &str = "\
# Made by `gpu-preflight install --build-host`: on this machine images are built, and a step of docker's classic
# builder cannot be told from a container whose GPU was forgotten.
[severity]
gpu-not-requested = \"warning\"
";
