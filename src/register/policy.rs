//! The drop-in of `--build-host`: a job that compiles in a container of `docker run` looks like one whose GPU was
//! forgotten.

/// The file.
pub const FILE: &str = "/etc/gpu-preflight/conf.d/50-build-host.toml";

/// The directories that are made for it where they are absent, the uppermost first.
pub const DIRECTORIES: [&str; 2] = ["/etc/gpu-preflight", "/etc/gpu-preflight/conf.d"];

/// What is in it.
pub const TEXT: &str = "\
# Made by `gpu-preflight install --build-host`: on this machine software is built in containers of `docker run`, which
# cannot be told from containers whose GPU was forgotten. (Steps of image builds are known without this file.)
[severity]
gpu-not-requested = \"warning\"
";
