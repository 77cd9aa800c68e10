//! Real engines on simulated machines with GPUs: the right starts start, the wrong ones are refused in the words
//! that a user of the engine sees.

mod containerd;
mod cri;
mod docker;
mod lay;
mod machine;
mod podman;
mod removed;
mod rows;
